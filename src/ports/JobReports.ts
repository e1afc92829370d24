/**
 * Word of jobs to the scheduler (`/job/result`): which run, and how they ended (D36).
 *
 * With a database beside the cluster this is tracking; without one the scheduler writes the record from it, so the SSP
 * that reports repeats it until it is answered.
 */
import { Context, Data, Effect, Layer } from "effect"
import type { Result } from "../core/job/result.ts"
import type { ResultStatus } from "../core/job/status.ts"

export interface JobReport {
  readonly job_id: string
  readonly status: ResultStatus
  readonly error: string | null
  readonly result?: Result
  /** Extension (D36): the whole of the record's `errors`. */
  readonly errors?: ReadonlyArray<unknown>
  /** Extension (D74): which job of this id. */
  readonly created_seq?: number
  /** Extension (D36): the SSP that reports. */
  readonly ssp_id?: string
}

export class JobReportFailed extends Data.TaggedError("JobReportFailed")<{ readonly message: string }> {}

export interface JobReportsShape {
  /** False: there is no scheduler that is told. */
  readonly present: boolean
  readonly report: (report: JobReport) => Effect.Effect<void, JobReportFailed>
}

/** Tells a scheduler how jobs ended; `layerNone` where there is none. */
export class JobReports extends Context.Tag("ports/JobReports")<JobReports, JobReportsShape>() {
  static readonly layerNone: Layer.Layer<JobReports> = Layer.succeed(JobReports, {
    present: false,
    report: () => Effect.void
  })
}
