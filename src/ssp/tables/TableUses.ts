/**
 * Tables that this SSP needs (D61): those of its views, of registrations under way and of its jobs, and the tables that
 * their records link to if a view follows links.
 *
 * Counted per table, so that a view that comes or goes costs its own tables. A link counts as long as its table is
 * held: one too many costs a table, one too few a wrong result.
 */
import type * as Interest from "../../core/surql/syntax/interest.ts"

/** Link targets beyond which this SSP holds every table: any text may have the form of a link. */
const maxLinks = 1000

/** Use counts of tables: a view that is added or removed changes only the counts of its own tables. */
export class TableUses {
  readonly base: ReadonlySet<string>
  private readonly counts = new Map<string, number>()
  private readonly views = new Map<string, Interest.Interest>()
  private readonly pins = new Set<Interest.Interest>()
  /** Link targets by the table that links to them. */
  private readonly links = new Map<string, Set<string>>()
  private linkCount = 0
  private following = 0
  private alls = 0

  constructor(base: Iterable<string>) {
    this.base = new Set(base)
  }

  put(view: string, interest: Interest.Interest): void {
    this.remove(view)
    this.views.set(view, interest)
    this.count(interest, 1)
  }

  remove(view: string): void {
    const known = this.views.get(view)
    if (known === undefined) return
    this.views.delete(view)
    this.count(known, -1)
  }

  /** The tables are needed until the returned function is called. */
  pin(interest: Interest.Interest): () => void {
    this.pins.add(interest)
    this.count(interest, 1)
    return () => {
      if (this.pins.delete(interest)) this.count(interest, -1)
    }
  }

  get follows(): boolean {
    return this.following > 0
  }

  /** Whether every table is needed. */
  get all(): boolean {
    return this.alls > 0 || (this.follows && this.linkCount > maxLinks)
  }

  /** Notes that records of `table` link to `to`; true if that is new. */
  linked(table: string, to: string): boolean {
    let known = this.links.get(table)
    if (known === undefined) this.links.set(table, (known = new Set()))
    if (known.has(to)) return false
    if (this.linkCount <= maxLinks) {
      known.add(to)
      this.linkCount++
    }
    return true
  }

  /** Whether records of `table` are known to link to `to`. */
  isLinked(table: string, to: string): boolean {
    return this.links.get(table)?.has(to) === true
  }

  /** Called when the table's records are no longer held. */
  forgotten(table: string): void {
    this.linkCount -= this.links.get(table)?.size ?? 0
    this.links.delete(table)
  }

  clearLinks(): void {
    this.links.clear()
    this.linkCount = 0
  }

  /** The tables needed now; incomplete if {@link all}. */
  get needed(): ReadonlySet<string> {
    const found = new Set([...this.base, ...this.counts.keys()])
    // Iterating a set also visits the elements added meanwhile.
    if (this.follows) for (const table of found) for (const to of this.links.get(table) ?? []) found.add(to)
    return found
  }

  private count({ all, follows, tables }: Interest.Interest, by: 1 | -1): void {
    if (all) this.alls += by
    if (follows) this.following += by
    for (const table of tables) {
      const count = (this.counts.get(table) ?? 0) + by
      if (count === 0) this.counts.delete(table)
      else this.counts.set(table, count)
    }
  }
}
