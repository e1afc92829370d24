/**
 * An SSP under a scheduler of another maker, which knows the specification alone and refuses every other field, through
 * a whole life: registration, pull, changes, views, a job, 404 and 409 to heartbeats, a stop.
 */
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { Context, Effect, Layer, Logger, ManagedRuntime } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import type { Body } from "../../kit/checks/http.ts"
import { change, create } from "../../kit/data/registration.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { StrictScheduler } from "../../kit/processes/strictScheduler.ts"
import * as HttpJobReports from "../../src/drivers/httpJobReports.ts"
import * as HttpSchedulerClient from "../../src/drivers/httpSchedulerClient.ts"
import * as MemoryUpstream from "../../src/drivers/memoryUpstream.ts"
import * as Exchange from "../../src/host/http/exchange.ts"
import { layerTurn } from "../../src/host/process/turn.ts"
import { Backend } from "../../src/ports/Backend.ts"
import { ConfigSource } from "../../src/ports/ConfigSource.ts"
import { Database } from "../../src/ports/Database.ts"
import { Serving } from "../../src/ports/Front.ts"
import { DatabaseJobs } from "../../src/ports/JobStore.ts"
import { Release } from "../../src/ports/Release.ts"
import { RequestBody } from "../../src/ports/RequestBody.ts"
import { SavedState } from "../../src/ports/SavedState.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { SspConfig } from "../../src/ssp/Config.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"

const open: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const startSsp = async (scheduler: string) => {
  const lines: Array<string> = []
  const file = {
    path: "svc.yml",
    fault: undefined,
    content: { job_tables: { mail_job: { name: "mail", base_url: "http://backend" } } }
  }
  const env = {
    SVC_AUTH_SECRET: secret,
    SCHEDULER_URL: scheduler,
    SSP_ID: "me",
    ADVERTISE_ADDR: "me:8667",
    HEARTBEAT_INTERVAL_MS: "100",
    SVC_INTEGRITY_QUIET_SECS: "1"
  }
  const overHttp = Layer.unwrapScoped(
    Effect.map(Exchange.make(undefined), (transport) => HttpSchedulerClient.layerOver(transport, scheduler))
  )
  const reports = Layer.unwrapScoped(
    Effect.map(Exchange.make(undefined), (send) => HttpJobReports.layer(scheduler, () => undefined, send))
  )
  const drivers = Layer.mergeAll(
    overHttp,
    reports,
    layerTurn,
    Database.layerMemory,
    SavedState.layerMemory,
    RequestBody.layer,
    MemoryUpstream.layer(),
    DatabaseJobs.layerNone,
    Release.layerOf("1.2.3"),
    Layer.succeed(Backend, {
      call: () => Effect.succeed({ status: 200, retryAfter: undefined, body: '{"sent": true}' })
    }),
    SspConfig.layerEnv.pipe(Layer.provide(ConfigSource.layerMemory({ env, file }))),
    Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message }) => void lines.push(String(message)))
    )
  )
  const node = Ssp.layer.pipe(Layer.provideMerge(drivers))
  const memoMap = Effect.runSync(Layer.makeMemoMap)
  const runtime = ManagedRuntime.make(node, memoMap)
  const { context } = await runtime.runtime()
  const web = HttpApiBuilder.toWebHandler(Layer.mergeAll(node, HttpServer.layerContext), { memoMap })
  await Effect.runPromise(Context.get(context, Serving).listening(8667))
  const ask = async (method: string, path: string, body?: unknown): Promise<readonly [number, unknown]> => {
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" }
    const given = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await web.handler(new Request(`http://node${path}`, { method, headers, ...given }))
    return [response.status, await response.json()]
  }
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= web.dispose().then(() => runtime.dispose()))
  open.push(stop)
  return { ask, lines, stop, upstream: Context.get(context, Upstream) }
}

const ready = (ssp: Awaited<ReturnType<typeof startSsp>>): Promise<unknown> =>
  until("ready", async () => (await ssp.ask("GET", "/health"))[0] === 200)

const shown = async (ssp: Awaited<ReturnType<typeof startSsp>>, id: string): Promise<unknown> =>
  ((await ssp.ask("GET", `/view/${id}?format=tree`))[1] as Body)["result_data"]

describe("D77 an SSP under a scheduler that knows the specification alone", () => {
  it("registers, pulls, follows, shows views, runs a job, registers again on 404 and 409, and stops", async () => {
    const scheduler = await StrictScheduler.start()
    open.push(() => scheduler.close())
    scheduler.rows = [
      { id: "t:1", n: 1, status: "OK", result: [] },
      ...Array.from({ length: 1001 }, (_, n) => ({ id: `u:${n}`, n }))
    ]
    const ssp = await startSsp(scheduler.url)
    await ready(ssp)
    expect(scheduler.calls("/ssp/register")).toEqual([{ ssp_id: "me", url: "http://me:8667" }])

    const registered = {
      id: "incantation:v",
      surql: "SELECT * FROM t ORDER BY n",
      clientId: "c",
      ttl: "1h",
      format: "tree"
    }
    expect(await ssp.ask("POST", "/view/register", registered)).toMatchObject([
      200,
      { result_data: [{ id: "t:1", n: 1, status: "OK", result: [] }] }
    ])
    for (const each of [
      create("t:2", { n: 2 }),
      change("UPDATE", "t:2", { n: 3 }),
      create("t:3", {}),
      change("DELETE", "t:3")
    ])
      expect((await ssp.ask("POST", "/ingest", each))[0]).toBe(200)
    expect(await shown(ssp, "v")).toMatchObject([{ n: 1 }, { n: 3 }])
    expect((await ssp.ask("POST", "/ingest", { table: "t", op: "MERGE", id: "t:1", record: {} }))[0]).toBe(400)

    const job = { status: "pending", path: "/send", payload: {}, retries: 0, max_retries: 3, errors: [] }
    await ssp.ask("POST", "/ingest", create("mail_job:1", job))
    await until("the job is done", () =>
      scheduler.calls("/job/result").some((body) => body["job_id"] === "mail_job:1" && body["status"] === "completed")
    )

    await until("hashes of its tables are in the database", async () => {
      const found = await Effect.runPromise(ssp.upstream.nodes("u"))
      return found.some(({ count, level }) => level === 0 && count === 1001)
    })

    for (const status of [404, 409] as const) {
      const before = scheduler.calls("/ssp/register").length
      scheduler.heartbeat = status
      await until(`it registers again on ${status}`, () => scheduler.calls("/ssp/register").length > before)
      await ready(ssp)
    }
    expect((await ssp.ask("POST", "/view/register", registered))[0]).toBe(200)
    expect((await ssp.ask("POST", "/view/unregister", { id: "incantation:v" }))[0]).toBe(200)
    expect(new Set(scheduler.calls("/ssp/heartbeat").flatMap(Object.keys))).not.toContain("incarnation")
    await ssp.stop()
    expect(scheduler.unknown).toEqual([])
  }, 30_000)
  it("says what a statement of its pull failed with", async () => {
    const scheduler = await StrictScheduler.start()
    open.push(() => scheduler.close())
    scheduler.failure = "The query was not executed"
    const ssp = await startSsp(scheduler.url)
    await until("it is said", () =>
      ssp.lines.some((line) =>
        line.includes("INFO FOR DB is not answered as agreed: the statement failed: The query was")
      )
    )
    scheduler.failure = undefined
    await ready(ssp)
  }, 30_000)
})
