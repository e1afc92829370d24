/**
 * An SSP whose heap is 97 % full (D43): every endpoint that it declares answers or refuses, each timer has its turn, and
 * the process goes on.
 *
 * Filled twice: with records until the service refuses them, then by a ballast in the process, since what fills a heap
 * is not always what the service has looked at. The endpoints are those of the OpenAPI document, so a new one is asked
 * without a word here.
 */
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { begunStream, bodiesOf, type Operation, operationsOf, pathOf } from "../../kit/checks/operations.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { type Door, secret, sleep, until } from "../../kit/processes/Door.ts"
import { listen, shut } from "../../kit/processes/listening.ts"
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
/** Each timer as often as its setting allows. */
const busy = {
  TTL_CLEANUP_INTERVAL_SECS: "1",
  SVC_TABLE_GRACE_SECS: "1",
  HEARTBEAT_INTERVAL_MS: "200",
  SVC_STATE_DEBOUNCE_MS: "100",
  SVC_JOB_RETRY_BASE_MS: "100"
}
/** So long every one of them has its turn, several times. */
const turnsMs = 6_000

/** What ends all else is asked last. */
const last = ["view.unregister", "ssp.leave", "data.reset"]
const isStream = (operation: Operation): boolean =>
  Object.values(operation.responses).some(({ content }) => content?.["text/event-stream"] !== undefined)

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

/** Asks everything one after the other, then at once, and answers what was not answered as declared. */
const walked = async (url: string, withLast = true): Promise<ReadonlyArray<string>> => {
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
  for (const ask of withLast ? asks : []) if (last.includes(ask.operation.operationId)) await judge(ask)
  return wrong
}

const carsOf = (from: number) =>
  Array.from({ length: 500 }, (_, n) =>
    create(`cars:${from + n}`, { Name: `car ${from + n}`, Origin: "Europe", Horsepower: n, tags: [`${n}`, "b"] })
  )

const text = Array.from({ length: 10 }, (_, n) => `${n}`.padEnd(4_000, "x"))
const longsOf = (from: number) => Array.from({ length: 20 }, (_, n) => create(`long:${from + n}`, { text }))

/** Many short records, then long ones until they are refused. */
const fill = async (url: string): Promise<void> => {
  const ingest = (body: unknown) => request(url, { method: "POST", path: "/ingest", token: secret, body })
  for (let n = 0; n < 20_000; n += 500) expect((await ingest(carsOf(n))).status).toBe(200)
  for (let n = 0; ; n += 20) {
    const { json, status } = await ingest(longsOf(n))
    if (status === 200) continue
    expect([status, json]).toEqual([503, expect.objectContaining({ code: "OVERLOADED" })])
    return
  }
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
const survives = async (door: Door): Promise<void> => {
  expect(await walked(door.url, false)).toEqual([])
  await fill(door.url)
  await loaded(door)
  alive(door)
  await sleep(turnsMs)
  alive(door)
  expect(await walked(door.url), door.logs.slice(-4_000)).toEqual([])
  await sleep(turnsMs)
  alive(door)
  expect((await request(door.url, { path: "/version" })).status).toBe(200)
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
      await survives(door)
    }
  )
})
