/**
 * The database whose records we keep views of: read table by table, and given back registrations, edges and integrity
 * hashes.
 *
 * Beside `Database`, which is where a node keeps its own state: user records live in the user's own tables and are
 * never written here. Everything that is written has an id that follows from what it says, so every write can be
 * repeated; a batch of edges is one transaction. The caller retries a failure that is `transient`.
 */
import { Context, Data, Effect, Layer, Stream } from "effect"
import type { Obj, RecordId, RecordKey } from "../core/surql/values/value.ts"
import type { DatabaseSchema } from "../core/surreal/databaseSchema.ts"
import type { StoredView } from "./Database.ts"
import type { SavedStateShape } from "./SavedState.ts"

export interface UpstreamTable {
  readonly name: string
  /**
   * Declared types by path (`tags.*`), as the database writes them: what types a record that comes as JSON (D1 rule 2).
   */
  readonly types: { readonly [path: string]: string }
  /** Whether the database computes the table from other tables. */
  readonly derived: boolean
  /** Whether each write to it is announced in the change table. */
  readonly announced?: boolean
  /** Whether an event of the setup stands on it, of either kind of feed; undefined where that cannot be known. */
  readonly told?: boolean
  /**
   * Text that is equal as long as the fields (computed ones with their expressions) and the definition of a derived
   * table are.
   */
  readonly shape?: string
  /** Number that differs once the table is another table of the same name. */
  readonly id?: number
}

/** A record as it is in the database; `version` is its reserved field (D4), which is not in `doc`. */
export interface UpstreamRecord {
  readonly id: RecordId
  readonly doc: Obj
  readonly version: number | undefined
}

/** A registration as the database has it. */
export interface OwnedRegistration extends StoredView {
  readonly owner: string | undefined
  /** Grows with every change of owner: a holder of an older one has lost the view (D21). */
  readonly assignment: number
}

/** Where an edge stands: `path` is the alias path of a subquery, empty for the main rows, which have no parent. */
export interface EdgePlace {
  readonly path: string
  readonly parent: RecordId | undefined
  readonly out: RecordId
}

export interface Edge extends EdgePlace {
  readonly version: number
}

/** Changes of the edges of one view. An edge is in `puts` or in `removals`, never in both. */
export interface ViewEdges {
  readonly key: string
  readonly clientId: string
  /** The owner and assignment under which they are written. */
  readonly owner: string
  readonly assignment: number
  readonly puts: ReadonlyArray<Edge>
  readonly removals: ReadonlyArray<EdgePlace>
}

export interface EdgesApplied {
  /** Keys of views that have another owner now, or no registration: nothing of theirs was written. */
  readonly lost: ReadonlyArray<string>
  /** Edges the database does not take as it is now; everything else of the batch was written. */
  readonly refused: ReadonlyArray<{ readonly key: string; readonly edge: EdgePlace; readonly reason: string }>
}

export interface IntegrityNode {
  readonly table: string
  readonly level: number
  readonly index: number
  readonly hash: string
  readonly count: number
  readonly seq: number | null
}

/**
 * `unreachable`: no answer, worth another try; `unauthorized`: the credentials or the permissions do not do; `refused`:
 * the database says no, or answers what cannot be ours.
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
  /** The id as it was given. */
  readonly view: string
  readonly clientId: string
  /** The last three are those of a registration. */
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

/** Rows of the change table and, as they were at the same moment, those of the records they name that exist. */
export interface ChangesRead {
  readonly rows: ReadonlyArray<ChangeRow>
  readonly records: ReadonlyArray<UpstreamRecord>
  /**
   * Further rows, whose records the database fails to read (a COMPUTED field that fails). Where there are any, each
   * record was read by itself.
   */
  readonly unreadable: ReadonlyArray<ChangeRow & { readonly reason: string }>
  /** More may wait, or each record was read by itself: together they are no state that the database had. */
  readonly partial: boolean
}

/** State of a service that follows the database: the token under which it does, and how far its own store is. */
export interface Holding {
  readonly token: string
  /** Durable position of its store; grows with every change that the store takes. */
  readonly position: number
}

/**
 * Answer to a service that asks to follow the database. `by`: name of the service that does, for another `forMs`
 * milliseconds at most.
 */
export type Acquired =
  | {
      readonly held: true
      /**
       * Position that the same store named when rows were last taken; undefined if another service followed in between.
       */
      readonly position: number | undefined
    }
  | { readonly held: false; readonly by: string; readonly forMs: number }

/**
 * The right to follow the database, which one service has at a time. When it lapses is told by the database's own time
 * alone.
 */
export interface ReaderLease {
  /** Takes it where it is free, lapsed, or held under one of `was` (the same store, in an earlier life). */
  readonly acquire: (
    token: string,
    as: { readonly was: ReadonlyArray<string>; readonly name: string; readonly ttlMs: number }
  ) => Effect.Effect<Acquired, UpstreamError>
  /** Prolongs the lease, and stores `position` if given. Returns false if another service has the lease. */
  readonly renew: (token: string, ttlMs: number, position?: number) => Effect.Effect<boolean, UpstreamError>
  /** Ends the lease at once. */
  readonly release: (token: string) => Effect.Effect<void, UpstreamError>
}

/**
 * Bounds of one read: rows of the change table, and bytes of text of their records. At least one row is always read.
 */
export interface Portion {
  readonly rows: number
  readonly bytes: number
}

