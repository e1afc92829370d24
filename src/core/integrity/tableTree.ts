/**
 * The Merkle tree of one table behind the changes of its records (D41), wherever the records are kept.
 *
 * A change costs one entry in a set and no hash; hashes are computed when a reader asks. {@link TableTree.refresh} is a
 * generator, so that the owner of the records says how a bucket is read, in memory at once or from a database, and how
 * long a pause is. Once more ids wait than the table has records, or than {@link maxChanged}, the tree is dropped, and
 * read anew when it is asked for: that costs no more, and ids of records that come and go are not kept.
 */
import type { RecordId } from "../surql/values/value.ts"
import { bucketOf, type Leaf, MerkleTree } from "./merkle.ts"

/** Ids of one table that may wait: of three changed records for each bucket, nearly every bucket is out of date. */
export const maxChanged = 200_000
/** Ids that may wait where a table has fewer records. */
const fewestChanged = 10_000
/** Work between two pauses, of a few milliseconds: ids marked, leaves hashed (records may be long), inner nodes. */
const marksPerStep = 256
const leavesPerStep = 32
const nodesPerStep = 8

/** Yields the bucket whose leaves it wants to be resumed with, or undefined where it may pause. */
type Refresh = Generator<number | undefined, void, ReadonlyArray<Leaf> | undefined>

export class TableTree {
  readonly hashes = new MerkleTree()
  /** Id texts whose record has changed since its bucket was last marked. */
  private readonly changed = new Set<string>()
  /** Records when the tree was last up to date. */
  private records = 0
  /** Since its owner began to read it, changes are noted. */
  protected isFollowed = false
  protected isRead = false

  constructor(
    /** Another number after every change of the table. */
    public stamp: number
  ) {}

  note(id: string, stamp: number): void {
    this.stamp = stamp
    if (this.isFollowed) this.changed.add(id)
  }

  /** Ids that wait to be looked at. */
  get waiting(): number {
    return this.changed.size
  }

  /** Rough measure of what a refresh has to do; 0: nothing has changed since the last one. */
  get left(): number {
    return this.isRead ? this.changed.size + this.hashes.stale : Infinity
  }

  /** More waits than reading the whole table costs. */
  get isBehind(): boolean {
    return this.changed.size > Math.min(maxChanged, Math.max(fewestChanged, this.records))
  }

  /** Marks the bucket of a record whose content may have changed. */
  mark(id: string): void {
    const bucket = bucketOf(id)
    this.hashes.mark(bucket)
    this.place(id, bucket)
  }

  /** Hashes what has changed; changes that come meanwhile are left for the next refresh. */
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

  /** An owner that finds records by id alone keeps the ids of each bucket. */
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

  /** This record has changed. */
  moved({ table, text }: RecordId): void {
    const tree = this.trees.get(table)
    tree?.note(text, this.stamps++)
    if (tree?.isBehind === true) this.trees.delete(table)
  }

  /** All records are gone. */
  cleared(): void {
    this.trees.clear()
  }

  /** Lets the tree of a table go; it is made anew when it is asked for. */
  drop(table: string): void {
    this.trees.delete(table)
  }

  /** A number that is another one after every change of the table. */
  stamp(table: string): number {
    return this.of(table).stamp
  }

  /** Ids that wait to be looked at, of all tables. */
  get waiting(): number {
    return Array.from(this.trees.values()).reduce((sum, { waiting }) => sum + waiting, 0)
  }
}
