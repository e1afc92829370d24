/**
 * The Merkle trees of a store's tables (D41), maintained from changes: an ingest pays for one entry in a set, no hash.
 *
 * A store finds records by id and not by bucket, so the ids of each bucket are kept here: built when a table is first
 * asked for, then maintained. Work is sliced, so that a table of a million records does not hold up changes; changes
 * made in a pause are taken in before the end, and only {@link StoreTrees.settle}, which does not pause, gives the
 * present state.
 */

import type { Store } from "../ivm/store/store.ts"
import { drain, type Slices } from "../surql/evaluate/scope.ts"
import { buckets, contentOf, type Leaf, leafOf, type MerkleTree } from "./merkle.ts"
import { TableTree, TableTrees } from "./tableTree.ts"

/** Records indexed between two pauses. */
const perSlice = 64
/** Bytes of a table's tree for each record, and for each non-empty bucket. */
const recordBytes = 160
const bucketBytes = 320

/** A leaf with the version of its record, which no hash covers (D4). */
interface VersionedLeaf extends Leaf {
  readonly version: number
}

class StoreTree extends TableTree {
  /** Ids of each bucket's records. */
  private readonly members = new Map<number, Array<string>>()
  private placed = 0

  constructor(
    stamp: number,
    private readonly store: Store,
    private readonly table: string
  ) {
    super(stamp)
  }

  /** Leaves of a bucket from the present records. */
  leaves(bucket: number): ReadonlyArray<VersionedLeaf> {
    return (this.members.get(bucket) ?? []).flatMap((id) => {
      const row = this.store.byText(this.table, id)
      return row === undefined ? [] : { id, hash: leafOf(id, contentOf(row.doc)), version: row.version }
    })
  }

  /** Refreshes until nothing has changed in the last pause. */
  *settled(): Slices<void> {
    this.isFollowed = true
    let looked = 0
    if (!this.isRead) {
      for (const row of this.store.rows(this.table)) {
        this.mark(row.id.text)
        if (++looked % perSlice === 0) yield
      }
      this.isRead = true
    }
    while (this.left > 0) {
      const refresh = this.refresh()
      for (let step = refresh.next(); step.done !== true; ) {
        if (step.value === undefined) yield
        step = refresh.next(step.value === undefined ? undefined : this.leaves(step.value))
      }
    }
  }

  /** Further bytes that the tree takes when it has `size` records. */
  bytesToCome(size: number): number {
    const coming = Math.max(0, size - this.placed)
    return recordBytes * coming + bucketBytes * Math.min(coming, buckets - this.members.size)
  }

  /** Files an id in its bucket, or removes it if its record was deleted. */
  protected override place(id: string, bucket: number): void {
    const ids = this.members.get(bucket)
    const known = ids?.indexOf(id) ?? -1
    const exists = this.store.byText(this.table, id) !== undefined
    if (exists && known < 0) {
      this.placed++
      if (ids === undefined) this.members.set(bucket, [id])
      else ids.push(id)
    } else if (!exists && known >= 0) {
      this.placed--
      if (ids!.length === 1) this.members.delete(bucket)
      else ids!.splice(known, 1)
    }
  }
}

/** The Merkle trees of a store's tables; the store reports every change to them. */
export class StoreTrees extends TableTrees<StoreTree> {
  constructor(private readonly store: Store) {
    super((table, stamp) => new StoreTree(stamp, store, table))
    store.watcher = this
  }

  /** Refreshes a table's tree, in slices; changes made in a pause may be missing at the end. */
  *refresh(table: string): Slices<void> {
    const before = this.of(table)
    yield* before.settled()
    // The store was cleared in a pause, so this was the tree of the old records.
    if (this.of(table) !== before) yield* this.refresh(table)
  }

  /** The current tree of a table, whatever that costs: cheap after a {@link refresh}. */
  settle(table: string): MerkleTree {
    drain(this.of(table).settled())
    return this.of(table).hashes
  }

  /** The current leaves of a bucket. */
  leaves(table: string, bucket: number): ReadonlyArray<VersionedLeaf> {
    this.settle(table)
    return this.of(table).leaves(bucket)
  }

  /**
   * Bytes that the tree of a table still has to allocate, for all records or for those added since; 0 if it is current.
   */
  bytesToCome(table: string): number {
    return this.of(table).bytesToCome(this.store.size(table))
  }
}
