/**
 * The views that show pages of the rows of one key: which pages can a record that comes, goes or moves change?
 *
 * Views that differ only in START, or only in where their range begins, are a series: the further one begins, the
 * further it ends, so that those a record concerns stand side by side and are found by bisection. All others are asked
 * one by one, unless the record stands behind the furthest edge of them all. Cost: O(log n) for each series, and the
 * views found.
 */
import { firstWhere } from "../../bisect.ts"
import type { Value } from "../../surql/values/value.ts"
import { isBehind, type Ordering, type Probe } from "../store/ordering.ts"
import type { RecordSlot } from "../store/recordSlot.ts"

/** How a view is told of records of its key. */
export interface PageReader {
  /** Equal for the views of one series; undefined for a view that belongs to none now. */
  readonly series: string | undefined
  /** Negative: its page begins before that of the other view, which is of the same series. */
  compareBegin(other: PageReader): number
  /** Its rows lie in a range of their first value. */
  readonly hasRange: boolean
  /** Its filter has a part that no index decides: each change of a record of its key may matter. */
  readonly filters: boolean
  /** Whether a row with this first value lies in its range. */
  admitsLead(lead: Value): boolean
  /** No row behind this place reaches it; undefined: any row may. */
  readonly edge: Probe | undefined
  /** Whether a row at this place may be on its page or before it. */
  reaches(place: Place, slot: RecordSlot): boolean
  /** Whether a row at this place stands before its page, so that it only counts. */
  isBefore(place: Place): boolean
  /**
   * The record may have come to its page, gone from it or changed on it: it was at one place and is at another, or at
   * none.
   */
  touch(slot: RecordSlot, from: Place | undefined, to: Place | undefined): void
}

/** A place of a record in the order of the index. */
export interface Place {
  /** Its first value. */
  readonly lead: Value
  /** Its rank among the rows of its key: before a record was taken out, or after it was put in. */
  readonly rank: number
}

/** Stands for the place of a record that has not moved. */
export const inPlace: Place = { lead: undefined, rank: -2 }

/** Tells one view of a record that was at one place and is at another; undefined: it was or is not there. */
export const tellOne = (view: PageReader, slot: RecordSlot, from: Place | undefined, to: Place | undefined): void => {
  // What goes from one place before the page to another shifts nothing.
  if (from !== undefined && to !== undefined && view.isBefore(from) && view.isBefore(to)) return
  if ((from !== undefined && view.reaches(from, slot)) || (to !== undefined && view.reaches(to, slot)))
    view.touch(slot, from, to)
}

/** Tells a view that filters rows of a record that changed and stands where it stood. */
export const tellFiltering = (view: PageReader, slot: RecordSlot, place: Place): void => {
  if (view.filters && view.reaches(place, slot)) view.touch(slot, place, place)
}

/** What the views of an index have in common. */
interface Edges {
  readonly ordering: Ordering
  /** How often the edge of a view has moved on. */
  readonly edgesMoved: number
}

export class PageViews {
  private readonly edges: Edges
  private readonly single = new Set<PageReader>()
  private readonly inSeries = new Map<string, Array<PageReader>>()
  /** The furthest edge of the single views, or one behind it; undefined: a view has none. */
  private furthest: Probe | undefined = undefined
  /** The edges had moved on so often when that was found; -1: it is to be found anew. */
  private furthestAt = -1

  constructor(edges: Edges) {
    this.edges = edges
  }

  get isEmpty(): boolean {
    return this.single.size === 0 && this.inSeries.size === 0
  }

  add(view: PageReader): void {
    const { series } = view
    if (series === undefined) {
      this.single.add(view)
      this.furthestAt = -1
      return
    }
    const views = this.inSeries.get(series)
    if (views === undefined) this.inSeries.set(series, [view])
    else
      views.splice(
        firstWhere(views.length, (at) => views[at]!.compareBegin(view) >= 0),
        0,
        view
      )
  }

  /** Takes a view out of a series, or out of those that belong to none. */
  remove(view: PageReader, series: string | undefined): void {
    const views = series === undefined ? undefined : this.inSeries.get(series)
    if (views === undefined) {
      this.single.delete(view)
      return
    }
    const at = views.indexOf(view)
    if (at >= 0) views.splice(at, 1)
    if (views.length === 0) this.inSeries.delete(series!)
  }

  /** Tells the views that filter rows of a record that changed and stands where it stood. */
  tellFiltering(slot: RecordSlot, place: Place): void {
    if (this.isBehindAll(slot, place)) return
    for (const view of this.single) tellFiltering(view, slot, place)
  }

  /** Tells of a record that was at one place and is at another, or at none. */
  tell(slot: RecordSlot, from: Place | undefined, to: Place | undefined): void {
    if (this.single.size > 0 && !(this.isBehindAll(slot, from) && this.isBehindAll(slot, to)))
      for (const view of this.single) tellOne(view, slot, from, to)
    for (const views of this.inSeries.values()) {
      const [some] = views
      if (some!.hasRange) {
        for (const place of [from, to])
          if (place !== undefined) tellReached(views, slot, place, (view) => !view.admitsLead(place.lead), from, to)
      } else if (from === undefined || to === undefined) tellReached(views, slot, (from ?? to)!, never, from, to)
      else {
        const [first, last] = from.rank <= to.rank ? [from, to] : [to, from]
        tellReached(views, slot, first, (view) => view.isBefore(last), from, to)
      }
    }
  }

  /** Whether a place, if it is one, lies behind the edges of all single views. */
  private isBehindAll(slot: RecordSlot, place: Place | undefined): boolean {
    if (place === undefined) return true
    const { edges, furthest } = this
    const edge = this.furthestAt === edges.edgesMoved ? furthest : this.findFurthest()
    return edge !== undefined && isBehind(edges.ordering, place.lead, slot, edge)
  }

  private findFurthest(): Probe | undefined {
    const { edgesMoved, ordering } = this.edges
    this.furthestAt = edgesMoved
    let furthest: Probe | undefined
    for (const { edge } of this.single) {
      if (edge === undefined) return (this.furthest = undefined)
      if (furthest === undefined || isBehind(ordering, edge.lead, edge.slot, furthest)) furthest = edge
    }
    return (this.furthest = furthest)
  }
}

const never = (): boolean => false

/** Touches the views of a series that reach a place, but for those, the last ones, that begin too far behind it. */
const tellReached = (
  views: ReadonlyArray<PageReader>,
  slot: RecordSlot,
  place: Place,
  beginsBehind: (view: PageReader) => boolean,
  from: Place | undefined,
  to: Place | undefined
): void => {
  const end = firstWhere(views.length, (at) => beginsBehind(views[at]!))
  // Each view that is asked is cold. The last one tells of all where the place lies behind every page.
  if (end === 0 || !views[end - 1]!.reaches(place, slot)) return
  for (let at = firstWhere(end, (at) => views[at]!.reaches(place, slot)); at < end; at++)
    views[at]!.touch(slot, from, to)
}
