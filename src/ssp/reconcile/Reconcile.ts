/**
 * Keeps memory equal to the database beside this node: one mechanism for the first start, a restart, and the recurring
 * compare (D20, D4).
 *
 * Tables are read by stretches of keys and compared with memory; differences are applied through the committer as
 * ordinary changes. Before the node is ready nothing else writes, so a difference counts at once. While changes flow it
 * counts by the rules of `node/database/liveCompare.ts`, which the scheduler's replica shares.
 */
import { Context, Effect, Layer, Schedule } from "effect"
import { chunksOf } from "../../core/chunksOf.ts"
import { backoff } from "../../core/cluster/enrolment.ts"
import * as Phase from "../../core/cluster/phase.ts"
import type { RecordState } from "../../core/ivm/store/store.ts"
import type { Change } from "../../core/record/change.ts"
import * as Memory from "../../core/record/memory.ts"
import * as Compare from "../../core/record/reconcile.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { asksCompare, namedRecords, type TakeRows } from "../../node/database/changeReader.ts"
import {
  type Compared,
  defaultMomentMs,
  LiveCompare,
  roomToCompare,
  type Suspect,
  withoutStrays
} from "../../node/database/liveCompare.ts"
import { ReaderLease, supersededFault } from "../../node/database/readerLease.ts"
import * as Backoff from "../../node/work/backoff.ts"
import { Serving } from "../../ports/Front.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import { Progress, type Step } from "../../ports/Progress.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { steadyMs } from "../../ports/Turn.ts"
import { type ChangeRow, Upstream, UpstreamError } from "../../ports/Upstream.ts"
import { SspConfig } from "../Config.ts"
import { EdgeWriter } from "../edges/EdgeWriter.ts"
import { Views } from "../views/Views.ts"
import { refusalOfStep, shortOfMemory } from "../views/viewLimits.ts"
import type { IngestError, Overloaded } from "../viewTypes.ts"
import { DeclaredTypes } from "./DeclaredTypes.ts"
import { RegistrationSync } from "./RegistrationSync.ts"

type Failure = UpstreamError | IngestError
type Difference = Compare.Difference<RecordState>

/** Most records in one read: a few milliseconds of work for the database and this node. */
const chunkSize = 1_000
/** Changes of a start in one step: several steps share a commit, and other work runs between them. */
const partSize = 200
/** Most whole compares before the node is ready; fewer if one finds no difference. */
const maxPasses = 3

/** Comparisons of memory with the database; a difference is repaired in memory, never in the database. */
export interface ReconcileShape {
  /**
   * Brings memory to the database's state, retried for ever; returns when a compare finds no difference. `exhausted`
   * runs after ten failures in a row (D18).
   */
  readonly bootstrap: (exhausted: Effect.Effect<void>) => Effect.Effect<void>
  /** Compares everything once; one compare at a time. */
  readonly now: Effect.Effect<Compared, Failure>
  /** Takes rows of the change table for its reader; ends the process if another process follows the database. */
  readonly take: TakeRows
  /** Compares these tables once, also deleted ones. */
  readonly tables: (names: ReadonlySet<string>) => Effect.Effect<Compared, Failure>
  /** Reads these tables and applies differences, for tables that raise no events. */
  readonly refresh: (names: ReadonlySet<string>) => Effect.Effect<void, Failure>
  /** Notes for the next start that memory has the records of these tables. */
  readonly note: ReaderLease["note"]
  /** Compares the registrations alone. */
  readonly registrations: Effect.Effect<void, Failure>
}

