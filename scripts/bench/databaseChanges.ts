/**
 * What the change table costs users who write, and how soon a write is an edge: a whole node beside a database, seen by
 * its clients.
 *
 * Writes with and without the events take turns in one run. The database and the node are processes of their own;
 * times are wall time as a client sees it, because what is waited for is the database.
 */
import type { RecordId, Surreal } from "surrealdb"
import { client } from "../../kit/checks/http.ts"
import { askedOver, taken } from "../../kit/data/changeTable.ts"
import { registration } from "../../kit/data/registration.ts"
import { Door, secret, sleep, until } from "../../kit/processes/Door.ts"
import type { ServerProcess } from "../../kit/processes/surreal/ServerProcess.ts"
import { type Line, median } from "./load.ts"

const rounds = 7
const writesPerRound = 200
const insertsPerRound = 3
const insertRows = 500
const restWrites = 60
const ratePerSecond = 500
const loadSecs = 8
const idleSecs = 10
const settleSecs = 15

/** A figure against its goal; both in `unit`. */
const judged = (what: string, figure: number, goal: number, unit: string): Line => ({
  what: `${what}: ${figure.toFixed(1)} ${unit}`,
  against: `${goal} ${unit}`,
  ratio: figure / goal,
  goal: 1
})

const atMost = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await run()
  return performance.now() - start
}

interface WriteTimes {
  readonly singles: Array<number>
  readonly inserts: Array<number>
}

const writeRound = async (db: Surreal, round: number, { inserts, singles }: WriteTimes): Promise<void> => {
  const took: Array<number> = []
  for (let n = 0; n < writesPerRound; n++)
    took.push(await timed(() => db.query(`UPSERT written:${n} SET n = ${round}, at = time::now(), owner = user:${n}`)))
  const many: Array<number> = []
  for (let n = 0; n < insertsPerRound; n++) {
    const rows = Array.from({ length: insertRows }, (_, i) => ({ n: i, round, text: `row ${i}` }))
    many.push(await timed(() => db.query("INSERT INTO written $rows RETURN NONE", { rows })))
  }
  // The first warms up.
  if (round === 0) return
  singles.push(median(took))
  inserts.push(median(many))
}

/** p50 of single writes and of inserts of many rows, in turns with another database of the server that has no events. */
const writeCost = async (db: Surreal, plain: Surreal): Promise<ReadonlyArray<Line>> => {
  const [fed, unfed]: readonly [WriteTimes, WriteTimes] = [
    { singles: [], inserts: [] },
    { singles: [], inserts: [] }
  ]
  for (let round = 0; round <= rounds; round++) {
    if (round % 2 === 0) await writeRound(db, round, fed)
    await writeRound(plain, round, unfed)
    if (round % 2 === 1) await writeRound(db, round, fed)
  }
  return (
    [
      ["a write with the change table", "singles", 1.5],
      [`INSERT of ${insertRows} rows with the change table`, "inserts", 3]
    ] as const
  ).map(([name, kind, goal]) => {
    const [ours, theirs] = [fed[kind], unfed[kind]]
    console.log(`    ${name.padEnd(48)} ${median(ours).toFixed(2)} ms, without ${median(theirs).toFixed(2)} ms`)
    return { what: name, against: "without", ratio: median(ours.map((ms, i) => ms / theirs[i]!)), goal }
  })
}

/** Milliseconds from the start of a write to its edge on LIVE; `pauseMs` between the starts of two. */
const edgeTimes = async (
  writer: Surreal,
  listener: Surreal,
  first: number,
  count: number,
  pauseMs: number
): Promise<ReadonlyArray<number>> => {
  const began = new Map<string, number>()
  const took: Array<number> = []
  const [id] = await listener.query<[never]>("LIVE SELECT out FROM _svc_list_ref")
  const live = await listener.liveOf(id)
  live.subscribe(({ value }) => {
    const name = String((value as { readonly out?: RecordId }).out)
    const start = began.get(name)
    if (start === undefined) return
    began.delete(name)
    took.push(performance.now() - start)
  })
  const start = performance.now()
  const writes: Array<Promise<unknown>> = []
  for (let n = 0; n < count; n++) {
    const wait = start + n * pauseMs - performance.now()
    if (wait > 1) await sleep(wait)
    began.set(`edged:${first + n}`, performance.now())
    // A query is sent when it is waited for.
    writes.push(writer.query(`CREATE edged:${first + n} SET n = ${n} RETURN NONE`).then(() => undefined))
  }
  await Promise.all(writes)
  await until(`${count} edges`, () => took.length === count, 60_000)
  await live.kill()
  return took.toSorted((a, b) => a - b)
}

