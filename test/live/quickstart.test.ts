/**
 * Real data through the running process: thousands of messy records in over HTTP, a dozen and more views over them,
 * random changes; after every hundred changes each view equals a fresh run, and so does its stream replayed from the
 * start.
 *
 * Why everything at once and through the front door: this is what the service is for (laws L1 and L2), and nothing here
 * knows how it is made.
 */
import { isDeepStrictEqual } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { EventStream, type StreamEvent } from "../../kit/checks/EventStream.ts"
import { type Answer, type Body, bodyOf } from "../../kit/checks/http.ts"
import { Mirror } from "../../kit/checks/Mirror.ts"
import { freshRun } from "../../kit/checks/oracle.ts"
import { messy, mutate, type Sample, samples } from "../../kit/data/dataset.ts"
import { type LiveView, liveViews } from "../../kit/data/liveViews.ts"
import { type Rng, rng, runs, seed, seeded } from "../../kit/data/random.ts"
import { registration } from "../../kit/data/registration.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"

const file = "test/live/quickstart.test.ts"
const mirror = new Mirror()
const streams = new Map<string, EventStream>()
const folder = temporaryFolder()
const sqlite = { dataDir: folder, env: { STORE_ADDR: undefined } }
let data: ReadonlyArray<Sample> = []
let door: Door

const post = async (path: string, body: unknown): Promise<Answer> => {
  const answer = await send(door, { ask: `POST ${path}`, body })
  if (answer.status !== 200)
    throw new Error(
      `${path} answered ${answer.status}: ${answer.text.slice(0, 300)}\nto ${JSON.stringify(body).slice(0, 300)}`
    )
  return answer
}
const read = async (view: LiveView, format: string): Promise<Body> =>
  bodyOf(await send(door, { ask: `GET /view/${encodeURIComponent(view.id)}?format=${format}` }))

beforeAll(async () => {
  data = messy(rng(seed), samples())
  door = await Door.start(sqlite)
  for (const view of liveViews) {
    await post("/view/register", registration(view.id, view.surql, { params: view.params ?? null, ttl: "1d" }))
    streams.set(view.id, await EventStream.open(door.url, `/view/${encodeURIComponent(view.id)}/stream`, secret))
  }
})
afterAll(async () => {
  for (const stream of streams.values()) stream.close()
  await door.close()
  removeFolder(folder)
})

/** Rows of a stream replayed from its first event; throws when a delta contradicts what went before (law L2). */
const replay = (events: ReadonlyArray<StreamEvent>): Map<string, number> => {
  const rows = new Map<string, number>()
  for (const { event, id, data: body } of events) {
    if (event === "snapshot") {
      if (rows.size > 0) throw new Error("a second snapshot in one stream")
      for (const [key, version] of body["result_data"] as ReadonlyArray<[string, number]>) rows.set(key, version)
      continue
    }
    const delta = body as {
      additions: ReadonlyArray<[string, number]>
      updates: ReadonlyArray<[string, number]>
      removals: ReadonlyArray<string>
    }
    if (delta.additions.length + delta.updates.length + delta.removals.length === 0)
      throw new Error(`delta ${id} says nothing`)
    for (const key of delta.removals)
      if (!rows.delete(key)) throw new Error(`delta ${id} removes ${key}, which is not there`)
    for (const [key, version] of delta.updates) {
      if (!rows.has(key)) throw new Error(`delta ${id} updates ${key}, which is not there`)
      rows.set(key, version)
    }
    for (const [key, version] of delta.additions) {
      if (rows.has(key)) throw new Error(`delta ${id} adds ${key}, which is there`)
      rows.set(key, version)
    }
  }
  return rows
}

