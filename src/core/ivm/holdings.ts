/**
 * How much an engine holds for its views: counted where it lies, so that nothing is forgotten.
 *
 * Why: what a view leaves behind is no fault that any result shows; it is seen in these figures and in the memory.
 * Those that take a pass over every record are for tests; {@link Figures} are a pass over the views.
 */
import type { OrderedIndexes } from "./index/orderedIndexes.ts"
import type { SecondaryIndexes } from "./index/secondaryIndexes.ts"
import type { Releases } from "./releases.ts"
import type { Store } from "./store/store.ts"
import type { Dependencies } from "./view/dependencies.ts"
import type { View } from "./view/view.ts"

/** What operators see. */
export interface Figures {
  /**
   * Views and results of subqueries that are kept up to date, equal ones once, and those let go of which something is
   * left.
   */
  readonly instances: number
  /** Rows these hold of records. */
  readonly heldRows: number
  /** Deleted records that are remembered by their versions. */
  readonly tombstones: number
}

/** What tests count: every structure gone through. */
interface Holdings extends Figures {
  /** What is filed in the secondary indexes, ordered ones too. */
  readonly indexEntries: number
  /** Rows that have read something beside themselves. */
  readonly readingRows: number
  /** Views let go of which something is left. */
  readonly departing: number
}

/** Where it lies. */
export interface Kept {
  readonly views: ReadonlyArray<View & { readonly matches?: number }>
  readonly indexes: SecondaryIndexes
  readonly ordered: OrderedIndexes
  readonly dependencies: Dependencies
  readonly releases: Releases
  readonly store: Store
}

export const figuresOf = ({ views, releases, store }: Kept): Figures => ({
  instances: views.length + releases.size,
  heldRows: views.reduce((sum, { matches = 0 }) => sum + matches, releases.rows),
  tombstones: store.tombstones
})

/** A pass over all records, deleted ones too. */
export const holdingsOf = (held: Kept): Holdings => ({
  instances: held.views.length + held.releases.size,
  heldRows: held.store.holdings(),
  tombstones: held.store.tombstones,
  indexEntries: held.indexes.entries() + held.ordered.entries(),
  readingRows: held.dependencies.size,
  departing: held.releases.size
})

/** The shapes in use and how many views each has. */
export const shapesOf = (
  views: Iterable<View>
): ReadonlyArray<{ readonly shape: string; readonly instances: number }> => {
  const counts = new Map<string, number>()
  for (const { shape } of views) counts.set(shape, (counts.get(shape) ?? 0) + 1)
  return Array.from(counts, ([shape, count]) => ({ shape: shape.replaceAll("\u0000", "_"), instances: count }))
}
