/**
 * The ordered indexes in use: one for each table, key and order, made when the first page of it is asked for, shared by
 * all, dropped with the last.
 */
import { leave } from "../../multimap.ts"
import type { Store } from "../store/store.ts"
import type { KeySpec } from "./indexKey.ts"
import { OrderedIndex } from "./orderedIndex.ts"
import type { Ordering } from "./orderedRows.ts"

interface Shared {
  readonly name: string
  readonly table: string
  uses: number
}

export class OrderedIndexes {
  private readonly store: Store
  private readonly byName = new Map<string, OrderedIndex>()
  private readonly shared = new Map<OrderedIndex, Shared>()

  constructor(store: Store) {
    this.store = store
  }

  /** The index of a table by some fields in some order, perhaps not built yet; each call needs one {@link release}. */
  use(table: string, spec: KeySpec, ordering: Ordering): OrderedIndex {
    const name = JSON.stringify([table, spec.paths, ordering.text])
    const known = this.byName.get(name)
    if (known !== undefined) {
      this.shared.get(known)!.uses++
      return known
    }
    const index = new OrderedIndex(spec, ordering, this.store, table)
    this.byName.set(name, index)
    this.shared.set(index, { name, table, uses: 1 })
    this.store.table(table).indexes.push(index)
    return index
  }

  release(index: OrderedIndex): void {
    const shared = this.shared.get(index)
    if (shared === undefined || --shared.uses > 0) return
    this.shared.delete(index)
    this.byName.delete(shared.name)
    this.store.quit(shared.table, ({ indexes }) => leave(indexes, index))
  }

  /** Rows filed in all of them; a pass over their keys. */
  entries(): number {
    let entries = 0
    for (const index of this.shared.keys()) entries += index.entries()
    return entries
  }

  /** Forgets them all: what reads one is forgotten too. */
  clear(): void {
    this.byName.clear()
    this.shared.clear()
  }
}
