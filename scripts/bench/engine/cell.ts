/**
 * One cell of the table in a process of its own: one peer, one workload, one size; figures go to the parent as JSON.
 *
 * Why a process each: heaps, compiled code and garbage of one peer must not weigh on another, and a peer that is too
 * slow to set up can be stopped from outside. Each change is timed by itself, after its input has been made.
 */
import { writeFileSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { type Figures, inputsAtOnce, type Peer, type Program, type Workload, type WorkloadName } from "./program.ts"
import { after, canonical, workload } from "./workloads.ts"

const peers: { readonly [name: string]: () => Promise<Peer> } = {
  ours: async () => (await import("./peers/ours.ts")).ours,
  sqlite: async () => (await import("./peers/sqlite.ts")).sqlite,
  ivm: async () => (await import("./peers/dbIvm.ts")).shared,
  tdb: async () => (await import("./peers/tanstackDb.ts")).tanstackDb,
  zero: async () => (await import("./peers/zero.ts")).zero,
  live: async () => (await import("./peers/surreal.ts")).live,
  requery: async () => (await import("./peers/surreal.ts")).requery,
  "ivm-each": async () => (await import("./peers/dbIvm.ts")).each
}

interface Order {
  readonly peer: string
  readonly workload: WorkloadName
  readonly size: number
  readonly rows: number
  readonly history: number
  readonly warmUp: number
  /** Milliseconds of CPU time that measuring may take; warming up may take half of it. */
  readonly capMs: number
  /** Where to leave a CPU profile of the measured changes, if anywhere. */
  readonly profile: string | undefined
}

const heap = (): number => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const percentile = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

const mean = (of: Float64Array): number => of.reduce((sum, one) => sum + one, 0) / of.length

/** CPU time of this process so far, all threads, in milliseconds. */
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/**
 * Applies changes from `from` on until `count` are done or the time is up; answers the time of each in microseconds.
 * The time that ends it is CPU time, so that code is as warm on a busy machine; waiting costs none, so the clock ends
 * it too.
 */
const drive = async (
  program: Program,
  work: Workload,
  from: number,
  count: number,
  capMs: number
): Promise<Float64Array> => {
  const took = new Float64Array(count)
  const [cpuEnd, wallEnd] = [cpuMs() + capMs, performance.now() + 8 * capMs]
  let done = 0
  let looked = performance.now()
  while (done < count && cpuMs() < cpuEnd && performance.now() < wallEnd) {
    const inputs = work.changes.slice(from + done, from + Math.min(count, done + inputsAtOnce)).map(program.prepare)
    for (const input of inputs) {
      const start = performance.now()
      const pending = program.apply(input)
      if (pending !== undefined) await pending
      const end = performance.now()
      took[done++] = (end - start) * 1000
      if (end - looked < 50) continue
      looked = end
      if (cpuMs() > cpuEnd || end > wallEnd) break
    }
  }
  return took.subarray(0, done)
}

/** The first view whose result is not the plain answer after `count` changes. */
const judge = (program: Program, work: Workload, count: number): string | undefined => {
  const answer = work.answer(after(work, count))
  for (let view = 0; view < work.views; view++) {
    const [is, shouldBe] = [canonical(program.result(view), work.ordered), canonical(answer(view), work.ordered)]
    if (is === shouldBe) continue
    const [some, others] = [new Set(is.split("\n")), new Set(shouldBe.split("\n"))]
    const extra = [...some].find((line) => !others.has(line))
    const missing = [...others].find((line) => !some.has(line))
    return `view ${view}: ${some.size} rows for ${others.size}; not in the answer: ${extra?.slice(0, 300) ?? "none"}; missing: ${missing?.slice(0, 300) ?? "none"}`
  }
  return undefined
}

/** Starts a CPU profile; the answer ends it and writes the file. */
const profiled = async (path: string): Promise<() => Promise<void>> => {
  const session = new Session()
  session.connect()
  await session.post("Profiler.enable")
  await session.post("Profiler.setSamplingInterval", { interval: 100 })
  await session.post("Profiler.start")
  return async () => {
    const { profile } = await session.post("Profiler.stop")
    writeFileSync(path, JSON.stringify(profile))
  }
}

const measure = async (order: Order): Promise<Figures | { readonly kind: "none" }> => {
  const work = workload(order.workload, order.size, { rows: order.rows, history: order.history + order.warmUp })
  const make = peers[order.peer]
  if (make === undefined) throw new Error(`no peer ${order.peer}`)
  const program = await (await make())(work)
  if (program === undefined) return { kind: "none" }
  const empty = heap()
  process.send?.({ kind: "phase", phase: "load" })
  const t0 = performance.now()
  await program.load()
  const t1 = performance.now()
  const loaded = heap()
  process.send?.({ kind: "phase", phase: "registration" })
  const t2 = performance.now()
  await program.register()
  const t3 = performance.now()
  const registered = heap()
  process.send?.({ kind: "phase", phase: "changes" })
  const warm = await drive(program, work, 0, order.warmUp, order.capMs / 2)
  const stop = order.profile === undefined ? undefined : await profiled(order.profile)
  const took = await drive(program, work, warm.length, order.history, order.capMs)
  await stop?.()
  await program.settle?.()
  process.send?.({ kind: "phase", phase: "check" })
  const wrong = judge(program, work, warm.length + took.length)
  const sorted = took.slice().sort()
  const shifts = (i: number) => work.shifts?.(warm.length + i)
  const still = took.filter((_, i) => (shifts(i) ?? 0) === 0).sort()
  let shiftedPages = 0,
    shifting = 0
  for (const [i, micros] of took.entries()) {
    const pages = shifts(i)
    if (typeof pages !== "number" || pages === 0) continue
    shiftedPages += pages
    shifting += micros
  }
  const rows = Object.values(work.rows).reduce((sum, table) => sum + table.length, 0)
  const figures: Figures = {
    kind: "figures",
    loadMs: t1 - t0,
    registerMs: t3 - t2,
    bytesPerRow: (loaded - empty) / rows,
    bytesPerView: (registered - loaded) / work.views,
    changes: took.length,
    median: percentile(still, 0.5),
    p99: percentile(sorted, 0.99),
    mean: mean(took),
    ...(shiftedPages > 0 ? { perShiftedPage: shifting / shiftedPages } : {}),
    correct: wrong === undefined,
    wrong,
    plan: program.plan?.()
  }
  await program.close?.()
  return figures
}

// A run that is stopped leaves no cell behind.
process.on("disconnect", () => process.exit(1))

const order = JSON.parse(process.argv[2] ?? "{}") as Order
const outcome = await measure(order).catch((error: unknown) => ({
  kind: "failed" as const,
  reason: error instanceof Error ? (error.stack ?? error.message) : String(error)
}))
if (process.send === undefined) console.log(outcome)
else process.send(outcome, () => process.exit(0))
