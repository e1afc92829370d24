/**
 * The views service: puts engine, registry, committer and saved state together.
 *
 * Rule: every change of durable state goes through the committer's queue; reads never do.
 */
import { Cause, Effect, Either, Exit, Random, Runtime, type Scope, Stream } from "effect"
import { Engine } from "../../core/ivm/engine.ts"
import type { RunLater } from "../../core/ivm/releases.ts"
import type { View } from "../../core/ivm/view/view.ts"
import type { Change } from "../../core/record/change.ts"
import * as Memory from "../../core/record/memory.ts"
import { Deadlines } from "../../core/view/deadlines.ts"
import { isRepeat } from "../../core/view/repeatedRegistration.ts"
import { viewKey } from "../../core/view/viewId.ts"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import type { EndReason } from "../../node/streams/viewEvent.ts"
import { Slicer } from "../../node/work/Slicer.ts"
import type { Database, StoredView } from "../../ports/Database.ts"
import { DatabaseError } from "../../ports/Database.ts"
import { Meters } from "../../ports/Meters.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import { Progress } from "../../ports/Progress.ts"
import type { SavedState } from "../../ports/SavedState.ts"
import { steadyOf, type Turn } from "../../ports/Turn.ts"
import { Watchdog } from "../../ports/Watchdog.ts"
import type { EdgesShape } from "../edges/EdgeWriter.ts"
import {
  type IngestAnswer,
  type IngestError,
  StoreFailed,
  ViewNotFound,
  type ViewQuarantined,
  type ViewsWatcher
} from "../viewTypes.ts"
import { Arrivals, databaseUnreachable } from "./arrivals.ts"
import { type AppliedChange, type CommitContext, Committer, type CommitWork } from "./committer.ts"
import { debugViewOf, depsOf } from "./debug.ts"
import { loadGenerations, saveLoop } from "./generations.ts"
import { ingestAnswerOf, withJoinedChanges } from "./ingestAnswer.ts"
import { KeyTurns } from "./KeyTurns.ts"
import { figuresOf, listedViews } from "./listing.ts"
import { QuarantinedViews } from "./QuarantinedViews.ts"
import { ResultReader } from "./reading.ts"
import { readView } from "./readView.ts"
import { RecordTrees } from "./recordTrees.ts"
import { type FillContext, ParsedQueries } from "./registering.ts"
import { RegistrationGates } from "./registrationGates.ts"
import { generationOf, makeRegistered, type RegisteredView, Registry } from "./registry.ts"
import { clearAll, type ReplaceContext, replaceAll } from "./replacing.ts"
import { adoptDefinitions, type PlanContext, serveStored, type Unserved } from "./replanning.ts"
import { ViewStreams } from "./streams/viewStreams.ts"
import type { Views } from "./Views.ts"
import type { Supervision, ViewServiceDependencies } from "./viewDependencies.ts"
import { loadViews, refusalOfChanges, type ViewLimits, withinHeap } from "./viewLimits.ts"
import { ViewTables } from "./viewTables.ts"

