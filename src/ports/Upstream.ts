/**
 * The database whose records the views show: read table by table; it gets registrations, edges and integrity hashes.
 *
 * Beside `Database`, which has a node's own state: user records live in the user's own tables and are never written
 * here. Every written row has an id that follows from its content, so every write can be repeated; a batch of edges is
 * one transaction. The caller retries a failure that is `transient`.
 */
import { Context, Data, Effect, Layer, Stream } from "effect"
import type { Obj, RecordId, RecordKey } from "../core/surql/values/value.ts"
import type { DatabaseSchema } from "../core/surreal/databaseSchema.ts"
import type { StoredView } from "./Database.ts"
import type { SavedStateShape } from "./SavedState.ts"

/** A table of the user, with its definition. */
export interface UpstreamTable {
  readonly name: string
  /** Declared types by path (`tags.*`), as the database writes them; they type records that come as JSON (D1). */
  readonly types: { readonly [path: string]: string }
  /** Whether the database computes the table from other tables. */
  readonly derived: boolean
  /** Whether each write to it is announced in the change table. */
  readonly announced?: boolean
  /** Whether an event of the setup, of either feed, is defined on the table; undefined if that cannot be known. */
  readonly told?: boolean
  /**
   * Text that stays equal as long as the fields (with the expressions of computed ones) and the definition of a derived
   * table do.
   */
  readonly shape?: string
  /** Number that changes if the table was replaced by another of the same name. */
  readonly id?: number
}

/** A record as it is in the database; `version` is its reserved field (D4), which is not in `doc`. */
export interface UpstreamRecord {
  readonly id: RecordId
  readonly doc: Obj
  readonly version: number | undefined
}

/** A registration as the database stores it. */
export interface OwnedRegistration extends StoredView {
  readonly owner: string | undefined
  /** Grows with every change of owner: a holder of an older one has lost the view (D21). */
  readonly assignment: number
}

/** Place of an edge: `path` is the alias path of a subquery, empty for the main rows, which have no parent. */
export interface EdgePlace {
  readonly path: string
  readonly parent: RecordId | undefined
  readonly out: RecordId
}

/** An edge from a view to a row that it shows. */
export interface Edge extends EdgePlace {
  readonly version: number
}

/** Changes of the edges of one view. An edge is in `puts` or in `removals`, never in both. */
export interface ViewEdges {
  readonly key: string
  readonly clientId: string
  /** The owner and the assignment under which the edges are written. */
  readonly owner: string
  readonly assignment: number
  readonly puts: ReadonlyArray<Edge>
  readonly removals: ReadonlyArray<EdgePlace>
}

/** Edges that were not written; all others of the batch were. */
export interface EdgesApplied {
  /** Keys of views that have another owner, or no registration, now. */
  readonly lost: ReadonlyArray<string>
  /** Edges that the database rejects in its present state. */
  readonly refused: ReadonlyArray<{ readonly key: string; readonly edge: EdgePlace; readonly reason: string }>
}

/** A hash of the Merkle tree of a table (D41). */
export interface IntegrityNode {
  readonly table: string
  readonly level: number
  readonly index: number
  readonly hash: string
  readonly count: number
  readonly seq: number | null
}

/**
 * A failed call. `unreachable`: no answer, worth another try; `unauthorized`: wrong credentials or missing permissions;
 * `refused`: the database says no, or gives an answer that is not a valid one.
 */
export class UpstreamError extends Data.TaggedError("UpstreamError")<{
  readonly reason: "unreachable" | "unauthorized" | "refused"
  readonly message: string
  readonly cause?: unknown
}> {
  get transient(): boolean {
    return this.reason === "unreachable"
  }
}

/** A call that a client wrote into the database: to register a view, or to unregister it. */
export interface ViewCall {
  readonly op: "register" | "unregister"
  /** The view's id as the client gave it. */
  readonly view: string
  readonly clientId: string
  /** Only of a registration, like the next two. */
  readonly surql: string
  readonly params: Obj
  readonly ttl: string
}

/** A row of the change table: which record a transaction has written, or what a client has asked for in it. */
export interface ChangeRow {
  readonly id: RecordId
  readonly record: RecordId
  readonly call?: ViewCall
}

