/**
 * An SSP composed by somebody else: their drivers, no server of ours, two of them in one process (README, "Compose your
 * own").
 *
 * Why: a node is a layer that needs only ports, and this is a deployment that shares nothing with the door. Its
 * server is another one too, so it also proves that a node answers behind any as behind the package's.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { Effect, Layer, Logger, LogLevel } from "effect"
import { describe, expect, it } from "vitest"
import { create, registration } from "../../kit/data/registration.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"
import * as Loopback from "../../src/drivers/loopback.ts"
import { type Commit, Database } from "../../src/ports/Database.ts"
import { Serving } from "../../src/ports/Front.ts"
import { Release } from "../../src/ports/Release.ts"
import { RequestBody } from "../../src/ports/RequestBody.ts"
import { SavedState } from "../../src/ports/SavedState.ts"
import { SchedulerClient } from "../../src/ports/SchedulerClient.ts"
import { Turn } from "../../src/ports/Turn.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import * as SchedulerMemory from "../../src/scheduler/Memory.ts"
import { SspConfig } from "../../src/ssp/Config.ts"
import * as JobPorts from "../../src/ssp/jobs/jobPorts.ts"
import * as SspMemory from "../../src/ssp/Memory.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"

const quiet = Logger.minimumLogLevel(LogLevel.None)

/** An SSP as a function from request to response, for any server that speaks the web's types. */
const compose = (env: { readonly [name: string]: string }) => {
  const drivers = Layer.mergeAll(
    Database.layerMemory,
    SavedState.layerMemory,
    Turn.layerYield,
    RequestBody.layer,
    SchedulerClient.layerNone,
    Upstream.layerNone,
    JobPorts.layerNone,
    Release.layerOf("9.9.9"),
    SspConfig.layerOf(env),
    quiet
  )
  return HttpApiBuilder.toWebHandler(
    Layer.mergeAll(Ssp.layer.pipe(Layer.provide(drivers)), HttpServer.layerContext, quiet)
  )
}

