/**
 * A whole SSP in memory: all its ports, for tests, trials, and as a base of other deployments.
 *
 * A layer merged behind {@link ports} replaces a port, so a composer names only the differing ones:
 * `Ssp.layer.pipe(Layer.provide(Layer.mergeAll(Memory.ports(env), myStore)))`.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Layer } from "effect"
import * as HttpBackend from "../drivers/httpBackend.ts"
import * as HttpJobReports from "../drivers/httpJobReports.ts"
import * as HttpSchedulerClient from "../drivers/httpSchedulerClient.ts"
import * as Exchange from "../drivers/shared/exchange.ts"
import { ConfigSource } from "../ports/ConfigSource.ts"
import { Database } from "../ports/Database.ts"
import { JobReports } from "../ports/JobReports.ts"
import { DatabaseJobs } from "../ports/JobStore.ts"
import { Release } from "../ports/Release.ts"
import { RequestBody } from "../ports/RequestBody.ts"
import { SavedState } from "../ports/SavedState.ts"
import { SchedulerClient } from "../ports/SchedulerClient.ts"
import { Turn } from "../ports/Turn.ts"
import { Upstream } from "../ports/Upstream.ts"
import { SspConfig } from "./Config.ts"
import * as Ssp from "./Ssp.ts"

/** Settings by their environment names, `SVC_AUTH_SECRET` and so on; `process.env` will do. */
type Env = { readonly [name: string]: string | undefined }

/** The scheduler that `SCHEDULER_URL` names, if any. */
const scheduler = Layer.unwrapEffect(
  Effect.map(SspConfig, ({ schedulerSecret, schedulerUrl }) =>
    schedulerUrl === undefined ? SchedulerClient.layerNone : HttpSchedulerClient.layer(schedulerUrl, schedulerSecret)
  )
)

/** Calls to backends and reports to the scheduler go over the client; jobs are kept with the records. */
const jobs = Layer.unwrapEffect(
  Effect.map(Effect.all([SspConfig, HttpClient.HttpClient]), ([{ schedulerSecret, schedulerUrl }, client]) =>
    Layer.mergeAll(
      HttpBackend.layer,
      DatabaseJobs.layerNone,
      schedulerUrl === undefined
        ? JobReports.layerNone
        : HttpJobReports.layer(schedulerUrl, schedulerSecret, Exchange.over(client))
    )
  )
)

/**
 * Every port of an SSP, in memory. `client` reaches the scheduler and the backends of jobs, over the runtime's `fetch`
 * when absent; `file`: content of `svc.yml` as data; `job_tables` in it makes jobs run.
 *
 * Settings are given here, because other ports are made from them: a layer of settings merged behind comes too late for
 * those.
 */
export const ports = (env: Env, client: Layer.Layer<HttpClient.HttpClient> = FetchHttpClient.layer, file?: unknown) =>
  Layer.provideMerge(
    Layer.mergeAll(
      Database.layerNone,
      SavedState.layerMemory,
      Upstream.layerNone,
      RequestBody.layer,
      Turn.layerYield,
      Release.layer,
      Layer.provide(Layer.merge(scheduler, jobs), client)
    ),
    SspConfig.layerEnv.pipe(
      Layer.provide(
        ConfigSource.layerMemory({
          env: { STORE_ADDR: "memory://", ...env },
          file: { path: "svc.yml", content: file, fault: undefined }
        })
      )
    )
  )

/**
 * Routes, views and loops over {@link ports}; for any server, `HttpApiBuilder.toWebHandler` included. Each web handler
 * has a node of its own.
 */
export const layer = (env: Env, client?: Layer.Layer<HttpClient.HttpClient>, file?: unknown) =>
  Ssp.layer.pipe(Layer.provide(ports(env, client, file)))