/** Rows of the change table and, read at the same moment, the existing records that they name. */
export interface ChangesRead {
  readonly rows: ReadonlyArray<ChangeRow>
  readonly records: ReadonlyArray<UpstreamRecord>
  /**
   * Further rows, whose records the database fails to read (a failing COMPUTED field). If there are any, each record
   * was read by itself.
   */
  readonly unreadable: ReadonlyArray<ChangeRow & { readonly reason: string }>
  /** More rows may wait, or each record was read by itself: together the records are no state that the database had. */
  readonly partial: boolean
}

/** Lease and store of a service that follows the database. */
export interface FollowerState {
  readonly token: string
  /** Durable position of the service's store; grows with every change that it takes. */
  readonly position: number
}

/**
 * Answer to a service that asks for the lease. `by`: name of the service that has it, for at most `forMs` more
 * milliseconds.
 */
export type Acquired =
  | {
      readonly held: true
      /**
       * Position that the same store had when rows were last taken; undefined if another service followed in between.
       */
      readonly position: number | undefined
    }
  | { readonly held: false; readonly by: string; readonly forMs: number }

/** The right to follow the database, held by one service at a time. Only the database's clock decides when it ends. */
export interface ReaderLease {
  /** Takes the lease if it is free, lapsed, or held under one of `was` (earlier tokens of the same store). */
  readonly acquire: (
    token: string,
    as: { readonly was: ReadonlyArray<string>; readonly name: string; readonly ttlMs: number }
  ) => Effect.Effect<Acquired, UpstreamError>
  /** Prolongs the lease, and stores `position` if given. Returns false if another service has the lease. */
  readonly renew: (token: string, ttlMs: number, position?: number) => Effect.Effect<boolean, UpstreamError>
  /** Ends the lease at once. */
  readonly release: (token: string) => Effect.Effect<void, UpstreamError>
}

/** Bounds of one read: number of rows, and bytes of their records' text. At least one row is always read. */
export interface ReadBounds {
  readonly rows: number
  readonly bytes: number
}

/** The change table (D44), emptied by the service once the records that its rows name are durable. */
export interface ChangeTable {
  /** Whether the change table exists now. */
  readonly installed: Effect.Effect<boolean, UpstreamError>
  /**
   * Deletes the rows `done`, then reads at most `most` rows, oldest first and without those in `apart`, in one
   * transaction with the records they name. Rows that could not be deleted are read again. The transaction that deletes
   * also checks and stores `holding`. Undefined: there is no change table; `superseded`: another service follows the
   * database, and nothing was deleted.
   */
  readonly take: (
    most: ReadBounds,
    done: ReadonlyArray<RecordId>,
    apart: ReadonlyArray<RecordId>,
    holding?: FollowerState
  ) => Effect.Effect<ChangesRead | "superseded" | undefined, UpstreamError>
  /**
   * All records of these tables, in one read transaction; undefined if there are more than `most`, or a table cannot be
   * read.
   */
  readonly whole: (
    tables: ReadonlyArray<string>,
    most: ReadBounds
  ) => Effect.Effect<ReadonlyArray<UpstreamRecord> | undefined, UpstreamError>
  /**
   * Calls `heard` when rows were written, until it answers "enough"; fails if notifications are not, or no longer,
   * possible. Only a hint: a write can go unnoticed.
   */
  readonly listen: (heard: () => "more" | "enough") => Effect.Effect<void, UpstreamError>
  /** The tables that services which followed this database have seen; undefined before the first has stored them. */
  readonly seen: Effect.Effect<ReadonlyArray<string> | undefined, UpstreamError>
  /** Stores the tables that exist now; only with the lease. */
  readonly see: (tables: ReadonlyArray<string>) => Effect.Effect<void, UpstreamError>
  /** Has writes to these tables noted in the change table from now on. */
  readonly announce: (tables: ReadonlyArray<string>) => Effect.Effect<void, UpstreamError>
  /** Stores why a client's call was refused; `refusal` undefined: deletes an earlier refusal. */
  readonly answer: (call: ViewCall, refusal: string | undefined) => Effect.Effect<void, UpstreamError>
}

