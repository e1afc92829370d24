/**
 * The scheduler's replica: every record with its version as of a position of the log, and snapshots of it that stand
 * still.
 *
 * It is a cache of what the log and the database say, but one that has to be exact: SSPs bootstrap from it and versions
 * are decided by it (D4). So a commit is one step and carries its position, and a snapshot costs nothing while commits
 * go on. Rows come as the text they are kept as, because most of them leave again as text; {@link docOf} reads one.
 * What a snapshot reads it reads at once, as the evaluator needs it; a fault there is thrown as a {@link ReplicaError}.
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
 * The replica could not do its work. `damaged`: its content is not as it was written; `newer`: written by a later
 * version; `locked`: another process has it; `full`: no room on the disk; `failed`: anything else. The last two keep
 * what was there and are worth another try.
 */
export class ReplicaError extends Data.TaggedError("ReplicaError")<{
  readonly reason: "damaged" | "newer" | "locked" | "full" | "failed"
  readonly message: string
  readonly cause?: unknown
}> {}

/** Why a node does not start: 3 for data that cannot be used as it is, 1 for anything else. */
export const startFault = ({ message, reason }: ReplicaError): StartFault =>
  new StartFault({ exitCode: exitCodeOf(reason), message })

/** A record as it is kept. */
export interface ReplicaRow {
  /** Its id as text. */
  readonly id: string
  readonly version: number
  /** The record without its `id`, as `core/surql/values/encode` writes it: plain JSON unless it holds `{"$":[`. */
  readonly content: string
}

/**
 * Which rows are wanted for more than their place: those where each field is this string, int or bool, and those where
 * it cannot be told.
 */
export type RowFilter = ReadonlyArray<readonly [field: string, value: string | number | boolean]>

/**
 * Rows in key order. A row that the filter rules out is given as undefined, so that the reader can count it and pause.
 */
export type Rows = Iterable<ReplicaRow | undefined>

/** A state of the replica that stands still. */
export interface ReplicaSnapshot {
  readonly seq: number
  readonly find: (id: RecordId) => ReplicaRow | undefined
  /**
   * Rows of a table, or of a range of its keys, in key order, read in small pages as they are taken, never more than
   * `atMost`.
   */
  readonly rows: (
    table: string,
    range?: Range,
    options?: { readonly atMost?: number; readonly where?: RowFilter }
  ) => Rows
  /** Ids of edge records by endpoint, as `Source.edges` wants them. */
  readonly edges: (record: RecordId, direction: "out" | "in", table: string | undefined) => ReadonlyArray<RecordId>
  /** Names of all tables that are declared or have records, sorted. */
  readonly tables: () => ReadonlyArray<string>
  /** Undefined for a table that is not declared. */
  readonly types: (table: string) => ReplicaTable["types"] | undefined
  /** How many rows it has read so far, for tests and figures. */
  readonly rowsRead: () => number
}

export interface ReplicaShape {
  /** Position of the log through which it is applied; 0: none. */
  readonly applied: Effect.Effect<number, ReplicaError>
  /** The records of these ids that are known, deleted ones included, by id text. */
  readonly current: (ids: ReadonlyArray<RecordId>) => Effect.Effect<ReadonlyMap<string, ReplicaRecord>, ReplicaError>
  /**
   * One step; of records with the same id the last wins. What ends before `applied` has been committed already and does
   * nothing; what ends at it is written (again): so does a clone, whose records have no position of their own. A few
   * records may be left for {@link catchUp}; no reader can tell, but for a fault of the disk, which the next commit
   * then meets.
   */
  readonly commit: (batch: {
    readonly records: ReadonlyArray<ReplicaRecord>
    readonly through: number
  }) => Effect.Effect<void, ReplicaError>
  /** Writes what commits have left for later, for a caller with time to spare. A read does it by itself. */
  readonly catchUp: Effect.Effect<void, ReplicaError>
  /** Everything committed is on disk when it returns: the checkpoint. */
  readonly sync: Effect.Effect<void, ReplicaError>
  /**
   * Keeps the state as it stands for reading under this id until it is thawed; answers its position. An id that is
   * frozen stays what it is.
   */
  readonly freeze: (id: number) => Effect.Effect<number, ReplicaError>
  /** A read that runs at that moment may finish. */
  readonly thaw: (id: number) => Effect.Effect<void>
  /** The newest frozen state, or, where nothing is frozen, the current one; stands still until the scope is closed. */
  readonly snapshot: Effect.Effect<ReplicaSnapshot, ReplicaError, Scope.Scope>
  /**
   * Records of a table behind a key in key order, at most `size`, as they are now; deleted ones left out. Fewer than
   * `size` means there are no more.
   */
  readonly records: (
    table: string,
    after: RecordKey | undefined,
    size: number
  ) => Effect.Effect<ReadonlyArray<ReplicaRecord>, ReplicaError>
  /**
   * Records of one Merkle bucket (D41), 0..65535 by the first two bytes of BLAKE3 of the id text, as they are now, in
   * key order; deleted ones left out.
   */
  readonly bucket: (table: string, index: number) => Effect.Effect<ReadonlyArray<ReplicaRecord>, ReplicaError>
  /** Names of all tables that are declared or have records, sorted, as they are now. */
  readonly names: Effect.Effect<ReadonlyArray<string>, ReplicaError>
  /** The declared tables as of the last clone. */
  readonly tables: Effect.Effect<ReadonlyArray<ReplicaTable>, ReplicaError>
  readonly putTables: (tables: ReadonlyArray<ReplicaTable>) => Effect.Effect<void, ReplicaError>
  /** Whether a clone has ever been completed: before that, it holds a part of the records. */
  readonly whole: Effect.Effect<boolean, ReplicaError>
  readonly markWhole: Effect.Effect<void, ReplicaError>
  /** Forgets everything, as one step: position, tables and wholeness too. Frozen states stay until they are thawed. */
  readonly clear: Effect.Effect<void, ReplicaError>
}

/** The scheduler's records. A layer of your own passes `conformance.replica` of `testing`. */
export class Replica extends Context.Tag("ports/Replica")<Replica, ReplicaShape>() {}
