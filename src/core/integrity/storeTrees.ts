/**
 * The Merkle trees of a store's tables (D41), maintained from changes: an ingest pays for one entry in a set, no
 * hash.
 *
 * A store finds records by id and not by bucket, so here stands which records a bucket holds: built when a table is
 * first asked for, then moved along. Work comes in slices, so that a table of a million records does not hold up
 * changes; what changes meanwhile is taken in before the end, and only a run without a pause in between answers "as of
 * now": {@link StoreTrees.settle}.
 */

import type { Store } from "../ivm/store/store.ts"
import { drain, type Slices } from "../surql/evaluate/scope.ts"
import { buckets, contentOf, type Leaf, leafOf, type MerkleTree } from "./merkle.ts"
import { TableTree, TableTrees } from "./tableTree.ts"

/** Records indexed between two pauses. */
const perSlice = 64
/** Bytes that a table's tree takes for each record, and for each bucket that holds any. */
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

  /** Leaves of a bucket as the records are now. */
  leaves(bucket: number): ReadonlyArray<VersionedLeaf> {
    return (this.members.get(bucket) ?? []).flatMap((id) => {
      const row = this.store.byText(this.table, id)
      return row === undefined ? [] : { id, hash: leafOf(id, contentOf(row.doc)), version: row.version }
    })
  }

  /** Until nothing is left of what has changed meanwhile either. */
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

  /** Bytes that it takes once it holds so many records, beyond those that it takes now. */
  bytesToCome(size: number): number {
    const coming = Math.max(0, size - this.placed)
    return recordBytes * coming + bucketBytes * Math.min(coming, buckets - this.members.size)
  }

  /** Puts an id where it belongs, or takes it out when its record is gone. */
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

/** Told by the store of everything that moves in it. */
export class StoreTrees extends TableTrees<StoreTree> {
  constructor(private readonly store: Store) {
    super((table, stamp) => new StoreTree(stamp, store, table))
    store.watcher = this
  }

  /** Brings a table's tree up to date, in slices; changes that come meanwhile may leave it a little behind. */
  *refresh(table: string): Slices<void> {
    const before = this.of(table)
    yield* before.settled()
    // Cleared meanwhile, it was the tree of records that are gone.
    if (this.of(table) !== before) yield* this.refresh(table)
  }

  /** The tree as of now, whatever that takes: cheap behind a {@link refresh}. */
  settle(table: string): MerkleTree {
    drain(this.of(table).settled())
    return this.of(table).hashes
  }

  /** Leaves of a bucket as of now. */
  leaves(table: string, bucket: number): ReadonlyArray<VersionedLeaf> {
    this.settle(table)
    return this.of(table).leaves(bucket)
  }

  /** Bytes that the tree of a table is going to take, in all or for records that came since; 0 for a whole one. */
  bytesToCome(table: string): number {
    return this.of(table).bytesToCome(this.store.size(table))
  }
}
