/**
 * All views of one shape, and the ways to find those a change can concern.
 *
 * Rule: a view is filed by its arguments, and a changed row is shown to those its old or its new state meets, and to
 * no other (see viewIndex.ts). Views of single records are filed under their records. Cost: a few lookups per
 * shape, whatever the number of views. A shape of whole tables without indexed conjuncts, and a view whose arguments
 * have no exact key, are shown every change.
 */
import { addTo, removeFrom } from "../../multimap.ts"
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Obj, Value } from "../../surql/values/value.ts"
import type { ValueSetDelta } from "../delta/stepLog.ts"
import { type ViewKey, viewKeyOf } from "../query/indexPlan.ts"
import type { Shape } from "../query/shape.ts"
import type { RecordSlot, Write } from "../store/recordSlot.ts"
import type { Store } from "../store/store.ts"
import type { RoutedView } from "./routedView.ts"
import { maxCovered } from "./secondaryIndex.ts"
import type { SecondaryIndexes } from "./secondaryIndexes.ts"
import type { SubqueryValues } from "./subqueryValues.ts"
import { type Candidate, ViewIndex } from "./viewIndex.ts"

/** Rows looked at, and steps of evaluating them, between two pauses of a fill. */
export const sliceRows = 256
const sliceSteps = 20_000

/** Counts a row of a fill; true when it is time to pause. */
export const pacing = (source: { readonly spent: number }): (() => boolean) => {
  let rows = 0,
    spent = source.spent
  return () => {
    if (++rows % sliceRows !== 0 && source.spent - spent < sliceSteps) return false
    spent = source.spent
    return true
  }
}

export class ViewRouter {
  readonly shape: Shape
  readonly views = new Set<RoutedView>()
  /** The one there is, if there is one. */
  private lone: RoutedView | undefined = undefined
  private readonly indexes: SecondaryIndexes
  /** Where views are filed; made with their first one. */
  private usual: ViewIndex | undefined = undefined
  private ranges: ViewIndex | undefined = undefined
  /**
   * All views again, by conjuncts of single-step paths only, for rows whose longer path crosses a link. Undefined if no
   * path does.
   */
  private coarse: ViewIndex | undefined = undefined
  /** Views of a shape with indexed conjuncts that are filed nowhere. */
  private readonly everywhere = new Set<RoutedView>()
  /** Views whose parameters say what they read: those of tables and ranges by table, those of records by record. */
  private readonly byTable = new Map<string, Set<RoutedView>>()
  private readonly byRecord = new Map<string, Set<RoutedView>>()
  /** How many views are shown no record: they read pages of an ordered index, or the rows of another view. */
  unrouted = 0
  /** How many views read each table. */
  private readonly reading = new Map<string, number>()

  constructor(shape: Shape, indexes: SecondaryIndexes) {
    this.shape = shape
    this.indexes = indexes
  }

  add(view: RoutedView): void {
    this.views.add(view)
    this.lone = this.views.size === 1 ? view : undefined
    if (this.shape.access !== undefined) {
      const viewKey = this.viewKey(view)
      if (viewKey === undefined) this.everywhere.add(view)
      else {
        this.indexOf(viewKey).add(viewKey, view)
        const coarse = this.coarsely(view)
        if (coarse !== undefined) (this.coarse ??= this.newCoarse()).add(coarse, view)
      }
    }
    for (const { table } of view.boundSources?.scanned ?? []) addTo(this.byTable, table, view)
    for (const text of view.boundSources?.records.keys() ?? []) addTo(this.byRecord, text, view)
    for (const table of view.mainTables) this.reading.set(table, (this.reading.get(table) ?? 0) + 1)
  }

  remove(view: RoutedView): void {
    this.views.delete(view)
    if (this.views.size <= 1) [this.lone] = this.views
    if (this.shape.access !== undefined && !this.everywhere.delete(view)) this.unfile(this.viewKey(view)!, view)
    for (const { table } of view.boundSources?.scanned ?? []) removeFrom(this.byTable, table, view)
    for (const text of view.boundSources?.records.keys() ?? []) removeFrom(this.byRecord, text, view)
    for (const table of view.mainTables) {
      const left = this.reading.get(table)! - 1
      if (left === 0) this.reading.delete(table)
      else this.reading.set(table, left)
    }
  }

  /** No view has its shape. */
  get isUnused(): boolean {
    return this.views.size === 0 && this.unrouted === 0
  }

