/**
 * Network clients for running jobs: calls to backends, and reports to the scheduler.
 *
 * Loaded only if there are jobs to run, because loading takes time that a node without jobs should not wait for.
 */
import { Effect, Layer, type Redacted } from "effect"
import * as HttpBackend from "../../drivers/httpBackend.ts"
import * as HttpJobReports from "../../drivers/httpJobReports.ts"
import type { Tls } from "../../node/config/tls.ts"
import { Backend } from "../../ports/Backend.ts"
import { JobReports } from "../../ports/JobReports.ts"

interface JobSettings {
  readonly jobTables: ReadonlyArray<unknown>
  readonly schedulerUrl: string | undefined
  /** Asked for at each report. */
  readonly schedulerSecret: () => Redacted.Redacted<string> | undefined
  readonly tls?: Tls | undefined
}

/** On bare connections: a node runs a thousand jobs a second. */
const exchange = (tls: Tls | undefined) =>
  Effect.flatMap(
    Effect.promise(() => import("./exchange.ts")),
    ({ make }) => make(tls)
  )

const calls = Layer.unwrapScoped(Effect.map(exchange(undefined), HttpBackend.layerOver))

const reports = (url: string, secret: JobSettings["schedulerSecret"], tls: Tls | undefined): Layer.Layer<JobReports> =>
  Layer.unwrapScoped(Effect.map(exchange(tls), (over) => HttpJobReports.layer(url, secret, over)))

export const layer = ({
  jobTables,
  schedulerSecret,
  schedulerUrl,
  tls
}: JobSettings): Layer.Layer<Backend | JobReports> =>
  jobTables.length === 0
    ? Layer.merge(Backend.layerNone, JobReports.layerNone)
    : Layer.merge(
        calls,
        schedulerUrl === undefined ? JobReports.layerNone : reports(schedulerUrl, schedulerSecret, tls)
      )
