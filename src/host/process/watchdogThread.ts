/**
 * The watchdog's thread: reads the shared memory that the main thread writes, and acts without it.
 *
 * Loads next to nothing, because it must work when the rest of the process does not. A slow evaluation is written to
 * the file at once and synchronously: the file exists when the process is killed or aborts a moment later. A thread
 * cannot end the process with a code of its own; the inspector interrupts the main thread, even in the middle of a
 * loop, and makes it exit. If that fails (in one long native call, or on a runtime without an inspector) the process is
 * killed.
 */
import { renameSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { workerData } from "node:worker_threads"
import { type Bounds, cells, type Finding, Watch } from "../../core/view/watch.ts"
import * as Labels from "../../core/view/watchLabels.ts"

export interface ThreadData {
  readonly memory: SharedArrayBuffer
  readonly labels: SharedArrayBuffer
  readonly bounds: Bounds
  /** File for a slow evaluation; undefined: nothing is stored. */
  readonly file: string | undefined
  /** Names this run of the machine; undefined where the system does not. */
  readonly boot: string | undefined
  readonly logFormat: "json" | "text"
  readonly exitCode: number
}

/** Interval of looks, the same as that of the beats: each look costs an idle process, and more would show no more. */
const everyMs = 100
/** Time for the main thread to exit when it is told to. */
const leaveWithinMs = 1000

const { boot, bounds, exitCode, file, labels, logFormat, memory } = workerData as ThreadData
const seen = new Int32Array(memory)
const names = new Uint8Array(labels)
const watch = new Watch(bounds)

const log = (level: "warn" | "error", message: string): void => {
  const now = new Date()
  const line =
    logFormat === "json"
      ? JSON.stringify({ time: now.toISOString(), level, message })
      : `${now.toTimeString().slice(0, 8)} ${level.padEnd(5)} ${message}`
  // The reader of the output may be gone, or the pipe full.
  for (const output of [1, 2]) {
    try {
      return void writeSync(output, `${line}\n`)
    } catch {}
  }
}

const whose = (label: Labels.Label | undefined): string =>
  label === undefined ? "no view" : `view ${JSON.stringify(label.id)} (query ${label.query})`

const onFile = (what: () => void): void => {
  try {
    what()
  } catch (error) {
    log("error", `the watchdog cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const writeDown = (path: string, label: Labels.Label, computedMs: number): void =>
  onFile(() => {
    writeFileSync(
      `${path}.new`,
      JSON.stringify({
        format: 1,
        query: label.query,
        id: label.id,
        since: Math.round(Date.now() - computedMs),
        pid: process.pid,
        boot
      }),
      { mode: 0o600 }
    )
    renameSync(`${path}.new`, path)
  })

let isLeaving = false

const leave = async (): Promise<void> => {
  setTimeout(() => process.kill(process.pid, "SIGKILL"), leaveWithinMs)
  const { Session } = await import("node:inspector")
  const session = new Session()
  session.connectToMainThread()
  session.post("Runtime.evaluate", { expression: `process.reallyExit(${exitCode})` })
}

const act = (finding: Finding): void => {
  if (finding.kind === "ended") {
    if (file !== undefined) onFile(() => rmSync(file, { force: true }))
    return
  }
  const label = Labels.read(names, finding.slot)
  if (finding.kind === "slow") {
    if (label !== undefined && file !== undefined) writeDown(file, label, finding.computedMs)
    return
  }
  if (isLeaving) return
  isLeaving = true
  // A turn of many evaluations may be too long though none of them was slow.
  if (label !== undefined && file !== undefined) writeDown(file, label, finding.computedMs)
  log(
    "error",
    `one turn of the event loop has computed for ${Math.round(finding.computedMs)} ms and goes on (SVC_MAX_TURN_MS is ${bounds.maxTurnMs}), evaluating ${whose(label)}: the process ends with exit code ${exitCode}`
  )
  leave().catch(() => process.kill(process.pid, "SIGKILL"))
}

let lookedAt = performance.now()
let cpuMicros = 0

setInterval(() => {
  const now = performance.now(),
    { system, user } = process.cpuUsage()
  const look = {
    beat: Atomics.load(seen, cells.beat),
    evaluation: Atomics.load(seen, cells.evaluation),
    slot: Atomics.load(seen, cells.slot),
    wentByMs: now - lookedAt,
    cpuMs: (system + user - cpuMicros) / 1000
  }
  lookedAt = now
  cpuMicros = system + user
  for (const finding of watch.look(look)) act(finding)
}, everyMs)
