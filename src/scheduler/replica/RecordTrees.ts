/**
 * Merkle trees of the replica's tables (D41), brought up to date only when they are asked for.
 *
 * A change only notes the id of its record, and only if its table was asked for before, so that ingest pays nothing for
 * hashes. Stale records are hashed in small steps with turns of the event loop between; the last few are hashed while
 * no change is applied, so that hashes belong to a position. State: a tree (`core/integrity/tableTree`) for each table
 * that was asked for. A heap without room for reading a table refuses it (D43).
 */
import { Context, Effect, Layer, type Scope } from "effect"
import {
  bucketLevel,
  bucketOf,
  contentOf,
  type Leaf,
  leafOf,
  MerkleTree,
  type Node
} from "../../core/integrity/merkle.ts"
import { maxChanged, TableTree, TableTrees } from "../../core/integrity/tableTree.ts"
import { isReadable, noRoomToRead } from "../../core/record/memory.ts"
import type { RecordKey } from "../../core/surql/values/value.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import { Replica, type ReplicaError, type ReplicaRecord, type ReplicaShape } from "../../ports/Replica.ts"
import type * as Wire from "../../protocol/integrity.ts"
import { Overloaded } from "../errors.ts"
import { Ingest } from "../ingest/Ingest.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"

/** Records read, and buckets put, between two turns of the event loop when a table is first read. */
const readPerStep = 128
const bucketsPerStep = 256
/**
 * Most changed records that may be hashed while no change is applied, and the number of rounds that reduce a larger
 * number first.
 */
const maxLeft = 32
const maxRounds = 5

/** Why a table has no hashes now. */
export type TreeError = ReplicaError | Overloaded

/** The records that have changed behind a position, since a follower began. */
export interface ChangedRecords {
  /** Position where the follower began; earlier changes are unknown. */
  readonly from: number
  readonly movedAfter: (id: string, seq: number) => boolean
  /** Ids that changed behind a position; undefined: too many to list. */
  readonly after: (seq: number) => ReadonlyArray<string> | undefined
}

export interface RecordTreesShape {
  /** Roots of all tables with records, at one position. */
  readonly roots: Effect.Effect<typeof Wire.Tables.Type, TreeError>
  readonly node: (table: string, level: number, index: number) => Effect.Effect<typeof Wire.Node.Type, TreeError>
  /** A number that changes with every change of a table, since it was first asked for. */
  readonly stamp: (table: string) => number
  readonly follow: Effect.Effect<ChangedRecords, never, Scope.Scope>
}

class Followed implements ChangedRecords {
  private readonly moved = new Map<string, number>()

  constructor(readonly from: number) {}

  note(records: ReadonlyArray<ReplicaRecord>, through: number): void {
    // Once `moved` is full, every record counts as changed.
    if (this.moved.size < maxChanged) for (const { id } of records) this.moved.set(id.text, through)
  }

  movedAfter(id: string, seq: number): boolean {
    return this.moved.size >= maxChanged || (this.moved.get(id) ?? 0) > seq
  }

  after(seq: number): ReadonlyArray<string> | undefined {
    return this.moved.size >= maxChanged
      ? undefined
      : Array.from(this.moved).flatMap(([id, at]) => (at > seq ? [id] : []))
  }
}

const turn = Effect.sleep(0)

/** Leaf of a record that is not deleted. */
const leafFor = ({ doc, id }: ReplicaRecord): Leaf => ({ id: id.text, hash: leafOf(id.text, contentOf(doc!)) })

/** The tree of one table of the replica, which is read bucket by bucket. */
class ReplicaTree extends TableTree {
  constructor(
    stamp: number,
    private readonly replica: ReplicaShape,
    private readonly heap: HeapShape,
    private readonly table: string
  ) {
    super(stamp)
  }

  readonly refreshed: Effect.Effect<void, TreeError> = Effect.suspend(() =>
    Effect.gen(this, function* () {
      this.isFollowed = true
      if (!this.isRead) yield* this.readAll
      const refresh = this.refresh()
      for (let step = refresh.next(); step.done !== true; ) {
        if (step.value === undefined) yield* turn
        step = refresh.next(step.value === undefined ? undefined : yield* this.leaves(step.value))
      }
    })
  )

  /** A bucket whose reading fails or is interrupted stays marked. */
  private leaves(bucket: number): Effect.Effect<ReadonlyArray<Leaf>, ReplicaError> {
    return Effect.map(
      Effect.onError(this.replica.bucket(this.table, bucket), () => Effect.sync(() => this.hashes.mark(bucket))),
      (records) => records.map(leafFor)
    )
  }

