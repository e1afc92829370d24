/** Endpoints that list and change jobs, declared once for both Apis; each Api adds its middlewares and errors. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { Schema } from "effect"
import { audits, requiresScope } from "./access.ts"
import * as Errors from "./errors.ts"
import * as Examples from "./examples.ts"
import * as Jobs from "./jobs.ts"
import * as Wire from "./wire.ts"

const jobId = HttpApiSchema.param("job_id", Schema.String.annotations({ examples: [Examples.jobId] }))

export const list = HttpApiEndpoint.get("jobs")`/jobs`
  .setUrlParams(Jobs.JobListing)
  .addSuccess(Jobs.JobList)
  .addError(Errors.StoreFailed)
  .annotateContext(requiresScope("read"))

export const readJob = HttpApiEndpoint.get("job")`/jobs/${jobId}`
  .addSuccess(Jobs.Job)
  .addError(Errors.JobNotFound)
  .addError(Errors.StoreFailed)
  .annotateContext(requiresScope("read"))

export const retry = HttpApiEndpoint.post("retry")`/jobs/${jobId}/retry`
  .addSuccess(Wire.Ok)
  .addError(Errors.JobNotFound)
  .addError(Errors.JobStatus)
  .addError(Errors.StoreFailed)
  .annotateContext(audits("job.retry", "admin"))

export const cancel = HttpApiEndpoint.post("cancel")`/jobs/${jobId}/cancel`
  .addSuccess(Wire.Ok)
  .addError(Errors.JobNotFound)
  .addError(Errors.JobStatus)
  .addError(Errors.StoreFailed)
  .annotateContext(audits("job.cancel", "admin"))