export const makeViews = (
  settings: ViewLimits,
  database: Database["Type"],
  savedState: SavedState["Type"],
  turn: Turn["Type"],
  edges: EdgesShape,
  { crash, fork }: Supervision
): Effect.Effect<Views["Type"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const watchdog = yield* Watchdog
    const heap = yield* Heap
    const limits = withinHeap(settings, heap.memory().limitBytes)
    const start = clock.unsafeCurrentTimeMillis().toString(36)
    const runFork = Runtime.runFork(yield* Effect.runtime<never>())
    const guarded = (work: () => void): void => {
      try {
        work()
      } catch (defect) {
        crash(Cause.die(defect))
      }
    }
    const guardedTurn: Turn["Type"] = { next: (run) => turn.next(() => guarded(run)) }
    const slicer = new Slicer(guardedTurn, steadyOf(clock))
    // A closed slicer means that the process stops.
    const later: RunLater = (work) =>
      void slicer.start(work, (done) => Exit.isFailure(done) && Cause.isDie(done.cause) && crash(done.cause))
    const engine = new Engine({
      ...limits,
      hashSeed: yield* Random.nextInt,
      later,
      evaluating: watchdog.evaluating
    })
    const run: CommitContext["run"] = (effect, done) =>
      runFork(Effect.either(effect)).addObserver((exit) =>
        Exit.isSuccess(exit) ? guarded(() => done(exit.value)) : crash(exit.cause)
      )
    const committer = new Committer({ engine, database, turn: guardedTurn, run }, limits.maxPendingChanges)
    const views = new ViewService(
      limits,
      {
        clock: steadyOf(clock),
        committer,
        database,
        edges,
        engine,
        run,
        slicer,
        savedState,
        meters: yield* Meters,
        progress: yield* Progress,
        heap,
        turn: guardedTurn,
        watchdog
      },
      start
    )
    // Notes both clocks before any view is registered, since the clock may be set before the first sweep.
    yield* Effect.ignore(views.expire(clock.unsafeCurrentTimeMillis(), steadyOf(clock)()))
    yield* views.quarantined.load
    edges.onLost((key) => run(views.losing(key), () => undefined))
    yield* fork(views.streams.sweeping)
    yield* fork(saveLoop(savedState, limits.stateDebounceMs, views.snapshot))
    yield* Effect.addFinalizer(() => views.stop)
    return views
  })

class ViewService {
  private readonly committer: Committer
  private readonly engine: Engine
  private readonly slicer: Slicer
  private readonly turns = new KeyTurns()
  private readonly deadlines = new Deadlines()
  private readonly watchers: Array<ViewsWatcher> = []
  private readonly registry: Registry
  private readonly reading: ResultReader
  readonly streams: ViewStreams
  private readonly filling: FillContext
  readonly quarantined: QuarantinedViews
  readonly trees: Views["Type"]["trees"]
  readonly tables: ViewTables
  readonly exclusive: boolean
  readonly position: Views["Type"]["position"]
  private readonly database: Database["Type"]
  private readonly savedState: SavedState["Type"]
  private readonly edges: EdgesShape
  private readonly arrivals: Arrivals
  readonly register: Views["Type"]["register"]
  private readonly meters: ViewServiceDependencies["meters"]
  private readonly progress: ViewServiceDependencies["progress"]
  private readonly heap: HeapShape
  /** Registrations that are stored and whose query is refused. */
  private readonly unserved = new Map<string, Unserved>()
  private incarnations = 0
  private isLoading = false
  /** Number of resets so far: an instance filled before the last one is void. */
  private resets = 0

  constructor(
    limits: ViewLimits,
    {
      clock,
      committer,
      database,
      edges,
      engine,
      heap,
      meters,
      progress,
      run,
      slicer,
      savedState,
      turn,
      watchdog
    }: ViewServiceDependencies,
    private readonly start: string
  ) {
    this.committer = committer
    this.engine = engine
    this.slicer = slicer
    this.registry = new Registry(watchdog.evaluating, limits.resultBytes, () => engine.spent, engine.failing)
    this.reading = new ResultReader(this.registry, slicer)
    this.quarantined = new QuarantinedViews(watchdog)
    this.filling = { engine, queries: new ParsedQueries(), watchdog }
    this.trees = new RecordTrees({ committer, engine, heap, slicer })
    this.tables = new ViewTables({
      committer,
      engine,
      queries: this.filling.queries,
      slicer,
      submit: (work, done) => this.submit(work, done)
    })
    this.streams = new ViewStreams({
      registry: this.registry,
      reading: this.reading,
      slicer,
      turn,
      limits,
      room: engine.keptBytes,
      nowMs: clock
    })
    this.database = database
    this.exclusive = database.exclusive === true
    this.position = database.position
    this.savedState = savedState
    this.edges = edges
    this.arrivals = new Arrivals({
      ...this.filling,
      committer,
      edges,
      run,
      slicer,
      registry: this.registry,
      reading: this.reading,
      databaseWaitMs: limits.databaseWaitMs,
      nowMs: clock,
      put: (stored, instance, assignment) => this.put(stored, instance, 1, assignment),
      replace: (view) => this.drop(view, "replaced"),
      resets: () => this.resets
    })
    const { arrivals, registry, quarantined, tables, turns } = this
    this.register = new RegistrationGates({ ...limits, arrivals, heap, registry, quarantined, tables, turns }).register
    this.meters = meters
    this.progress = progress
    this.heap = heap
  }

