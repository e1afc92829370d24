/**
 * The scheduler's replica: every record with its version at a position of the log, and snapshots of it that do not
 * change.
 *
 * The replica is a cache of the log and the database, but must be exact: SSPs bootstrap from it and versions are
 * decided by it (D4). So a commit is one step and carries its position, and a snapshot costs nothing while commits go
 * on. Rows are the stored text, because most leave as text again; {@link docOf} parses one. Snapshots read
 * synchronously, as the evaluator needs it; a fault there is thrown as a {@link ReplicaError}.
 */
import { Context, Data, type Effect, type Scope } from "effect"
import type { Obj, Range, RecordId, RecordKey } from "../core/surql/values/value.ts"
import { exitCodeOf, StartFault } from "./StartFault.ts"

/** One record's state: `doc` (with its `id`) undefined means deleted, `version` then is its last one (D4). */
export interface ReplicaRecord {
  readonly id: RecordId
  readonly version: number
  readonly doc: Obj | undefined
}

/** A table as the database declared it at the last clone (D28). */
export interface ReplicaTable {
  readonly name: string
  /** Declared types by path, as the database writes them. */
  readonly types: { readonly [path: string]: string }
}

/**
 * The replica failed. `damaged`: its content is not as it was written; `newer`: written by a later version; `locked`:
 * another process has it; `full`: no room on the disk; `failed`: anything else. After the last two nothing is lost, and
 * another try is worthwhile.
 */
export class ReplicaError extends Data.TaggedError("ReplicaError")<{
  readonly reason: "damaged" | "newer" | "locked" | "full" | "failed"
  readonly message: string
  readonly cause?: unknown
}> {}

/** The fault that ends a start: exit code 3 for data that cannot be used as it is, 1 for anything else. */
export const startFault = ({ message, reason }: ReplicaError): StartFault =>
  new StartFault({ exitCode: exitCodeOf(reason), message })

/** A record as it is stored. */
export interface ReplicaRow {
  /** Text of the record's id. */
  readonly id: string
  readonly version: number
  /** The record without its `id`, as `core/surql/values/encode` writes it: plain JSON unless it holds `{"$":[`. */
  readonly content: string
}

/**
 * Rows that the reader evaluates: those whose fields have these string, int or bool values, and those where that cannot
 * be told from the text.
 */
export type RowFilter = ReadonlyArray<readonly [field: string, value: string | number | boolean]>

/**
 * Rows in key order. A row that the filter rules out is given as undefined, so that the reader can count it and pause.
 */
export type FilteredRows = Iterable<ReplicaRow | undefined>

/** A state of the replica that does not change. */
export interface ReplicaSnapshot {
  readonly seq: number
  readonly find: (id: RecordId) => ReplicaRow | undefined
  /** Rows of a table, or of a range of its keys, in key order, read in small pages on demand; at most `atMost`. */
  readonly rows: (
    table: string,
    range?: Range,
    options?: { readonly atMost?: number; readonly where?: RowFilter }
  ) => FilteredRows
  /** Ids of edge records by endpoint, as `Source.edges` wants them. */
  readonly edges: (record: RecordId, direction: "out" | "in", table: string | undefined) => ReadonlyArray<RecordId>
  /** Names of all tables that are declared or have records, sorted. */
  readonly tables: () => ReadonlyArray<string>
  /** Declared types of a table; undefined for a table that is not declared. */
  readonly types: (table: string) => ReplicaTable["types"] | undefined
  /** Number of rows read so far, for tests and figures. */
  readonly rowsRead: () => number
}

/** The records of all tables. Methods fail with a {@link ReplicaError}. */
export interface ReplicaShape {
  /** Position in the log through which changes are applied; 0: none. */
  readonly applied: Effect.Effect<number, ReplicaError>
  /** The known records of these ids, deleted ones included, by id text. */
  readonly current: (ids: ReadonlyArray<RecordId>) => Effect.Effect<ReadonlyMap<string, ReplicaRecord>, ReplicaError>
  /**
   * Applies one batch as one step; of records with the same id the last wins. A batch that ends before `applied` was
   * committed already and is skipped; one that ends at it is written again, as by a clone, whose records have no
   * position. A few records may be left for {@link catchUp}; readers do not notice, and a disk fault then surfaces in
   * the next commit.
   */
  readonly commit: (batch: {
    readonly records: ReadonlyArray<ReplicaRecord>
    readonly through: number
  }) => Effect.Effect<void, ReplicaError>
  /** Writes what commits have postponed, for a caller with time to spare. Reads do it themselves. */
  readonly catchUp: Effect.Effect<void, ReplicaError>
  /** Flushes: everything committed is on disk when it returns (checkpoint). */
  readonly sync: Effect.Effect<void, ReplicaError>
  /**
   * Keeps the present state readable under this id until it is thawed; answers its position. A second freeze of the
   * same id changes nothing.
   */
  readonly freeze: (id: number) => Effect.Effect<number, ReplicaError>
  /** Drops a frozen state. A read in progress may finish. */
  readonly thaw: (id: number) => Effect.Effect<void>
  /** The newest frozen state or, without one, the present state; unchanged until the scope is closed. */
  readonly snapshot: Effect.Effect<ReplicaSnapshot, ReplicaError, Scope.Scope>
  /**
   * At most `size` present records of a table in key order, after a key; without deleted ones. Fewer than `size`: there
   * are no more.
   */
  readonly records: (
    table: string,
    after: RecordKey | undefined,
    size: number
  ) => Effect.Effect<ReadonlyArray<ReplicaRecord>, ReplicaError>
  /**
   * Present records of one Merkle bucket (D41) in key order, without deleted ones. A bucket is 0..65535, the first two
   * bytes of BLAKE3 of the id text.
   */
  readonly bucket: (table: string, index: number) => Effect.Effect<ReadonlyArray<ReplicaRecord>, ReplicaError>
  /** Sorted names of all tables that are declared or have records now. */
  readonly names: Effect.Effect<ReadonlyArray<string>, ReplicaError>
  /** The declared tables as of the last clone. */
  readonly tables: Effect.Effect<ReadonlyArray<ReplicaTable>, ReplicaError>
  readonly putTables: (tables: ReadonlyArray<ReplicaTable>) => Effect.Effect<void, ReplicaError>
  /** Whether a clone was ever completed; before that only a part of the records is here. */
  readonly whole: Effect.Effect<boolean, ReplicaError>
  readonly markWhole: Effect.Effect<void, ReplicaError>
  /** Empties the replica in one step: records, position, tables and wholeness. Frozen states stay until thawed. */
  readonly clear: Effect.Effect<void, ReplicaError>
}

/** The scheduler's records. A layer of your own passes `conformance.replica` of `testing`. */
export class Replica extends Context.Tag("ports/Replica")<Replica, ReplicaShape>() {}
