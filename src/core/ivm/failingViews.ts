/**
 * The views that leave rows out, so that a reader of failures looks at these and at no others.
 *
 * A view is added when a row, a group or the whole of it begins to fail, and a view with groups when it is filled. The
 * walk itself sees which views still fail, and forgets the others. Cost: nothing while nothing fails; a walk looks at
 * the views that fail, and once at those that were added and do not.
 */
import type { View } from "./view/view.ts"

/** A view, with the views that show its rows and so its failures. */
type Failing = View & { readonly sharers?: ReadonlySet<View> | undefined }

export class FailingViews {
  private readonly views = new Set<Failing>()

  add(view: Failing): void {
    this.views.add(view)
  }

  delete(view: View): void {
    this.views.delete(view)
  }

  clear(): void {
    this.views.clear()
  }

  /** The views with failing rows, each once. */
  *walk(): Iterable<View> {
    const walked = new Set<View>()
    for (const view of this.views) {
      const { done } = view.failures()[Symbol.iterator]().next()
      if (done === true) this.views.delete(view)
      else
        for (const shown of [view, ...(view.sharers ?? [])])
          if (!walked.has(shown)) {
            walked.add(shown)
            yield shown
          }
    }
  }
}
