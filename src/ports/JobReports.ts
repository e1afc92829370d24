/**
 * Word of jobs to the scheduler (`/job/result`): which run, and how they ended (D36).
 *
 * With a database beside the cluster this is tracking; without one the scheduler writes the record from it, so whoever
 * reports repeats it until it is answered.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Context, Data, Effect, Layer } from "effect"
import type { ResultStatus } from "../core/job/status.ts"

export interface JobReport {
  readonly job_id: string
  readonly status: ResultStatus
  readonly error: string | null
  /** Extension (D36): the whole of the record's `errors`. */
  readonly errors?: ReadonlyArray<unknown>
  /** Extension (D36): the SSP that reports. */
  readonly ssp_id?: string
}

export class JobReportFailed extends Data.TaggedError("JobReportFailed")<{ readonly message: string }> {}

export interface JobReportsShape {
  /** False: there is no scheduler, and nobody to tell. */
  readonly present: boolean
  readonly report: (report: JobReport) => Effect.Effect<void, JobReportFailed>
}

/** Tells a scheduler how jobs ended; `layerNone` where there is none. */
export class JobReports extends Context.Tag("ports/JobReports")<JobReports, JobReportsShape>() {
  static readonly layerNone: Layer.Layer<JobReports> = Layer.succeed(JobReports, { present: false, report: () => Effect.void })

  /** `url` without a trailing slash. */
  static readonly layerHttp = (url: string): Layer.Layer<JobReports, never, HttpClient.HttpClient> =>
    Layer.effect(JobReports, Effect.map(HttpClient.HttpClient, (client) => ({
      present: true,
      report: (report: JobReport) =>
        HttpClientRequest.post(`${url}/job/result`).pipe(
          HttpClientRequest.bodyUnsafeJson(report),
          client.execute,
          Effect.flatMap((response) => Effect.as(response.text, response.status)),
          Effect.scoped,
          Effect.timeout("10 seconds"),
          Effect.mapError((error) => new JobReportFailed({ message: `${url}/job/result: ${error.message}` })),
          Effect.filterOrFail((status) => status >= 200 && status < 300, (status) => new JobReportFailed({ message: `${url}/job/result answered ${status}` })),
          Effect.asVoid
        )
    })))
}
