/**
 * An SSP composed by somebody else: their drivers, no server of ours, two of them in one process (README, "Compose your own").
 *
 * Why: a node is a layer that needs only ports, and this is a deployment that shares nothing with the door. The hot route
 * is not there either, so it also proves that the declared route answers as the hot one does.
 */
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { Layer, Logger, LogLevel } from "effect"
import { describe, expect, it } from "vitest"
import { Database } from "../../src/ports/Database.ts"
import { Release } from "../../src/ports/Release.ts"
import * as JobPorts from "../../src/ports/jobPorts.ts"
import { RequestBody } from "../../src/ports/RequestBody.ts"
import { SavedState } from "../../src/ports/SavedState.ts"
import { SchedulerClient } from "../../src/ports/SchedulerClient.ts"
import { Turn } from "../../src/ports/Turn.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { SspConfig } from "../../src/ssp/Config.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"
import { secret, until } from "../kit/Door.ts"
import { create, registration } from "../kit/registration.ts"

const quiet = Logger.minimumLogLevel(LogLevel.None)

/** An SSP as a function from request to response, for any server that speaks the web's types. */
const compose = (env: { readonly [name: string]: string }) => {
  const drivers = Layer.mergeAll(
    Database.layerMemory, SavedState.layerMemory, Turn.layerYield, RequestBody.layer, SchedulerClient.layerNone, Upstream.layerNone, JobPorts.layerNone, Release.layerOf("9.9.9"), SspConfig.layerOf(env), quiet,
  )
  return HttpApiBuilder.toWebHandler(Layer.mergeAll(Ssp.layer.pipe(Layer.provide(drivers)), HttpServer.layerContext, quiet))
}

const ask = async (node: ReturnType<typeof compose>, method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly json: unknown }> => {
  const request = new Request(`http://node${path}`, {
    method, headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" }, ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const response = await node.handler(request)
  return { status: response.status, json: await response.json() }
}

describe("compose your own", () => {
  it("two nodes in one process, behind no server of ours, share nothing and answer as the door does", async () => {
    const env = { SVC_AUTH_SECRET: secret, STORE_ADDR: "memory://" }
    const one = compose({ ...env, SSP_ID: "one" })
    const two = compose({ ...env, SSP_ID: "two" })
    try {
      for (const node of [one, two]) await until("ready", async () => (await ask(node, "GET", "/health")).status === 200)
      await ask(one, "POST", "/view/register", registration("v", "SELECT * FROM a WHERE n > 1", { format: "tree" }))
      expect(await ask(one, "POST", "/ingest", create("a:1", { n: 2 }))).toEqual({ status: 200, json: { views_affected: 1, edges_updated: 1 } })
      expect((await ask(one, "GET", "/view/v")).json).toMatchObject({ result_data: [{ id: "a:1", n: 2 }] })
      expect(await ask(two, "GET", "/view/v")).toMatchObject({ status: 404, json: { code: "VIEW_NOT_FOUND" } })
      expect((await ask(two, "GET", "/debug/deps")).json).toMatchObject({ tables_in_store: [] })
      expect((await ask(two, "GET", "/info")).json).toEqual([{ entity: "ssp", id: "two", status: "ready", views: 0 }])
      expect((await ask(one, "GET", "/version")).json).toEqual({ version: "9.9.9", mode: "standalone" })
      expect(await ask(one, "POST", "/ingest", { ...create("a:1"), op: "PUT" })).toMatchObject({ status: 400, json: { code: "INVALID_OPERATION" } })
      expect(await ask(one, "POST", "/ingest", {})).toMatchObject({ status: 400, json: { code: "INVALID_REQUEST" } })
    } finally {
      await Promise.all([one.dispose(), two.dispose()])
    }
  })
})
