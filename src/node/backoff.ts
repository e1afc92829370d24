/**
 * The pause after a failure: drawn evenly below a ceiling that doubles with every failure in a row ("full jitter").
 *
 * Why drawn: many who lost the same neighbour at once must not all come back at once.
 */
import { Effect, Random } from "effect"

export interface Backoff {
  /** Ceiling of the pause after `failures` 0. */
  readonly baseMs: number
  /** Highest ceiling. */
  readonly capMs: number
}

/** Sleeps; `failures` counts those in a row, from 0 or from 1 as the caller likes its first ceiling. */
export const pause = ({ baseMs, capMs }: Backoff, failures: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (part) =>
    Effect.sleep(Math.ceil(part * Math.min(capMs, baseMs * 2 ** Math.min(failures, 16))))
  )
