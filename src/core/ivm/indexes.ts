/**
 * The secondary indexes in use: built when a shape first needs one, shared, dropped with the last shape.
 */
import { addTo, removeFrom } from "../multimap.ts"
import type { RecordId } from "../surql/value.ts"
import { type Path, RowIndex } from "./rowIndex.ts"
import type { Row, Store } from "./store.ts"

export class Indexes {
  private readonly store: Store
  private readonly shared = new Map<string, { readonly index: RowIndex; uses: number }>()
  private readonly byTable = new Map<string, Set<RowIndex>>()

  constructor(store: Store) {
    this.store = store
  }

  /** The index of a table by some paths; each call needs one {@link release}. */
  use(table: string, paths: ReadonlyArray<Path>): RowIndex {
    const existing = this.shared.get(nameOf(table, paths))
    if (existing !== undefined) {
      existing.uses++
      return existing.index
    }
    const index = new RowIndex(paths, this.store.rows(table))
    this.shared.set(nameOf(table, paths), { index, uses: 1 })
    addTo(this.byTable, table, index)
    return index
  }

  release(table: string, paths: ReadonlyArray<Path>): void {
    const shared = this.shared.get(nameOf(table, paths))
    if (shared === undefined || --shared.uses > 0) return
    this.shared.delete(nameOf(table, paths))
    removeFrom(this.byTable, table, shared.index)
  }

  /** Refiles a record in the indexes of its table. */
  move(id: RecordId, before: Row | undefined, after: Row | undefined): void {
    for (const index of this.byTable.get(id.table) ?? none) index.move(id.text, before, after)
  }
}

const none: ReadonlyArray<RowIndex> = []
const nameOf = (table: string, paths: ReadonlyArray<Path>): string => `${table}\n${JSON.stringify(paths)}`