  /**
   * Hashes the whole table in one walk; records that change meanwhile are noted and read again. After an interrupt it
   * begins anew.
   */
  private readonly readAll: Effect.Effect<void, TreeError> = Effect.suspend(() =>
    Effect.gen(this, function* () {
      const leaves = new Map<number, Array<Leaf>>()
      let after: RecordKey | undefined
      for (;;) {
        const memory = this.heap.memory()
        if (!isReadable(memory))
          return yield* new Overloaded({ message: noRoomToRead(memory, "records are hashed"), retryAfterSecs: 5 })
        const records = yield* this.replica.records(this.table, after, readPerStep)
        for (const record of records) {
          const bucket = bucketOf(record.id.text)
          const there = leaves.get(bucket)
          if (there === undefined) leaves.set(bucket, [leafFor(record)])
          else there.push(leafFor(record))
        }
        if (records.length < readPerStep) break
        after = records.at(-1)!.id.key
        yield* turn
      }
      let put = 0
      for (const [bucket, there] of leaves) {
        this.hashes.put(bucket, there)
        if (++put % bucketsPerStep === 0) yield* turn
      }
      // A replica may first have to sort its records into buckets: done here, and not while changes wait.
      yield* this.replica.bucket(this.table, 0)
      this.isRead = true
    })
  )
}

const none: Node = new MerkleTree().node(0, 0)

class Trees implements RecordTreesShape {
  private readonly trees: TableTrees<ReplicaTree>
  private readonly followers = new Set<Followed>()

  constructor(
    private readonly replica: ReplicaShape,
    private readonly pool: PoolShape,
    heap: HeapShape,
    private readonly one: Effect.Semaphore
  ) {
    this.trees = new TableTrees((table, stamp) => new ReplicaTree(stamp, replica, heap, table))
  }

  /** Called by ingest for changed records. */
  readonly moved = (records: ReadonlyArray<ReplicaRecord>, through: number): void => {
    for (const follower of this.followers) follower.note(records, through)
    for (const { id } of records) this.trees.moved(id)
  }

  stamp(table: string): number {
    return this.trees.of(table).stamp
  }

  readonly follow: RecordTreesShape["follow"] = Effect.acquireRelease(
    Effect.sync(() => {
      const followed = new Followed(this.pool.state().log.head)
      this.followers.add(followed)
      return followed
    }),
    (followed) => Effect.sync(() => this.followers.delete(followed))
  )

  readonly roots: RecordTreesShape["roots"] = Effect.suspend(() =>
    Effect.gen(this, function* () {
      const names = (yield* this.replica.names).filter((name) => !isOwn(name))
      return yield* this.settled(names, (seq) =>
        Effect.sync(() => ({
          seq,
          tables: names
            .map((table) => ({ table, ...this.trees.of(table).hashes.node(0, 0) }))
            .filter(({ count }) => count > 0)
        }))
      )
    })
  )

  readonly node: RecordTreesShape["node"] = (table, level, index) =>
    Effect.gen(this, function* () {
      // Checked, because trees of tables that do not exist would fill the memory.
      const exists = (yield* this.replica.names).includes(table)
      return yield* this.settled(exists ? [table] : [], (seq) =>
        Effect.gen(this, function* () {
          const place = { seq, table, level, index }
          if (level === bucketLevel) {
            const found = exists ? yield* this.replica.bucket(table, index) : []
            const records = found.map((record) => ({ ...leafFor(record), version: record.version }))
            return { ...place, ...(exists ? this.trees.of(table).hashes.node(level, index) : none), records }
          }
          return exists
            ? {
                ...place,
                ...this.trees.of(table).hashes.node(level, index),
                children: this.trees.of(table).hashes.children(level, index)
              }
            : { ...place, ...none, children: [] }
        })
      )
    })

  /**
   * Calls `look` for the trees of these tables at one position: most stale records are hashed while changes flow, the
   * last ones while none is applied.
   */
  private settled<A>(
    tables: ReadonlyArray<string>,
    look: (seq: number) => Effect.Effect<A, TreeError>
  ): Effect.Effect<A, TreeError> {
    const refresh = Effect.forEach(tables, (table) => Effect.suspend(() => this.trees.of(table).refreshed), {
      discard: true
    })
    const left = (): number => tables.reduce((sum, table) => sum + this.trees.of(table).left, 0)
    return this.one.withPermits(1)(
      Effect.gen(this, function* () {
        for (let round = 0; round < maxRounds && left() > maxLeft; round++) yield* refresh
        let found: { readonly value: A } | undefined
        yield* this.pool.alone(
          Effect.gen(this, function* () {
            yield* refresh
            found = { value: yield* look(this.pool.state().log.head) }
            return undefined
          })
        )
        return found === undefined ? yield* Effect.interrupt : found.value
      })
    )
  }
}

export class RecordTrees extends Context.Tag("scheduler/replica/RecordTrees")<RecordTrees, RecordTreesShape>() {
  static readonly layer: Layer.Layer<RecordTrees, never, Replica | Ingest | Pool> = Layer.effect(
    RecordTrees,
    Effect.gen(function* () {
      const trees = new Trees(yield* Replica, yield* Pool, yield* Heap, yield* Effect.makeSemaphore(1))
      const { watch } = yield* Ingest
      watch(trees.moved)
      return trees
    })
  )
}
