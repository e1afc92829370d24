/**
 * How much an engine holds for its views, counted in the structures themselves.
 *
 * Why: a view that leaves something behind changes no result; only these figures and the memory show it. The counts
 * that walk every record are for tests; {@link Figures} walk the views only.
 */
import type { OrderedIndexes } from "./index/orderedIndexes.ts"
import type { SecondaryIndexes } from "./index/secondaryIndexes.ts"
import type { Releases } from "./releases.ts"
import type { Store } from "./store/store.ts"
import type { Dependencies } from "./view/dependencies.ts"
import type { View } from "./view/view.ts"

/** The figures that operators see. */
export interface Figures {
  /** Maintained views and results of subqueries: equal ones count once, released ones while they hold something. */
  readonly instances: number
  /** Rows that records hold of these views. */
  readonly heldRows: number
  /** Deleted records whose version is remembered. */
  readonly tombstones: number
}

/** The figures that tests use: they walk every structure. */
interface Holdings extends Figures {
  /** Entries of the secondary and the ordered indexes. */
  readonly indexEntries: number
  /** Rows with noted reads. */
  readonly readingRows: number
  /** Released views that still hold something. */
  readonly departing: number
}

/** The structures that are counted. */
export interface CountedStructures {
  readonly views: ReadonlyArray<View & { readonly matches?: number }>
  readonly indexes: SecondaryIndexes
  readonly ordered: OrderedIndexes
  readonly dependencies: Dependencies
  readonly releases: Releases
  readonly store: Store
}

export const figuresOf = ({ views, releases, store }: CountedStructures): Figures => ({
  instances: views.length + releases.size,
  heldRows: views.reduce((sum, { matches = 0 }) => sum + matches, releases.rows),
  tombstones: store.tombstones
})

/** Counts everything; walks all records, deleted ones too. */
export const holdingsOf = (held: CountedStructures): Holdings => ({
  instances: held.views.length + held.releases.size,
  heldRows: held.store.holdings(),
  tombstones: held.store.tombstones,
  indexEntries: held.indexes.entries() + held.ordered.entries(),
  readingRows: held.dependencies.size,
  departing: held.releases.size
})

/** The shapes in use, with the number of views of each. */
export const shapesOf = (
  views: Iterable<View>
): ReadonlyArray<{ readonly shape: string; readonly instances: number }> => {
  const counts = new Map<string, number>()
  for (const { shape } of views) counts.set(shape, (counts.get(shape) ?? 0) + 1)
  return Array.from(counts, ([shape, count]) => ({ shape: shape.replaceAll("\u0000", "_"), instances: count }))
}
