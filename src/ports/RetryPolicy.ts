/**
 * Whether and when a job is called again after an attempt: a decision that a deployment may take itself.
 *
 * A service with a default (D38, `core/job/retry.ts`), so that a composer who wants the default provides nothing. A
 * policy is pure: time and chance are arguments, so that it can be tested on values alone.
 */
import { Context } from "effect"
import type { Job } from "../core/job/job.ts"
import type { Outcome } from "../core/job/outcome.ts"
import * as Retry from "../core/job/retry.ts"

/** A decision about one more attempt. */
export interface RetryPolicyShape {
  /**
   * Decides whether a job is tried again after an attempt. `job.errors` holds the attempts that failed before,
   * `settings` the configuration (`SVC_JOB_RETRY_BASE_MS`, `SVC_JOB_MAX_RETRIES`). The error of the decision is
   * appended to the record; its `delayMs` is at least 0.
   */
  readonly decide: (job: Job, outcome: Outcome, settings: Retry.Policy, draw: Retry.Draw) => Retry.Decision
}

/** Decides about further attempts of jobs. To replace the default, merge a layer behind the others. */
export class RetryPolicy extends Context.Reference<RetryPolicy>()("ports/RetryPolicy", {
  defaultValue: (): RetryPolicyShape => ({ decide: Retry.decide })
}) {}