  readsTable(table: string): boolean {
    return this.reading.has(table)
  }

  /**
   * Shows a new view the rows it has to look at: those under its key where there is an index, else its sources. Pauses.
   */
  *fill(view: RoutedView, store: Store): Slices<void> {
    const isDue = pacing(view.around.source)
    for (const candidate of this.candidates(view, store)) {
      // A list may change while this pauses, so that what led here need not hold any more.
      if (candidate !== undefined)
        view.update(candidate.slot, candidate.slot.doc, candidate.routed && this.shape.list === undefined)
      if (isDue()) yield
    }
    yield* view.finishFill()
    view.begin()
    this.keep(view)
  }

  /**
   * The same without a pause, where an index leads to one record at most: nothing is made for the walk. False: the view
   * has to be filled as others are.
   */
  fillAtOnce(view: RoutedView, store: Store): boolean {
    if (this.shape.access?.byId !== true || this.shape.list !== undefined) return false
    const viewKey = this.viewKey(view)
    if (viewKey === undefined || !this.indexOf(viewKey).showOnly(viewKey, view, store)) return false
    view.begin()
    this.keep(view, viewKey)
    return true
  }

  /**
   * A view of at most `maxCovered` rows that shows every row of its key covers that key in the index. This is safe in
   * the middle of a step: an index is read then only for new results of subqueries, and a view that can cover has no
   * subquery, no residual filter and no expression that fails, so it is up to date before any of those is filled.
   */
  private keep(view: RoutedView, known?: ViewKey): void {
    const { access, list, residual, total } = this.shape
    if (access === undefined || list !== undefined || residual !== undefined || !total) return
    const viewKey = known ?? this.viewKey(view)
    if (viewKey !== undefined && !viewKey.inRange && view.matches <= maxCovered)
      this.indexOf(viewKey).cover(viewKey, view)
  }

  /** The rows a new view has to look at; undefined for one that is passed over, where the caller may pause. */
  private *candidates(view: RoutedView, store: Store): Generator<Candidate | undefined, void, void> {
    const viewKey = this.shape.access && this.viewKey(view)
    if (viewKey !== undefined) {
      const coarse = this.coarsely(view)
      return yield* this.indexOf(viewKey).candidates(
        viewKey,
        store,
        coarse && { viewIndex: this.coarse!, viewKey: coarse }
      )
    }
    for (const slot of view.boundSources === undefined ? store.rows(this.shape.table!) : view.boundSources.rows(store))
      yield { slot, routed: false }
  }

  /** Files a view by the values its list has gained and lost; what it returns shows it the rows those concern. */
  relist(view: RoutedView, { gained, lost }: ValueSetDelta, store: Store): () => void {
    const { access, list } = this.shape
    const under = (values: ReadonlyArray<Value>): ViewKey | undefined =>
      viewKeyOf(access!, { ...view.params, [list!.name]: values }, true)
    const from = under(lost),
      to = under(gained)
    if (this.everywhere.has(view) || from === undefined || to === undefined) return () => this.showAll(view, store)
    const viewIndex = this.indexOf(to)
    const coarse = access!.coarse
    if (coarse?.member?.lists.includes(list!.name) === true && this.coarsely(view) !== undefined) {
      this.coarse!.refile(
        viewKeyOf(coarse, { ...view.params, [list!.name]: lost }, true)!,
        viewKeyOf(coarse, { ...view.params, [list!.name]: gained }, true)!,
        view
      )
    }
    viewIndex.refile(from, to, view)
    viewIndex.fileRows()
    return () => {
      for (const candidate of viewIndex.candidates(from, store))
        if (candidate !== undefined)
          view.update(candidate.slot, candidate.routed ? undefined : candidate.slot.doc, candidate.routed)
      for (const candidate of viewIndex.candidates(to, store))
        if (candidate !== undefined) view.update(candidate.slot, candidate.slot.doc, candidate.routed)
    }
  }

  /** Shows a view every row there is. */
  showAll(view: RoutedView, store: Store): void {
    for (const slot of store.rows(this.shape.table!)) view.update(slot, slot.doc, false)
  }

