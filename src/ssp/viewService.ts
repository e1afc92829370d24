/**
 * The views service itself: engine, registry, committer and saved state put together.
 *
 * Rule: whatever changes what survives a restart goes through the committer's one queue; reading never does.
 */
import { Cause, Effect, Either, Exit, Runtime, type Scope, Stream } from "effect"
import type { Change } from "../core/change.ts"
import { Engine } from "../core/ivm/engine.ts"
import type { Instance } from "../core/ivm/instance.ts"
import { drain } from "../core/surql/scope.ts"
import { viewKey } from "../core/viewId.ts"
import type { Database, StoredView } from "../ports/Database.ts"
import { startPosition } from "../ports/Database.ts"
import { Slicer } from "../ports/Slicer.ts"
import type { SavedState } from "../ports/SavedState.ts"
import type { Turn } from "../ports/Turn.ts"
import { Committer } from "./committer.ts"
import { debugDepsOf, debugViewOf } from "./debug.ts"
import { loadGenerations, saveLoop } from "./generations.ts"
import { sumOf } from "./ingestAnswer.ts"
import { KeyTurns } from "./KeyTurns.ts"
import { RecordTrees } from "./recordTrees.ts"
import { answerOf, formatOf, generationOf, type Registered, Registry } from "./registry.ts"
import { acquire, type JsonParams, ParsedQueries, storedOf } from "./registering.ts"
import { replaceAll } from "./replacing.ts"
import type { Views } from "./Views.ts"
import { type StreamLimits, ViewStreams } from "./viewStreams.ts"
import {
  type EndReason, type IngestAnswer, type IngestError, Overloaded, QueryRefused, type Registration, StoreFailed, type ViewAnswer, ViewNotFound
} from "./viewTypes.ts"

export interface ViewLimits extends StreamLimits {
  /** Registered views at most. */
  readonly maxViews: number
  /** Changes that may wait for the store. */
  readonly maxPendingChanges: number
  /** How long saved state may lag behind, milliseconds. */
  readonly stateDebounceMs: number
  /** Steps that one row of a view may take. */
  readonly rowSteps: number
  /** Steps that a run of a whole query may take. */
  readonly querySteps: number
}

/** What the service takes from its surroundings besides its ports. */
export interface Supervision {
  /** Runs a loop for the life of the scope and is told of its defects. */
  readonly fork: (loop: Effect.Effect<never>) => Effect.Effect<void, never, Scope.Scope>
  /** A broken invariant: the process must not go on as if nothing had happened. */
  readonly crash: (cause: Cause.Cause<unknown>) => void
}

export const makeViews = (
  limits: ViewLimits,
  database: Database["Type"],
  savedState: SavedState["Type"],
  turn: Turn["Type"],
  { crash, fork }: Supervision
): Effect.Effect<Views["Type"], never, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = yield* Effect.clock
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
    const engine = new Engine({ rowSteps: limits.rowSteps, querySteps: limits.querySteps })
    const slicer = new Slicer(guardedTurn, () => clock.unsafeCurrentTimeMillis())
    const committer = new Committer({
      engine,
      database,
      turn: guardedTurn,
      run: (effect, done) =>
        runFork(Effect.either(effect)).addObserver((exit) => (Exit.isSuccess(exit) ? guarded(() => done(exit.value)) : crash(exit.cause)))
    }, limits.maxPendingChanges)
    const views = new ViewService(limits, { committer, database, engine, slicer, savedState }, start)
    yield* fork(saveLoop(savedState, limits.stateDebounceMs, views.snapshot))
    yield* Effect.addFinalizer(() => views.stop)
    return views
  })

interface Parts {
  readonly committer: Committer
  readonly database: Database["Type"]
  readonly engine: Engine
  readonly slicer: Slicer
  readonly savedState: SavedState["Type"]
}

