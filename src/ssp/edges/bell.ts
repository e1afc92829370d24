/**
 * A signal that wakes the edge writer's loops, and their pauses after failures.
 *
 * A signal and not a queue of tasks: the work lies elsewhere and changes until it is done, so one signal for all of it
 * is enough.
 */
import { Effect, Queue } from "effect"
import * as Backoff from "../../node/work/backoff.ts"

/** The cap is low, so that edges are right soon after the database is back. */
const limits = { baseMs: 50, capMs: 2_000 }

export class Bell {
  private rung = false

  constructor(private readonly queue: Queue.Queue<void>) {}

  ring(): void {
    if (this.rung) return
    this.rung = true
    this.queue.unsafeOffer(undefined)
  }

  readonly wait: Effect.Effect<void> = Effect.suspend(() => Queue.take(this.queue)).pipe(
    Effect.tap(() => Effect.sync(() => void (this.rung = false)))
  )
}

export const bell: Effect.Effect<Bell> = Effect.map(Queue.sliding<void>(1), (queue) => new Bell(queue))

/** Pauses after so many failures in a row. */
export const backoff = (failures: number): Effect.Effect<void> => Backoff.pause(limits, failures)
