/**
 * The views of one shape, and the ways to find those that a change can concern.
 *
 * Rule: a view is filed by its arguments, and a changed row is shown only to the views that its old or its new state
 * leads to (see viewIndex.ts). Views of single records are filed under their records. Cost: a few lookups per shape,
 * whatever the number of views. A shape of whole tables without indexed conjuncts, and a view whose arguments have no
 * exact key, are shown every change.
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

/** Rows, and evaluation steps, between two pauses of a fill. */
export const sliceRows = 256
const sliceSteps = 20_000

/** Counts a row of a fill; true when it is time to pause. */
export const fillPacer = (source: { readonly spent: number }): (() => boolean) => {
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
  /** The only view, as long as there is one. */
  private lone: RoutedView | undefined = undefined
  private readonly indexes: SecondaryIndexes
  /** The view index of views without a range behind IN; made with the first view. */
  private usual: ViewIndex | undefined = undefined
  private ranges: ViewIndex | undefined = undefined
  /**
   * The same views, filed only by conjuncts with paths of one step, for rows whose longer path crosses a link.
   * Undefined if no path has several steps.
   */
  private coarse: ViewIndex | undefined = undefined
  /** Views of a shape with indexed conjuncts whose arguments have no exact key. */
  private readonly everywhere = new Set<RoutedView>()
  /** Views whose parameters name their sources: tables and ranges by table, single records by record id. */
  private readonly byTable = new Map<string, Set<RoutedView>>()
  private readonly byRecord = new Map<string, Set<RoutedView>>()
  /** Number of views that are shown no record: they read an ordered index, or the rows of another view. */
  unrouted = 0
  /** Number of views that read each table. */
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

  /** No view has this shape. */
  get isUnused(): boolean {
    return this.views.size === 0 && this.unrouted === 0
  }

  readsTable(table: string): boolean {
    return this.reading.has(table)
  }

  /** Shows a new view its candidate rows: by an index if there is one, else all rows of its sources. Pauses. */
  *fill(view: RoutedView, store: Store): Slices<void> {
    const isDue = fillPacer(view.context.source)
    const { list, subqueries } = this.shape
    for (const candidate of this.candidates(view, store)) {
      if (candidate !== undefined) {
        const { slot } = candidate
        // A subquery list may change in a pause, so the keys that led to this row may be out of date.
        const routed = candidate.routed && list === undefined
        if (subqueries.length === 0) view.update(slot, slot.doc, routed)
        else {
          const unfilled = view.attempt(slot, routed)
          if (unfilled !== undefined) yield* view.updateLater(slot, unfilled)
        }
      }
      if (isDue()) yield
    }
    yield* view.finishFill()
    view.begin()
    this.keep(view)
  }

  /**
   * As {@link fill} without a pause, if an index leads to one record at most: no generator is made. False: use
   * {@link fill}.
   */
  fillAtOnce(view: RoutedView, store: Store): boolean {
    const { access, list, subqueries } = this.shape
    if (access?.byId !== true || list !== undefined || subqueries.length > 0) return false
    const viewKey = this.viewKey(view)
    if (viewKey === undefined || !this.indexOf(viewKey).showOnly(viewKey, view, store)) return false
    view.begin()
    this.keep(view, viewKey)
    return true
  }

  /**
   * A view of at most `maxCovered` rows that shows every row of its key covers that key in the index. A step may do
   * this too: within a step, indexes are read only to fill new results of subqueries, and a view that can cover has no
   * subquery, no residual filter and no expression that fails, so it is up to date before any of those is filled.
   */
  private keep(view: RoutedView, known?: ViewKey): void {
    const { access, list, residual, total } = this.shape
    if (access === undefined || list !== undefined || residual !== undefined || !total) return
    const viewKey = known ?? this.viewKey(view)
    if (viewKey !== undefined && !viewKey.inRange && view.matches <= maxCovered)
      this.indexOf(viewKey).cover(viewKey, view)
  }

  /** The candidate rows of a new view; undefined for a skipped row, where the caller may pause. */
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

  /** Refiles a view whose subquery list has changed. The returned function shows it the rows of these values. */
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

  /** Shows a view every row of its sources. */
  showAll(view: RoutedView, store: Store): void {
    for (const slot of store.rows(this.shape.table!)) view.update(slot, slot.doc, false)
  }

  /** Shows one changed record to the views that it can concern; the indexes are up to date already. */
  route(write: Write): void {
    const { after, slot } = write
    const { shape } = this
    if (shape.table === undefined) return this.routeBySource(slot, after)
    // For a lone view, running the filter costs less than building keys. A filter that can fail or reads other records
    // still goes by keys, so that it runs as often as with many views.
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

  /** Calls `found` with all views of a view index. */
  private everyone(viewIndex: ViewIndex, found: (view: RoutedView) => void): void {
    const inRange = viewIndex === this.ranges
    for (const view of this.views)
      if (viewIndex.size === this.views.size || (!this.everywhere.has(view) && this.viewKey(view)!.inRange === inRange))
        found(view)
  }

  /**
   * Where a view is filed; undefined for a view that has to see every change. If a row that no index leads to could
   * make the result fail, all rows are looked at.
   */
  private viewKey({ params, failsAsWhole }: RoutedView): ViewKey | undefined {
    const access = this.shape.access!
    return failsAsWhole && access.failsFirst ? undefined : viewKeyOf(access, params, this.shape.list !== undefined)
  }

  /** Key of a view in the coarse view index; undefined if it is not there. */
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

/** Refiled views, with the function that looks at the rows of their changed keys. */
export type RefiledViews = Array<{ readonly view: RoutedView; readonly look: () => void }>

/** Refiles the views that follow a subquery list; the rows of the changed keys are looked at when `look` is called. */
export const refileAll = (
  list: SubqueryValues,
  valueSetDelta: ValueSetDelta,
  groupOf: (follower: RoutedView) => ViewRouter,
  relistings: RefiledViews,
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
