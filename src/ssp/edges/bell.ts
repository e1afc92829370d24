/**
 * What the loops of the edge writer wait for: a bell that says there is something to do, and pauses after failures.
 *
 * Why a bell and not a queue of tasks: the work stands elsewhere and changes until it is done; that
 * there is something needs to be said only once.
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

/** The pause after so many failures in a row. */
export const backoff = (failures: number): Effect.Effect<void> => Backoff.pause(limits, failures)