const edgeDelay = async (writer: Surreal, listener: Surreal): Promise<ReadonlyArray<Line>> => {
  await edgeTimes(writer, listener, 0, 50, 20)
  const rest = await edgeTimes(writer, listener, 1_000, restWrites, 200)
  const load = await edgeTimes(writer, listener, 10_000, ratePerSecond * loadSecs, 1_000 / ratePerSecond)
  for (const [name, times] of [
    ["write to edge at rest", rest],
    [`write to edge at ${ratePerSecond} writes a second`, load]
  ] as const)
    console.log(
      `    ${name.padEnd(48)} p50 ${atMost(times, 0.5).toFixed(1)} ms, p99 ${atMost(times, 0.99).toFixed(1)} ms, most ${times.at(-1)?.toFixed(1)} ms`
    )
  return [
    judged("write to edge at rest, p50", atMost(rest, 0.5), 15, "ms"),
    judged(`write to edge at ${ratePerSecond} writes a second, p99`, atMost(load, 0.99), 100, "ms")
  ]
}

/** Starts the node and waits until it is ready; how long that took in seconds. */
const start = async (env: { readonly [name: string]: string }, dataDir: string): Promise<readonly [Door, number]> => {
  const begun = performance.now()
  const door = await Door.spawn({ env, dataDir })
  const { get } = client(door.url, secret)
  await until("the node is ready", async () => (await get("/health").catch(() => undefined))?.status === 200, 1_800_000)
  return [door, (performance.now() - begun) / 1_000]
}

/**
 * All of it, on a node that is ready beside a database which has `records` records of a table `post`; it is stopped and
 * started again. Answers the node that runs at the end.
 */
export const changes = async (
  server: ServerProcess,
  [db, listener, plain]: readonly [Surreal, Surreal, Surreal],
  door: Door,
  env: { readonly [name: string]: string },
  records: number
): Promise<{ readonly door: Door; readonly lines: ReadonlyArray<Line> }> => {
  const dataDir = door.dataDir
  await client(door.url, secret).post("/view/register", registration("edged", "SELECT * FROM edged"))
  // The hashes of records are written when a table has been quiet for some seconds.
  await sleep(settleSecs * 1_000)
  const before = await server.requests()
  await sleep(idleSecs * 1_000)
  // The look at the counter is one.
  const idle = ((await server.requests()) - before) / idleSecs
  const lines = [
    judged("statements at rest, a second", idle, 5, ""),
    ...(await edgeDelay(db, listener)),
    ...(await writeCost(db, plain))
  ]
  await taken(askedOver(db), 600_000)
  await door.stop()
  const [again, restartSecs] = await start(env, dataDir)
  lines.push(judged(`restart with ${records} records to ready`, restartSecs, 3, "s"))
  await again.stop()
  for (let n = 0; n < records; n += 500) await db.query(`UPDATE post:${n}..${n + 500} SET likes += 1 RETURN NONE`)
  const begun = performance.now()
  const [last] = await start(env, dataDir)
  await taken(askedOver(db), 1_800_000)
  const perSecond = records / ((performance.now() - begun) / 1_000 - restartSecs)
  console.log(`    a backlog of ${records} changes`.padEnd(52), `${Math.round(perSecond)} records a second`)
  lines.push({
    ...judged(`backlog of ${records} changes, records a second`, perSecond, 10_000, ""),
    ratio: 10_000 / perSecond
  })
  return { door: last, lines }
}
