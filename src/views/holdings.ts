/**
 * How many views each user has: a place for each, until the view's time is over.
 *
 * State: for each user the views with their end; users in the order in which they last came, so that those whose views
 * are all over are found at the front. Cost of a request: the views of one user.
 */

export interface Bounds {
  readonly viewsPerUser: number
  readonly users: number
}

export type Held =
  /** Gives the place back, where the view was not registered after all. */
  { readonly undo: () => void } | { readonly full: "user" | "users"; readonly retryAfterMs: number }

export class Holdings {
  private readonly ends = new Map<string, Map<string, number>>()

  constructor(private readonly bounds: Bounds) {}

  get users(): number {
    return this.ends.size
  }

  hold(user: string, view: string, now: number, end: number): Held {
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
