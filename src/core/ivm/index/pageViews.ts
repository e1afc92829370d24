/**
 * The views that show pages of the rows of one key: which pages can an added, removed or moved record change?
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

/** A view with a page, as its key's list of views knows it. */
export interface PageReader {
  /** Equal for the views of one series; undefined for a view of no series. */
  readonly series: string | undefined
  /** Orders two views of one series by where their pages begin; negative: this page begins first. */
  compareBegin(other: PageReader): number
  /** The rows of the page lie in a range of their lead. */
  readonly hasRange: boolean
  /** A part of the filter is decided by no index: each change of a record of the key may matter. */
  readonly filters: boolean
  /** Whether a row with this lead lies in the range of the page. */
  admitsLead(lead: Value): boolean
  /** Rows behind this place are not on the page; undefined: any row may be. */
  readonly edge: Probe | undefined
  /** Whether a row at this place may be on the page or before it. */
  reaches(place: Place, slot: RecordSlot): boolean
  /** Whether a row at this place comes before the page, so that it only shifts the page. */
  isBefore(place: Place): boolean
  /** The record may have been added to the page, removed from it or changed on it. Undefined: not in the index. */
  touch(slot: RecordSlot, from: Place | undefined, to: Place | undefined): void
}

/** Place of a record in the order of the index. */
export interface Place {
  /** Lead of the record. */
  readonly lead: Value
  /** Rank among the rows of the key: before the record was removed, or after it was inserted. */
  readonly rank: number
}

/** Place of a record that has not moved. */
export const unmovedPlace: Place = { lead: undefined, rank: -2 }

/** Tells one view that a record has moved from one place to another; undefined: not in the index. */
export const notifyOfMove = (
  view: PageReader,
  slot: RecordSlot,
  from: Place | undefined,
  to: Place | undefined
): void => {
  // A move between two places before the page shifts nothing.
  if (from !== undefined && to !== undefined && view.isBefore(from) && view.isBefore(to)) return
  if ((from !== undefined && view.reaches(from, slot)) || (to !== undefined && view.reaches(to, slot)))
    view.touch(slot, from, to)
}

/** Tells a view that filters rows that a record has changed and keeps its place. */
export const notifyFilteringView = (view: PageReader, slot: RecordSlot, place: Place): void => {
  if (view.filters && view.reaches(place, slot)) view.touch(slot, place, place)
}

/** State that all views of an index share. */
interface Edges {
  readonly ordering: Ordering
  /** How often the page of a view has come to end further behind. */
  readonly edgesMoved: number
}

export class PageViews {
  private readonly edges: Edges
  private readonly single = new Set<PageReader>()
  private readonly inSeries = new Map<string, Array<PageReader>>()
  /** The furthest edge of the views without a series, or a place behind it; undefined: a view has none. */
  private furthest: Probe | undefined = undefined
  /** `edgesMoved` when `furthest` was found; -1: it has to be found again. */
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

  /** Removes a view from its series, or from the views without one. */
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

  /** Tells the views that filter rows that a record has changed and keeps its place. */
  tellFiltering(slot: RecordSlot, place: Place): void {
    if (this.isBehindAll(slot, place)) return
    for (const view of this.single) notifyFilteringView(view, slot, place)
  }

  /** Tells the views that a record has moved from one place to another; undefined: not in the index. */
  tell(slot: RecordSlot, from: Place | undefined, to: Place | undefined): void {
    if (this.single.size > 0 && !(this.isBehindAll(slot, from) && this.isBehindAll(slot, to)))
      for (const view of this.single) notifyOfMove(view, slot, from, to)
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

  /** Whether a place, if there is one, lies behind the edges of all views without a series. */
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

/** Touches the views of a series that reach a place, except the last ones, whose pages begin too far behind it. */
const tellReached = (
  views: ReadonlyArray<PageReader>,
  slot: RecordSlot,
  place: Place,
  beginsBehind: (view: PageReader) => boolean,
  from: Place | undefined,
  to: Place | undefined
): void => {
  const end = firstWhere(views.length, (at) => beginsBehind(views[at]!))
  // The views are likely in no cache, so look at one first: the last one reaches furthest. If it does not reach the
  // place, none does.
  if (end === 0 || !views[end - 1]!.reaches(place, slot)) return
  for (let at = firstWhere(end, (at) => views[at]!.reaches(place, slot)); at < end; at++)
    views[at]!.touch(slot, from, to)
}
