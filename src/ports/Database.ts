/**
 * The database as an SSP sees it: where records and view registrations are kept, and where they come from at start.
 *
 * The port speaks typed values; how they are encoded is each layer's business. A commit is all or nothing and durable
 * when it returns (as durable as the layer is: `layerMemory` keeps nothing beyond the process, `layerNone` nothing at
 * all).
 */
import { Context, Data, Effect, Layer, Stream } from "effect"
import type { Obj, RecordId } from "../core/surql/values/value.ts"

/** One record's state: `doc` undefined means deleted, `version` then is its last one (D4). */
export interface StoredRecord {
  readonly id: RecordId
  readonly version: number
  readonly doc: Obj | undefined
}

/** A registered view as it is stored. */
export interface StoredView {
  /** Key below `_svc_query:` (D10); unique. */
  readonly key: string
  /** The id as the request gave it. */
  readonly id: string
  readonly surql: string
  readonly clientId: string
  readonly ttlMs: number
  /** Parameters as the request's JSON text. */
  readonly params: string
  /** Empty if the registration names no format. */
  readonly format: string
  readonly lastActiveAtMs: number
}

/** Counters and positions that a commit stores beside records and views. */
export interface StoredPosition {
  /** Record writes committed since the store was made; never goes back. */
  readonly writes: number
  /** Position in the scheduler's log (D5), once known. */
  readonly seq: number | null
  readonly logId: string | null
  readonly epoch: number | null
}

/** Position of an empty store. */
export const startPosition: StoredPosition = { writes: 0, seq: null, logId: null, epoch: null }

/** One durable step. Later entries win over earlier ones with the same id or key. */
export interface Commit {
  readonly records: ReadonlyArray<StoredRecord>
  readonly putViews: ReadonlyArray<StoredView>
  readonly removeViews: ReadonlyArray<string>
  readonly position: StoredPosition
}

/**
 * A store that failed. `damaged`: its content is not as it was written; `locked`: another process has it; `newer`:
 * written by a later version; `failed`: anything else, such as a full disk, and worth another try.
 */
export class DatabaseError extends Data.TaggedError("DatabaseError")<{
  readonly reason: "damaged" | "locked" | "newer" | "failed"
  readonly message: string
  readonly cause?: unknown
}> {}

/** A store of records, registrations and positions. Every method may fail with a {@link DatabaseError}. */
export interface DatabaseShape {
  /**
   * Kind of the store, for messages. The kind `memory` has a meaning: nothing is flushed, so no batch waits to share a
   * flush.
   */
  readonly kind: string
  /**
   * True: no other process can have the store open at the same time, so a process that left something unfinished in it
   * has ended.
   */
  readonly exclusive?: boolean
  /** All records and tombstones, in chunks, each once; in the order their ids were first written, or of their ids. */
  readonly records: Stream.Stream<ReadonlyArray<StoredRecord>, DatabaseError>
  readonly views: Effect.Effect<ReadonlyArray<StoredView>, DatabaseError>
  readonly position: Effect.Effect<StoredPosition, DatabaseError>
  readonly commit: (commit: Commit) => Effect.Effect<void, DatabaseError>
  /** Forgets everything, as one step. */
  readonly reset: Effect.Effect<void, DatabaseError>
  /**
   * Moves a damaged store out of the way and continues with an empty one; answers the new place of the old one. Present
   * only if the records can be rebuilt (D23).
   */
  readonly setAside?: Effect.Effect<string, DatabaseError>
}

/**
 * Where an SSP keeps records, registrations and positions. A layer of your own passes `conformance.database` of
 * `testing`.
 */
export class Database extends Context.Tag("ports/Database")<Database, DatabaseShape>() {
  /**
   * Keeps nothing: committed records are in the engine, and a node that starts with this store starts empty. For
   * `memory://`, and for an SSP of a cluster, whose records the scheduler keeps. A copy beside the engine would only
   * cost memory: stores are read at the start.
   */
  static readonly layerNone: Layer.Layer<Database> = Layer.succeed(Database, {
    kind: "memory",
    records: Stream.empty,
    views: Effect.succeed([]),
    position: Effect.succeed(startPosition),
    commit: () => Effect.void,
    reset: Effect.void
  })

  /**
   * Keeps everything in the process and nothing beyond it, deleted records included: for a node that is built again
   * over the same store, as tests do.
   */
  static readonly layerMemory: Layer.Layer<Database> = Layer.sync(Database, (): DatabaseShape => {
    const records = new Map<string, StoredRecord>()
    const views = new Map<string, StoredView>()
    let position = startPosition
    return {
      kind: "memory",
      records: Stream.suspend(() => Stream.make([...records.values()])),
      views: Effect.sync(() => [...views.values()]),
      position: Effect.sync(() => position),
      commit: (commit) =>
        Effect.sync(() => {
          for (const record of commit.records) records.set(record.id.text, record)
          for (const view of commit.putViews) views.set(view.key, view)
          for (const key of commit.removeViews) views.delete(key)
          position = commit.position
        }),
      reset: Effect.sync(() => {
        records.clear()
        views.clear()
        position = startPosition
      })
    }
  })
}