/** The change table (D44), emptied by the service once the records that its rows name are durable. */
export interface ChangeTable {
  /** Whether the database has it now. */
  readonly installed: Effect.Effect<boolean, UpstreamError>
  /**
   * Deletes the rows `done`, then reads no more than `most`, oldest first and without those in `apart`, in one read
   * transaction with the records they name. Rows that could not be deleted are read again; `holding` is looked at in
   * the transaction that deletes, and is written there. Undefined: there is no change table; `superseded`: another
   * follows the database, and nothing was deleted.
   */
  readonly take: (
    most: Portion,
    done: ReadonlyArray<RecordId>,
    apart: ReadonlyArray<RecordId>,
    holding?: Holding
  ) => Effect.Effect<ChangesRead | "superseded" | undefined, UpstreamError>
  /**
   * All records of these tables, in one read transaction; undefined where they are more than `most`, or a table cannot
   * be read.
   */
  readonly whole: (
    tables: ReadonlyArray<string>,
    most: Portion
  ) => Effect.Effect<ReadonlyArray<UpstreamRecord> | undefined, UpstreamError>
  /**
   * Runs `heard` when rows were written, until that is enough; fails when that cannot be heard (any more). Nothing may
   * rely on it: a write can go unheard.
   */
  readonly listen: (heard: () => "more" | "enough") => Effect.Effect<void, UpstreamError>
  /** The tables that the services which followed this database have seen; undefined before the first has said so. */
  readonly seen: Effect.Effect<ReadonlyArray<string> | undefined, UpstreamError>
  /** Stores the tables that are seen now; only for the service that has the lease. */
  readonly see: (tables: ReadonlyArray<string>) => Effect.Effect<void, UpstreamError>
  /** Has the writes to these tables announced from now on. */
  readonly announce: (tables: ReadonlyArray<string>) => Effect.Effect<void, UpstreamError>
  /** Tells the client why its call was not carried out, or takes away what it was told before. */
  readonly answer: (call: ViewCall, refusal: string | undefined) => Effect.Effect<void, UpstreamError>
}

export interface UpstreamShape {
  /** The change table, if the database can say which records were written. */
  readonly changes?: ChangeTable
  readonly lease?: ReaderLease
  /** Where this node keeps under which token it last followed the database; nowhere: it is a new one at each start. */
  readonly remembered?: SavedStateShape
  /** False: there is no database, and everything below answers as an empty one that keeps nothing. */
  readonly present: boolean
  /**
   * Defines our tables where they are missing; a user that may not define them must find them, with the right to
   * write them, or it fails and names the missing right.
   */
  readonly prepare: Effect.Effect<void, UpstreamError>
  /** The tables that are not ours, by name. */
  readonly tables: Effect.Effect<ReadonlyArray<UpstreamTable>, UpstreamError>
  /** The definitions now: `known` itself where they are still so, found out by one short statement. */
  readonly schema?: (known: DatabaseSchema | undefined) => Effect.Effect<DatabaseSchema, UpstreamError>
  /**
   * Records of a table in key order, at most `size`, behind the key `after`. Fewer than `size` means there are no more.
   * A table that is gone has none.
   */
  readonly chunk: (
    table: string,
    after: RecordKey | undefined,
    size: number
  ) => Effect.Effect<ReadonlyArray<UpstreamRecord>, UpstreamError>
  /** The records of these ids that exist, in any order. */
  readonly find: (ids: ReadonlyArray<RecordId>) => Effect.Effect<ReadonlyArray<UpstreamRecord>, UpstreamError>
  /**
   * The database's time of day, in Unix milliseconds, by which its clients write when views were active; absent: its
   * clock is this machine's.
   */
  readonly nowMs?: Effect.Effect<number, UpstreamError>
  readonly registrations: Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /**
   * Writes the registration and takes it over; answers the assignment. Of two `lastActiveAtMs` the later stays (D14).
   */
  readonly register: (view: StoredView, owner: string) => Effect.Effect<number, UpstreamError>
  /** Takes over those of these registrations that are there; answers them as they are now. */
  readonly claim: (
    keys: ReadonlyArray<string>,
    owner: string
  ) => Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /**
   * Takes from this owner those of these registrations whose time has passed, by what is stored there (D14), in one
   * step with the look: a refresh is before it and counts, or behind it and finds nothing. Passed means by `nowMs` and
   * by the database's own time, since either may have written the last activity. Answers those that are still there.
   */
  readonly expire: (
    keys: ReadonlyArray<string>,
    owner: string,
    nowMs: number
  ) => Effect.Effect<ReadonlyArray<OwnedRegistration>, UpstreamError>
  /** Removes registrations with all their edges, those that are this owner's or have none. */
  readonly unregister: (keys: ReadonlyArray<string>, owner: string) => Effect.Effect<void, UpstreamError>
  /** The edges of a view, in chunks. */
  readonly edges: (key: string) => Stream.Stream<ReadonlyArray<Edge>, UpstreamError>
  /** The highest version that any edge has, 0 without edges: what some client may have seen (D4). */
  readonly highestVersion: Effect.Effect<number, UpstreamError>
  /** Writes edges, all in one transaction; each view only while its registration has the owner and assignment named. */
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
 * The database that views are kept of; `layerNone` where records come by `/ingest` alone. A layer of your own passes
 * `conformance.upstream` of `testing`.
 */
export class Upstream extends Context.Tag("ports/Upstream")<Upstream, UpstreamShape>() {
  /** For a node that gets its records from `/ingest` alone. */
  static readonly layerNone: Layer.Layer<Upstream> = Layer.succeed(Upstream, nothing)
}
