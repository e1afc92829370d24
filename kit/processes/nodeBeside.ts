/**
 * A whole SSP in this process beside a database server of the test's: asked over its Api, looked into through its
 * services.
 *
 * Why not the door: what a restart writes and what stands in memory with which type no answer says.
 */
import { HttpApiBuilder, HttpServer } from "@effect/platform"
import { Context, Effect, Layer, Logger, LogLevel, ManagedRuntime } from "effect"
import { identical } from "../../src/core/surql/values/order.ts"
import { Range, type RecordKey } from "../../src/core/surql/values/value.ts"
import * as BackendClient from "../../src/host/http/backendClient.ts"
import { layerTurn } from "../../src/host/process/turn.ts"
import * as Stores from "../../src/host/stores.ts"
import { Database } from "../../src/ports/Database.ts"
import { Serving } from "../../src/ports/Front.ts"
import { Release } from "../../src/ports/Release.ts"
import { RequestBody } from "../../src/ports/RequestBody.ts"
import { SchedulerClient } from "../../src/ports/SchedulerClient.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { SspConfig } from "../../src/ssp/Config.ts"
import { EdgeWriter } from "../../src/ssp/edges/EdgeWriter.ts"
import { fromDatabase } from "../../src/ssp/membership/Lifecycle.ts"
import { Reconcile } from "../../src/ssp/reconcile/Reconcile.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"
import { Views } from "../../src/ssp/views/Views.ts"
import { EventStream } from "../checks/EventStream.ts"
import { secret, until } from "./Door.ts"

export interface Answer {
  readonly status: number
  readonly json: unknown
}

export interface NodeBeside {
  readonly ask: (method: string, path: string, body?: unknown) => Promise<Answer>
  /** Follows a view from now on; to be closed. */
  readonly follow: (view: string) => Promise<EventStream>
  readonly ready: () => Promise<void>
  readonly records: Views["Type"]["records"]
  /** Record writes that its own store has taken since it was made. */
  readonly writes: () => Promise<number>
  readonly upstream: Upstream["Type"]
  readonly edges: EdgeWriter["Type"]
  readonly reconcile: Reconcile["Type"]
  /** What a loop of it has ended with; waits for that. */
  readonly fault: () => Promise<StartFault>
  readonly stop: () => Promise<void>
}

/** `port` of the database server; `dataDir` is kept over restarts. */
export const startBeside = async (
  port: number,
  dataDir: string,
  env: { readonly [name: string]: string } = {}
): Promise<NodeBeside> => {
  const config = SspConfig.layerOf({
    SVC_AUTH_SECRET: secret,
    SSP_ID: "me",
    STORE_ADDR: `127.0.0.1:${port}`,
    STORE_NS: "n",
    STORE_DB: "d",
    STORE_USER: "root",
    STORE_PASS: "root",
    SVC_DATA_DIR: dataDir,
    SVC_RECONCILE_INTERVAL_SECS: "0",
    ...env
  })
  const stores = Layer.unwrapEffect(Effect.map(SspConfig, (settings) => Stores.layer(settings, fromDatabase)))
  const drivers = Layer.mergeAll(
    stores,
    layerTurn,
    RequestBody.layer,
    SchedulerClient.layerNone,
    BackendClient.layer({ jobTables: [], schedulerUrl: undefined, schedulerSecret: () => undefined }),
    Release.layerOf("1.2.3")
  ).pipe(Layer.provideMerge(config))
  const node = Ssp.layer.pipe(Layer.provideMerge(drivers), Layer.provideMerge(Logger.minimumLogLevel(LogLevel.None)))
  const memoMap = Effect.runSync(Layer.makeMemoMap)
  const runtime = ManagedRuntime.make(node, memoMap)
  const context = (await runtime.runtime()).context
  const { dispose, handler } = HttpApiBuilder.toWebHandler(Layer.mergeAll(node, HttpServer.layerContext), { memoMap })
  const ask = async (method: string, path: string, body?: unknown): Promise<Answer> => {
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
  const follow = async (view: string): Promise<EventStream> =>
    EventStream.of(
      await handler(
        new Request(`http://node/view/${encodeURIComponent(view)}/stream`, {
          headers: { authorization: `Bearer ${secret}` }
        })
      )
    )
  let stopped = false
  return {
    ask,
    follow,
    ready: async () => void (await until("ready", async () => (await ask("GET", "/health")).status === 200)),
    records: Context.get(context, Views).records,
    writes: async () => (await Effect.runPromise(Context.get(context, Database).position)).writes,
    upstream: Context.get(context, Upstream),
    edges: Context.get(context, EdgeWriter),
    reconcile: Context.get(context, Reconcile),
    fault: () => Effect.runPromise(Effect.flip(Context.get(context, Serving).crashed)),
    stop: async () => {
      if (stopped) return
      stopped = true
      await dispose()
      await runtime.dispose()
    }
  }
}

/**
 * The ids of a table's records that memory and database do not agree on: content exact, nothing missing, nothing more.
 */
export const differing = async (node: NodeBeside, table: string): Promise<ReadonlyArray<string>> => {
  const wrong: Array<string> = []
  const seen = new Set<string>()
  for (let after: RecordKey | undefined; ; ) {
    const chunk = await Effect.runPromise(node.upstream.chunk(table, after, 500))
    for (const { doc, id } of chunk) {
      seen.add(id.text)
      if (!identical(node.records.get(id)?.doc, doc)) wrong.push(id.text)
    }
    if (chunk.length < 500) break
    after = chunk.at(-1)?.id.key
  }
  for (const row of node.records.rowsBetween(table, new Range(undefined, undefined)))
    if (!seen.has(row.id.text)) wrong.push(row.id.text)
  return wrong
}
