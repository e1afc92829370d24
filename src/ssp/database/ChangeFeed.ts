/**
 * Applies the change table of the database beside a standalone SSP (D44): each read becomes one step of all views (L3).
 *
 * A record that has changed here between its read and its turn (a client posts it to `/ingest`) is left out and read
 * again, so that no older state overwrites it. Equal records are not written: a repeated row costs a comparison.
 */
import { Context, Effect, Layer } from "effect"
import type { RecordState } from "../../core/ivm/store/store.ts"
import type { Change } from "../../core/record/change.ts"
import { stepBytes } from "../../core/record/memory.ts"
import * as Compare from "../../core/record/reconcile.ts"
import { Range, type RecordId } from "../../core/surql/values/value.ts"
import { ChangeReader, type NamedRecord, type ReaderFigures } from "../../node/database/changeReader.ts"
import { DerivedTables } from "../../node/database/derivedTables.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SspConfig } from "../Config.ts"
import { EdgeWriter } from "../edges/EdgeWriter.ts"
import { JobIntake } from "../jobs/JobIntake.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Reconcile } from "../reconcile/Reconcile.ts"
import { Views } from "../views/Views.ts"
import { refusalOfStep } from "../views/viewLimits.ts"
import type { IngestError } from "../viewTypes.ts"
import { carryOut } from "./viewCalls.ts"

interface FeedDependencies {
  readonly views: Views["Type"]
  readonly jobs: JobIntake["Type"]
  readonly meters: typeof Meters.Service
  readonly heap: HeapShape
}

const nothing: ReadonlySet<string> = new Set()

const apply =
  ({ heap, jobs, meters, views }: FeedDependencies) =>
  (named: ReadonlyArray<NamedRecord>): Effect.Effect<ReadonlySet<string>, IngestError> =>
    Effect.suspend(() => {
      const known = new Map<string, RecordState | undefined>()
      const changes = named.flatMap(({ found, id }): ReadonlyArray<Change> => {
        const row = views.records.get(id)
        if (!Compare.differs(row, found)) return []
        known.set(id.text, row)
        return [Compare.changeOf({ id, known: row, found })]
      })
      if (changes.length === 0) return Effect.succeed(nothing)
      const full = refusalOfStep(heap, views.records, changes)
      if (full !== undefined) return Effect.fail(full)
      const unmoved = ({ id }: Change): boolean => Compare.isSameState(views.records.get(id), known.get(id.text))
      return Effect.map(views.repair(changes, unmoved), (applied) => {
        meters.ingestChanges.add(applied.length)
        jobs.applied(applied)
        const done = new Set(applied.map(({ id }) => id.text))
        return done.size === changes.length
          ? nothing
          : new Set(changes.flatMap(({ id }) => (done.has(id.text) ? [] : [id.text])))
      })
    })

const everyKey = new Range(undefined, undefined)

/** Ids of these tables' records in memory; undefined if there are more than `most`. */
const heldIn =
  ({ records }: Views["Type"]) =>
  (tables: ReadonlySet<string>, most: number): Effect.Effect<ReadonlyArray<RecordId> | undefined> =>
    Effect.sync(() => {
      const count = Array.from(tables).reduce((sum, table) => sum + records.size(table), 0)
      if (count > most) return undefined
      return Array.from(tables).flatMap((table) => Array.from(records.rowsBetween(table, everyKey), ({ id }) => id))
    })

export class ChangeFeed extends Context.Tag("ssp/database/ChangeFeed")<
  ChangeFeed,
  {
    /** Sets the tables that are defined AS SELECT, with their queries. */
    readonly derive: DerivedTables["define"]
    /** Reads these tables and applies differences; undefined if this SSP reads no change table. */
    readonly refresh: DerivedTables["refresh"] | undefined
    /** Undefined if this SSP reads no change table: no database, or a scheduler that reads it. */
    readonly figures: () => ReaderFigures | undefined
  }
>() {
  static readonly layer: Layer.Layer<
    ChangeFeed,
    never,
    Upstream | Views | Lifecycle | EdgeWriter | Reconcile | JobIntake | SspConfig | Serving
  > = Layer.scoped(
    ChangeFeed,
    Effect.gen(function* () {
      const { changes: table } = yield* Upstream
      const { mode, phase } = yield* Lifecycle
      const { bodyLimitBytes, changesBehindSecs, changesPerRead } = yield* SspConfig
      const views = yield* Views
      if (table === undefined || mode === "scheduler")
        return { derive: () => {}, figures: () => undefined, refresh: undefined }
      const { overloaded } = yield* EdgeWriter
      const reconcile = yield* Reconcile
      const serving = yield* Serving
      const scope = yield* Effect.scope
      const crashing = (later: Effect.Effect<void>): Effect.Effect<void> => Serving.guard(serving, later)
      const derived = new DerivedTables((tables) => reader.refresh(tables))
      const heap = yield* Heap
      const applied = apply({ views, jobs: yield* JobIntake, meters: yield* Meters, heap })
      const reader = new ChangeReader<IngestError>(
        { listen: table.listen, answer: table.answer, take: reconcile.take, whole: table.whole },
        {
          held: heldIn(views),
          refresh: reconcile.refresh,
          call: carryOut(views, bodyLimitBytes),
          apply: (named) => Effect.tap(applied(named), () => Effect.sync(() => derived.written(named))),
          // Until memory is ready it is compared with the database, so rows wait.
          open: () => phase() === "ready" && overloaded() === undefined,
          room: () => stepBytes(heap.measured()),
          compare: (asked) => (asked === "everything" ? Effect.asVoid(reconcile.now) : reconcile.registrations),
          fork: (later) => Effect.asVoid(Effect.forkIn(Effect.interruptible(crashing(later)), scope))
        },
        { size: changesPerRead, warnMs: changesBehindSecs * 1_000 }
      )
      yield* Serving.fork(reader.run)
      yield* Serving.fork(derived.run)
      return {
        derive: (tables) => derived.define(tables),
        figures: reader.figures,
        refresh: (tables) => reader.refresh(tables)
      }
    })
  )
}
