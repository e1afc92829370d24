/**
 * The views of this SSP: owns the engine, and makes every change and registration durable before it is answered.
 *
 * The one service that the HTTP routes, the cleanup loop and the lifecycle call; nothing else touches the engine.
 */

import { Context, Effect, type Exit, Layer } from "effect"
import type { Store } from "../../core/ivm/store/store.ts"
import type { View } from "../../core/ivm/view/view.ts"
import type { Change } from "../../core/record/change.ts"
import type { Definitions } from "../../core/surql/syntax/definitions.ts"
import type { ParsedRegistration } from "../../core/view/repeatedRegistration.ts"
import type { EventReceiver, Subscription } from "../../node/streams/feed.ts"
import * as Metered from "../../node/work/metered.ts"
import { Database, type DatabaseError, type StoredPosition, type StoredView } from "../../ports/Database.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { SavedState } from "../../ports/SavedState.ts"
import { Turn } from "../../ports/Turn.ts"
import type { Sees } from "../../protocol/access.ts"
import { SspConfig } from "../Config.ts"
import { EdgeWriter } from "../edges/EdgeWriter.ts"
import type {
  DebugDeps,
  DebugView,
  Format,
  IngestAnswer,
  IngestError,
  ListedViews,
  Listing,
  Overloaded,
  PlacedViewAnswer,
  QueryRefused,
  StoreFailed,
  StreamFormat,
  TablesJoining,
  ViewAnswer,
  ViewFigures,
  ViewNotFound,
  ViewQuarantined,
  ViewRegistration,
  ViewsWatcher
} from "../viewTypes.ts"
import type { ReadAnswer, ReadRequest } from "./reading.ts"
import type { RecordTreesShape } from "./recordTrees.ts"
import type { ReplacementRecords } from "./replacing.ts"
import { makeViews } from "./viewService.ts"
import type { ViewTablesShape } from "./viewTables.ts"