class ViewService {
  private readonly committer: Committer
  private readonly engine: Engine
  private readonly slicer: Slicer
  private readonly turns = new KeyTurns()
  private readonly registry = new Registry()
  private readonly streams: ViewStreams
  private readonly queries = new ParsedQueries()
  readonly trees: Views["Type"]["trees"]
  private readonly limits: ViewLimits
  private readonly database: Database["Type"]
  private readonly savedState: SavedState["Type"]
  private readonly start: string
  private incarnations = 0
  /** Registrations of new ids that are on their way. */
  private arriving = 0
  /** How often everything was cleared: what was acquired before is gone. */
  private resets = 0

  constructor(limits: ViewLimits, { committer, database, engine, slicer, savedState }: Parts, start: string) {
    this.committer = committer
    this.engine = engine
    this.slicer = slicer
    this.trees = new RecordTrees({ committer, engine, slicer })
    this.limits = limits
    this.streams = new ViewStreams(this.registry, limits)
    this.database = database
    this.savedState = savedState
    this.start = start
  }

  readonly restore: Views["Type"]["restore"] = Effect.suspend(() => this.load).pipe(
    Effect.catchIf(({ reason }) => reason === "damaged" && this.database.setAside !== undefined, ({ message }) =>
      Effect.gen(this, function*() {
        const where = yield* this.database.setAside ?? Effect.never
        for (const view of [...this.registry.all()]) this.drop(view, "reset")
        this.engine.clear()
        yield* Effect.logError(`the store is damaged (${message}); it was moved to ${where} and is rebuilt from the database`)
        return yield* this.load
      }))
  )

  private readonly load: Views["Type"]["restore"] = Effect.gen(this, function*() {
    this.committer.position = yield* this.database.position
    let records = 0
    yield* Stream.runForEach(this.database.records, (chunk) =>
      Effect.sync(() => {
        for (const { id, version, doc } of chunk) this.engine.load(id, version, doc)
        records += chunk.length
      }))
    const generations = yield* loadGenerations(this.savedState, this.committer.position.writes)
    const stored = yield* this.database.views
    for (const view of stored) {
      const generation = generations(view.key)
      const params = JSON.parse(view.params) as JsonParams
      // Closed on the way up means that the process is on its way down.
      const instance = yield* Effect.catchAll(this.slicer.run(() => acquire(this.engine, this.queries, view.surql, params, generation)), () => Effect.interrupt)
      if (Either.isLeft(instance)) {
        yield* Effect.logWarning(`view ${view.id} is kept but not served: ${instance.left.message} (line ${instance.left.line}, column ${instance.left.column})`)
      } else this.registry.put(this.registered(view, instance.right, generation))
    }
    return { records, views: this.registry.size }
  })

  readonly ingest: Views["Type"]["ingest"] = (changes) =>
    Effect.async<IngestAnswer, IngestError>((resume) => this.offer(changes, (answer) => resume("_tag" in answer ? Effect.fail(answer) : Effect.succeed(answer))))

  readonly offer: Views["Type"]["offer"] = (changes, done) =>
    this.committer.submit({
      changes,
      putViews: [],
      removeViews: [],
      done: (outcome) => {
        if (Either.isLeft(outcome)) return done(outcome.left)
        const answer = sumOf(this.registry, outcome.right)
        this.streams.publish(outcome.right)
        done(answer)
      }
    })

  readonly repair: Views["Type"]["repair"] = (changes, still) =>
    Effect.async((resume) => {
      const held: Array<Change> = []
      const holds = (change: Change): boolean => still(change) && held.push(change) > 0
      this.committer.submit({
        changes,
        putViews: [],
        removeViews: [],
        still: holds,
        done: (outcome) => {
          if (Either.isLeft(outcome)) return resume(Effect.fail(outcome.left))
          this.streams.publish(outcome.right)
          resume(Effect.succeed(held))
        }
      })
    })

  get records(): Views["Type"]["records"] {
    return this.engine.store
  }

  readonly registrations: Views["Type"]["registrations"] = Effect.sync(() => [...this.registry.all()].map(({ stored }) => stored))

