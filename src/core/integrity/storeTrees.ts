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
import type { Slices } from "../surql/evaluate/scope.ts"
import type { RecordId } from "../surql/values/value.ts"
import { bucketOf, buckets, contentOf, type Leaf, leafOf, MerkleTree } from "./merkle.ts"

/** Records looked at between two pauses, of which some may be long. */
const perSlice = 64
/** What the tree of a table takes beside its records, for each of them and each bucket of which some hold any. */
const recordBytes = 160
const bucketBytes = 320
/** Ids of one table that may wait to be looked at, however few records it has. */
const fewest = 10_000

/** A leaf with the version of its record, which no hash covers (D4). */
interface VersionedLeaf extends Leaf {
  readonly version: number
}

class TableTree {
  readonly tree = new MerkleTree()
  /** Id texts whose record has changed since they were last looked at. */
  readonly changed = new Set<string>()
  /** Ids of each bucket's records. */
  private readonly members = new Map<number, Array<string>>()
  private placed = 0
  indexed = false

  constructor(
    private readonly store: Store,
    private readonly table: string,
    /** Another number after every change. */
    public stamp: number
  ) {}

  /** Leaves of a bucket as the records are now. */
  leaves(bucket: number): ReadonlyArray<VersionedLeaf> {
    return (this.members.get(bucket) ?? []).flatMap((id) => {
      const row = this.store.byText(this.table, id)
      return row === undefined ? [] : { id, hash: leafOf(id, contentOf(row.doc)), version: row.version }
    })
  }

  *refresh(): Slices<void> {
    let looked = 0
    if (!this.indexed) {
      for (const row of this.store.rows(this.table)) {
        this.place(row.id.text)
        if (++looked % perSlice === 0) yield
      }
      this.indexed = true
    }
    while (this.changed.size > 0 || this.tree.stale > 0) {
      for (const id of this.changed) {
        this.changed.delete(id)
        this.place(id)
        if (++looked % perSlice === 0) yield
      }
      for (let bucket = this.tree.take(); bucket !== undefined; bucket = this.tree.take()) {
        const leaves = this.leaves(bucket)
        this.tree.put(bucket, leaves)
        looked += leaves.length
        if (looked >= perSlice) {
          looked = 0
          yield
        }
      }
      yield* this.tree.hashed()
    }
  }

  /** Bytes that it takes once it holds so many records, beyond those that it takes now. */
  bytesToCome(size: number): number {
    const coming = Math.max(0, size - this.placed)
    return recordBytes * coming + bucketBytes * Math.min(coming, buckets - this.members.size)
  }

  /** Puts an id where it belongs, or takes it out when its record is gone. */
  private place(id: string): void {
    const bucket = bucketOf(id)
    const ids = this.members.get(bucket)
    const known = ids?.indexOf(id) ?? -1
    const exists = this.store.byText(this.table, id) !== undefined
    this.tree.mark(bucket)
    if (exists && known < 0) this.placed++
    else if (!exists && known >= 0) this.placed--
    if (exists && ids === undefined) this.members.set(bucket, [id])
    else if (exists && known < 0) ids!.push(id)
    else if (!exists && known >= 0) {
      if (ids!.length === 1) this.members.delete(bucket)
      else ids!.splice(known, 1)
    }
  }
}

/** Told by the store of everything that moves in it. */
export class StoreTrees {
  private readonly tables = new Map<string, TableTree>()
  private stamps = 0

  constructor(private readonly store: Store) {
    store.watcher = this
  }

  /** Ids that wait to be looked at, of all tables. */
  get waiting(): number {
    let waiting = 0
    for (const { changed } of this.tables.values()) waiting += changed.size
    return waiting
  }

  /**
   * The store reports that this record has changed. A table is read when it is first asked for; a table that is no
   * longer asked for is dropped and read anew later: once more ids wait than there are records, reading all records is
   * no more work, and the ids of deleted records need not be kept.
   */
  moved(id: RecordId): void {
    const { table } = id
    const tree = this.tables.get(table)
    if (tree === undefined) return
    tree.changed.add(id.text)
    tree.stamp = this.stamps++
    if (tree.changed.size > fewest && tree.changed.size > this.store.size(table)) this.tables.delete(table)
  }

  /** The store reports that all records are gone. */
  cleared(): void {
    this.tables.clear()
  }

  /** Brings a table's tree up to date, in slices; changes that come meanwhile may leave it a little behind. */
  *refresh(table: string): Slices<void> {
    const before = this.of(table)
    yield* before.refresh()
    // Cleared meanwhile, it was the tree of records that are gone.
    if (this.tables.get(table) !== before) yield* this.refresh(table)
  }

  /** The tree as of now, whatever that takes: cheap behind a {@link refresh}. */
  settle(table: string): MerkleTree {
    const { tree } = this.of(table)
    for (const _pause of this.of(table).refresh()) {
      /* Nothing may come in between. */
    }
    return tree
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

  /** Lets the tree of a table go; it is made anew when it is asked for. */
  drop(table: string): void {
    this.tables.delete(table)
  }

  /** A number that is another one after every change of the table. */
  stamp(table: string): number {
    return this.of(table).stamp
  }

  /** Whether anything of a table has changed since its tree was last up to date; unknown tables have. */
  isStale(table: string): boolean {
    const known = this.tables.get(table)
    return known === undefined || known.changed.size > 0 || known.tree.stale > 0
  }

  private of(table: string): TableTree {
    let found = this.tables.get(table)
    if (found === undefined) this.tables.set(table, (found = new TableTree(this.store, table, this.stamps++)))
    return found
  }
}