  readonly restore: Views["Type"]["restore"] = Effect.suspend(() => this.loaded).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "damaged" && this.database.setAside !== undefined,
      ({ message }) =>
        Effect.gen(this, function* () {
          const where = yield* this.database.setAside ?? Effect.never
          for (const view of [...this.registry.all()]) this.drop(view, "reset")
          this.engine.clear()
          yield* Effect.logError(
            `the store is damaged (${message}); it was moved to ${where} and is rebuilt from the database`
          )
          return yield* this.loaded
        })
    )
  )

  private get loaded(): Views["Type"]["restore"] {
    return Effect.provideService(
      Progress.during("restore", "the store", "records", ({ add }) => this.load(add)),
      Progress,
      this.progress
    )
  }

  private readonly load = (told: (count: number) => void): Views["Type"]["restore"] =>
    Effect.gen(this, function* () {
      this.isLoading = true
      this.committer.standAt(yield* this.database.position)
      let records = 0
      let stored = 0
      let tooSmall: Memory.Memory | undefined
      yield* Stream.runForEach(this.database.records, (chunk) =>
        Effect.sync(() => {
          stored += chunk.length
          // The other records are only counted, to report how much memory all of them need.
          if (tooSmall !== undefined) return
          for (const { id, version, doc } of chunk) this.engine.load(id, version, doc)
          records += chunk.length
          const memory = this.heap.measured()
          if (!Memory.isLoadable(memory)) {
            tooSmall = memory
            this.engine.clear()
          }
          told(chunk.length)
          // Beside a database records are soon read in key order: an order kept from the first chunk on is not built
          // later in one long turn.
          if (this.edges.present)
            for (const table of new Set(chunk.map(({ id }) => id.table)))
              this.engine.store.rowsInOrder(table)[Symbol.iterator]().next()
        })
      )
      if (tooSmall !== undefined)
        return yield* new DatabaseError({ reason: "failed", message: Memory.notLoadable(tooSmall, records, stored) })
      const generations = yield* loadGenerations(this.savedState, this.committer.position.writes)
      yield* loadViews(this.heap, yield* this.database.views, (view, tooLarge) => {
        const aside = this.quarantined.keep(view)
        return aside === undefined
          ? serveStored(this.planned, view, generations(view.key), tooLarge)
          : Effect.logWarning(
              `view ${view.id} is quarantined and not served: the process ended ${aside.ends} times while it evaluated its query; POST /view/free with its id serves it again`
            )
      })
      this.isLoading = false
      return { records, views: this.registry.size }
    })

  private get planned(): PlanContext {
    return {
      ...this.filling,
      holding: (query, work) => this.tables.holding(query, work),
      slicer: this.slicer,
      views: () => this.registry.all(),
      get: (key) => this.registry.get(key),
      unserved: this.unserved,
      inTurn: (key, work) => this.turns.inTurn(key, work),
      put: (stored, instance, generation, assignment) => {
        const before = this.registry.get(stored.key)
        if (before !== undefined) this.drop(before, "replaced")
        this.put(stored, instance, generation, assignment)
      },
      drop: (view) => this.drop(view, "rebootstrap")
    }
  }

  readonly free: Views["Type"]["free"] = (id, query) =>
    // How often writes since then would have changed the view is not known, so each of them is counted (D23).
    this.quarantined.free(id, query, (view) =>
      this.turns.inTurn(
        view.key,
        Effect.suspend(() =>
          this.registry.get(view.key) === undefined
            ? serveStored(this.planned, view, 1 + this.committer.position.writes)
            : Effect.void
        )
      )
    )

  readonly watch: Views["Type"]["watch"] = (watcher) => void this.watchers.push(watcher)

  readonly ingest: Views["Type"]["ingest"] = (changes, done) => this.submit({ changes }, done)

  private submit(
    work: Pick<CommitWork, "asOne" | "changes" | "through">,
    done: (answer: IngestAnswer | IngestError) => void
  ): void {
    const { changes } = work
    const full = this.edges.overloaded() ?? refusalOfChanges(this.heap, this.engine.store, changes)
    if (full !== undefined) return done(full)
    this.committer.submit({
      ...work,
      changes: withJoinedChanges(this.watchers, changes),
      putViews: [],
      removeViews: [],
      done: (outcome, taken) => {
        if (Either.isLeft(outcome)) return done(outcome.left)
        const answer = ingestAnswerOf(this.registry, outcome.right)
        this.meters.ingestChanges.add(changes.length)
        this.meters.sspViewUpdates.add(answer.views_affected)
        this.tell(outcome.right)
        for (const { applied } of this.watchers) applied(taken)
        done(answer)
      }
    })
  }

  readonly repair: Views["Type"]["repair"] = (changes, still) =>
    Effect.async((resume) => {
      const held: Array<Change> = []
      const holds =
        still === undefined ? {} : { still: (change: Change): boolean => still(change) && held.push(change) > 0 }
      this.committer.submit({
        changes,
        putViews: [],
        removeViews: [],
        asOne: true,
        ...holds,
        done: (outcome) => {
          if (Either.isLeft(outcome)) return resume(Effect.fail(outcome.left))
          this.tell(outcome.right)
          resume(Effect.succeed(still === undefined ? changes : held))
        }
      })
    })

  get records(): Views["Type"]["records"] {
    return this.engine.store
  }

  readonly registrations: Views["Type"]["registrations"] = Effect.sync(() => [
    ...Array.from(this.registry.all(), ({ stored }) => stored),
    ...this.quarantined.all()
  ])

  readonly clientOf: Views["Type"]["clientOf"] = (id) => {
    const key = viewKey(id)
    if (key === undefined) return undefined
    return (this.registry.get(key)?.stored ?? Array.from(this.quarantined.all()).find((view) => view.key === key))
      ?.clientId
  }

  readonly isKnown: Views["Type"]["isKnown"] = (said) => {
    const known = this.registry.get(viewKey(said.id) ?? "")?.stored
    // A registration under way may still change the view.
    const isFree = known !== undefined && !this.turns.has(known.key) && !this.quarantined.of(known, said.id)
    return isFree && isRepeat(known, said)
  }

  readonly touch: Views["Type"]["touch"] = (id, nowMs) => {
    const key = viewKey(id) ?? ""
    return this.turns.inTurn(key, this.arrivals.touch(key, nowMs))
  }

  readonly unregister: Views["Type"]["unregister"] = (id, deleted = false, reason = "unregistered") => {
    const key = viewKey(id)
    if (key === undefined) return Effect.void
    const remove = Effect.tap(
      this.remove(() => [key], reason),
      () => Effect.sync(() => reason === "unregistered" && this.edges.close(key, !deleted))
    )
    return Effect.asVoid(this.turns.inTurn(key, remove))
  }

  /** Removes a view that another SSP has taken over; its registration and edges stay. */
  losing(key: string): Effect.Effect<void> {
    return this.remove(() => (this.edges.isLost(key) ? [key] : []), "moved").pipe(
      Effect.asVoid,
      Effect.catchAll((error) => Effect.logWarning(`a view that is another's cannot be removed here: ${error.message}`))
    )
  }

  readonly expire: Views["Type"]["expire"] = (nowMs, steadyMs = nowMs) => {
    this.deadlines.look(nowMs, steadyMs)
    const expired = () =>
      [...Array.from(this.registry.all(), ({ stored }) => stored), ...this.quarantined.all()].filter(
        (view) => this.deadlines.isOver(view, nowMs, steadyMs) && !this.turns.has(view.key)
      )
    return Effect.suspend(() => {
      const views = expired()
      if (views.length === 0) return Effect.succeed([])
      const keys = views.map(({ key }) => key)
      // The database judges by the time of day, which may have been set back.
      const byDay = Math.max(nowMs, ...views.map(ViewTimes.expiresAtMs))
      const stillThere = this.edges.present
        ? Effect.mapError(this.edges.expire(keys, byDay), databaseUnreachable)
        : Effect.succeed([])
      return Effect.flatMap(stillThere, (kept) => {
        for (const { key, lastActiveAtMs } of kept) this.registry.seenActive(key, lastActiveAtMs)
        // The edge writer finds the views that another SSP has taken over.
        const others = new Set(kept.map(({ key }) => key))
        const left = () => expired().flatMap(({ key }) => (keys.includes(key) && !others.has(key) ? [key] : []))
        return this.remove(left, "expired")
      })
    })
  }

  readonly reset: Views["Type"]["reset"] = Effect.suspend(() =>
    Effect.zipRight(
      clearAll(this.holder, () => this.quarantined.clear()),
      Effect.mapError(this.edges.clear, databaseUnreachable)
    )
  )

  readonly replace: Views["Type"]["replace"] = (incoming) =>
    Effect.tap(replaceAll(this.holder, incoming), () =>
      Effect.sync(() => {
        for (const { replaced } of this.watchers) replaced()
      })
    )

  private get holder(): ReplaceContext {
    return {
      ...this.planned,
      committer: this.committer,
      database: this.database,
      cleared: () => void this.resets++,
      reset: (view) => this.drop(view, "reset")
    }
  }

  readonly read: Views["Type"]["read"] = (id, format) => this.reading.read(this.find(id), id, format)
  readonly written: Views["Type"]["written"] = (answer, sees) => this.reading.written(answer, sees)

  readonly follow: Views["Type"]["follow"] = (id, format, lastEventId, receiver) => {
    const view = this.arrivals.served(viewKey(id) ?? "")
    return view === undefined || this.streams.full !== undefined
      ? undefined
      : this.streams.follow(view, id, format, lastEventId, receiver)
  }

  readonly whenSettled: Views["Type"]["whenSettled"] = (id, done) => this.arrivals.whenSettled(viewKey(id) ?? "", done)

  readonly refusal: Views["Type"]["refusal"] = (id) => {
    const key = viewKey(id) ?? ""
    return this.registry.get(key) === undefined && !this.arrivals.isComing(key)
      ? (this.quarantined.why(key, id) ?? new ViewNotFound({ id }))
      : this.streams.full
  }

  readonly look: Views["Type"]["look"] = (id, how, done) =>
    readView({ arrivals: this.arrivals, reading: this.reading, find: (key) => this.found(key, id) }, id, how, done)

  readonly define: Views["Type"]["define"] = (definitions) => adoptDefinitions(this.planned, definitions)

  readonly tablesOf: Views["Type"]["tablesOf"] = (id) => this.registry.tablesOf(viewKey(id) ?? "")

  readonly failing: Views["Type"]["failing"] = () => this.registry.failing()
  readonly debugView: Views["Type"]["debugView"] = (id) =>
    Effect.suspend(() => {
      const key = viewKey(id) ?? ""
      const view = this.registry.get(key)
      const shown = view ? debugViewOf(view, id, this.engine, this.edges.refused(key)) : this.quarantined.debug(key, id)
      return shown === undefined ? Effect.fail(new ViewNotFound({ id })) : Effect.succeed(shown)
    })
  readonly debugDeps: Views["Type"]["debugDeps"] = Effect.suspend(() => depsOf(this.registry, this.engine, this.slicer))
  readonly list: Views["Type"]["list"] = (listing) => listedViews(this.registry, this.slicer, listing)
  readonly figures: Views["Type"]["figures"] = () => {
    const { committer, edges, engine, quarantined, registry, streams } = this
    return figuresOf(registry, engine, committer, streams, edges.counts().waiting, quarantined.list)
  }
  readonly count: Effect.Effect<number> = Effect.sync(() => this.registry.size)

  /** Content of the saved state (D23): the number of record writes, and each view's generation. */
  readonly snapshot = () => {
    // While a start loads, or after it failed, the views that are not loaded would lose their generations.
    if (this.isLoading) return undefined
    const generations = [...this.registry.all()].map((view) => [view.stored.key, generationOf(view)] as const)
    return { writes: this.committer.position.writes, generations }
  }

  /** Finishes accepted work, then ends the streams. Clients of views that are still filling are told to try again. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.slicer.close()
    return Effect.map(this.committer.drained, () => {
      for (const view of this.registry.all()) this.streams.end(view, "shutdown")
    })
  })

  private find(id: string): Effect.Effect<RegisteredView, ViewNotFound | ViewQuarantined> {
    const key = viewKey(id) ?? ""
    return Effect.zipRight(
      this.arrivals.settled(key),
      Effect.suspend(() => this.found(key, id))
    )
  }

  /** The view of this key, or why there is none. */
  private found(key: string, id: string): Either.Either<RegisteredView, ViewNotFound | ViewQuarantined> {
    const view = this.registry.get(key)
    if (view !== undefined) return Either.right(view)
    return Either.left(this.quarantined.why(key, id) ?? new ViewNotFound({ id }))
  }

  /** Sends the followers of all views the deltas of applied changes. */
  private tell(applied: ReadonlyArray<AppliedChange>): void {
    this.streams.publish(applied)
    for (const { touched } of this.edges.present ? applied : [])
      for (const { delta, view: instance } of touched)
        for (const view of this.registry.showing(instance)) this.edges.changed(view.stored.key, delta)
  }

  private put(stored: StoredView, instance: View, generation: number, assignment: number | undefined): RegisteredView {
    const incarnation = `${this.start}-${(this.incarnations++).toString(36)}`
    const view = makeRegistered({ stored, instance, assignment, incarnation }, generation)
    this.quarantined.forget(stored.key)
    this.unserved.delete(stored.key)
    this.registry.put(view)
    this.tables.put(stored)
    this.edges.open(stored, instance, assignment)
    return view
  }

  /** Removes views. `keysOf` is asked when nothing else is under way: a refresh that came first wins. */
  private remove(
    keysOf: () => ReadonlyArray<string>,
    reason: EndReason
  ): Effect.Effect<ReadonlyArray<string>, StoreFailed> {
    return this.committer.alone(
      Effect.gen(this, function* () {
        const keys = keysOf()
        yield* this.database
          .commit({ records: [], putViews: [], removeViews: keys, position: this.committer.position })
          .pipe(
            Effect.mapError(
              (cause) => new StoreFailed({ message: `the store refused the write: ${cause.message}`, cause })
            )
          )
        const removed = keys.flatMap((key) => this.registry.get(key) ?? [])
        for (const key of keys) {
          this.quarantined.forget(key)
          this.unserved.delete(key)
        }
        for (const view of removed) this.drop(view, reason)
        return removed.map((view) => view.stored.id)
      })
    )
  }

  private drop(view: RegisteredView, reason: EndReason): void {
    this.registry.remove(view)
    this.streams.end(view, reason)
    this.engine.release(view.instance)
    if (reason !== "replaced") this.tables.dropped(view.stored.key)
    // A replaced view is opened again at once; for an unregistered view the caller knows whether its row exists.
    if (reason !== "replaced" && reason !== "unregistered")
      this.edges.close(view.stored.key, reason === "expired" || reason === "reset")
  }
}