  readonly register: Views["Type"]["register"] = (registration) => {
    const key = viewKey(registration.id)
    if (key === undefined) return Effect.fail(new QueryRefused({ message: "the view id is empty", line: 1, column: 1 }))
    return this.turns.inTurn(key, Effect.suspend(() => (this.registry.get(key) === undefined ? this.arrive(this.open(registration, key)) : this.open(registration, key))))
  }

  readonly unregister: Views["Type"]["unregister"] = (id) => {
    const key = viewKey(id)
    return key === undefined ? Effect.void : this.turns.inTurn(key, this.remove(() => [key], "unregistered")).pipe(Effect.asVoid)
  }

  readonly expire: Views["Type"]["expire"] = (nowMs) => {
    const expired = () => [...this.registry.all()].filter((view) => view.stored.lastActiveAtMs + view.stored.ttlMs <= nowMs && !this.turns.has(view.stored.key)).map((view) => view.stored.key)
    return Effect.suspend(() => (expired().length === 0 ? Effect.succeed([]) : this.remove(expired, "expired")))
  }

  readonly reset: Views["Type"]["reset"] = Effect.suspend(() =>
    this.committer.alone(
      this.database.reset.pipe(
        Effect.mapError((cause) => new StoreFailed({ message: `the store refused to be cleared: ${cause.message}`, cause })),
        Effect.map(() => {
          this.committer.position = startPosition
          this.resets++
          // A view that is filling has read records that are gone: it begins again, on the empty store.
          this.slicer.restart(() => {
            for (const view of [...this.registry.all()]) this.drop(view, "reset")
            this.engine.clear()
          })
        })
      )
    )
  )

  readonly replace: Views["Type"]["replace"] = (incoming) =>
    replaceAll({
      committer: this.committer, database: this.database, engine: this.engine, queries: this.queries, slicer: this.slicer,
      views: () => this.registry.all(),
      drop: (view) => this.drop(view, "rebootstrap"),
      put: (stored, instance, generation) => this.registry.put(this.registered(stored, instance, generation)),
      cleared: () => void this.resets++
    }, incoming)

  readonly read: Views["Type"]["read"] = (id, format) => Effect.map(this.find(id), (view) => answerOf(view, id, format ?? formatOf(view)))

  readonly stream: Views["Type"]["stream"] = (id, format, lastEventId) => this.streams.open(this.find(id), id, format, lastEventId)

  readonly debugView: Views["Type"]["debugView"] = (id) => Effect.map(this.find(id), (view) => debugViewOf(view, id))
  readonly debugDeps: Views["Type"]["debugDeps"] = Effect.sync(() => debugDepsOf(this.registry, this.engine))
  readonly count: Effect.Effect<number> = Effect.sync(() => this.registry.size)

  /** What the saved state remembers (D23): the position, and each view's generation at it. */
  readonly snapshot = () => ({
    writes: this.committer.position.writes,
    generations: [...this.registry.all()].map((view) => [view.stored.key, generationOf(view)] as const)
  })

  /** Finishes what was accepted, then ends the streams. Views that are still filling are not accepted yet: they are told to come back. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.slicer.close()
    return Effect.map(this.committer.drained, () => {
      for (const view of this.registry.all()) view.feed?.end("shutdown")
    })
  })

  private find(id: string): Effect.Effect<Registered, ViewNotFound> {
    return Effect.suspend(() => {
      const key = viewKey(id)
      const view = key === undefined ? undefined : this.registry.get(key)
      return view === undefined ? Effect.fail(new ViewNotFound({ id })) : Effect.succeed(view)
    })
  }

  private registered(stored: StoredView, instance: Instance, generation: number): Registered {
    return {
      stored,
      instance,
      generationOffset: generation - instance.generation,
      incarnation: `${this.start}-${(this.incarnations++).toString(36)}`,
      feed: undefined
    }
  }

  /** Counts a registration of a new id while it goes on, so that views on their way cannot pass the limit together. */
  private arrive<A, E>(registering: Effect.Effect<A, E>): Effect.Effect<A, E | Overloaded> {
    const known = this.registry.size + this.arriving
    if (known >= this.limits.maxViews) {
      return Effect.fail(new Overloaded({ message: `${known} views are registered, the limit is ${this.limits.maxViews} (SVC_MAX_VIEWS)`, retryAfterSecs: 60 }))
    }
    this.arriving++
    return Effect.ensuring(registering, Effect.sync(() => this.arriving--))
  }