export class Reconcile extends Context.Tag("ssp/database/Reconcile")<Reconcile, ReconcileShape>() {
  static readonly layerOf = (
    momentMs: number
  ): Layer.Layer<Reconcile, never, Upstream | Views | DeclaredTypes | EdgeWriter | SspConfig | Serving> =>
    Layer.scoped(
      Reconcile,
      Effect.gen(function* () {
        const { heal, isLeaving, overloaded } = yield* EdgeWriter
        const { changesPerRead, databaseLeaseSecs, mode, sspId } = yield* SspConfig
        const upstream = yield* Upstream
        const views = yield* Views
        const lease = new ReaderLease(upstream, {
          name: sspId,
          ttlMs: databaseLeaseSecs * 1_000,
          meanwhile: "is not ready"
        })
        const parts = {
          upstream,
          lease,
          writes: Effect.mapBoth(views.position, {
            onSuccess: ({ writes }) => writes,
            onFailure: ({ message }) =>
              new UpstreamError({ reason: "unreachable", message: `the own store: ${message}` })
          }),
          views,
          types: yield* DeclaredTypes,
          sspId,
          changesPerRead,
          momentMs,
          heal,
          isLeaving,
          overloaded,
          heap: yield* Heap
        }
        const serving = yield* Serving
        const scope = yield* Effect.scope
        const { withPermits } = yield* Effect.makeSemaphore(1)
        const work = new Work(parts, (later) =>
          Effect.asVoid(Effect.forkIn(Effect.interruptible(Serving.guard(serving, later)), scope))
        )
        if (mode === "standalone" && upstream.lease !== undefined) {
          yield* Effect.addFinalizer(() => lease.release)
          yield* Serving.fork(lease.keep)
        }
        return {
          take: work.take,
          bootstrap: (exhausted) => withPermits(1)(work.bootstrap(exhausted)),
          now: withPermits(1)(work.now),
          tables: (names) => withPermits(1)(work.tables(names)),
          refresh: (names) => work.refresh(names),
          note: (tables) => lease.note(tables),
          registrations: withPermits(1)(work.followed)
        }
      })
    )

  static readonly layer = Reconcile.layerOf(defaultMomentMs)
}

interface ReconcileDependencies {
  readonly lease: ReaderLease
  /** Number of record writes that the node's store has durably. */
  readonly writes: Effect.Effect<number, UpstreamError>
  readonly upstream: Upstream["Type"]
  readonly views: Views["Type"]
  readonly types: DeclaredTypes["Type"]
  readonly sspId: string
  readonly changesPerRead: number
  readonly momentMs: number
  readonly heal: Effect.Effect<void>
  readonly isLeaving: (key: string) => boolean
  readonly overloaded: () => Overloaded | undefined
  readonly heap: HeapShape
}

/** Ends a start whose heap has no room for `comingBytes` more, with a fault instead of an abort by V8 (D43). */
const fits = (
  heap: HeapShape,
  records: Pick<Views["Type"]["records"], "tableNames" | "size">,
  comingBytes: number
): Effect.Effect<void> => {
  const memory = heap.measured()
  if (Memory.isLoadable(memory, comingBytes)) return Effect.void
  const read = records.tableNames().reduce((count, table) => count + records.size(table), 0)
  return Effect.die(new StartFault({ exitCode: 1, message: Memory.notReadable(memory, read, "database") }))
}

/** Repeats an effect until it succeeds; runs `exhausted` once after ten failures in a row. */
const patience = (exhausted: Effect.Effect<void>) =>
  Backoff.untilSuccess(backoff, ({ message }: Failure, before) => {
    const failures = before + 1
    const told = Effect.logWarning(
      `bootstrap from the database failed (${failures} in a row): ${message}; trying again`
    )
    if (failures !== Phase.maxFailures) return told
    const text = `bootstrap failed ${failures} times in a row; /health reports failed until it succeeds. Check STORE_ADDR, STORE_USER, STORE_NS and STORE_DB`
    return Effect.all([told, Effect.logError(text), exhausted], { discard: true })
  })

type Patiently = ReturnType<typeof patience>

class Work {
  private readonly registrations: RegistrationSync
  private readonly live: LiveCompare<RecordState, RecordState, never, IngestError>

  constructor(
    private readonly parts: ReconcileDependencies,
    fork: (later: Effect.Effect<void>) => Effect.Effect<void>
  ) {
    this.registrations = new RegistrationSync(parts)
    const {
      heap,
      momentMs,
      types,
      upstream,
      views: { records }
    } = parts
    this.live = new LiveCompare({
      upstream,
      momentMs,
      together: parts.changesPerRead,
      fork,
      side: {
        chunkSize,
        room: roomToCompare(heap, shortOfMemory),
        declare: types.declare,
        names: Effect.sync(() => records.tableNames()),
        between: (table, { after, last }) =>
          Effect.sync(() => records.rowsBetween(table, Compare.stretchRange(after, last))),
        states: (ids) =>
          Effect.sync(
            () =>
              new Map(
                ids.flatMap((id) => {
                  const row = records.get(id)
                  return row === undefined ? [] : [[id.text, row] as const]
                })
              )
          ),
        known: (row) => row,
        unmoved: Compare.isSameState,
        differs: () => true,
        repair: (suspects) => this.repair(suspects)
      }
    })
  }

  bootstrap(exhausted: Effect.Effect<void>): Effect.Effect<void> {
    return Progress.during("bootstrap", "the database", "records", (step) => this.bring(exhausted, step))
  }

