/**
 * What jobs leave behind in a node that keeps nothing on disk, once they are done and deleted.
 *
 * A whole node over ports in memory: what is held of a job is spread over the runner, its records and their leases.
 */
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { Effect, Layer, Logger, LogLevel } from "effect"
import { expect, test } from "vitest"
import { heapUsed } from "../../../kit/checks/heap.ts"
import { create } from "../../../kit/data/registration.ts"
import { secret, until } from "../../../kit/processes/Door.ts"
import { Store } from "../../../src/core/ivm/store/store.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { Backend } from "../../../src/ports/Backend.ts"
import { ConfigSource } from "../../../src/ports/ConfigSource.ts"
import { Database } from "../../../src/ports/Database.ts"
import { JobReports } from "../../../src/ports/JobReports.ts"
import { DatabaseJobs } from "../../../src/ports/JobStore.ts"
import { Release } from "../../../src/ports/Release.ts"
import { RequestBody } from "../../../src/ports/RequestBody.ts"
import { SavedState } from "../../../src/ports/SavedState.ts"
import { SchedulerClient } from "../../../src/ports/SchedulerClient.ts"
import { Turn } from "../../../src/ports/Turn.ts"
import { Upstream } from "../../../src/ports/Upstream.ts"
import { SspConfig } from "../../../src/ssp/Config.ts"
import * as Ssp from "../../../src/ssp/Ssp.ts"

test("D4 a lease that is deleted with its job leaves no tombstone, and a lease that comes again has a greater version", () => {
  const store = new Store()
  const id = (key: number) => Ids.make("_svc_job", `mail_job:${key}`)
  const change = (op: "CREATE" | "DELETE", key: number) => ({
    op,
    id: id(key),
    doc: { id: id(key) },
    version: undefined,
    position: undefined,
    jobAssignee: undefined
  })
  const apply = (op: "CREATE" | "DELETE", key: number): void =>
    store.plan([change(op, key)]).forEach((write) => write !== undefined && store.apply(write))
  for (const op of ["CREATE", "DELETE", "CREATE", "DELETE"] as const) apply(op, 1)
  apply("CREATE", 1)
  expect(store.get(id(1))?.version).toBe(3)
  const before = heapUsed()
  for (let key = 2; key < 30_000; key++) for (const op of ["CREATE", "DELETE"] as const) apply(op, key)
  // A tombstone takes some 230 bytes.
  expect([store.size("_svc_job"), (heapUsed() - before) / 2 ** 20]).toEqual([
    1,
    expect.toSatisfy((grown: number) => grown < 1.5)
  ])
  apply("DELETE", 1)
  const seen = 30_000
  // In one step: the place that the deletion gives up is the one that the next change takes.
  for (const write of store.plan([change("CREATE", 1), change("DELETE", 1), change("CREATE", 1)]))
    if (write !== undefined) store.apply(write)
  expect([store.get(id(1))!.version > seen, store.size("_svc_job")]).toEqual([true, 1])
  store.clear()
  apply("CREATE", 1)
  expect(store.get(id(1))?.version).toBe(1)
})

const jobs = 1_000
const chunk = 500

test(`D22 jobs that are done and deleted leave one tombstone each and nothing else: ${jobs} of them on memory://`, async () => {
  const quiet = Logger.minimumLogLevel(LogLevel.None)
  const file = {
    path: "svc.yml",
    fault: undefined,
    content: { job_tables: { mail_job: { name: "mail", base_url: "http://backend", concurrency: 64 } } }
  }
  const config = SspConfig.layerEnv.pipe(
    Layer.provide(ConfigSource.layerMemory({ env: { SVC_AUTH_SECRET: secret, STORE_ADDR: "memory://" }, file }))
  )
  const backend = Layer.succeed(Backend, {
    call: () => Effect.succeed({ status: 200, retryAfter: undefined, body: '{"sent": true}' })
  })
  const drivers = Layer.mergeAll(
    Database.layerNone,
    SavedState.layerMemory,
    Turn.layerYield,
    RequestBody.layer,
    SchedulerClient.layerNone,
    Upstream.layerNone,
    JobReports.layerNone,
    DatabaseJobs.layerNone,
    Release.layerOf("9.9.9"),
    config,
    backend,
    quiet
  )
  const { dispose, handler } = HttpApiBuilder.toWebHandler(
    Layer.mergeAll(Ssp.layer.pipe(Layer.provide(drivers)), HttpServer.layerContext, quiet)
  )
  const ask = async (
    method: string,
    path: string,
    body?: unknown
  ): Promise<{ readonly status: number; readonly json: unknown }> => {
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" }
    const response = await handler(
      new Request(`http://node${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
    )
    return { status: response.status, json: await response.json() }
  }
  const open = async (status: string): Promise<number> =>
    (
      (await ask("GET", `/jobs?table=mail_job&status=${status}&limit=1`)).json as {
        readonly jobs: ReadonlyArray<unknown>
      }
    ).jobs.length
  const round = async (name: string, count: number): Promise<void> => {
    const ids = Array.from({ length: count }, (_, n) => `mail_job:${name}${n}`)
    for (const op of ["CREATE", "DELETE"]) {
      for (let at = 0; at < count; at += chunk) {
        const body = ids.slice(at, at + chunk).map((id) => ({
          ...create(id, op === "DELETE" ? {} : { path: "/send", payload: {}, status: "pending" }),
          op
        }))
        expect((await ask("POST", "/ingest", body)).status).toBe(200)
      }
      await until("all have run", async () => (await open("pending")) + (await open("processing")) === 0)
    }
  }
  try {
    await until("ready", async () => (await ask("GET", "/health")).status === 200)
    await round("warm", jobs)
    // What is kept of a job is kept in every round; what the runtime itself takes now and then is not.
    const kept: Array<number> = []
    for (const name of ["first", "second", "third"]) {
      const before = heapUsed()
      await round(name, jobs)
      kept.push((heapUsed() - before) / jobs)
    }
    expect(Math.min(...kept), `bytes per job: ${kept}`).toBeLessThan(500)
  } finally {
    await dispose()
  }
})
