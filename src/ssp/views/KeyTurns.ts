/**
 * One queue for each view id: requests for one id run in the order they came, different ids do not wait.
 *
 * Why so: a registration may take many turns of the event loop to fill, and whatever comes later for the same id
 * (another query, its removal) must find it done, or the older one would win.
 */
import { Effect } from "effect"

interface Turns {
  readonly semaphore: Effect.Semaphore
  users: number
}

export class KeyTurns {
  private readonly byKey = new Map<string, Turns>()

  /** Something is being done to this id, or waits for that. */
  has(key: string): boolean {
    return this.byKey.has(key)
  }

  /** Runs an effect when everything asked of this id before is over. */
  inTurn<A, E>(key: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const turns = this.byKey.get(key) ?? { semaphore: Effect.unsafeMakeSemaphore(1), users: 0 }
      this.byKey.set(key, turns)
      turns.users++
      return Effect.ensuring(
        turns.semaphore.withPermits(1)(effect),
        Effect.sync(() => {
          if (--turns.users === 0) this.byKey.delete(key)
        })
      )
    })
  }
}
