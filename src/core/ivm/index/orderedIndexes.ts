/** The ordered indexes in use, one for each table, key and order. */
import type { KeySpec } from "./indexKey.ts"
import { OrderedIndex } from "./orderedIndex.ts"
import type { Ordering } from "./orderedRows.ts"
import { SharedIndexes } from "./sharedIndexes.ts"

export class OrderedIndexes extends SharedIndexes<OrderedIndex> {
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
}

const nameOf = (table: string, { paths }: KeySpec, { text }: Ordering): string => JSON.stringify([table, paths, text])
