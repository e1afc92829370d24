/**
 * An SSP or a scheduler whose heap is 97 % full (D43): every endpoint that it declares answers or refuses, each timer
 * has its turn, and the process goes on.
 *
 * Filled twice: with records, until the service refuses them where it holds them in memory, then by a ballast in the
 * process, since what fills a heap is not always what the service has looked at. The endpoints are those of the OpenAPI document, so a new one is asked
 * without a word here.
 */
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, it } from "vitest"
import { type Answer, request } from "../../kit/checks/http.ts"
import { begunStream, bodiesOf, type Operation, operationsOf, pathOf } from "../../kit/checks/operations.ts"
import { install, taken } from "../../kit/data/changeTable.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, schedulerEnv, secret, sleep, until } from "../../kit/processes/Door.ts"
import { listen, shut } from "../../kit/processes/listening.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { workshop } from "../../kit/processes/workshop.ts"
import { root } from "../../kit/rules/source.ts"

/**
 * Three hundredths of it are more than V8 has for young objects (16 MiB): where less is left, each of their collections
 * is one of the whole heap, which no heap is made for that refuses from 85 % on.
 */
const heapMebibytes = 704
const small = {
  NODE_OPTIONS: `--max-old-space-size=${heapMebibytes} --import=${pathToFileURL(join(root, "kit/processes/ballast.mjs"))}`
}
/**
 * Each timer as often as its setting allows. A turn may take long: it is made of collections of a full heap, which take
 * as long as what else runs on the machine lets them.
 */
const busy = {
  SVC_MAX_TURN_MS: "300000",
  TTL_CLEANUP_INTERVAL_SECS: "1",
  SVC_TABLE_GRACE_SECS: "1",
  HEARTBEAT_INTERVAL_MS: "200",
  SVC_STATE_DEBOUNCE_MS: "100",
  SVC_RECONCILE_INTERVAL_SECS: "1",
  SVC_SCHEMA_INTERVAL_MS: "100",
  SVC_INTEGRITY_QUIET_SECS: "1",
  SVC_SCHEDULER_INTEGRITY_INTERVAL_SECS: "1",
  SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "1",
  SVC_JOB_RETRY_BASE_MS: "100"
}
/** So long every one of them has its turn, several times. */
const turnsMs = 6_000

/** What ends all else is asked last. */
const last = ["view.unregister", "ssp.leave", "data.reset"]
/** What goes on for ever: of the feed of an SSP that has nothing to come the first line may be long in coming. */
const streamTypes = ["text/event-stream", "application/x-ndjson"]
const isStream = (operation: Operation): boolean =>
  Object.values(operation.responses).some(({ content }) => streamTypes.some((type) => content?.[type] !== undefined))

type Ask = { readonly operation: Operation; readonly path: string; readonly body: unknown }

/** Every operation with each of its examples, and with all parameters that it may be asked with. */
const asksOf = (operations: ReadonlyArray<Operation>): ReadonlyArray<Ask> =>
  [...operations]
    .sort((a, b) => last.indexOf(a.operationId) - last.indexOf(b.operationId))
    .flatMap((operation) =>
      [...new Set([pathOf(operation), pathOf(operation, true)])].flatMap((path) =>
        bodiesOf(operation).map((body) => ({ operation, path, body }))
      )
    )

/** The answer of one ask as it is, or why there is none; a stream says how it begins. */
const outcome = async (url: string, { body, operation, path }: Ask): Promise<string> => {
  const { method } = operation
  const asked = isStream(operation)
    ? begunStream(url, path, body)
    : request(url, { method, path, token: secret, keepAlive: false, ...(body === undefined ? {} : { body }) })
  const answer = await asked.catch((error: unknown) => String(error))
  return typeof answer === "string" ? answer : String(answer.status)
}

/**
 * Asks everything one after the other, then at once, and what is in `ends` at the end; answers what was not answered as
 * declared.
 */
const walked = async (url: string, ends: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const asks = asksOf(operationsOf((await request(url, { path: "/openapi.json" })).json))
  const wrong: Array<string> = []
  const judge = async (ask: Ask): Promise<void> => {
    const { operation, path } = ask
    const said = await outcome(url, ask)
    if (operation.responses[said] === undefined) wrong.push(`${operation.method} ${path}: ${said}`)
  }
  const gentle = asks.filter(({ operation }) => !last.includes(operation.operationId))
  for (const ask of gentle) await judge(ask)
  await Promise.all(gentle.map(judge))
  for (const ask of asks) if (ends.includes(ask.operation.operationId)) await judge(ask)
  return wrong
}

