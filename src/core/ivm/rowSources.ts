/**
 * The kinds of row sources, and the choice of one for each view.
 */
import { addItem, removeItem } from "../multimap.ts"
import type { Slices } from "../surql/evaluate/scope.ts"
import type { Select } from "../surql/syntax/ast.ts"
import type { EngineContext, ViewSpec } from "./context.ts"
import type { DeferredWork } from "./deferredWork.ts"
import { Held, type HeldViews } from "./heldViews.ts"
import { OrderedIndexes } from "./index/orderedIndexes.ts"
import type { ViewRouter } from "./index/router.ts"
import type { Params } from "./query/lift.ts"
import { filterKey, type PageKeys } from "./query/pagePlan.ts"
import type { Releases } from "./releases.ts"
import type { Sharing } from "./sharing.ts"
import type { Store } from "./store/store.ts"
import { GroupedView } from "./view/groupedView.ts"
import { IncrementalView } from "./view/incrementalView.ts"
import { PagedView } from "./view/pagedView.ts"
import type { RecomputedView, RecomputedViews } from "./view/recomputedView.ts"
import { makeRecomputedView, type Rerun } from "./view/rerun.ts"
import type { ResultView } from "./view/resultView.ts"
import type { RowSource } from "./view/rowSource.ts"
import { SharedView } from "./view/sharedView.ts"
import type { Sharer } from "./view/sharer.ts"

/** The router of the view's shape shows it each record that may concern it. */
class RoutedRows implements RowSource<IncrementalView, ViewRouter> {
  private readonly store: Store
  private readonly sharing: Sharing
  private readonly releases: Releases

  constructor(store: Store, sharing: Sharing, releases: Releases) {
    this.store = store
    this.sharing = sharing
    this.releases = releases
  }

  enlist(view: IncrementalView, router: ViewRouter): void {
    router.add(view)
    this.sharing.add(view, router)
    for (const table of view.mainTables) addItem(this.store.table(table).routers, router)
  }

  fill(view: IncrementalView, router: ViewRouter, isWaitedFor: boolean): Slices<void> | undefined {
    return isWaitedFor && router.fillAtOnce(view, this.store) ? undefined : router.fill(view, this.store)
  }

  leave(view: IncrementalView, router: ViewRouter): void {
    router.remove(view)
    this.sharing.remove(view, router)
    for (const table of view.mainTables)
      if (!router.readsTable(table)) this.store.quit(table, ({ routers }) => removeItem(routers, router))
    this.releases.add(view, view.matching(), view.matches)
  }
}

/** An ordered index tells the page of changes that may concern it. */
class PagedRows implements RowSource<PagedView, ViewRouter> {
  private readonly ordered: OrderedIndexes
  private readonly releases: Releases

  constructor(ordered: OrderedIndexes, releases: Releases) {
    this.ordered = ordered
    this.releases = releases
  }

  enlist(_: PagedView, router: ViewRouter): void {
    router.unrouted++
  }

  fill(view: PagedView, _: ViewRouter, isWaitedFor: boolean): Slices<void> | undefined {
    return isWaitedFor && view.fillAtOnce() ? undefined : view.fillPage()
  }

  leave(view: PagedView, router: ViewRouter): void {
    router.unrouted--
    view.leave()
    this.ordered.release(view.plainShape.table!, view.plainShape.page!)
    this.releases.add(view, view.matching(), view.matches)
  }
}

/** Another view of the same filter lends its rows and reports its steps. */
class LentRows<V extends Sharer> implements RowSource<V, ViewRouter> {
  private readonly held: HeldViews
  private readonly releases: Releases
  private readonly own: (view: V) => Slices<void>
  private readonly left: (view: V) => void

  /**
   * `own`: rest of the first fill, after the lender has its rows; `left`: removes the records' pointers to a view's
   * rows.
   */
  constructor(held: HeldViews, releases: Releases, own: (view: V) => Slices<void>, left: (view: V) => void) {
    this.held = held
    this.releases = releases
    this.own = own
    this.left = left
  }

