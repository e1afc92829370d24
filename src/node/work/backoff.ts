/**
 * The pause after a failure: random below a ceiling that doubles with every failure in a row ("full jitter").
 *
 * Random, so that callers that lost the same server at once do not all come back at once.
 */
import { Effect, Either, Random } from "effect"
import { type Backoff, ceilingMs } from "../../core/backoff.ts"

/**
 * Sleeps; `failures`: number of failures in a row. A caller that counts from 1 and not from 0 begins with a higher
 * ceiling.
 */
export const pause = (backoff: Backoff, failures: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (part) => Effect.sleep(Math.ceil(part * ceilingMs(backoff, failures))))

/**
 * Runs an effect until it succeeds. `failed` is called for each failure, with the number of earlier ones, and may end
 * the retries with a failure of its own.
 */
export const untilSuccess =
  <E extends { readonly message: string }, E2 = never>(
    backoff: Backoff,
    failed: (error: E, before: number) => Effect.Effect<void, E2>
  ) =>
  <A, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E2, R> =>
    Effect.gen(function* () {
      for (let failures = 0; ; failures++) {
        const tried = yield* Effect.either(effect)
        if (Either.isRight(tried)) return tried.right
        yield* failed(tried.left, failures)
        yield* pause(backoff, failures)
      }
    })
