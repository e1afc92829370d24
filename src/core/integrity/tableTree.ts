/**
 * The Merkle tree of one table, updated on demand after changes (D41), for any storage of the records.
 *
 * A change costs one entry in a set and no hash; hashes are computed when a reader asks. {@link TableTree.refresh} is a
 * generator, so that the owner of the records decides how a bucket is read, from memory or a database, and how long a
 * pause is. When more ids wait than the table has records, or than {@link maxChanged}, the tree is dropped and built
 * again on demand: that costs no more, and bounds the memory of ids.
 */
import type { RecordId } from "../surql/values/value.ts"
import { bucketOf, type Leaf, MerkleTree } from "./merkle.ts"

/** Most waiting ids of a table: three per bucket make nearly every bucket outdated. */
export const maxChanged = 200_000
/** Waiting ids allowed even if the table has fewer records. */
const fewestChanged = 10_000
/** Work between two pauses, a few milliseconds: ids marked, leaves hashed (records may be long), inner nodes hashed. */
const marksPerStep = 256
const leavesPerStep = 32
const nodesPerStep = 8

/** Yields the bucket whose leaves it needs to be resumed with, or undefined for a pause. */
type Refresh = Generator<number | undefined, void, ReadonlyArray<Leaf> | undefined>

export class TableTree {
  readonly hashes = new MerkleTree()
  /** Id texts whose record has changed since its bucket was last marked. */
  private readonly changed = new Set<string>()
  /** Number of records at the last refresh. */
  private records = 0
  /** Whether changes are noted: its owner has begun to read the tree. */
  protected isFollowed = false
  protected isRead = false

  constructor(
    /** Different after every change of the table. */
    public stamp: number
  ) {}

  note(id: string, stamp: number): void {
    this.stamp = stamp
    if (this.isFollowed) this.changed.add(id)
  }

  /** Number of waiting ids. */
  get waiting(): number {
    return this.changed.size
  }

  /** Rough amount of work of a refresh; 0: nothing has changed since the last one. */
  get left(): number {
    return this.isRead ? this.changed.size + this.hashes.stale : Infinity
  }

  /** Whether reading the whole table would cost less than the waiting ids. */
  get isBehind(): boolean {
    return this.changed.size > Math.min(maxChanged, Math.max(fewestChanged, this.records))
  }

  /** Marks the bucket of a record whose content may have changed. */
  mark(id: string): void {
    const bucket = bucketOf(id)
    this.hashes.mark(bucket)
    this.place(id, bucket)
  }

  /** Hashes the changed buckets; changes made meanwhile are left for the next refresh. */
  *refresh(): Refresh {
    let done = 0
    for (const id of this.changed) {
      this.changed.delete(id)
      this.mark(id)
      if (++done % marksPerStep === 0) yield
    }
    done = 0
    for (let bucket = this.hashes.take(); bucket !== undefined; bucket = this.hashes.take()) {
      const leaves = (yield bucket) ?? []
      this.hashes.put(bucket, leaves)
      done += leaves.length + 1
      if (done < leavesPerStep) continue
      done = 0
      yield
    }
    for (const _node of this.hashes.hashed()) if (++done % nodesPerStep === 0) yield
    this.records = this.hashes.node(0, 0).count
  }

  /** For an owner that finds records only by id: keeps the ids of each bucket. */
  protected place(_id: string, _bucket: number): void {}
}

/** The trees of many tables, each made when it is first asked for. */
export class TableTrees<Tree extends TableTree> {
  private readonly trees = new Map<string, Tree>()
  private stamps = 0

  constructor(private readonly make: (table: string, stamp: number) => Tree) {}

  of(table: string): Tree {
    let found = this.trees.get(table)
    if (found === undefined) this.trees.set(table, (found = this.make(table, this.stamps++)))
    return found
  }

  /** Notes that this record has changed. */
  moved({ table, text }: RecordId): void {
    const tree = this.trees.get(table)
    tree?.note(text, this.stamps++)
    if (tree?.isBehind === true) this.trees.delete(table)
  }

  /** Notes that all records are gone. */
  cleared(): void {
    this.trees.clear()
  }

  /** Drops the tree of a table; it is made again on demand. */
  drop(table: string): void {
    this.trees.delete(table)
  }

  /** A number that is different after every change of the table. */
  stamp(table: string): number {
    return this.of(table).stamp
  }

  /** Number of waiting ids of all tables. */
  get waiting(): number {
    return Array.from(this.trees.values()).reduce((sum, { waiting }) => sum + waiting, 0)
  }
}