  enlist(view: V, router: ViewRouter): void {
    router.unrouted++
    view.lender.lend(view)
  }

  *fill(view: V): Slices<void> {
    const lender = this.held.of(view.lender)!
    while (lender.isFilling) {
      lender.fillOn()
      if (lender.isFilling) yield
    }
    yield* this.own(view)
  }

  leave(view: V, router: ViewRouter): void {
    router.unrouted--
    view.lender.takeBack(view)
    this.releases.idle.push(view.lender)
    this.left(view)
  }
}

/** The query is run again when a table that it reads changes. */
class RerunRows implements RowSource<RecomputedView, undefined> {
  private readonly recomputed: RecomputedViews
  private readonly deferred: DeferredWork
  private readonly steps: () => number

  constructor(recomputed: RecomputedViews, deferred: DeferredWork, steps: () => number) {
    this.recomputed = recomputed
    this.deferred = deferred
    this.steps = steps
  }

  enlist(view: RecomputedView): void {
    this.recomputed.add(view)
  }

  fill(view: RecomputedView): Slices<void> {
    return view.fill(this.steps)
  }

  leave(view: RecomputedView): void {
    this.deferred.forget(view)
    this.recomputed.remove(view)
  }
}

/** An empty fill. */
function* nothing(): Slices<void> {}

export class RowSources {
  readonly ordered: OrderedIndexes
  private readonly context: EngineContext<ResultView>
  private readonly sharing: Sharing
  private readonly routed: RoutedRows
  private readonly paged: PagedRows
  private readonly lent: LentRows<SharedView>
  private readonly lentToGroups: LentRows<GroupedView>
  private readonly rerun: RerunRows

  constructor(
    context: EngineContext<ResultView>,
    sharing: Sharing,
    held: HeldViews,
    releases: Releases,
    recomputed: RecomputedViews,
    deferred: DeferredWork
  ) {
    this.context = context
    this.rerun = new RerunRows(recomputed, deferred, context.step)
    this.sharing = sharing
    this.ordered = new OrderedIndexes(context.store)
    this.routed = new RoutedRows(context.store, sharing, releases)
    this.paged = new PagedRows(this.ordered, releases)
    this.lent = new LentRows(held, releases, nothing, () => {})
    this.lentToGroups = new LentRows(
      held,
      releases,
      (view) => view.fillGroups(),
      (view) => releases.add(view, [], 0)
    )
  }

  /** A view of a shape, with its row source. `keys`: the keys of its page, if it is one. */
  heldBy(router: ViewRouter, spec: ViewSpec, keys: PageKeys | undefined): Held {
    const { context } = this
    if (keys !== undefined) return new Held(this.pageOf(spec, keys), this.paged, router, context.evaluating)
    const lender = this.sharing.lenderOf(router, spec)
    if (lender === undefined)
      return new Held(new IncrementalView(spec, context), this.routed, router, context.evaluating)
    return spec.shape.groups === undefined
      ? new Held(new SharedView(spec, context, lender), this.lent, router, context.evaluating)
      : new Held(new GroupedView(spec, context, lender), this.lentToGroups, router, context.evaluating)
  }

  /** A view whose query is run whole; `original` is the query with its constants. */
  heldWhole(original: Select, select: Select, params: Params, about: Rerun): Held {
    const { context } = this
    const view = makeRecomputedView(original, select, params, about, context, context.source.runBudget)
    return new Held(view, this.rerun, undefined, context.evaluating)
  }

  private pageOf(spec: ViewSpec, keys: PageKeys): PagedView {
    const { page, table } = spec.shape
    const index = this.ordered.use(table!, page!)
    return new PagedView(spec, this.context, index, keys, (filters) =>
      this.ordered.topRows(index, filterKey(page!, spec.params), filters)
    )
  }
}