/** Asks a node that is a function. */
const ask = async (
  { handler }: { readonly handler: Loopback.Handler },
  method: string,
  path: string,
  body?: unknown
): Promise<{ readonly status: number; readonly json: unknown }> => {
  const response = await handler(
    new Request(`http://node${path}`, {
      method,
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
  )
  return { status: response.status, json: await response.json() }
}

describe("compose your own", () => {
  it("two nodes in one process, behind no server of ours, share nothing and answer as the door does", async () => {
    const env = { SVC_AUTH_SECRET: secret, STORE_ADDR: "memory://" }
    const one = compose({ ...env, SSP_ID: "one" })
    const two = compose({ ...env, SSP_ID: "two" })
    try {
      for (const node of [one, two])
        await until("ready", async () => (await ask(node, "GET", "/health")).status === 200)
      await ask(one, "POST", "/view/register", registration("v", "SELECT * FROM a WHERE n > 1", { format: "tree" }))
      expect(await ask(one, "POST", "/ingest", create("a:1", { n: 2 }))).toEqual({
        status: 200,
        json: { views_affected: 1, edges_updated: 1 }
      })
      expect((await ask(one, "GET", "/view/v")).json).toMatchObject({ result_data: [{ id: "a:1", n: 2 }] })
      expect(await ask(two, "GET", "/view/v")).toMatchObject({ status: 404, json: { code: "VIEW_NOT_FOUND" } })
      expect((await ask(two, "GET", "/debug/deps")).json).toMatchObject({ tables_in_store: [] })
      expect((await ask(two, "GET", "/info")).json).toEqual([{ entity: "ssp", id: "two", status: "ready", views: 0 }])
      expect((await ask(one, "GET", "/version")).json).toEqual({ version: "9.9.9", mode: "standalone" })
      expect(await ask(one, "POST", "/ingest", { ...create("a:1"), op: "PUT" })).toMatchObject({
        status: 400,
        json: { code: "INVALID_OPERATION" }
      })
      expect(await ask(one, "POST", "/ingest", {})).toMatchObject({ status: 400, json: { code: "INVALID_REQUEST" } })
    } finally {
      await Promise.all([one.dispose(), two.dispose()])
    }
  })

  it("nodes from Memory.layer, a web handler each, share nothing; Layer.fresh around it leaves the handler without routes, as docs/compose.md says", async () => {
    const nodes = ["one", "two"].map((id) =>
      HttpApiBuilder.toWebHandler(
        Layer.merge(
          SspMemory.layer({ SVC_AUTH_SECRET: secret, SSP_ID: id }).pipe(Layer.provide(quiet)),
          HttpServer.layerContext
        )
      )
    )
    const wrapped = HttpApiBuilder.toWebHandler(
      Layer.merge(
        Layer.fresh(SspMemory.layer({ SVC_AUTH_SECRET: secret }).pipe(Layer.provide(quiet))),
        HttpServer.layerContext
      )
    )
    try {
      for (const node of nodes) await until("ready", async () => (await ask(node, "GET", "/health")).status === 200)
      await ask(nodes[0]!, "POST", "/ingest", create("a:1"))
      const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
      expect((await ask(nodes[0]!, "GET", "/version")).json).toEqual({ version, mode: "standalone" })
      const tables = await Promise.all(nodes.map(async (node) => (await ask(node, "GET", "/debug/deps")).json))
      expect(tables).toMatchObject([{ tables_in_store: ["a"] }, { tables_in_store: [] }])
      expect((await wrapped.handler(new Request("http://node/version"))).status).toBe(404)
    } finally {
      await Promise.all([...nodes, wrapped].map((node) => node.dispose()))
    }
  })
  it("a port that is merged behind those in memory takes their place", async () => {
    const commits: Array<number> = []
    const counting = Layer.effect(
      Database,
      Effect.map(Database, (memory) => ({
        ...memory,
        kind: "counting",
        commit: (commit: Commit) =>
          Effect.zipLeft(
            memory.commit(commit),
            Effect.sync(() => commits.push(commit.records.length))
          )
      }))
    ).pipe(Layer.provide(Database.layerMemory))
    const drivers = Layer.mergeAll(SspMemory.ports({ SVC_AUTH_SECRET: secret }), counting, quiet)
    const node = HttpApiBuilder.toWebHandler(
      Layer.mergeAll(Ssp.layer.pipe(Layer.provide(drivers)), HttpServer.layerContext, quiet)
    )
    try {
      await until("ready", async () => (await ask(node, "GET", "/health")).status === 200)
      await ask(node, "POST", "/ingest", [create("a:1"), create("a:2")])
      expect(commits).toEqual([2])
    } finally {
      await node.dispose()
    }
  })

  it("a whole cluster in memory, one function per node: records in at the scheduler, the view on an SSP that came later has them", async () => {
    const hosts = new Map<string, Loopback.Handler>()
    const client = Loopback.layer(hosts)
    const times = { SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "20", SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "20" }
    const scheduler = HttpApiBuilder.toWebHandler(
      Layer.merge(
        SchedulerMemory.layer({ SVC_AUTH_SECRET: secret, SVC_SCHEDULER_SSP_URL_ALLOW: "a", ...times }, client).pipe(
          Layer.provide(quiet)
        ),
        HttpServer.layerContext
      )
    )
    hosts.set("scheduler:9667", scheduler.handler)
    const ssp = HttpApiBuilder.toWebHandler(
      Layer.merge(
        Serving.layerListening(8667).pipe(
          Layer.provideMerge(
            SspMemory.layer(
              {
                SVC_AUTH_SECRET: secret,
                SSP_ID: "a",
                SCHEDULER_URL: "http://scheduler:9667",
                ADVERTISE_ADDR: "a:8667"
              },
              client
            )
          ),
          Layer.provide(quiet)
        ),
        HttpServer.layerContext
      )
    )
    try {
      await until(
        "the scheduler is ready",
        async () => (await ask(scheduler, "POST", "/ingest", create("a:1", { n: 1 }))).status === 200
      )
      hosts.set("a:8667", ssp.handler)
      await until("the SSP is ready", async () => (await ask(ssp, "GET", "/health")).status === 200)
      await until("the scheduler knows", async () =>
        JSON.stringify((await ask(scheduler, "GET", "/info")).json).includes('"status":"ready"')
      )
      expect(
        (await ask(scheduler, "POST", "/view/register", registration("v", "SELECT * FROM a", { format: "tree" })))
          .status
      ).toBe(200)
      await ask(scheduler, "POST", "/ingest", create("a:2", { n: 2 }))
      expect((await ask(scheduler, "POST", "/ingest", {})).status).toBe(400)
      const rows = await until("both records", async () => {
        const { json } = await ask(ssp, "GET", "/view/v")
        return (
          typeof json === "object" &&
          json !== null &&
          "result_data" in json &&
          Array.isArray(json.result_data) &&
          json.result_data.length === 2 &&
          json.result_data
        )
      })
      expect(rows).toEqual([
        { id: "a:1", n: 1 },
        { id: "a:2", n: 2 }
      ])
      const metrics = await (await scheduler.handler(new Request("http://node/metrics?format=prometheus"))).text()
      expect(metrics).toMatch(/^svc_ingest_duration_seconds_count 2$/m)
      expect(metrics).toMatch(/^svc_ingest_refused_total\{status="4xx"\} 1$/m)
    } finally {
      await ssp.dispose()
      await scheduler.dispose()
    }
  })
})
