/**
 * A whole SSP in memory: every port it needs, for tests, for trying things out, and as what another deployment starts from.
 *
 * What is merged behind {@link ports} takes a port's place, so a composer names only what is different:
 * `Ssp.layer.pipe(Layer.provide(Layer.mergeAll(Memory.ports(env), myStore)))`.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer } from "effect"
import { ConfigSource } from "../ports/ConfigSource.ts"
import { Database } from "../ports/Database.ts"
import * as JobPorts from "../ports/jobPorts.ts"
import { Release } from "../ports/Release.ts"
import { RequestBody } from "../ports/RequestBody.ts"
import { SavedState } from "../ports/SavedState.ts"
import { SchedulerClient } from "../ports/SchedulerClient.ts"
import { Turn } from "../ports/Turn.ts"
import { Upstream } from "../ports/Upstream.ts"
import { SspConfig } from "./Config.ts"
import * as Ssp from "./Ssp.ts"

/** Settings as the environment names them, `SVC_AUTH_SECRET` and so on; `process.env` will do. */
export type Env = { readonly [name: string]: string | undefined }

/** The scheduler that `SCHEDULER_URL` names; nobody where it is unset. */
const scheduler = Layer.unwrapEffect(Effect.map(SspConfig, ({ schedulerSecret, schedulerUrl }) => (schedulerUrl === undefined ? SchedulerClient.layerNone : SchedulerClient.layerHttp(schedulerUrl, schedulerSecret))))

/** Every port of an SSP, in memory; jobs are not run. `client` reaches the scheduler, over the runtime's `fetch` when absent. */
export const ports = (env: Env, client: Layer.Layer<HttpClient.HttpClient> = FetchHttpClient.layer) =>
  Layer.provideMerge(
    Layer.mergeAll(Database.layerMemory, SavedState.layerMemory, Upstream.layerNone, JobPorts.layerNone, RequestBody.layer, Turn.layerYield, Release.layerOf("0.0.0"), Layer.provide(scheduler, client)),
    SspConfig.layerEnv.pipe(Layer.provide(ConfigSource.layerMemory({ env: { STORE_ADDR: "memory://", ...env } })))
  )

/** Routes, views and loops over {@link ports}; for any server, `HttpApiBuilder.toWebHandler` included. Two in one process: each in `Layer.fresh`. */
export const layer = (env: Env, client?: Layer.Layer<HttpClient.HttpClient>) => Ssp.layer.pipe(Layer.provide(ports(env, client)))