const checkView = async (view: LiveView): Promise<number> => {
  const fresh = freshRun(view.surql, view.params ?? {}, mirror)
  const tree = await read(view, "tree")
  if (!isDeepStrictEqual(tree["result_data"], fresh.rows))
    expect(tree["result_data"], `view ${view.id}`).toEqual(fresh.rows)
  const flat = await read(view, "flat")
  const listed = flat["result_data"] as ReadonlyArray<readonly [string, number]>
  if (view.grouped === true) expect(listed.length).toBe(fresh.rows.length)
  else if (
    !isDeepStrictEqual(
      listed.map(([key]) => key),
      fresh.keys
    )
  )
    expect(
      listed.map(([key]) => key),
      `ids of view ${view.id}`
    ).toEqual(fresh.keys)
  if (view.grouped !== true)
    expect(
      listed.map(([key, version]) => mirror.expectVersion(key, version)).filter((fault) => fault !== undefined),
      `versions of view ${view.id}`
    ).toEqual([])
  const stream = streams.get(view.id)
  if (stream === undefined) throw new Error(`no stream of ${view.id}`)
  await until(
    `the stream of ${view.id} has come as far as the view`,
    () => stream.events.at(-1)?.data["result_hash"] === flat["result_hash"]
  )
  expect([...replay(stream.events)].sort(), `stream of view ${view.id}`).toEqual(
    [...listed.map(([key, version]) => [key, version])].sort()
  )
  if (view.byHand !== undefined) {
    const table = /FROM (\w+)/.exec(view.surql)?.[1]
    const expected = mirror
      .all(table)
      .filter((held) => view.byHand?.(held.json))
      .map((held) => held.id.text)
    expect([...listed.map(([key]) => key)].sort(), `view ${view.id} by hand`).toEqual(expected.sort())
  }
  return listed.length
}

const checkAll = async (): Promise<ReadonlyMap<string, number>> => {
  // Side by side: the process renders one view while the next is run afresh here.
  const sizes = await Promise.all(liveViews.map(async (view) => [view.id, await checkView(view)] as const))
  return new Map(sizes)
}

describe("real data", () => {
  it("is taken in over HTTP, one by one and in arrays, every record answered 200", async () => {
    expect(data.length).toBeGreaterThan(5_000)
    const singles = data.filter((_, index) => index % 5 === 0)
    const arrays = data.filter((_, index) => index % 5 !== 0)
    const change = ({ table, id, record }: Sample): Body => ({ table, op: "CREATE", id, record })
    let next = 0
    const lane = async (): Promise<void> => {
      for (let sample = singles[next++]; sample !== undefined; sample = singles[next++])
        await post("/ingest", change(sample))
    }
    await Promise.all(Array.from({ length: 16 }, lane))
    for (let from = 0; from < arrays.length; from += 100)
      await post("/ingest", arrays.slice(from, from + 100).map(change))
    for (const { id, record } of data) mirror.put(id, record)
  })
  it("L1 L2 is in every view as a fresh run gives it, and in every stream replayed from the start", async () => {
    const sizes = await checkAll()
    expect(
      [...sizes].filter(([, size]) => size === 0).map(([id]) => id),
      "views that show nothing test nothing"
    ).toEqual([])
  })
  it("D1 D2 comes back as it went in: nulls, missing fields, mixed types and odd strings", async () => {
    const rows = (await read(liveViews[0] as LiveView, "tree"))["result_data"] as ReadonlyArray<Body>
    const byId = new Map(rows.map((row) => [String(row["id"]), row]))
    const sent = data.filter((sample) => sample.table === "movies")
    const isDate = (value: unknown): boolean => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)
    const changed = sent.filter(
      ({ id, record }) => !Object.values(record).some(isDate) && !isDeepStrictEqual(byId.get(id), { ...record, id })
    )
    expect(changed.slice(0, 3)).toEqual([])
    expect(rows.length).toBe(sent.length)
    expect(
      rows.some((row) => typeof row["Title"] === "number") &&
        rows.some((row) => row["Distributor"] === null) &&
        rows.some((row) => !("Distributor" in row))
    ).toBe(true)
  })
})

