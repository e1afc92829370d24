/**
 * A whole scheduler in memory: all its ports, for tests, trials, and as a base of other deployments.
 *
 * A layer merged behind {@link ports} replaces a port, so a composer names only the differing ones:
 * `Scheduler.layer.pipe(Layer.provide(Layer.mergeAll(Memory.ports(env), myLog)))`.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer } from "effect"
import * as HttpSspClient from "../drivers/httpSspClient.ts"
import * as MemoryPool from "../drivers/memoryPool.ts"
import * as MemoryReplica from "../drivers/memoryReplica.ts"
import { Balance } from "../ports/Balance.ts"
import { ConfigSource } from "../ports/ConfigSource.ts"
import { Names } from "../ports/Names.ts"
import { Release } from "../ports/Release.ts"
import { RequestBody } from "../ports/RequestBody.ts"
import { Turn } from "../ports/Turn.ts"
import { Upstream } from "../ports/Upstream.ts"
import { Wal } from "../ports/Wal.ts"
import { SchedulerConfig } from "./Config.ts"
import * as Scheduler from "./Scheduler.ts"

/** Settings by their environment names, `SVC_AUTH_SECRET` and so on; `process.env` will do. */
type Env = { readonly [name: string]: string | undefined }

const callTimeoutMs = 10_000

const ssps = Layer.unwrapEffect(
  Effect.map(SchedulerConfig, ({ allowedHosts, sspSecret }) =>
    HttpSspClient.layer({ secret: sspSecret, allowedHosts, timeoutMs: callTimeoutMs })
  )
).pipe(Layer.provide(Names.layerOf({})))

/**
 * Every port of a scheduler, in memory; no database is cloned. `client` reaches the SSPs, over the runtime's `fetch`
 * when absent; `file`: content of `svc.yml` as data.
 */
export const ports = (env: Env, client: Layer.Layer<HttpClient.HttpClient> = FetchHttpClient.layer, file?: unknown) =>
  Layer.provideMerge(
    Layer.mergeAll(
      MemoryReplica.layer,
      MemoryPool.layer,
      Upstream.layerNone,
      RequestBody.layer,
      Turn.layerYield,
      Release.layer,
      Layer.provide(ssps, client),
      Layer.unwrapEffect(Effect.map(SchedulerConfig, ({ loadBalance }) => Balance.layerNamed(loadBalance))),
      Layer.unwrapEffect(Effect.map(SchedulerConfig, ({ schedulerId }) => Wal.layerMemory(`log of ${schedulerId}`)))
    ),
    SchedulerConfig.layerEnv.pipe(
      Layer.provide(ConfigSource.layerMemory({ env, file: { path: "svc.yml", content: file, fault: undefined } }))
    )
  )

/**
 * Routes, ingest and pool over {@link ports}; for any server, `HttpApiBuilder.toWebHandler` included. Each web handler
 * has a node of its own.
 */
export const layer = (env: Env, client?: Layer.Layer<HttpClient.HttpClient>, file?: unknown) =>
  Scheduler.layer.pipe(Layer.provide(ports(env, client, file)))
