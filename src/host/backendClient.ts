/**
 * The HTTP client that calls backends and reports jobs: one that keeps its connections and follows no redirect.
 *
 * Loaded only where there are jobs to run, because it takes time that a node without them should not wait for.
 */
import { Effect, Layer } from "effect"
import { Backend } from "../ports/Backend.ts"
import { JobReports } from "../ports/JobReports.ts"

export interface JobSettings {
  readonly jobTables: ReadonlyArray<unknown>
  readonly schedulerUrl: string | undefined
}

const calls = Layer.unwrapEffect(Effect.map(Effect.promise(() => import("./backendCalls.ts")), ({ layer }) => layer))
const client = Layer.unwrapEffect(Effect.map(Effect.promise(() => import("@effect/platform-node/NodeHttpClient")), ({ layerUndici }) => layerUndici))

export const layer = ({ jobTables, schedulerUrl }: JobSettings): Layer.Layer<Backend | JobReports> =>
  jobTables.length === 0
    ? Layer.merge(Backend.layerNone, JobReports.layerNone)
    : Layer.merge(calls, schedulerUrl === undefined ? JobReports.layerNone : Layer.provide(JobReports.layerHttp(schedulerUrl), client))
