/**
 * Counts the views of each user until they expire.
 *
 * State: for each user the views with their ends; users in the order of their last request, so that users without live
 * views are at the front. Cost of a request: the views of one user.
 */

/** Limits: views of one user, and users with views. */
export interface Bounds {
  readonly viewsPerUser: number
  readonly users: number
}

/** Result of {@link Holdings.hold}: `full` names the limit reached. */
export type HoldResult =
  /** Takes the count back, if the view was not registered after all. */
  { readonly undo: () => void } | { readonly full: "user" | "users"; readonly retryAfterMs: number }

/** Views by user, with their ends; times are Unix milliseconds. */
export class Holdings {
  private readonly ends = new Map<string, Map<string, number>>()

  constructor(private readonly bounds: Bounds) {}

  get users(): number {
    return this.ends.size
  }

  hold(user: string, view: string, now: number, end: number): HoldResult {
    this.forget(now)
    const own = this.ends.get(user) ?? new Map<string, number>()
    for (const [id, over] of own) if (over <= now) own.delete(id)
    const before = own.get(view)
    if (before === undefined && own.size >= this.bounds.viewsPerUser)
      return { full: "user", retryAfterMs: Math.min(...own.values()) - now }
    if (!this.ends.has(user) && this.ends.size >= this.bounds.users) return { full: "users", retryAfterMs: 60_000 }
    own.set(view, end)
    this.ends.delete(user)
    this.ends.set(user, own)
    return {
      undo: () => {
        if (before !== undefined) own.set(view, before)
        else own.delete(view)
        if (own.size === 0 && this.ends.get(user) === own) this.ends.delete(user)
      }
    }
  }

  private forget(now: number): void {
    for (const [user, own] of this.ends) {
      for (const end of own.values()) if (end > now) return
      this.ends.delete(user)
    }
  }
}
