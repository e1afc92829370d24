/**
 * The indexes of one kind in use: made when a view first needs one, shared by name, dropped with the last.
 *
 * Several shapes often need the same index, and a record must be filed once. A table knows its filled indexes and tells
 * them of each write.
 */
import { removeItem } from "../../multimap.ts"
import type { Store } from "../store/store.ts"
import type { TableIndex } from "../store/table.ts"

export abstract class SharedIndexes<I extends TableIndex & { entries(): number }> {
  protected readonly store: Store
  private readonly shared = new Map<string, { readonly index: I; uses: number }>()

  constructor(store: Store) {
    this.store = store
  }

  /** The index of this name, made if there is none; each call needs one {@link drop}. */
  protected share(name: string, make: () => I): I {
    const known = this.shared.get(name)
    if (known !== undefined) {
      known.uses++
      return known.index
    }
    const index = make()
    this.shared.set(name, { index, uses: 1 })
    return index
  }

  /** Ends one use; after the last one the table forgets the index. */
  protected drop(name: string, table: string): void {
    const shared = this.shared.get(name)
    if (shared === undefined || --shared.uses > 0) return
    this.shared.delete(name)
    this.store.quit(table, ({ indexes }) => removeItem(indexes, shared.index))
  }

  /** Number of entries of all indexes; walks them. */
  entries(): number {
    return Array.from(this.shared.values()).reduce((sum, { index }) => sum + index.entries(), 0)
  }

  /** Forgets all indexes; the views that use them are cleared too. */
  clear(): void {
    this.shared.clear()
  }
}
