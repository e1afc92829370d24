/**
 * One soak: load at a fixed rate for so many minutes, a line for each process every minute, and at the end what is
 * wrong.
 *
 * The rate is fixed and not "as fast as it goes", so that a change costs the same at every minute unless the node has
 * become slower. What goes wrong on the way (an answer nobody expects, a process that ends by itself) ends the run and
 * is its fault.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { request } from "../../kit/checks/http.ts"
import { secret, sleep } from "../../kit/processes/Door.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import type { Backend } from "./backend.ts"
import { judge, type Minute } from "./judge.ts"
import * as Nodes from "./nodes.ts"
import * as Probe from "./probe.ts"
import { chance } from "./random.ts"
import { Reference } from "./reference.ts"
import { insist, Views } from "./views.ts"
import { type Change, jobTable, World } from "./world.ts"

export interface Options {
  readonly form: Nodes.Form
  readonly minutes: number
  readonly seed: number
  /** Changes a second. */
  readonly rate: number
  readonly say: (line: string) => void
}

const perRequest = 100
/** Requests under way together. A record has its lane, so that its changes arrive in their order. */
const lanes = 4
const laneOf = ({ id }: Change): number => Number(/\d+$/.exec(id)?.[0]) % lanes
const viewsPerSecond = 4
const streamsPerSecond = 1
/** Jobs that were cut off come again when their lease has run out; a moved view is there soon. */
const calmMs = 180_000

/** What is known of one life of a process. */
interface Life {
  readonly process: Process
  readonly startedAt: number
  readonly fromChanges: number
  readonly minutes: Array<Minute>
  cpuSeconds: number
  changes: number
}

const startOf = (figures: Probe.Figures): number => figures.get("process_start_time_seconds") ?? Number.NaN

export class Soak {
  readonly #options: Options
  readonly #nodes: Nodes.Nodes
  readonly #backend: Backend
  readonly #world: World
  readonly #views: Views
  readonly #signal: AbortSignal
  readonly #reference = new Reference()
  readonly #restarting = new Set<Process>()
  readonly #lives = new Map<Process, Life>()
  readonly #past: Array<Life> = []
  #sent = 0
  #restarts = 0
  #endAt = 0
  #failure: Error | undefined

  constructor(options: Options, nodes: Nodes.Nodes, backend: Backend, signal: AbortSignal) {
    this.#options = options
    this.#nodes = nodes
    this.#backend = backend
    this.#signal = signal
    this.#world = new World(chance(options.seed, 1))
    this.#views = new Views(nodes.url, chance(options.seed, 2), chance(options.seed, 3), () => this.#stopped())
  }

  /** What the nodes are told of jobs. */
  static config(folder: string, backend: Backend, token: string): string {
    const path = join(folder, "svc.yml")
    writeFileSync(
      path,
      `job_tables:\n  ${jobTable}: { name: soak, base_url: "${backend.url}", auth_token: ${token}, timeout_ms: 5000, concurrency: 32 }\n`,
      { mode: 0o600 }
    )
    return path
  }

