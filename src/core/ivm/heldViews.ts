/**
 * The views there are, and what the engine keeps beside each of them.
 *
 * Results of subqueries are found by the text of their shape and then by their arguments: rows ask for them all the
 * time, and a text that is put together of both would have to be hashed each time.
 */
import type { Slices } from "../surql/evaluate/scope.ts"
import type { Evaluating } from "./evaluating.ts"
import { FailingViews } from "./failingViews.ts"
import type { ViewRouter } from "./index/router.ts"
import type { IncrementalView } from "./view/incrementalView.ts"
import type { RowSource } from "./view/rowSource.ts"
import type { View } from "./view/view.ts"

/** A view as the engine keeps it. */
interface HeldView extends View {
  /** How many callers hold it; -1: it was let go, and only what it had read finds it. */
  uses: number
  /** Bytes that its rows keep of their own. */
  kept: number
  /** Rows or other views need it, also where no caller holds it. */
  readonly isNeeded: boolean
  /** The watchdog's slot that is given back with it; `noSlot` where that is another view's. */
  readonly ownSlot: number
}

/** A view with the source of its rows. */
export class Held<V extends HeldView = HeldView, R extends ViewRouter | undefined = ViewRouter | undefined> {
  readonly view: V
  readonly router: R
  /** Takes the view out of the followers of its list. */
  unfollow: (() => void) | undefined = undefined
  /** What is made before the first fill, which would make it in one turn: the index of edges. */
  before: Slices<void> | undefined = undefined
  private readonly source: RowSource<V, R>
  private readonly evaluating: Evaluating
  private filling: Iterator<undefined, void> | undefined = undefined

  constructor(view: V, source: RowSource<V, R>, router: R, evaluating: Evaluating) {
    this.view = view
    this.source = source
    this.router = router
    this.evaluating = evaluating
  }

  /** Changes reach it from here on, and its first fill begins; see {@link RowSource}. */
  begin(isWaitedFor: boolean): void {
    this.source.enlist(this.view, this.router)
    this.filling = this.source.fill(this.view, this.router, isWaitedFor)
  }

  /** The first fill goes on. */
  get isFilling(): boolean {
    return this.filling !== undefined
  }

  fillOn(): void {
    if (this.before?.next().done === false) return
    this.before = undefined
    const step = this.evaluating.during(this.view.watchSlot, () => this.filling?.next())
    if (step?.done === true) this.filling = undefined
  }

  leave(): void {
    this.source.leave(this.view, this.router)
  }
}

export class HeldViews {
  /** Views that callers hold, and those that are made to lend. */
  private readonly byKey = new Map<string, Held>()
  /** By the text of their shape, then by their keys. */
  private readonly results = new Map<string, Map<string, Held>>()
  readonly failing = new FailingViews()

  get(key: string): Held | undefined {
    return this.byKey.get(key)
  }

  /** The result of a subquery of this shape with these arguments. */
  result(shape: string, key: string): Held | undefined {
    return this.results.get(shape)?.get(key)
  }

  /** Undefined for a view that was let go. */
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
    for (const { view } of this.byKey.values()) yield view
    for (const results of this.results.values()) for (const { view } of results.values()) yield view
  }

  clear(): void {
    this.byKey.clear()
    this.results.clear()
    this.failing.clear()
  }
}

/** Results of subqueries fail where views leave rows out, so they are views of their own. */
const isResult = (view: View): view is IncrementalView => (view as Partial<IncrementalView>).failsAsWhole === true
