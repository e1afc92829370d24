/**
 * The secondary indexes in use: made when a shape first needs one, shared, dropped with the last shape.
 *
 * Why apart from the shapes: several of them often want the same index, and a record must be filed once. The table
 * knows those that have rows filed, and tells them of each write.
 */
import { leave } from "../../multimap.ts"
import { SecondaryIndex } from "./secondaryIndex.ts"
import type { KeySpec } from "./indexKey.ts"
import type { Store } from "../store/store.ts"

export class SecondaryIndexes {
  private readonly store: Store
  private readonly shared = new Map<string, { readonly index: SecondaryIndex; uses: number }>()

  constructor(store: Store) {
    this.store = store
  }

  /** The index of a table by some paths, perhaps still empty; each call needs one {@link release}. */
  use(table: string, spec: KeySpec): SecondaryIndex {
    const name = nameOf(table, spec)
    const existing = this.shared.get(name)
    if (existing !== undefined) {
      existing.uses++
      return existing.index
    }
    const index = new SecondaryIndex(spec)
    this.shared.set(name, { index, uses: 1 })
    return index
  }

  /** Files the rows of the table, unless they are. */
  file(table: string, index: SecondaryIndex): void {
    if (index.filed) return
    index.file(this.store.rows(table))
    this.store.table(table).indexes.push(index)
  }

  /** What is filed in all of them; a pass over them. */
  entries(): number {
    return Array.from(this.shared.values()).reduce((sum, { index }) => sum + index.entries(), 0)
  }

  /** Forgets them all: whoever uses one is forgotten too. */
  clear(): void {
    this.shared.clear()
  }

  release(table: string, index: SecondaryIndex): void {
    const name = nameOf(table, index.spec)
    const shared = this.shared.get(name)
    if (shared === undefined || --shared.uses > 0) return
    this.shared.delete(name)
    this.store.quit(table, ({ indexes }) => leave(indexes, index))
  }
}

const nameOf = (table: string, { each, paths, range }: KeySpec): string =>
  `${table}\n${JSON.stringify([paths, each, range])}`
