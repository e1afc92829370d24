/**
 * Built processes that are fed past their heap: they refuse, live on, and have everything they answered 200 after a
 * `kill -9` (D43).
 *
 * Heaps are small so that they fill in seconds; nothing here depends on how large a record is in memory.
 */
import { describe, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { request } from "../../kit/checks/http.ts"
import { install } from "../../kit/data/changeTable.ts"
import { campaign, long, runs } from "../../kit/data/random.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { Door, freePort, schedulerEnv, secret, until } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { workshop } from "../../kit/processes/workshop.ts"

const heapOf = (mebibytes: number, door = "ssp"): ReadonlyArray<string> => [
  process.execPath,
  `--max-old-space-size=${mebibytes}`,
  `dist/${door}.js`
]
/** Grows with `npm run campaign`. */
const size = Math.min(4, runs(1))
const heapMebibytes = 64 * size
/** Few large records fill a heap as well as many small ones, and sooner. Its texts are short beside a page of V8's. */
const text = Array.from({ length: 5 }, (_, i) => `${i}`.padEnd(4_000, "x"))
const batch = 20
/** Clearly more than the heap of an SSP holds: one that they just fit in spends its time collecting. */
const tooMany = 100 * batch * size
const message = /^\d+ MiB of memory are in use, .*limit of \d+ MiB.*SVC_MAX_MEMORY/

const ingest = (door: Door, body: unknown) => send(door, { ask: "POST /ingest", body: body as never })

/** As many as one request takes. */
const records = (from: number) =>
  Array.from({ length: batch }, (_, i) => create(`t:${from + i}`, { text, n: from + i }))

/** Of a text of this length two fill a page of V8's, and what is left of it fits none. */
const longText = "x".repeat(100_000)

const longRecords = (from: number) =>
  Array.from({ length: batch }, (_, i) => create(`t:${from + i}`, { text: longText + i }))

/** Feeds records until a batch is refused; answers how many were taken. */
const fill = async (door: Door, make = records): Promise<number> => {
  for (let taken = 0; ; taken += batch) {
    const answer = await ingest(door, make(taken))
    if (answer.status === 200) continue
    expect([answer.status, answer.json]).toEqual([503, { code: "OVERLOADED", message: expect.stringMatching(message) }])
    return taken
  }
}

const recordsOf = async (door: Door): Promise<unknown> =>
  ((await send(door, { ask: "GET /overview" })).json as { readonly records: number }).records

/** A scheduler that serves, how to ask it, and what an SSP needs to be its member. */
const serving = async (
  shop: ReturnType<typeof workshop>,
  onTestFinished: (end: () => Promise<void>) => void,
  options: { readonly command: ReadonlyArray<string>; readonly env?: { readonly [name: string]: string } }
) => {
  const folder = shop.folder(),
    port = await freePort(),
    url = `http://127.0.0.1:${port}`
  const door = {
    command: options.command,
    dataDir: folder,
    env: { ...schedulerEnv(folder, port), SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "50", ...options.env }
  }
  const start = async (command = options.command): Promise<Door> => {
    const scheduler = await Door.spawn({ ...door, command })
    onTestFinished(() => scheduler.close())
    await until(
      "the scheduler serves",
      async () => (await request(url, { path: "/readyz" }).catch(() => undefined))?.status === 200
    )
    return scheduler
  }
  const headers = { authorization: `Bearer ${secret}` }
  const get = (path: string) => request(url, { path, headers })
  const post = (path: string, body: unknown) => request(url, { method: "POST", path, body: body as never, headers })
  return { scheduler: await start(), door, start, get, post, env: { SCHEDULER_URL: url, STORE_ADDR: undefined } }
}

describe("D43 an SSP that is fed past its heap", () => {
  it("refuses what grows, takes what does not, has everything after kill -9, and says what a start needs", async ({
    onTestFinished
  }) => {
    const shop = workshop(onTestFinished)
    const options = { dataDir: shop.folder(), env: { STORE_ADDR: undefined }, command: heapOf(heapMebibytes) }
    const first = await shop.start(options)
    const taken = await fill(first)
    expect(taken).toBeGreaterThan(10 * batch)
    const view = await send(first, { ask: "POST /view/register", body: registration("v", "SELECT * FROM t LIMIT 3") })
    expect([view.status, view.json]).toMatchObject([503, { code: "OVERLOADED" }])
    expect((await ingest(first, change("UPDATE", "t:1", { text: "less" }))).status).toBe(200)
    const grown = await ingest(first, change("UPDATE", "t:1", { text }))
    expect(grown.status, "it grows again").toBe(503)
    expect(grown.text).toContain("; deletes and updates that do not grow are taken")
    expect((await ingest(first, change("DELETE", "t:2"))).status).toBe(200)
    const metrics = await send(first, { ask: "GET /metrics?format=prometheus" })
    expect(metrics.text).toMatch(/^svc_memory_full 1$/m)
    await first.kill()

    const tooSmall = await shop.run({ ...options, command: heapOf(48 * size) })
    expect(tooSmall.exit).toEqual({ code: 1, signal: null })
    const needed = /of (\d+) records .*--max-old-space-size=(\d+)/.exec(tooSmall.logs)
    expect(Number(needed?.[1]), "tombstones are counted").toBe(taken)
    const again = await shop.start({ ...options, command: heapOf(Number(needed?.[2])) })
    expect(await recordsOf(again)).toBe(taken - 1)
    const held = await send(again, {
      ask: "POST /view/register",
      body: registration("held", "SELECT text FROM t:1, t:2", { format: "tree" })
    })
    expect([held.status, held.text.includes('"less"')]).toEqual([200, true])
    expect((await ingest(again, create("t:new", { n: 1 }))).status).toBe(200)
    await again.kill()

    const same = await shop.start(options)
    expect(await recordsOf(same)).toBe(taken)
    for (let at = 3; at < taken / 2; at += 100)
      expect(
        (
          await ingest(
            same,
            Array.from({ length: 100 }, (_, i) => change("DELETE", `t:${at + i}`))
          )
        ).status
      ).toBe(200)
    await until(
      "it takes new records by itself",
      async () => (await ingest(same, create("t:newer", { n: 1 }))).status === 200
    )
  })

  it.runIf(long)(
    "refuses long texts too in time, though they leave much of the heap to nothing",
    async ({ onTestFinished }) => {
      const shop = workshop(onTestFinished)
      const options = { dataDir: shop.folder(), env: { STORE_ADDR: undefined }, command: heapOf(2 * heapMebibytes) }
      const first = await shop.start(options)
      const taken = await fill(first, longRecords)
      expect((await ingest(first, change("DELETE", "t:1"))).status).toBe(200)
      await first.kill()
      expect(await recordsOf(await shop.start(options))).toBe(taken - 1)
    }
  )

  it.runIf(long)("refuses views that fill it, and has them after kill -9", async ({ onTestFinished }) => {
    const shop = workshop(onTestFinished)
    const options = { dataDir: shop.folder(), env: { STORE_ADDR: undefined }, command: heapOf(heapMebibytes) }
    const first = await shop.start(options)
    expect((await ingest(first, create("t:1", { a: "b" }))).status).toBe(200)
    const view = (id: string) =>
      registration(id, "SELECT * FROM t WHERE a != $text", { params: { text: longText.repeat(5) + id } })
    let registered = 0
    for (;;) {
      const answer = await send(first, { ask: "POST /view/register", body: view(`v${registered}`) })
      if (answer.status !== 200) {
        expect([answer.status, answer.json]).toMatchObject([503, { code: "OVERLOADED" }])
        break
      }
      registered++
    }
    await first.kill()
    const tooSmall = await shop.run({ ...options, command: heapOf(40 * size) })
    expect(tooSmall.exit, tooSmall.logs.slice(-2000)).toEqual({ code: 1, signal: null })
    const fitted = /: (\d+) of (\d+) views take \d+ MiB beside .*--max-old-space-size=\d+/.exec(tooSmall.logs)
    expect([Number(fitted?.[1]) > 0, Number(fitted?.[2])]).toEqual([true, registered])
    const again = await shop.start(options)
    expect((await send(again, { ask: "GET /views?limit=1" })).json).toMatchObject({ total: registered })
    expect((await send(again, { ask: `GET /view/v${registered - 1}` })).text).toContain("t:1")
    for (let i = 0; i < registered; i++) await send(again, { ask: "POST /view/unregister", body: { id: `v${i}` } })
    await until("it has room again", async () => (await ingest(again, create("t:2", { text }))).status === 200)
  })

  it.runIf(long)("lives on with a store that keeps nothing", async ({ onTestFinished }) => {
    const ssp = await workshop(onTestFinished).start({ command: heapOf(heapMebibytes) })
    const taken = await fill(ssp)
    for (let i = 0; i < 50; i++) expect((await ingest(ssp, create(`t:more${i}`, { text }))).status).toBe(503)
    expect(await recordsOf(ssp)).toBe(taken)
    expect(ssp.exit).toBeUndefined()
  })
})

describe.runIf(long)("D43 an SSP whose heap is too small for the scheduler's records", () => {
  it("ends with 1 and says how far it came, and serves them when it has more; one that pulls refuses their views alone", async ({
    onTestFinished
  }) => {
    const shop = workshop(onTestFinished)
    const { env: member, post } = await serving(shop, onTestFinished, {
      command: [process.execPath, "dist/scheduler.js"],
      // A page must be small beside the heap, as it is beside a usual one.
      env: { SVC_SCHEDULER_BOOTSTRAP_CHUNK_SIZE: "20" }
    })
    for (let at = 0; at < tooMany; at += batch) expect((await post("/ingest", records(at))).status).toBe(200)
    const env = { ...member, SVC_CLUSTER_FEED: "push" }
    const tooSmall = await shop.run({ env, command: heapOf(heapMebibytes) })
    expect(tooSmall.exit, tooSmall.logs.slice(-2000)).toEqual({ code: 1, signal: null })
    expect(tooSmall.logs).toMatch(
      /the heap's limit of \d+ MiB is too small for the scheduler's records: with [1-9]\d* of them read \d+ MiB are in use.*--max-old-space-size.*SVC_MAX_MEMORY/
    )
    const large = await shop.start({ env, command: heapOf(4 * heapMebibytes) })
    await until("it holds them", async () => (await recordsOf(large)) === tooMany)
    await large.close()

    const pulls = await shop.start({ env: { ...env, SVC_CLUSTER_FEED: "pull" }, command: heapOf(heapMebibytes) })
    const shows = (id: string, surql: string) =>
      send(pulls, { ask: "POST /view/register", body: registration(id, surql) })
    await until("it has no room", async () => {
      const { json, status } = await shows("v", "SELECT * FROM t LIMIT 3")
      expect(status).toBe(503)
      const { code, message: words } = json as { readonly code: string; readonly message: string }
      if (code !== "OVERLOADED") return false
      expect(words).toMatch(/^table t cannot be read: the heap's limit of \d+ MiB is too small .*SVC_MAX_MEMORY/)
      return true
    })
    const other = await shows("w", "SELECT * FROM u")
    expect(other.status, `other views are served: ${other.text}`).toBe(200)
    expect(pulls.exit).toBeUndefined()
  })
})

describe.runIf(long)("D43 an SSP beside a database that has more written than the heap holds", () => {
  it("waits and goes on by itself when there is less; a start with more ends with 1 and says how far it came", async ({
    onTestFinished
  }) => {
    const shop = workshop(onTestFinished)
    const server = await RpcServer.start()
    onTestFinished(() => server.kill())
    await server.ask("n", "d", `DEFINE TABLE item; ${install("item")}; CREATE item:0 SET text = 'first'`)
    const env = {
      STORE_ADDR: `127.0.0.1:${server.port}`,
      STORE_NS: "n",
      STORE_DB: "d",
      STORE_USER: server.user,
      STORE_PASS: server.pass,
      SVC_DATABASE_LEASE_SECS: "2"
    }
    const options = { dataDir: shop.folder(), env, command: heapOf(heapMebibytes) }
    const write = (from: number, count: number) =>
      server.ask("n", "d", "FOR $n IN $from..$to { CREATE type::record('item', $n) SET text = $text }", {
        from,
        to: from + count,
        text
      })
    const first = await shop.start(options)
    await until("it is ready", async () => (await recordsOf(first)) === 1)
    // One transaction, which is read in many steps.
    await write(1, tooMany)
    await until("it waits", () => /cannot be read and applied: \d+ MiB of memory.*SVC_MAX_MEMORY/.test(first.logs))
    const held = Number(await recordsOf(first))
    expect([held > 100, held < tooMany]).toEqual([true, true])
    await server.ask("n", "d", "DELETE item WHERE record::id(id) > 100 RETURN NONE")
    await until("it goes on", async () => (await recordsOf(first)) === 101)
    expect(first.exit).toBeUndefined()
    await first.close()

    await write(tooMany, tooMany)
    const tooSmall =
      /the heap's limit of \d+ MiB is too small for the database's records: with [1-9]\d* of them read \d+ MiB are in use.*--max-old-space-size.*SVC_MAX_MEMORY/
    const again = await shop.run(options)
    expect([again.exit, again.logs]).toEqual([{ code: 1, signal: null }, expect.stringMatching(tooSmall)])
    expect(again.logs, "by the change table alone").not.toContain("compared ")
    const anew = await shop.run({ ...options, dataDir: shop.folder() })
    expect([anew.exit, anew.logs]).toEqual([{ code: 1, signal: null }, expect.stringMatching(tooSmall)])
    if (!campaign) return
    const large = await shop.start({ env, command: heapOf(4 * heapMebibytes) })
    await until("it holds them", async () => (await recordsOf(large)) === tooMany + 101)
  })
})

describe.runIf(long)("D43 a scheduler whose heap is full", () => {
  it("refuses views and changes, has everything after kill -9, and goes on", async ({ onTestFinished }) => {
    const shop = workshop(onTestFinished)
    const options = { command: heapOf(64, "scheduler") }
    const { door, env, get, post, scheduler, start } = await serving(shop, onTestFinished, options)
    await shop.start({ env })
    await until(
      "an SSP is ready",
      async () => (await post("/view/register", registration("v0", "SELECT * FROM t"))).status === 200
    )
    expect((await post("/ingest", [create("t:1", { n: 1 }), create("t:2", { n: 2 })])).status).toBe(200)
    const params = { text: "y".repeat(1_000_000) }
    let registered = 0
    for (;;) {
      const answer = await post(
        "/view/register",
        registration(`v${++registered}`, "SELECT * FROM t WHERE a = $text", { params })
      )
      if (answer.status === 200) continue
      expect([answer.status, answer.json]).toEqual([
        503,
        { code: "OVERLOADED", message: expect.stringMatching(message) }
      ])
      break
    }
    const refused = await post("/ingest", create("t:3", { n: 3 }))
    expect([refused.status, (refused.json as { readonly message: string }).message]).toEqual([
      503,
      expect.stringMatching(/; deletes are taken$/)
    ])
    expect((await post("/ingest", change("DELETE", "t:1"))).status).toBe(200)
    expect(scheduler.exit).toBeUndefined()
    await scheduler.kill()

    const tooSmall = await shop.run({ ...door, command: heapOf(40, "scheduler") })
    expect(tooSmall.exit, tooSmall.logs).toEqual({ code: 1, signal: null })
    const needed = /of \d+ characters of the pool take .*--max-old-space-size=(\d+)/.exec(tooSmall.logs)?.[1]
    await (await start(heapOf(Number(needed), "scheduler"))).kill()
    const again = await start()
    expect((await get("/views?limit=1")).json).toMatchObject({ total: registered })
    await until("the SSP is back with its view", async () => {
      const { status, text: shown } = await get("/view/v0")
      return status === 200 && shown.includes("t:2") && !/t:[13]/.test(shown)
    })
    for (let i = 1; i < registered; i++) await post("/view/unregister", { id: `v${i}` })
    await until("it has room again", async () => (await post("/ingest", create("t:1", { n: 1 }))).status === 200)
    expect(again.exit).toBeUndefined()
  })
})
