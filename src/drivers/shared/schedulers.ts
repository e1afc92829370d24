/**
 * Several schedulers of one log, any of which may be asked: first the one that answered last, then the next while one
 * cannot be reached or knows no leader.
 */
import { Effect } from "effect"

/** Message about a scheduler that refuses the secret of an SSP. */
export const whySecret = (status: number): string =>
  status === 401 || status === 403
    ? ": the scheduler does not take this SSP's SVC_SCHEDULER_AUTH_SECRET (its SVC_SCHEDULER_AUTH_SECRET or SVC_AUTH_SECRETS has another, or without the scope)"
    : ""

export class Schedulers {
  private readonly urls: ReadonlyArray<string>
  private at = 0

  /** `list`: addresses separated by commas, at least one, without trailing slashes. */
  constructor(list: string) {
    this.urls = list.split(",")
  }

  /** URL of the scheduler that is asked first. */
  get first(): string {
    return this.urls[this.at]!
  }

  /**
   * Fails with the last failure when each has been asked once. `passes`: whether a failure lets the next scheduler be
   * asked.
   */
  ask<A, E, R>(call: (url: string) => Effect.Effect<A, E, R>, passes: (error: E) => boolean): Effect.Effect<A, E, R> {
    const { length } = this.urls
    const attempt = (left: number): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        const asked = this.at
        const next = (): void => {
          // Another call may have moved on already.
          if (this.at === asked) this.at = (asked + 1) % length
        }
        return call(this.urls[asked]!).pipe(
          // The caller gave up: this scheduler takes too long, so later calls ask the next one.
          Effect.onInterrupt(() => Effect.sync(next)),
          Effect.catchAll((error) => {
            if (!passes(error)) return Effect.fail(error)
            next()
            return left > 1 ? attempt(left - 1) : Effect.fail(error)
          })
        )
      })
    return attempt(length)
  }
}
