/**
 * One queue for each view id: requests for one id run in the order they came, different ids do not wait.
 *
 * A registration may take many turns of the event loop to fill. A later request for the same id (another query, its
 * removal) must wait for it, or the older one would win.
 */
import { Effect } from "effect"

interface Turns {
  readonly semaphore: Effect.Semaphore
  users: number
}

export class KeyTurns {
  private readonly byKey = new Map<string, Turns>()

  /** Whether a request for this id runs or waits. */
  has(key: string): boolean {
    return this.byKey.has(key)
  }

  /** Runs an effect after all earlier requests for this id. */
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