/** The user's database. Methods fail with an {@link UpstreamError}. */
export interface UpstreamShape {
  /** The change table, if the database can say which records were written. */
  readonly changes?: ChangeTable
  readonly lease?: ReaderLease
  /** Stores the token under which this node last followed; absent: each start follows under a new token. */
  readonly remembered?: SavedStateShape
  /** False: there is no database, and all other methods behave as those of an empty one that stores nothing. */
  readonly present: boolean
  /**
   * Defines the service's tables if they are missing. A user without the right to define them must have the right to
   * write them; otherwise it fails and names the missing right.
   */
  readonly prepare: Effect.Effect<void, UpstreamError>
  /** The user's tables by name: all but the service's own. */
  readonly tables: Effect.Effect<ReadonlyArray<UpstreamTable>, UpstreamError>
  /** The present definitions: `known` itself if they have not changed, which costs one short statement. */
  readonly schema?: (known: DatabaseSchema | undefined) => Effect.Effect<DatabaseSchema, UpstreamError>
  /**
   * At most `size` records of a table in key order, after the key `after`. Fewer than `size`: there are no more. A
   * missing table has none.
   */
  readonly chunk: (
    table: string,
    after: RecordKey | undefined,
    size: number
  ) => Effect.Effect<ReadonlyArray<UpstreamRecord>, UpstreamError>
  /** The records of these ids that exist, in any order. */
  readonly find: (ids: ReadonlyArray<RecordId>) => Effect.Effect<ReadonlyArray<UpstreamRecord>, UpstreamError>
  /**
   * The database's time of day, Unix milliseconds, by which clients write the last activity of views; absent: it shares
   * this machine's clock.
   */
  readonly nowMs?: Effect.Effect<number, UpstreamError>
  readonly registrations: Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /**
   * Writes the registration and makes `owner` its owner; answers the assignment. Of two `lastActiveAtMs` the later is
   * kept (D14).
   */
  readonly register: (view: StoredView, owner: string) => Effect.Effect<number, UpstreamError>
  /** Makes `owner` the owner of those of these registrations that exist; answers them. */
  readonly claim: (
    keys: ReadonlyArray<string>,
    owner: string
  ) => Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /**
   * Removes this owner's registrations among these that have expired by their stored times (D14), in one step with the
   * check: a refresh comes before it and counts, or after it and finds nothing. Expired means by `nowMs` and by the
   * database's own clock, since either may have written the last activity. Answers those that still exist.
   */
  readonly expire: (
    keys: ReadonlyArray<string>,
    owner: string,
    nowMs: number
  ) => Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /** Removes registrations with all their edges, if they belong to this owner or to none. */
  readonly unregister: (keys: ReadonlyArray<string>, owner: string) => Effect.Effect<void, UpstreamError>
  /** The edges of a view, in chunks. */
  readonly edges: (key: string) => Stream.Stream<ReadonlyArray<Edge>, UpstreamError>
  /** The highest version of any edge, 0 without edges: some client may have seen it (D4). */
  readonly highestVersion: Effect.Effect<number, UpstreamError>
  /** Writes edges in one transaction; those of a view only if its registration has the named owner and assignment. */
  readonly apply: (views: ReadonlyArray<ViewEdges>) => Effect.Effect<EdgesApplied, UpstreamError>
  readonly putNodes: (nodes: ReadonlyArray<IntegrityNode>) => Effect.Effect<void, UpstreamError>
  readonly nodes: (table: string) => Effect.Effect<ReadonlyArray<IntegrityNode>, UpstreamError>
}

const nothing: UpstreamShape = {
  present: false,
  prepare: Effect.void,
  tables: Effect.succeed([]),
  chunk: () => Effect.succeed([]),
  find: () => Effect.succeed([]),
  registrations: Effect.succeed([]),
  register: () => Effect.succeed(1),
  claim: () => Effect.succeed([]),
  expire: () => Effect.succeed([]),
  unregister: () => Effect.void,
  edges: () => Stream.empty,
  highestVersion: Effect.succeed(0),
  apply: () => Effect.succeed({ lost: [], refused: [] }),
  putNodes: () => Effect.void,
  nodes: () => Effect.succeed([])
}

/**
 * The user's database; `layerNone` if records come only by `/ingest`. A layer of your own passes `conformance.upstream`
 * of `testing`.
 */
export class Upstream extends Context.Tag("ports/Upstream")<Upstream, UpstreamShape>() {
  /** For a node that gets its records from `/ingest` alone. */
  static readonly layerNone: Layer.Layer<Upstream> = Layer.succeed(Upstream, nothing)
}
