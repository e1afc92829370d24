/**
 * Reports of jobs to the scheduler (`/job/result`): which run, and how they ended (D36).
 *
 * With a database beside the cluster the report is only tracking; without one the scheduler writes the record from it,
 * so the SSP repeats the report until it is answered.
 */
import { Context, Data, Effect, Layer } from "effect"
import type { Result } from "../core/job/result.ts"
import type { ResultStatus } from "../core/job/status.ts"

/** Body of `/job/result`. */
export interface JobReport {
  readonly job_id: string
  readonly status: ResultStatus
  readonly error: string | null
  readonly result?: Result
  /** Extension (D36): the whole of the record's `errors`. */
  readonly errors?: ReadonlyArray<unknown>
  /** Extension (D74): position in the log that tells jobs of the same id apart. */
  readonly created_seq?: number
  /** Extension (D36): the SSP that reports. */
  readonly ssp_id?: string
}

/** The scheduler did not take the report; worth another try. */
export class JobReportFailed extends Data.TaggedError("JobReportFailed")<{ readonly message: string }> {}

/** Sends reports of jobs. */
export interface JobReportsShape {
  /** False if there is no scheduler to report to. */
  readonly present: boolean
  readonly report: (report: JobReport) => Effect.Effect<void, JobReportFailed>
}

/** Reports to a scheduler how jobs ended; `layerNone` without a scheduler. */
export class JobReports extends Context.Tag("ports/JobReports")<JobReports, JobReportsShape>() {
  static readonly layerNone: Layer.Layer<JobReports> = Layer.succeed(JobReports, {
    present: false,
    report: () => Effect.void
  })
}
