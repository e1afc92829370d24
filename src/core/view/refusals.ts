/**
 * Registrations that were refused for their size, which is found by filling them: a query that is asked again and again
 * gets the same answer for ten times as long as it took to find, so that no more than a tenth of the time goes into it.
 */
import { Recent } from "../recent.ts"

/** How many times as long as it took to find a refusal it counts, and how long at most. */
const share = 10
const longestMs = 60_000
/** Refusals that are remembered. */
const most = 1_000

interface Refusal<E> {
  readonly error: E
  /** Bytes that the rows of all views kept before: once they keep less, there may be room. */
  readonly used: number
  readonly untilMs: number
}

export class Refusals<E> {
  private readonly byQuery = new Recent<string, Refusal<E>>(most)

  get isEmpty(): boolean {
    return this.byQuery.size === 0
  }

  /** The refusal that still counts. `used`: bytes that rows of all views keep now. */
  of(query: string, nowMs: number, used: number): E | undefined {
    const known = this.byQuery.get(query)
    if (known === undefined) return undefined
    if (nowMs < known.untilMs && used >= known.used) return known.error
    this.byQuery.delete(query)
    return undefined
  }

  /** Remembers one of a fill that began at `sinceMs`, when rows of all views kept `used` bytes. */
  add(query: string, error: E, { sinceMs, used }: { sinceMs: number; used: number }, nowMs: number) {
    this.byQuery.set(query, { error, used, untilMs: nowMs + Math.min(longestMs, share * (nowMs - sinceMs)) })
  }
}
