/**
 * The views of an engine, and the engine's own notes on each of them.
 *
 * Results of subqueries are found by the text of their shape and then by their arguments: rows ask for them all the
 * time, and a text put together of both would have to be hashed each time.
 */
import type { Slices } from "../surql/evaluate/scope.ts"
import type { EvaluationNote } from "./evaluating.ts"
import { FailingViews } from "./failingViews.ts"
import type { ViewRouter } from "./index/router.ts"
import type { IncrementalView } from "./view/incrementalView.ts"
import type { RowSource } from "./view/rowSource.ts"
import type { View } from "./view/view.ts"

/** A view with the engine's notes on it. */
interface HeldView extends View {
  /** How many callers hold the view; -1: it was released, and only its former reads still lead to it. */
  uses: number
  /** Bytes that its rows hold beside their records. */
  kept: number
  /** Rows or other views need the view, even if no caller holds it. */
  readonly isNeeded: boolean
  /** The watchdog's slot that is freed with the view; `noSlot` if the slot belongs to another view. */
  readonly ownSlot: number
}

/** A view with the source of its rows. */
export class Held<V extends HeldView = HeldView, R extends ViewRouter | undefined = ViewRouter | undefined> {
  readonly view: V
  readonly router: R
  /** Removes the view from the followers of its subquery list. */
  unfollow: (() => void) | undefined = undefined
  /** Work to do before the first fill, in slices: building the index of edges, which the fill would do in one turn. */
  before: Slices<void> | undefined = undefined
  /** Number of fills that wait for this view. */
  awaited = 0
  private readonly source: RowSource<V, R>
  private readonly evaluating: EvaluationNote
  private filling: Iterator<undefined, void> | undefined = undefined

  constructor(view: V, source: RowSource<V, R>, router: R, evaluating: EvaluationNote) {
    this.view = view
    this.source = source
    this.router = router
    this.evaluating = evaluating
  }

  /** Lets changes reach the view and begins its first fill; see {@link RowSource}. */
  begin(isWaitedFor: boolean): void {
    this.source.enlist(this.view, this.router)
    this.filling = this.source.fill(this.view, this.router, isWaitedFor)
  }

  /** Files the view by the values of a result until it is released; `letGo` is then told of that result. */
  follow(result: IncrementalView, letGo: (result: IncrementalView) => void): void {
    const view = this.view as unknown as IncrementalView
    result.subqueryValues().followers.add(view)
    this.unfollow = () => {
      result.subqueryValues().followers.delete(view)
      letGo(result)
    }
  }

  /** The first fill is under way. */
  get isFilling(): boolean {
    return this.filling !== undefined
  }

  fillOn(): void {
    if (this.before?.next().done === false) return
    this.before = undefined
    const step = this.evaluating.during(this.view.watchSlot, () => this.filling?.next())
    if (step?.done === true) this.filling = undefined
  }

  /** Gives up the first fill if it is still under way: the fill releases the results that it waits for. */
  abandon(): void {
    this.filling?.return?.()
    this.filling = undefined
  }

  leave(): void {
    this.abandon()
    this.source.leave(this.view, this.router)
  }
}

export class HeldViews {
  /** Views that callers hold, and views that exist to lend their rows, by key. */
  private readonly byKey = new Map<string, Held>()
  /** Results of subqueries, by the text of their shape and then by key. */
  private readonly results = new Map<string, Map<string, Held>>()
  readonly failing = new FailingViews()

  get(key: string): Held | undefined {
    return this.byKey.get(key)
  }

  /** The result of the subquery with this shape and these arguments. */
  result(shape: string, key: string): Held | undefined {
    return this.results.get(shape)?.get(key)
  }

  /** The entry of a view; undefined after its release. */
  of(view: View): Held | undefined {
    const held = isResult(view) ? this.result(view.shape, view.key) : this.byKey.get(view.key)
    return held?.view === view ? held : undefined
  }

  add(held: Held): void {
    const { view } = held
    if (!isResult(view)) {
      this.byKey.set(view.key, held)
      return
    }
    let results = this.results.get(view.shape)
    if (results === undefined) this.results.set(view.shape, (results = new Map()))
    results.set(view.key, held)
  }

  delete(view: View): void {
    this.failing.delete(view)
    if (!isResult(view)) {
      this.byKey.delete(view.key)
      return
    }
    const results = this.results.get(view.shape)!
    results.delete(view.key)
    if (results.size === 0) this.results.delete(view.shape)
  }

  *views(): Iterable<HeldView> {
    for (const { view } of this.all()) yield view
  }

  private *all(): Iterable<Held> {
    yield* this.byKey.values()
    for (const results of this.results.values()) yield* results.values()
  }

  clear(): void {
    for (const held of this.all()) held.abandon()
    this.byKey.clear()
    this.results.clear()
    this.failing.clear()
  }
}

/** The result of a subquery is a view of its own: it fails as a whole where a view leaves rows out. */
const isResult = (view: View): view is IncrementalView => (view as Partial<IncrementalView>).failsAsWhole === true
