/**
 * What runs jobs needs of the network: calls to backends, and word to the scheduler.
 *
 * Loaded only where there are jobs to run, because it takes time that a node without them should not wait for.
 */
import { Effect, Layer, type Redacted } from "effect"
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

const calls = Layer.unwrapEffect(
  Effect.map(
    Effect.promise(() => import("./backendCalls.ts")),
    ({ layer }) => layer
  )
)

const reports = (url: string, secret: JobSettings["schedulerSecret"], tls: Tls | undefined): Layer.Layer<JobReports> =>
  Layer.unwrapScoped(
    Effect.flatMap(
      Effect.promise(() => import("./exchange.ts")),
      ({ between }) => Effect.map(between(tls), (send) => HttpJobReports.layer(url, secret, send))
    )
  )

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
