/** The secondary indexes in use, one for each table and key. */
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { KeySpec } from "../store/indexKey.ts"
import { SecondaryIndex } from "./secondaryIndex.ts"
import { SharedIndexes } from "./sharedIndexes.ts"

export class SecondaryIndexes extends SharedIndexes<SecondaryIndex> {
  /** The index of a table by a key, perhaps not filled yet; each call needs one {@link release}. */
  use(table: string, spec: KeySpec): SecondaryIndex {
    return this.share(nameOf(table, spec), () => new SecondaryIndex(spec))
  }

  /** Fills the index with the rows of the table, unless it is filled. */
  file(table: string, index: SecondaryIndex): void {
    for (const _ of this.filing(table, index, Infinity));
  }

  /** As {@link file}, in pieces of so many rows, with a pause after each. Several callers may fill one index. */
  *filing(table: string, index: SecondaryIndex, rows: number): Slices<void> {
    if (!index.isBegun) {
      index.file(this.store.rows(table))
      this.store.table(table).indexes.push(index)
    }
    while (!index.filed) {
      index.fileOn(rows)
      yield
    }
  }

  release(table: string, index: SecondaryIndex): void {
    this.drop(nameOf(table, index.spec), table)
  }
}

const nameOf = (table: string, { each, paths, range }: KeySpec): string =>
  `${table}\n${JSON.stringify([paths, each, range])}`
