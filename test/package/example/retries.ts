/**
 * A retry policy of your own: a backend that does not know a job yet (404) is asked again for a minute, all else is as
 * ever.
 *
 * Merged behind the other ports of a node it takes the place of the package's own.
 */
import { Layer } from "effect"
import { failures, jobError } from "surreal-live-sidecar/core/job/job"
import * as Retry from "surreal-live-sidecar/core/job/retry"
import { RetryPolicy } from "surreal-live-sidecar/ports/RetryPolicy"

export const patientWith404 = Layer.succeed(RetryPolicy, {
  decide: (job, outcome, settings, draw) => {
    const attempt = failures(job.errors) + 1
    if (outcome.kind !== "final" || outcome.code !== 404 || attempt > 12)
      return Retry.decide(job, outcome, settings, draw)
    return { kind: "retry", delayMs: 5_000, error: jobError(attempt, 404, outcome.reason, draw.nowMs) }
  }
})
