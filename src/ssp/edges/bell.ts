/**
 * What the loops of the edge writer wait for: a bell that says there is something to do, and pauses after failures.
 *
 * Why a bell and not a queue of things to do: what is to be done stands elsewhere and changes until it is done; that there
 * is something needs to be said only once.
 */
import { Effect, Queue, Random } from "effect"

const baseMs = 50
/** So that edges are right soon after the database is back. */
const capMs = 2_000

export class Bell {
  private readonly queue: Queue.Queue<void>
  private rung = false

  constructor(queue: Queue.Queue<void>) {
    this.queue = queue
  }

  ring(): void {
    if (this.rung) return
    this.rung = true
    this.queue.unsafeOffer(undefined)
  }

  readonly wait: Effect.Effect<void> = Effect.suspend(() => Queue.take(this.queue)).pipe(Effect.tap(() => Effect.sync(() => void (this.rung = false))))
}

export const bell: Effect.Effect<Bell> = Effect.map(Queue.sliding<void>(1), (queue) => new Bell(queue))

/** A pause drawn evenly below a ceiling that doubles with every failure. */
export const backoff = (failures: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (part) => Effect.sleep(Math.ceil(part * Math.min(capMs, baseMs * 2 ** Math.min(failures, 16)))))
