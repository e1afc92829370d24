/** The ordered indexes in use, one for each table, key and order. */
import type { KeySpec } from "../store/indexKey.ts"
import type { Ordering } from "../store/ordering.ts"
import { OrderedIndex } from "./orderedIndex.ts"
import { SharedIndexes } from "./sharedIndexes.ts"
import { TopRows } from "./topRows.ts"

/** The key and the order of an index. */
interface IndexedBy {
  /** Equal for equal tables, keys and orders. */
  readonly name: string
  readonly spec: KeySpec
  readonly ordering: Ordering
}

export class OrderedIndexes extends SharedIndexes<OrderedIndex> {
  private readonly tops = new Map<OrderedIndex, Map<string, TopRows>>()

  /** The index of a table by a key and an order, perhaps not built yet; each call needs one {@link release}. */
  use(table: string, { name, ordering, spec }: IndexedBy): OrderedIndex {
    return this.share(name, () => {
      const index = new OrderedIndex(spec, ordering, this.store, table)
      this.store.table(table).indexes.push(index)
      return index
    })
  }

  release(table: string, { name }: IndexedBy): void {
    this.drop(name, table)
  }

  /** The shared first rows of one filter in an index. `filters`: rows are filtered even if their key is exact. */
  topRows(index: OrderedIndex, filter: string, filters: boolean): TopRows {
    let tops = this.tops.get(index)
    if (tops === undefined) this.tops.set(index, (tops = new Map()))
    let top = tops.get(filter)
    if (top === undefined) {
      top = new TopRows(index, filters, () => {
        tops.delete(filter)
        if (tops.size === 0) this.tops.delete(index)
      })
      tops.set(filter, top)
    }
    return top
  }

  override clear(): void {
    super.clear()
    this.tops.clear()
  }
}
