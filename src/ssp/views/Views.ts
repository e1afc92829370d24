/**
 * The views of this SSP: owns the engine, makes every change and registration durable before it is answered.
 *
 * The one service that the HTTP face, the cleanup loop and the lifecycle talk to; nothing else touches the engine.
 */

import { Context, Effect, type Exit, Layer } from "effect"
import type { Store } from "../../core/ivm/store/store.ts"
import type { View } from "../../core/ivm/view/view.ts"
import type { Change } from "../../core/record/change.ts"
import type { Definitions } from "../../core/surql/syntax/definitions.ts"
import type { ParsedRegistration } from "../../core/view/repeatedRegistration.ts"
import type { Following, Taker } from "../../node/streams/feed.ts"
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
  QueryRefused,
  StoreFailed,
  StreamFormat,
  TablesJoining,
  ViewAnswer,
  ViewFigures,
  ViewNotFound,
  ViewPlaced,
  ViewQuarantined,
  ViewRegistration,
  ViewsWatcher
} from "../viewTypes.ts"
import type { Look, Looked } from "./reading.ts"
import type { RecordTreesShape } from "./recordTrees.ts"
import type { Incoming } from "./replacing.ts"
import { makeViews } from "./viewService.ts"
import type { ViewTablesShape } from "./viewTables.ts"

/** The views of an SSP, as its routes and loops use them; a route of your own asks it too. */
export class Views extends Context.Tag("ssp/views/Views")<
  Views,
  {
    /**
     * Loads records and views from the store; called once, before anything else. A damaged store that can be rebuilt
     * from a database is set aside, and nothing is loaded (D23).
     */
    readonly restore: Effect.Effect<{ readonly records: number; readonly views: number }, DatabaseError>
    /**
     * Applies changes in order: `done` is called exactly once, when they are durable and every view is updated, or with
     * why nothing was applied. By callback, for a fiber per call costs more than most changes.
     */
    readonly ingest: (changes: ReadonlyArray<Change>, done: (answer: IngestAnswer | IngestError) => void) => void
    /** Told from now on of what `ingest` has applied, and of `replace`. */
    readonly watch: (watcher: ViewsWatcher) => void
    /**
     * Applies records read elsewhere, as one step: one delta per view. Where they may be overtaken, only those that
     * still hold when everything before them is applied. Answers the applied ones.
     */
    readonly repair: (
      changes: ReadonlyArray<Change>,
      still?: (change: Change) => boolean
    ) => Effect.Effect<ReadonlyArray<Change>, IngestError>
    /** The records in memory, to be read and never kept. */
    readonly records: Pick<Store, "get" | "rowsBetween" | "size" | "tableNames">
    /** Position that the store holds durably. */
    readonly position: Effect.Effect<StoredPosition, DatabaseError>
    /** Whether the store can be open in this process only (`DatabaseShape.exclusive`). */
    readonly exclusive: boolean
    /** For an SSP that holds some tables and not others (D61). */
    readonly tables: ViewTablesShape
    /** Their Merkle trees (D41). */
    readonly trees: RecordTreesShape
    /** The registrations, as they are stored. */
    readonly registrations: Effect.Effect<ReadonlyArray<StoredView>>
    /** Whose view this is, as it was registered; undefined where there is none. */
    readonly clientOf: (id: string) => string | undefined
    readonly register: (
      registration: ViewRegistration
    ) => Effect.Effect<
      ViewAnswer | ViewPlaced,
      QueryRefused | Overloaded | StoreFailed | ViewQuarantined | TablesJoining
    >
    /**
     * Whether a registration changes nothing (D63): the view is there as it says, lives long enough, and nothing on its
     * way may change it.
     */
    readonly isKnown: (said: ParsedRegistration) => boolean
    /**
     * Begins a view's time to live again, as a registration of the same does (D9); false where there is no such view.
     */
    readonly touch: (id: string, nowMs: number) => Effect.Effect<boolean, Overloaded | StoreFailed>
    /**
     * Succeeds for an unknown id too (D16). `deleted`: the caller has removed the registration from the database, or
     * keeps it for another SSP.
     */
    readonly unregister: (
      id: string,
      deleted?: boolean,
      reason?: "unregistered" | "moved"
    ) => Effect.Effect<void, StoreFailed>
    /**
     * Evaluates a view again that is set aside, and all others with its query (D48), or with the query given. Fails
     * where nothing of this id is.
     */
    readonly free: (id: string, query?: Pick<StoredView, "surql" | "params">) => Effect.Effect<void, ViewNotFound>
    /** Clears views, records and the embedded store. */
    readonly reset: Effect.Effect<void, StoreFailed>
    /** Puts other records in the place of all there are, in one step (D20); streams end with `rebootstrap`. */
    readonly replace: (incoming: Incoming) => Effect.Effect<void, StoreFailed>
    readonly read: (id: string, format: Format | undefined) => Effect.Effect<ViewAnswer, ViewNotFound | ViewQuarantined>
    /** An answer as JSON for a reader, in pieces, made with pauses. */
    readonly written: (answer: ViewAnswer | ViewPlaced, sees: Sees) => Effect.Effect<ReadonlyArray<Uint8Array>>
    /**
     * Snapshot, then deltas, then `end`; resumes behind `lastEventId` while those deltas are buffered. Undefined where
     * there is a {@link refusal}, or a registration of this view on its way. Takes nothing until it resumes.
     */
    readonly follow: (
      id: string,
      format: StreamFormat | undefined,
      lastEventId: string | undefined,
      taker: Taker
    ) => Following | undefined
    /** Calls `done` once no registration of this view is in flight any more; returns false if none is now. */
    readonly whenSettled: (id: string, done: () => void) => boolean
    /** Why a view cannot be followed now; undefined where it can. */
    readonly refusal: (id: string) => ViewNotFound | ViewQuarantined | Overloaded | undefined
    /**
     * Reads a view's result as bytes. `done` is called once, now or later; if later, the returned function abandons the
     * read.
     */
    readonly look: (
      id: string,
      how: Look,
      done: (looked: Exit.Exit<Looked, ViewNotFound | ViewQuarantined>) => void
    ) => (() => void) | undefined
    /** Takes over what the database defines: views that use it are planned anew (D58). */
    readonly define: (definitions: Definitions) => Effect.Effect<void>
    /** The tables that a view reads; none where there is no such view. */
    readonly tablesOf: (id: string) => ReadonlyArray<string>
    /**
     * The views that leave rows out, each under one of its ids; undefined where nothing has moved since the last call.
     */
    readonly failing: () => Iterable<readonly [id: string, view: View]> | undefined
    /** Body of `/debug/view/:view_id` (D13). */
    readonly debugView: (id: string) => Effect.Effect<DebugView, ViewNotFound>
    /** Body of `/debug/deps`. */
    readonly debugDeps: Effect.Effect<DebugDeps>
    /** Body of `/views`. */
    readonly list: (listing: Listing) => Effect.Effect<ListedViews>
    /** Figures that are counted quickly; `tables` has only the largest tables. */
    readonly figures: () => ViewFigures
    /** Registered view ids. */
    readonly count: Effect.Effect<number>
    /** Removes what expired; answers the ids removed (D14). `steadyMs`: by a clock that is not set (D73). */
    readonly expire: (nowMs: number, steadyMs?: number) => Effect.Effect<ReadonlyArray<string>, StoreFailed>
  }
>() {
  /** Ends all streams with `shutdown` and saves state when its scope closes. */
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