  /** Shows one changed record to the views it can concern; the indexes have been moved already. */
  route(write: Write): void {
    const { after, slot } = write
    const { shape } = this
    if (shape.table === undefined) return this.routeBySource(slot, after)
    // Of a lone view the filter costs less than the keys; where it can fail or look elsewhere, it is asked as often as
    // that of many.
    if (this.lone !== undefined && (shape.access === undefined || (shape.total && !shape.reaches)))
      return this.lone.update(slot, after, false)
    const followers = shape.access === undefined ? this.views : this.everywhere
    if (followers.size > 0) for (const view of followers) view.update(slot, after, false)
    if (shape.access === undefined) return
    this.usual?.route(write, this.loosely)
    this.ranges?.route(write, (_, found) => this.everyone(this.ranges!, found))
  }

  private routeBySource(slot: RecordSlot, after: Obj | undefined): void {
    const { table, text } = slot.id
    for (const view of this.byRecord.get(text) ?? none) view.update(slot, after, false)
    for (const view of this.byTable.get(table) ?? none) view.update(slot, after, false)
  }

  private readonly loosely = (doc: Obj, found: (view: RoutedView) => void): void => {
    if (this.coarse !== undefined && this.coarse.size === this.usual!.size) this.coarse.meeting(doc, this.views, found)
    else this.everyone(this.usual!, found)
  }

  /** All views of a view index. */
  private everyone(viewIndex: ViewIndex, found: (view: RoutedView) => void): void {
    const inRange = viewIndex === this.ranges
    for (const view of this.views)
      if (viewIndex.size === this.views.size || (!this.everywhere.has(view) && this.viewKey(view)!.inRange === inRange))
        found(view)
  }

  /**
   * Undefined for a view that has to see every change. Where a row of it must fail that no index leads to, all rows are
   * looked at.
   */
  private viewKey({ params, failsAsWhole }: RoutedView): ViewKey | undefined {
    const access = this.shape.access!
    return failsAsWhole && access.failsFirst ? undefined : viewKeyOf(access, params, this.shape.list !== undefined)
  }

  /** Where a view of the usual view index stands among the coarse ones; undefined where it does not. */
  private coarsely(view: RoutedView): ViewKey | undefined {
    const coarse = this.shape.access!.coarse
    const viewKey = coarse && viewKeyOf(coarse, view.params, this.shape.list !== undefined)
    return viewKey === undefined || viewKey.inRange || this.viewKey(view)!.inRange ? undefined : viewKey
  }

  private newCoarse(): ViewIndex {
    return new ViewIndex(this.shape.table!, this.shape.access!.coarse!.spec, this.indexes, {
      byId: false,
      exact: false,
      shape: this.shape
    })
  }

  private indexOf({ inRange }: ViewKey): ViewIndex {
    const { access, table } = this.shape
    if (inRange)
      return (this.ranges ??= new ViewIndex(table!, access!.rangeSpec!, this.indexes, {
        byId: false,
        exact: false,
        shape: this.shape
      }))
    return (this.usual ??= new ViewIndex(table!, access!.spec, this.indexes, {
      byId: access!.byId,
      exact: true,
      shape: this.shape
    }))
  }

  private unfile(viewKey: ViewKey, view: RoutedView): void {
    const viewIndex = this.indexOf(viewKey),
      coarse = this.coarsely(view)
    if (coarse !== undefined) {
      this.coarse!.remove(coarse, view)
      if (this.coarse!.size === 0) this.coarse = undefined
    }
    viewIndex.remove(viewKey, view)
    if (viewIndex.size > 0) return
    if (viewIndex === this.usual) this.usual = undefined
    else this.ranges = undefined
  }
}

/** Views filed anew, and how they look at the rows that concern. */
export type Relists = Array<{ readonly view: RoutedView; readonly look: () => void }>

/** Files the views that follow a list by its new values; the rows those concern are looked at when their turn comes. */
export const relistAll = (
  list: SubqueryValues,
  valueSetDelta: ValueSetDelta,
  groupOf: (follower: RoutedView) => ViewRouter,
  relistings: Relists,
  store: Store
): void => {
  const followers = Array.from(list.followers, (view) => ({ view, router: groupOf(view) }))
  if (!valueSetDelta.exact) for (const { router, view } of followers) router.remove(view)
  list.renew()
  for (const { router, view } of followers) {
    if (valueSetDelta.exact) relistings.push({ view, look: router.relist(view, valueSetDelta, store) })
    else {
      router.add(view)
      relistings.push({ view, look: () => router.showAll(view, store) })
    }
  }
}

const none: ReadonlyArray<RoutedView> = []