const carsOf = (from: number) =>
  Array.from({ length: 500 }, (_, n) =>
    create(`cars:${from + n}`, { Name: `car ${from + n}`, Origin: "Europe", Horsepower: n, tags: [`${n}`, "b"] })
  )

const text = Array.from({ length: 10 }, (_, n) => `${n}`.padEnd(4_000, "x"))
const longsOf = (from: number) => Array.from({ length: 20 }, (_, n) => create(`long:${from + n}`, { text }))

type Ingest = (body: unknown) => Promise<Answer>

const ingestOf =
  (url: string): Ingest =>
  (body) =>
    request(url, { method: "POST", path: "/ingest", token: secret, body })

const shortRecords = 20_000

/** Many short records, then long ones until they are refused. */
const fill = async (ingest: Ingest): Promise<void> => {
  for (let n = 0; n < shortRecords; n += 500) expect((await ingest(carsOf(n))).status).toBe(200)
  for (let n = 0; ; n += 20) {
    const { json, status } = await ingest(longsOf(n))
    if (status === 200) continue
    expect([status, json]).toEqual([503, expect.objectContaining({ code: "OVERLOADED" })])
    return
  }
}

/** Records beside the heap of the process: 120 MB of long ones, several times what the ballast leaves of it. */
const longRecords = 3_000

const fillDisk = async (ingest: Ingest): Promise<void> => {
  for (let n = 0; n < shortRecords; n += 500) expect((await ingest(carsOf(n))).status).toBe(200)
  for (let n = 0; n < longRecords; n += 20) expect((await ingest(longsOf(n))).status).toBe(200)
}

const fillDatabase = async (server: RpcServer): Promise<void> => {
  const write = (query: string, bindings: { readonly [name: string]: unknown }) => server.ask("n", "d", query, bindings)
  const cars =
    "FOR $n IN $from..$to { CREATE type::record('cars', $n) SET Name = <string>$n, Origin = 'Europe', Horsepower = $n }"
  const longs = "FOR $n IN $from..$to { CREATE type::record('long', $n) SET text = $text }"
  for (let from = 0; from < shortRecords; from += 1_000) await write(cars, { from, to: from + 1_000 })
  for (let from = 0; from < longRecords; from += 100) await write(longs, { from, to: from + 100, text })
}

const loaded = async (door: Door): Promise<void> => {
  door.signal("SIGUSR2")
  await until("the ballast is there", () => door.logs.includes("ballast: ") || door.exit !== undefined, 300_000)
}

const register = (url: string, id: string, surql: string, more = {}) =>
  request(url, { method: "POST", path: "/view/register", token: secret, body: registration(id, surql, more) })

/** Views of each format, one of them about to end, before the heap is full. */
const views = async (url: string): Promise<void> => {
  const surql = "SELECT id, Name, Horsepower FROM cars WHERE Origin = $from ORDER BY Horsepower DESC LIMIT 3"
  const params = { from: "Europe" }
  for (const [id, more] of [
    ["incantation:strong", { format: "tree" }],
    ["incantation:flat", { format: "flat" }],
    ["incantation:streamed", { format: "streaming" }],
    ["incantation:short", { ttl: "1s" }]
  ] as const)
    await until("registered", async () => (await register(url, id, surql, { params, ...more })).status === 200)
}

const alive = (door: Door): void => expect(door.exit, door.logs.slice(-4_000)).toBeUndefined()

const jobsFile = async (shop: ReturnType<typeof workshop>, finished: (end: () => Promise<void>) => void) => {
  const server = createServer((asked, answer) => void asked.resume().on("end", () => answer.writeHead(503).end()))
  const port = await listen(server)
  finished(() => shut(server))
  const file = join(shop.folder(), "svc.yml")
  writeFileSync(file, `job_tables:\n  mail_job:\n    name: mail\n    base_url: http://127.0.0.1:${port}\n`)
  return { SVC_CONFIG_PATH: file }
}

