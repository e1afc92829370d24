/**
 * The views there are, and what the engine keeps beside each of them.
 *
 * Results of subqueries are found by the text of their shape and then by their arguments: rows ask for them all the
 * time, and a text that is put together of both would have to be hashed each time.
 */
import type { ViewRouter } from "./index/router.ts"
import type { IncrementalView } from "./view/incrementalView.ts"
import type { RecomputedView } from "./view/recomputedView.ts"
import type { SharedView } from "./view/sharedView.ts"
import type { View } from "./view/view.ts"

export interface Held<V extends HeldView = HeldView> {
  readonly view: V
  readonly router: ViewRouter | undefined
  /** The first fill, while it goes on. */
  filling: Iterator<undefined, void> | undefined
  /** Takes the view out of the followers of its list. */
  unfollow: (() => void) | undefined
}

type HeldView = IncrementalView | SharedView | RecomputedView

export class HeldViews {
  /** Views that callers hold, and those that are made to lend. */
  private readonly byKey = new Map<string, Held>()
  /** By the text of their shape, then by their keys. */
  private readonly results = new Map<string, Map<string, Held<IncrementalView>>>()

  get(key: string): Held | undefined {
    return this.byKey.get(key)
  }

  /** The result of a subquery of this shape with these arguments. */
  result(shape: string, key: string): Held<IncrementalView> | undefined {
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
    results.set(view.key, held as Held<IncrementalView>)
  }

  delete(view: View): void {
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
  }
}

/** Results of subqueries fail where views leave rows out, so they are views of their own. */
const isResult = (view: View): view is IncrementalView => (view as Partial<IncrementalView>).failsAsWhole === true