  /** Fills the view's instance slice by slice, then makes the registration durable. Interrupted while it fills, it leaves nothing. */
  private open(registration: Registration, key: string): Effect.Effect<ViewAnswer, QueryRefused | Overloaded | StoreFailed> {
    return Effect.async<ViewAnswer, QueryRefused | Overloaded | StoreFailed>((resume) => {
      const abandon = this.slicer.start(() => acquire(this.engine, this.queries, registration.surql, registration.params), (filled) => {
        if (Exit.isSuccess(filled)) {
          if (Either.isLeft(filled.value)) resume(Effect.fail(filled.value.left))
          else this.commitView(registration, key, filled.value.right, resume)
        } else if (Cause.isDie(filled.cause)) resume(Effect.failCause(Cause.die(Cause.squash(filled.cause))))
        else resume(Effect.fail(new Overloaded({ message: "the service is stopping; register again when it is back", retryAfterSecs: 1 })))
      })
      return Effect.sync(abandon)
    })
  }

  private commitView(registration: Registration, key: string, instance: Instance, resume: (answer: Effect.Effect<ViewAnswer, QueryRefused | Overloaded | StoreFailed>) => void): void {
    const stored = storedOf(registration, key)
    const { resets } = this
    this.committer.submit({
      changes: [],
      putViews: [stored],
      removeViews: [],
      done: (outcome) => {
        if (Either.isRight(outcome) && registration.still?.() === false) {
          this.engine.release(instance)
          return resume(Effect.fail(new Overloaded({ message: "this SSP has bootstrapped anew meanwhile", retryAfterSecs: 1 })))
        }
        if (Either.isRight(outcome)) {
          // Put in place here and not by the caller's fiber: a client that has gone meanwhile must not leave a view that is durable and not served.
          const live = resets === this.resets ? Either.right(instance) : drain(acquire(this.engine, this.queries, registration.surql, registration.params))
          if (Either.isLeft(live)) return resume(Effect.die(live.left))
          const view = this.install(stored, live.right)
          return resume(Effect.sync(() => answerOf(view, registration.id, registration.format)))
        }
        this.engine.release(instance)
        const error = outcome.left
        // A registration carries no positions, so the errors of D5 cannot come from it.
        resume(error._tag === "Overloaded" || error._tag === "StoreFailed" ? Effect.fail(error) : Effect.die(error))
      }
    })
  }

  /** Puts a durable registration in place: refreshes the same view, or replaces another of that key (D9). */
  private install(stored: StoredView, instance: Instance): Registered {
    const existing = this.registry.get(stored.key)
    if (existing !== undefined && existing.instance === instance && existing.stored.format === stored.format) {
      existing.stored = stored
      this.engine.release(instance)
      return existing
    }
    if (existing !== undefined) this.drop(existing, "replaced")
    const view = this.registered(stored, instance, 1)
    this.registry.put(view)
    return view
  }

  /** Removes views, deciding which only when nothing else is half-way: a refresh that came first wins. */
  private remove(keysOf: () => ReadonlyArray<string>, reason: EndReason): Effect.Effect<ReadonlyArray<string>, StoreFailed> {
    return this.committer.alone(Effect.gen(this, function*() {
      const keys = keysOf()
      yield* this.database.commit({ records: [], putViews: [], removeViews: keys, position: this.committer.position }).pipe(
        Effect.mapError((cause) => new StoreFailed({ message: `the store refused the write: ${cause.message}`, cause }))
      )
      const removed = keys.flatMap((key) => this.registry.get(key) ?? [])
      for (const view of removed) this.drop(view, reason)
      return removed.map((view) => view.stored.id)
    }))
  }

  private drop(view: Registered, reason: EndReason): void {
    this.registry.remove(view)
    view.feed?.end(reason)
    this.engine.release(view.instance)
  }
}
