/**
 * A signal that wakes the edge writer's loops, and their pauses after failures.
 *
 * A signal and not a queue of tasks: the work lies elsewhere and changes until it is done, so one signal for all of it
 * is enough.
 */
import { Effect } from "effect"
import * as Backoff from "../../node/work/backoff.ts"

/** The cap is low, so that edges are right soon after the database is back. */
const limits = { baseMs: 50, capMs: 2_000 }

/** Wakes one waiting loop; signals between two waits count as one. */
export class WakeSignal {
  private readonly rung = Effect.unsafeMakeLatch(false)

  ring(): void {
    this.rung.unsafeOpen()
  }

  /** Returns once it has been rung since the last return. */
  readonly wait: Effect.Effect<void> = Effect.zipRight(this.rung.await, Effect.asVoid(this.rung.close))
}

/** Pauses after so many failures in a row. */
export const backoff = (failures: number): Effect.Effect<void> => Backoff.pause(limits, failures)
