/**
 * The pause after a failure: drawn evenly below a ceiling that doubles with every failure in a row ("full jitter").
 *
 * Why drawn: many callers that lost the same server at once must not all come back at once.
 */
import { Effect, Random } from "effect"
import { type Backoff, ceilingMs } from "../../core/backoff.ts"

/** Sleeps; `failures` counts those in a row, from 0 or from 1 as the caller likes its first ceiling. */
export const pause = (backoff: Backoff, failures: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (part) => Effect.sleep(Math.ceil(part * ceilingMs(backoff, failures))))