/** The views of an SSP, for its routes and loops; a composer's own routes may use it too. */
export class Views extends Context.Tag("ssp/views/Views")<
  Views,
  {
    /**
     * Loads records and views from the store; called once, before anything else. A damaged store that can be rebuilt
     * from a database is moved away, and nothing is loaded (D23).
     */
    readonly restore: Effect.Effect<{ readonly records: number; readonly views: number }, DatabaseError>
    /**
     * Applies changes in order. `done` is called exactly once: when they are durable and every view is updated, or with
     * the reason why none was applied. A callback, because a fiber per call costs more than most changes.
     */
    readonly ingest: (changes: ReadonlyArray<Change>, done: (answer: IngestAnswer | IngestError) => void) => void
    /** Adds a watcher of the changes that `ingest` applies, and of `replace`. */
    readonly watch: (watcher: ViewsWatcher) => void
    /**
     * Applies records read elsewhere, as one step: one delta per view. `still` is asked of each change when everything
     * before it is applied; a change that it refuses is left out. Answers the applied changes.
     */
    readonly repair: (
      changes: ReadonlyArray<Change>,
      still?: (change: Change) => boolean
    ) => Effect.Effect<ReadonlyArray<Change>, IngestError>
    /** The records in memory; callers read them and keep no reference. */
    readonly records: Pick<Store, "get" | "rowsBetween" | "size" | "tableNames">
    /** Position that the store holds durably. */
    readonly position: Effect.Effect<StoredPosition, DatabaseError>
    /** Whether the store can be open in this process only (`DatabaseShape.exclusive`). */
    readonly exclusive: boolean
    /** Tables of an SSP that holds only some (D61). */
    readonly tables: ViewTablesShape
    /** Merkle trees of the records (D41). */
    readonly trees: RecordTreesShape
    /** The registrations as they are stored. */
    readonly registrations: Effect.Effect<ReadonlyArray<StoredView>>
    /** Client id of a view's registration; undefined if there is no such view. */
    readonly clientOf: (id: string) => string | undefined
    readonly register: (
      registration: ViewRegistration
    ) => Effect.Effect<
      ViewAnswer | PlacedViewAnswer,
      QueryRefused | Overloaded | StoreFailed | ViewQuarantined | TablesJoining
    >
    /**
     * Whether a registration changes nothing (D63): the view exists with this query and lives long enough, and no
     * request under way may change it.
     */
    readonly isKnown: (said: ParsedRegistration) => boolean
    /** Starts a view's time to live again, as the same registration would (D9); false if there is no such view. */
    readonly touch: (id: string, nowMs: number) => Effect.Effect<boolean, Overloaded | StoreFailed>
    /**
     * Succeeds for an unknown id too (D16). `deleted`: the caller has removed the registration from the database, or
     * leaves it for another SSP.
     */
    readonly unregister: (
      id: string,
      deleted?: boolean,
      reason?: "unregistered" | "moved"
    ) => Effect.Effect<void, StoreFailed>
    /**
     * Lifts the quarantine of a view's query, or of the given query, and evaluates all views with it again (D48). Fails
     * if nothing under this id is quarantined.
     */
    readonly free: (id: string, query?: Pick<StoredView, "surql" | "params">) => Effect.Effect<void, ViewNotFound>
    /** Clears views, records and the embedded store. */
    readonly reset: Effect.Effect<void, StoreFailed>
    /** Replaces all records in one step (D20); streams end with `rebootstrap`. */
    readonly replace: (incoming: ReplacementRecords) => Effect.Effect<void, StoreFailed>
    readonly read: (id: string, format: Format | undefined) => Effect.Effect<ViewAnswer, ViewNotFound | ViewQuarantined>
    /** A result as JSON, in pieces, with errors as `sees` allows. */
    readonly written: (answer: ViewAnswer | PlacedViewAnswer, sees: Sees) => Effect.Effect<ReadonlyArray<Uint8Array>>
    /**
     * Follows a view: snapshot, then deltas, then `end`; resumes behind `lastEventId` while those deltas are buffered.
     * Undefined if there is a {@link refusal}, or a registration of this view is under way. The receiver gets nothing
     * before `resume`.
     */
    readonly follow: (
      id: string,
      format: StreamFormat | undefined,
      lastEventId: string | undefined,
      receiver: EventReceiver
    ) => Subscription | undefined
    /** Calls `done` once no registration of this view is under way any more; returns false if none is now. */
    readonly whenSettled: (id: string, done: () => void) => boolean
    /** Why a view cannot be followed now; undefined if it can. */
    readonly refusal: (id: string) => ViewNotFound | ViewQuarantined | Overloaded | undefined
    /**
     * Reads a view's result as bytes. `done` is called once, now or later; if later, the returned function abandons the
     * read.
     */
    readonly look: (
      id: string,
      how: ReadRequest,
      done: (looked: Exit.Exit<ReadAnswer, ViewNotFound | ViewQuarantined>) => void
    ) => (() => void) | undefined
    /** Adopts the database's definitions: views that use them are planned again (D58). */
    readonly define: (definitions: Definitions) => Effect.Effect<void>
    /** Tables that a view reads; empty if there is no such view. */
    readonly tablesOf: (id: string) => ReadonlyArray<string>
    /** Views that leave rows out, each under one of its ids; undefined if nothing has changed since the last call. */
    readonly failing: () => Iterable<readonly [id: string, view: View]> | undefined
    /** Body of `/debug/view/:view_id` (D13). */
    readonly debugView: (id: string) => Effect.Effect<DebugView, ViewNotFound>
    /** Body of `/debug/deps`. */
    readonly debugDeps: Effect.Effect<DebugDeps>
    /** Body of `/views`. */
    readonly list: (listing: Listing) => Effect.Effect<ListedViews>
    /** Figures that are counted quickly; `tables` has only the largest tables. */
    readonly figures: () => ViewFigures
    /** Number of registered view ids. */
    readonly count: Effect.Effect<number>
    /** Removes expired views; answers their ids (D14). `steadyMs`: time of a clock that is never set (D73). */
    readonly expire: (nowMs: number, steadyMs?: number) => Effect.Effect<ReadonlyArray<string>, StoreFailed>
  }
>() {
  /** Closing the scope ends all streams with `shutdown` and saves state. */
  static readonly layer: Layer.Layer<Views, never, Database | SavedState | Turn | EdgeWriter | Serving | SspConfig> =
    Layer.scoped(
      Views,
      Effect.gen(function* () {
        const config = yield* SspConfig
        const database = Metered.database(yield* Database, { meters: yield* Meters, clock: yield* Effect.clock })
        const savedState = yield* SavedState
        const turn = yield* Turn
        const serving = yield* Serving
        return yield* makeViews(config, database, savedState, turn, yield* EdgeWriter, {
          fork: (loop) => Effect.provideService(Serving.fork(loop), Serving, serving),
          crash: (cause) => Effect.runSync(serving.crash(cause))
        })
      })
    )
}