  private bring(exhausted: Effect.Effect<void>, step: Step): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { upstream, views } = this.parts
      const patiently = patience(exhausted)
      yield* patiently(upstream.prepare)
      const position = yield* patiently(this.parts.lease.hold)
      yield* patiently(this.defined)
      yield* patiently(this.keepAboveLost)
      if (position !== undefined && (yield* patiently(this.caughtUp(position)))) return
      const startMs = yield* steadyMs
      for (let pass = 1; pass <= maxPasses; pass++) {
        const { compared, written } = yield* this.pass(patiently, step)
        if (pass === 1) yield* patiently(this.registrations.restore)
        const count = (yield* views.registrations).length
        yield* Effect.logInfo(
          `compared ${compared} records with the database, ${written} differed; ${count} views, ${(yield* steadyMs) - startMs} ms so far`
        )
        if (pass > 1 && written === 0) break
      }
      yield* patiently(this.complete)
      // Tables were read one after the other: the changes made meanwhile bring them to one state.
      yield* patiently(this.takeAll)
    })
  }

  readonly take: TakeRows = (most, done, apart) =>
    Effect.suspend(() => {
      const { lease, upstream, writes } = this.parts
      const { changes } = upstream
      if (changes === undefined) return Effect.succeed(undefined)
      const taken =
        done.length === 0
          ? changes.take(most, done, apart)
          : lease.during(writes, (holding) => changes.take(most, done, apart, holding))
      return Effect.flatMap(taken, (read) =>
        read === "superseded" ? Effect.die(supersededFault) : Effect.succeed(read)
      )
    })

  /** Definitions that views need at a start; later ones are followed (`schemaFollowing.ts`). */
  private readonly defined: Effect.Effect<void, UpstreamError> = Effect.suspend(() => {
    const { upstream, views } = this.parts
    return upstream.schema === undefined
      ? Effect.void
      : Effect.flatMap(upstream.schema(undefined), ({ definitions }) => views.define(definitions))
  })

  private readonly complete: Effect.Effect<void, UpstreamError> = Effect.suspend(() =>
    Effect.zipRight(
      Effect.flatMap(this.parts.writes, (writes) => this.parts.lease.complete(writes)),
      this.parts.lease.note(this.parts.types.known())
    )
  )

  /**
   * Whether a restart needs no compare: this store took rows of the change table last and is not behind what it noted
   * then, and the tables are the known ones and all announce writes, so each change since has a row there.
   */
  private caughtUp(position: number): Effect.Effect<boolean, Failure> {
    return Effect.gen(this, function* () {
      const { lease, types, upstream, views, writes } = this.parts
      const tables = yield* upstream.tables
      const silent = tables.filter(({ announced, derived }) => announced !== true || derived)
      const there = new Set(tables.map(({ name }) => name))
      const gone = views.records.tableNames().some((name) => !isOwn(name) && !there.has(name))
      if (silent.length > 0 || gone || !lease.knows(tables) || (yield* writes) < position) return false
      types.declare(tables)
      const taken = yield* this.takeAll
      if (taken?.enough !== true) return false
      yield* this.registrations.restore
      yield* this.complete
      yield* Effect.logInfo(
        `no compare with the database: the change table held what was written since this node stopped, ${taken.rows} rows`
      )
      return true
    })
  }

  /**
   * Takes rows of the change table until a read holds the last of them, so that memory equals the database as of that
   * read. Leaves rows that ask for a compare, calls, and rows with unreadable records to the reader. Answers the number
   * of rows taken; undefined if there is no table.
   */
  private readonly takeAll: Effect.Effect<{ readonly rows: number; readonly enough: boolean } | undefined, Failure> =
    Effect.gen(this, function* () {
      const { changesPerRead, views } = this.parts
      let done: ReadonlyArray<RecordId> = []
      const left: Array<RecordId> = []
      let rows = 0
      let enough = true
      let size = Compare.stretchSize([], changesPerRead)
      for (;;) {
        const read = yield* this.take({ rows: size, bytes: Compare.stretchBytes }, done, left)
        if (read === undefined) return undefined
        if (read.records.length > 0) size = Compare.stretchSize(read.records, changesPerRead)
        // The records as of this read, deletions too: later writes have rows of their own.
        yield* this.load(
          namedRecords(read)
            .map(({ found, id }) => ({ id, known: views.records.get(id), found }))
            .filter(({ found, known }) => Compare.differs(known, found))
        )
        if (read.unreadable.length > 0 || read.rows.some(asksCompare)) enough = false
        const stays = (row: ChangeRow): boolean => row.call !== undefined || asksCompare(row)
        left.push(...[...read.rows.filter(stays), ...read.unreadable].map(({ id }) => id))
        done = read.rows.flatMap((row) => (stays(row) ? [] : [row.id]))
        rows += done.length
        if (!read.partial) return { rows, enough }
      }
    })

  /** Lost versions restart above the highest that a client may have seen (D4). */
  private readonly keepAboveLost: Effect.Effect<void, Failure> = Effect.suspend(() => {
    const { upstream, views } = this.parts
    if (views.records.tableNames().length > 0) return Effect.void
    return Effect.flatMap(upstream.highestVersion, (version) =>
      version === 0
        ? Effect.void
        : Effect.zipRight(
            views.repair(Compare.forgottenVersions(version)),
            Effect.logWarning(`this node knows no versions, but clients have seen some: they go on above ${version}`)
          )
    )
  })

  /** Compares everything and applies differences at once, while nothing else writes. */
  private pass(
    patiently: Patiently,
    step: Step
  ): Effect.Effect<{ readonly compared: number; readonly written: number }> {
    let written = 0
    return this.live
      .each(
        patiently,
        (differences) => Effect.map(patiently(this.apply(differences)), (count) => void (written += count)),
        step
      )
      .pipe(Effect.map((compared) => ({ compared, written })))
  }

  /** Writes the differences found at a start; the start ends if a further stretch has no room. */
  private load(differences: ReadonlyArray<Difference>): Effect.Effect<number, Failure> {
    // A start that finds no difference is not refused: its records are loaded already.
    if (differences.length === 0) return Effect.succeed(0)
    const { heap, views } = this.parts
    return Effect.zipLeft(
      this.write(differences),
      Effect.suspend(() => fits(heap, views.records, Memory.inFlightFactor * Compare.stretchBytes))
    )
  }

  private apply(differences: ReadonlyArray<Difference>): Effect.Effect<number, Failure> {
    return Effect.flatMap(withoutStrays(differences, this.parts.upstream.find), (real) => this.load(real))
  }

  private write(differences: ReadonlyArray<Difference>): Effect.Effect<number, Failure> {
    return Effect.as(
      Effect.forEach(
        chunksOf(differences.map(Compare.changeOf), partSize),
        (part) =>
          this.parts.views
            .repair(part)
            .pipe(
              Effect.retry({ while: ({ _tag }) => _tag === "Overloaded", schedule: Schedule.spaced("100 millis") })
            ),
        { concurrency: "unbounded", discard: true }
      ),
      differences.length
    )
  }

  /** Brings records to the database's state, unless memory has changed since the difference was seen. */
  private repair(
    differences: ReadonlyArray<Suspect<RecordState, RecordState>>
  ): Effect.Effect<ReadonlyArray<RecordId>, IngestError> {
    const {
      heap,
      overloaded,
      views: { records, repair }
    } = this.parts
    if (differences.length === 0) return Effect.succeed([])
    const changes = differences.map(Compare.changeOf)
    const full = overloaded() ?? refusalOfStep(heap, records, changes)
    if (full !== undefined) return Effect.fail(full)
    const known = new Map(differences.map((difference) => [difference.id.text, difference.known]))
    const still = ({ id }: Change): boolean => Compare.isSameState(records.get(id), known.get(id.text))
    return Effect.map(repair(changes, still), (applied) => applied.map(({ id }) => id))
  }

  tables(names: ReadonlySet<string>): Effect.Effect<Compared, Failure> {
    return this.live.some(names)
  }

  refresh(names: ReadonlySet<string>): Effect.Effect<void, Failure> {
    const { upstream } = this.parts
    return Effect.asVoid(
      this.live.each(
        this.live.asRoomAllows,
        (differences) =>
          Effect.flatMap(withoutStrays(differences, upstream.find), (real) =>
            this.repair(real.map((difference) => ({ ...difference, state: difference.known })))
          ),
        undefined,
        names
      )
    )
  }

  readonly followed: Effect.Effect<void, Failure> = Effect.suspend(() => this.registrations.follow)

  /** Compares everything while changes flow: records, registrations, and refused edges. */
  readonly now: Effect.Effect<Compared, Failure> = Effect.suspend(() =>
    Effect.zipLeft(this.live.now, Effect.zipRight(this.registrations.follow, this.parts.heal))
  )
}