  /** Runs it; what was wrong. */
  async run(): Promise<ReadonlyArray<string>> {
    const { minutes, say } = this.#options
    for (const batch of chunks(this.#world.filling(), 500)) await this.#send(batch)
    await this.#views.fill()
    this.#endAt = performance.now() + minutes * 60_000
    await this.#lookAtAll(0)
    await Promise.all(
      [
        this.#changes(),
        this.#every(viewsPerSecond, () => this.#views.act()),
        this.#every(streamsPerSecond, () => this.#views.stir()),
        this.#minutes(),
        this.#restartsOf(),
        this.#alive()
      ].map((loop) => this.#guard(loop))
    )
    this.#reference.stop()
    this.#views.closeStreams()
    if (this.#signal.aborted) return ["it was stopped before its time"]
    if (this.#failure !== undefined) return [this.#failure.message, ...this.#troubles()]
    const faults = [...(await this.#compare("at the end"))]
    if (this.#nodes.last !== undefined) {
      await Nodes.restart(this.#nodes.last, "kill")
      await this.#nodes.settled()
      faults.push(...(await this.#compare("after a last kill -9 and start")))
    }
    say(
      `done: ${JSON.stringify({ ...this.#world.made, ...this.#views.done, calls: this.#backend.calls(), restarts: this.#restarts })}`
    )
    for (const life of [...this.#past, ...this.#lives.values()]) {
      const verdict = judge(life.process.name, life.minutes)
      if (life.minutes.length > 1) say(verdict.text)
      faults.push(...verdict.faults)
    }
    return faults.length === 0 ? [] : [...faults, ...this.#troubles()]
  }

  #stopped(): boolean {
    return this.#failure !== undefined || this.#signal.aborted
  }

  #over(): boolean {
    return this.#stopped() || performance.now() >= this.#endAt
  }

  async #guard(loop: Promise<void>): Promise<void> {
    await loop.catch((error: unknown) => {
      if (!this.#stopped()) this.#failure = error instanceof Error ? error : new Error(String(error))
    })
  }

  async #send(batch: ReadonlyArray<Change>): Promise<void> {
    await insist(
      () => request(this.#nodes.url, { method: "POST", path: "/ingest", token: secret, body: batch }),
      [200],
      () => this.#stopped()
    )
    this.#sent += batch.length
  }

  /** Changes at the rate; what could not be sent while a node was away is not made up for. */
  async #changes(): Promise<void> {
    const queues = Array.from({ length: lanes }, (): Array<Change> => [])
    let done = false
    const lane = async (queue: Array<Change>): Promise<void> => {
      while (!this.#stopped() && !(done && queue.length === 0)) {
        if (queue.length >= perRequest || (done && queue.length > 0)) await this.#send(queue.splice(0, perRequest))
        else await sleep(5)
      }
    }
    const make = async (): Promise<void> => {
      const { rate } = this.#options
      let [from, made] = [performance.now(), 0]
      while (!this.#over()) {
        const due = ((performance.now() - from) / 1000) * rate
        if (due - made > rate) [from, made] = [performance.now(), 0]
        else if (made >= due || queues.some((queue) => queue.length > perRequest * 3)) await sleep(5)
        else
          for (const change of this.#world.next()) {
            queues[laneOf(change)]!.push(change)
            made++
          }
      }
      done = true
    }
    await Promise.all([make(), ...queues.map(lane)])
  }

  async #every(perSecond: number, act: () => Promise<void>): Promise<void> {
    for (let next = performance.now(); !this.#over(); next = Math.max(next + 1000 / perSecond, performance.now())) {
      while (performance.now() < next && !this.#over()) await sleep(Math.min(50, Math.max(1, next - performance.now())))
      if (!this.#over()) await act()
    }
  }

  async #minutes(): Promise<void> {
    for (let minute = 1; minute <= this.#options.minutes; minute++) {
      const due = this.#endAt - (this.#options.minutes - minute) * 60_000 - 500
      while (performance.now() < due && !this.#stopped()) await sleep(100)
      if (this.#stopped()) return
      await this.#lookAtAll(minute)
    }
  }

  async #lookAtAll(minute: number): Promise<void> {
    const referenceMicros = this.#reference.take()
    for (const process of this.#nodes.all) {
      if (this.#restarting.has(process)) continue
      const changes = this.#sent
      const seen = await Probe.look(process)
      if (seen === undefined) {
        this.#options.say(`minute ${minute} ${process.name}: no answer`)
        continue
      }
      this.#note(minute, process, changes, { ...seen, referenceMicros })
    }
  }

  #note(
    minute: number,
    process: Process,
    changes: number,
    {
      cpuAfter,
      look,
      referenceMicros
    }: { readonly look: Probe.Look; readonly cpuAfter: number; readonly referenceMicros: number }
  ): void {
    const startedAt = startOf(look.figures)
    const before = this.#lives.get(process)
    const same = before !== undefined && Math.abs(before.startedAt - startedAt) < 1
    if (before !== undefined && !same) this.#past.push(before)
    const life = same
      ? before
      : {
          process,
          startedAt,
          fromChanges: before === undefined ? 0 : before.changes,
          minutes: [],
          cpuSeconds: 0,
          changes
        }
    this.#lives.set(process, life)
    const cpuMicrosPerChange = same
      ? ((look.cpuSeconds - life.cpuSeconds) * 1e6) / Math.max(1, changes - life.changes)
      : Number.NaN
    if (same)
      life.minutes.push({
        changes: changes - life.fromChanges,
        heapBytes: look.heap.data,
        cpuMicrosPerChange,
        referenceMicros
      })
    life.cpuSeconds = cpuAfter
    life.changes = this.#sent
    this.#options.say(
      this.#line(minute, process.name, changes, { cpu: cpuMicrosPerChange, reference: referenceMicros }, look)
    )
  }

  #line(
    minute: number,
    name: string,
    changes: number,
    micros: { readonly cpu: number; readonly reference: number },
    { figures, heap }: Probe.Look
  ): string {
    const count = (...names: ReadonlyArray<string>): string => {
      const found = names.flatMap((each) => figures.get(each) ?? [])
      return found.length === 0 ? "-" : found.reduce((sum, each) => sum + each, 0).toLocaleString("en")
    }
    const shown: ReadonlyArray<readonly [string, string]> =
      name === "scheduler"
        ? [
            ["views", count("svc_scheduler_views")],
            ["jobs", count("svc_scheduler_jobs")],
            ["log events", count("svc_scheduler_log_events")],
            ["lag", count("svc_scheduler_ssp_lag_events")],
            ["overflows", count("svc_scheduler_ssp_overflows_total")]
          ]
        : [
            ["views", count("svc_ssp_views")],
            ["rows", count("svc_ssp_view_rows")],
            ["records", count("svc_ssp_records")],
            ["instances", count("svc_ssp_instances")],
            ["held", count("svc_ssp_held_rows")],
            ["tombstones", count("svc_ssp_tombstones")],
            ["streams", count("svc_ssp_streams")],
            ["jobs", count("svc_ssp_jobs")],
            ["waiting", count("svc_ingest_pending_changes", "svc_ssp_edges_pending")]
          ]
    const figuresShown = [
      ["changes", changes.toLocaleString("en")],
      ["CPU us/change", Number.isNaN(micros.cpu) ? "-" : micros.cpu.toFixed(1)],
      ["reference us", micros.reference.toFixed(0)],
      ["heap MiB", (heap.data / 1_048_576).toFixed(2)],
      ["code MiB", (heap.code / 1_048_576).toFixed(2)],
      ...shown
    ]
    return `minute ${minute} ${name}: ${figuresShown.map(([what, value]) => `${what} ${value}`).join(", ")}`
  }

  async #restartsOf(): Promise<void> {
    const { minutes, say } = this.#options
    for (const { at, how, who } of this.#nodes.restarts(minutes)) {
      const due = this.#endAt - (1 - at) * minutes * 60_000
      while (performance.now() < due && !this.#over()) await sleep(100)
      if (this.#over()) return
      this.#restarting.add(who)
      say(`${who.name} is ${how === "kill" ? "killed" : "stopped"} and started again`)
      await Nodes.restart(who, how)
      await this.#nodes.settled()
      this.#restarts++
      this.#restarting.delete(who)
    }
  }

  /** No process ends unasked. */
  async #alive(): Promise<void> {
    while (!this.#over()) {
      await sleep(500)
      for (const process of this.#nodes.all) {
        const exit = this.#restarting.has(process) ? undefined : process.door?.exit
        if (exit !== undefined)
          throw new Error(`${process.name} ended by itself, ${exit.signal ?? `code ${exit.code}`}`)
      }
    }
  }

  /** Compares until all agree; what still differs when there was time enough. */
  async #compare(when: string): Promise<ReadonlyArray<string>> {
    await this.#nodes.settled()
    const deadline = performance.now() + calmMs
    for (;;) {
      const wrong = await this.#views.compare(this.#world.mirror)
      if (wrong.length === 0) this.#options.say(`${when} every view equals a fresh run`)
      if (wrong.length === 0 || this.#stopped() || performance.now() > deadline)
        return wrong.map((text) => `${when}: ${text}`)
      await sleep(500)
    }
  }

  /** What the processes have logged last, all of it warnings and worse. */
  #troubles(): ReadonlyArray<string> {
    return this.#nodes.all.flatMap(({ logs, name }) =>
      logs
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .slice(-5)
        .map((line) => `${name} logged: ${line.slice(0, 600)}`)
    )
  }
}

const chunks = <A>(items: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
