/** The ordered indexes in use, one for each table, key and order. */
import type { KeySpec } from "./indexKey.ts"
import { OrderedIndex } from "./orderedIndex.ts"
import type { Ordering } from "./orderedRows.ts"
import { SharedIndexes } from "./sharedIndexes.ts"
import { TopRows } from "./topRows.ts"

export class OrderedIndexes extends SharedIndexes<OrderedIndex> {
  private readonly tops = new Map<OrderedIndex, Map<string, TopRows>>()

  /** The index of a table by some fields in some order, perhaps not built yet; each call needs one {@link release}. */
  use(table: string, spec: KeySpec, ordering: Ordering): OrderedIndex {
    return this.share(nameOf(table, spec, ordering), () => {
      const index = new OrderedIndex(spec, ordering, this.store, table)
      this.store.table(table).indexes.push(index)
      return index
    })
  }

  release(table: string, { ordering, spec }: OrderedIndex): void {
    this.drop(nameOf(table, spec, ordering), table)
  }

  /** What the views of one filter know of its first rows in an index; `filters`: rows of exact keys are filtered. */
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

const nameOf = (table: string, { paths }: KeySpec, { text }: Ordering): string => JSON.stringify([table, paths, text])