/** One random change, sent later, already in the mirror. */
const randomChange = (random: Rng, done: Map<string, number>): Body => {
  const target = random.pick(data)
  const { table, id } = target
  const held = mirror.get(Mirror.idOf(id).text)
  const other = random.pick(data.filter((sample) => sample.table === table))
  const kind = random.next()
  const count = (what: string): void => void done.set(what, (done.get(what) ?? 0) + 1)
  if (held === undefined) {
    count("create again")
    mirror.put(id, other.record)
    return { table, op: "CREATE", id, record: other.record }
  }
  if (kind < 0.15) {
    count("delete")
    mirror.delete(id)
    return { table, op: "DELETE", id, record: {} }
  }
  if (kind < 0.2) {
    count("deliver again")
    return { table, op: random.pick(["CREATE", "UPDATE"]), id, record: held.json }
  }
  count("update")
  const record = mutate(random, held.json, other.record)
  mirror.put(id, record)
  return {
    table,
    op: random.pick(["UPDATE", "update", "CREATE"]),
    id,
    record: random.chance(0.1) ? { ...record, id: held.id.text } : record
  }
}

describe("random changes", () => {
  const rounds = runs(6)
  seeded(
    `D3 D4 D8 D11 L1 L2 ${rounds} times a hundred random updates and deletes: each view and each stream equals a fresh run`,
    file,
    async (random) => {
      const done = new Map<string, number>()
      for (let round = 0; round < rounds; round++) {
        for (let sent = 0; sent < 100; ) {
          const size = random.chance(0.2) ? 2 + random.below(9) : 1
          const changes = Array.from({ length: size }, () => randomChange(random, done))
          await post("/ingest", size === 1 ? changes[0] : changes)
          sent += size
        }
        await checkAll()
      }
      for (const what of ["update", "delete", "deliver again", "create again"])
        expect(done.get(what) ?? 0, what).toBeGreaterThan(rounds / 5)
      const deltas = [...streams.values()].map((stream) => stream.events.length - 1)
      expect(
        deltas.reduce((sum, count) => sum + count, 0),
        "streams had something to say"
      ).toBeGreaterThan(5_000)
    },
    600_000
  )
})

/**
 * Each view as it stands: hash, and the rows that were checked before. Groups have versions of their own, which do not
 * last yet.
 */
const hashes = async (): Promise<ReadonlyArray<unknown>> =>
  Promise.all(
    liveViews.map(async (view) => {
      const { content_generation: _, ...answer } = await read(view, view.grouped === true ? "tree" : "flat")
      return view.grouped === true ? answer["result_data"] : answer
    })
  )

describe("the same data another way", () => {
  it("L5 D22 D23 a restart gives the same rows, versions and hashes", async () => {
    const before = await hashes()
    for (const stream of streams.values()) stream.close()
    expect(await door.stop()).toEqual({ code: 0, signal: null })
    door = await Door.start(sqlite)
    expect(await hashes()).toEqual(before)
  })
  seeded(
    "L5 D4 another order of arrival, with the versions along, gives the same rows and hashes",
    file,
    async (random) => {
      const before = await hashes()
      const versions = new Map<string, number>()
      for (const table of ["movies", "earthquakes", "cars"]) {
        const answer = await post("/view/register", registration(`all of ${table}`, `SELECT * FROM ${table}`))
        for (const [key, version] of bodyOf(answer)["result_data"] as ReadonlyArray<[string, number]>)
          versions.set(key, version)
      }
      const shuffled = mirror
        .all()
        .map((held) => ({ held, at: random.next() }))
        .sort((a, b) => a.at - b.at)
        .map(({ held }) => held)
      expect(shuffled.length).toBeGreaterThan(4_000)
      await door.close()
      door = await Door.start()
      const changes = shuffled.map(
        ({ id, json }): Body => ({
          table: id.table,
          op: "UPDATE",
          id: id.text,
          record: { ...json, _svc_rv: versions.get(id.text) ?? -1 }
        })
      )
      const half = changes.length >> 1
      for (let from = 0; from < half; from += 100)
        await post("/ingest", changes.slice(from, Math.min(half, from + 100)))
      for (const view of liveViews)
        await post("/view/register", registration(view.id, view.surql, { params: view.params ?? null, ttl: "1d" }))
      for (let from = half; from < changes.length; from += 100) await post("/ingest", changes.slice(from, from + 100))
      expect(await hashes()).toEqual(before)
    },
    120_000
  )
})