/**
 * Full of records and of ballast, asked for everything, and left to its timers. Asked before, too: what code takes that
 * runs for the first time is no part of an answer.
 */
const survives = async (
  door: Door,
  filled: () => Promise<void>,
  more?: () => Promise<void>,
  ends: ReadonlyArray<string> = last
): Promise<void> => {
  expect(await walked(door.url, [])).toEqual([])
  await filled()
  await loaded(door)
  alive(door)
  await sleep(turnsMs)
  alive(door)
  await more?.()
  alive(door)
  expect(await walked(door.url, ends), door.logs.slice(-4_000)).toEqual([])
  await sleep(turnsMs)
  alive(door)
  expect((await request(door.url, { path: "/openapi.json" })).status).toBe(200)
}

/** An SSP that reads all of the full scheduler's records, and queries with answers that are longer than the room. */
const bootstrapped = async (
  shop: ReturnType<typeof workshop>,
  url: string,
  env: { readonly [name: string]: string | undefined }
): Promise<void> => {
  const asked = await Promise.all(
    ["SELECT * FROM long LIMIT 1000", "SELECT * FROM long ORDER BY text[9] LIMIT 1000", "SELECT * FROM cars"].map(
      (query) => request(url, { method: "POST", path: "/proxy/query", token: secret, body: { query } })
    )
  )
  for (const { status } of asked) expect([200, 500, 503]).toContain(status)
  await shop.start({ env: { ...env, SSP_ID: "b", SVC_CLUSTER_FEED: "push" } })
}

describe("D43 a process whose heap is 97 % full", { timeout: 600_000 }, () => {
  it.for([["without views"], ["with views"]])(
    "an SSP on its own, %s, answers or refuses everything",
    async ([how], { onTestFinished }) => {
      const shop = workshop(onTestFinished)
      const door = await shop.start({
        env: { STORE_ADDR: undefined, ...small, ...busy, ...(await jobsFile(shop, onTestFinished)) }
      })
      if (how === "with views") await views(door.url)
      await survives(door, () => fill(ingestOf(door.url)))
    }
  )

  it("an SSP beside a database answers or refuses compares, and compares again when there is room", async ({
    onTestFinished
  }) => {
    const shop = workshop(onTestFinished)
    const server = await RpcServer.start()
    onTestFinished(() => server.kill())
    await server.ask("n", "d", `DEFINE TABLE cars; DEFINE TABLE long; ${install("cars", "long")}`)
    const env = {
      STORE_ADDR: `127.0.0.1:${server.port}`,
      STORE_NS: "n",
      STORE_DB: "d",
      STORE_USER: server.user,
      STORE_PASS: server.pass
    }
    const door = await shop.start({ env: { ...env, ...small, ...busy } })
    await views(door.url)
    const compared = async () => {
      const { json, status } = await request(door.url, { method: "POST", path: "/reconcile", token: secret })
      expect([status, json]).toEqual([503, expect.objectContaining({ message: expect.stringContaining("a compare") })])
    }
    // A reset has it load all tables anew, and a load that finds no room ends the process with 1 and says so.
    const ends = last.filter((operation) => operation !== "data.reset")
    await survives(door, () => fillDatabase(server).then(() => taken(server, 300_000)), compared, ends)
    expect(door.logs.match(/the compare with the database failed/g), "said once").toHaveLength(1)
  })

  it("a scheduler answers or refuses everything", async ({ onTestFinished }) => {
    const shop = workshop(onTestFinished)
    const folder = shop.folder()
    const scheduler = await Door.spawn({
      command: [process.execPath, "dist/scheduler.js"],
      dataDir: folder,
      env: { ...schedulerEnv(folder), ...small, ...busy, SVC_SCHEDULER_AUTH_SECRET: secret }
    })
    onTestFinished(() => scheduler.close())
    const { url } = scheduler
    await until(
      "it serves",
      async () => (await request(url, { path: "/readyz" }).catch(() => undefined))?.status === 200
    )
    const ssp = { SCHEDULER_URL: url, STORE_ADDR: undefined, SVC_SCHEDULER_AUTH_SECRET: secret }
    await shop.start({ env: { ...ssp, SSP_ID: "a" } })
    await views(url)
    await survives(
      scheduler,
      () => fillDisk(ingestOf(url)),
      () => bootstrapped(shop, url, ssp)
    )
  })
})
