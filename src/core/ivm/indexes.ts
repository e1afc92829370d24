/**
 * The secondary indexes in use: made when a shape first needs one, shared, dropped with the last shape.
 *
 * Why apart from the shapes: several of them often want the same index, and a record must be filed once.
 */
import { addTo, removeFrom } from "../multimap.ts"
import type { RecordId } from "../surql/value.ts"
import { RowIndex } from "./rowIndex.ts"
import type { KeySpec } from "./rowKey.ts"
import type { Row, Store } from "./store.ts"

export class Indexes {
  private readonly store: Store
  private readonly shared = new Map<string, { readonly index: RowIndex; uses: number }>()
  /** Those with rows filed. */
  private readonly byTable = new Map<string, Set<RowIndex>>()

  constructor(store: Store) {
    this.store = store
  }

  /** The index of a table by some paths, perhaps still empty; each call needs one {@link release}. */
  use(table: string, spec: KeySpec): RowIndex {
    const name = nameOf(table, spec)
    const existing = this.shared.get(name)
    if (existing !== undefined) {
      existing.uses++
      return existing.index
    }
    const index = new RowIndex(spec)
    this.shared.set(name, { index, uses: 1 })
    return index
  }

  /** Files the rows of the table, unless they are. */
  file(table: string, index: RowIndex): void {
    if (index.filed) return
    index.file(this.store.rows(table))
    addTo(this.byTable, table, index)
  }

  release(table: string, index: RowIndex): void {
    const name = nameOf(table, index.spec)
    const shared = this.shared.get(name)
    if (shared === undefined || --shared.uses > 0) return
    this.shared.delete(name)
    removeFrom(this.byTable, table, index)
  }

  /** Refiles a record in the indexes of its table. */
  move(id: RecordId, before: Row | undefined, after: Row | undefined): void {
    for (const index of this.byTable.get(id.table) ?? none) index.move(before, after)
  }
}

const none: ReadonlyArray<RowIndex> = []
const nameOf = (table: string, { each, paths, range }: KeySpec): string => `${table}\n${JSON.stringify([paths, each, range])}`
