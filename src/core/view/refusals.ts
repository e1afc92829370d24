/**
 * Registrations that were refused because their views are too large, which shows only while a view is filled. A
 * repeated query gets the same refusal for ten times as long as the fill took, so that repeats take at most a tenth of
 * the time.
 */
import { Recent } from "../recent.ts"

/** How long a refusal counts: this many times the duration of the refused fill, and at most `longestMs`. */
const share = 10
const longestMs = 60_000
/** Most refusals remembered. */
const most = 1_000

interface Refusal<E> {
  readonly error: E
  /** Bytes that the rows of all views held before: once they hold less, there may be room. */
  readonly used: number
  readonly untilMs: number
}

export class Refusals<E> {
  private readonly byQuery = new Recent<string, Refusal<E>>(most)

  get isEmpty(): boolean {
    return this.byQuery.size === 0
  }

  /** The refusal that still counts. `used`: bytes that rows of all views hold now. */
  of(query: string, nowMs: number, used: number): E | undefined {
    const known = this.byQuery.get(query)
    if (known === undefined) return undefined
    if (nowMs < known.untilMs && used >= known.used) return known.error
    this.byQuery.delete(query)
    return undefined
  }

  /** Remembers the refusal of a fill begun at `sinceMs`, when rows of all views held `used` bytes. */
  add(query: string, error: E, { sinceMs, used }: { sinceMs: number; used: number }, nowMs: number) {
    this.byQuery.set(query, { error, used, untilMs: nowMs + Math.min(longestMs, share * (nowMs - sinceMs)) })
  }
}
