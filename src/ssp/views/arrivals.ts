/**
 * A registration under way (D8, D9): filled slice by slice, written to the database beside this node, made durable,
 * installed.
 */
import { Cause, Effect, Either, Exit } from "effect"
import type { View } from "../../core/ivm/view/view.ts"
import * as JsonText from "../../core/jsonText.ts"
import { drain, type Slices } from "../../core/surql/evaluate/scope.ts"
import { Refusals } from "../../core/view/refusals.ts"
import * as ViewTimes from "../../core/view/viewTimes.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { StoredView } from "../../ports/Database.ts"
import { UpstreamError } from "../../ports/Upstream.ts"
import type { EdgesShape } from "../edges/EdgeWriter.ts"
import {
  formatGiven,
  formatNamed,
  Overloaded,
  type PlacedViewAnswer,
  QueryRefused,
  StoreFailed,
  type ViewAnswer,
  type ViewRegistration
} from "../viewTypes.ts"
import type { CommitContext, Committer } from "./committer.ts"
import type { ResultReader } from "./reading.ts"
import { acquire, type FillContext, storedOf } from "./registering.ts"
import { formatOf, placedAnswer, type RegisteredView, type Registry, type ResultState } from "./registry.ts"

type Answer = Effect.Effect<ViewAnswer | PlacedViewAnswer, QueryRefused | Overloaded | StoreFailed>

interface Filled {
  readonly instance: View
  /** Result when the view was filled, if the answer carries it. */
  readonly shown: ResultState | undefined
}

interface Arrival extends Filled {
  readonly registration: ViewRegistration
  readonly stored: StoredView
  /** Number of resets when the instance was filled. */
  readonly resets: number
  readonly resume: (answer: Answer) => void
}

/** The parts of the views service that registrations use. */
interface Place extends FillContext {
  readonly committer: Committer
  readonly edges: EdgesShape
  readonly registry: Registry
  readonly reading: ResultReader
  readonly run: CommitContext["run"]
  readonly slicer: Slicer
  readonly databaseWaitMs: number
  readonly nowMs: () => number
  readonly put: (stored: StoredView, instance: View, assignment: number) => RegisteredView
  /** Drops a view that is being replaced by another. */
  readonly replace: (view: RegisteredView) => void
  /** Number of resets so far: an instance filled before the last one is void. */
  readonly resets: () => number
}

export const databaseUnreachable = (cause: UpstreamError): StoreFailed =>
  new StoreFailed({
    message: `the database of STORE_ADDR did not take it: ${cause.message}; try again when it does`,
    cause
  })

/** Whether a registration only refreshes the existing view (D9), which costs no memory. */
export const hasSameQuery = (stored: StoredView | undefined, { params, surql }: ViewRegistration): boolean =>
  stored !== undefined && stored.surql === surql && stored.params === JsonText.write(params)

export class Arrivals {
  private readonly at: Place
  /**
   * Latches of registrations that the database may show before they are installed; each opens when its view is
   * installed or refused.
   */
  private readonly announced = new Map<string, Effect.Latch>()
  private readonly refusals = new Refusals<QueryRefused | Overloaded>()

  constructor(place: Place) {
    this.at = place
  }

  /** Whether a registration of this view is in {@link announced}. */
  isComing(key: string): boolean {
    return this.announced.size > 0 && this.announced.has(key)
  }

  /** Calls `done` once no registration of this view is announced; returns false if none is now. */
  whenSettled(key: string, done: () => void): boolean {
    const latch = this.announced.get(key)
    if (latch !== undefined) this.at.run(latch.await, done)
    return latch !== undefined
  }

  /** Waits until no registration of this view is announced. */
  settled(key: string): Effect.Effect<void> {
    return Effect.suspend(() => this.announced.get(key)?.await ?? Effect.void)
  }

  /** The registered view, unless a registration that replaces it is announced. */
  served(key: string): RegisteredView | undefined {
    return this.isComing(key) ? undefined : this.at.registry.get(key)
  }

  /** Refreshes a view if its grace period is over; answers whether the view exists. */
  touch(key: string, nowMs: number): Effect.Effect<boolean, Overloaded | StoreFailed> {
    return Effect.suspend(() => {
      const stored = this.at.registry.get(key)?.stored
      if (stored === undefined || ViewTimes.isWithinGrace(stored, nowMs)) return Effect.succeed(stored !== undefined)
      return Effect.as(this.refresh(stored, nowMs), true)
    })
  }

  private refresh(stored: StoredView, nowMs: number): Effect.Effect<void, Overloaded | StoreFailed> {
    const { clientId, format, id, key, params, surql, ttlMs } = stored
    const registration: ViewRegistration = {
      id,
      surql,
      clientId,
      ttlMs,
      params: JsonText.parse(params) as ViewRegistration["params"],
      lastActiveAtMs: nowMs,
      format: formatNamed(format),
      isRefresh: true
    }
    // A served query is not refused.
    return Effect.asVoid(Effect.catchTag(this.open(registration, key), "QueryRefused", Effect.die))
  }

  /**
   * Fills the view's instance slice by slice, then makes the registration durable. An interrupt while it fills leaves
   * nothing behind.
   */
  open(registration: ViewRegistration, key: string): Answer {
    const { engine, nowMs, slicer } = this.at
    return Effect.async<ViewAnswer | PlacedViewAnswer, QueryRefused | Overloaded | StoreFailed>((resume) => {
      const begun = { sinceMs: nowMs(), used: engine.keptBytes.used }
      // A refresh skips earlier refusals: its view is served.
      const known =
        registration.isRefresh === true || this.refusals.isEmpty
          ? undefined
          : this.refusals.of(this.askedBy(registration), begun.sinceMs, begun.used)
      if (known !== undefined) return resume(Effect.fail(known))
      const refuse = (error: QueryRefused | Overloaded): void => {
        this.refusals.add(this.askedBy(registration), error, begun, nowMs())
        resume(Effect.fail(error))
      }
      const abandon = slicer.start(
        () => this.fill(registration),
        (filled) => {
          if (Exit.isSuccess(filled)) {
            if (Either.isLeft(filled.value)) resume(Effect.fail(filled.value.left))
            else this.filled(registration, key, filled.value.right, resume, refuse)
          } else if (Cause.isDie(filled.cause)) resume(Effect.failCause(Cause.die(Cause.squash(filled.cause))))
          else
            resume(
              Effect.fail(
                new Overloaded({
                  message: "the service is stopping; register again when it is back",
                  retryAfterSecs: 1
                })
              )
            )
        }
      )
      return Effect.sync(abandon)
    })
  }

  /** Key of a refusal: the query, and the format if a result is asked for. */
  private askedBy({ assignment, format, params, surql }: ViewRegistration): string {
    const query = this.at.watchdog.queryOf({ surql, params: JsonText.write(params) })
    return `${assignment === undefined ? (format ?? "flat") : ""} ${query}`
  }

  /** Fills the instance, and reads its result unless a scheduler asked, which gets none. */
  private *fill(registration: ViewRegistration): Slices<Either.Either<Filled, QueryRefused>> {
    const { engine, registry } = this.at
    const acquired = yield* acquire(this.at, registration, 1, true)
    if (Either.isLeft(acquired)) return Either.left(acquired.left)
    const instance = acquired.right
    // The registration will be refused, so no result is read.
    if (engine.noRoomFor(instance) !== undefined) return Either.right({ instance, shown: undefined })
    if (registration.assignment !== undefined || registration.isRefresh === true)
      return Either.right({ instance, shown: undefined })
    let shown: ResultState | undefined
    try {
      shown = yield* registry.instanceSliced(instance, registration.format ?? "flat")
      return Either.right({ instance, shown })
    } finally {
      // The fill was abandoned in a pause or failed: no other code holds the instance.
      if (shown === undefined) engine.release(instance)
    }
  }

  /** Refuses a result that is too large, before the registration is stored. */
  private filled(
    registration: ViewRegistration,
    key: string,
    { instance, shown }: Filled,
    resume: Arrival["resume"],
    refuse: (error: QueryRefused | Overloaded) => void
  ): void {
    const noRoom = this.at.engine.noRoomFor(instance)
    if (noRoom !== undefined) {
      this.at.engine.release(instance)
      return refuse(new Overloaded({ message: noRoom, retryAfterSecs: 60 }))
    }
    const stored = storedOf(registration, key)
    const arrival: Arrival = { registration, stored, instance, resets: this.at.resets(), shown, resume }
    if (shown?.tooLarge === undefined) return this.announce(arrival)
    this.release(arrival)
    refuse(new QueryRefused({ message: shown.tooLarge, line: 1, column: 1 }))
  }

  /**
   * Writes the registration to the database before it is answered, so that a restart finds it there. While the database
   * is away nothing is registered, and the answer is 500 `STORE_FAILED` (D6): a store refuses, while 503 would mean
   * that this service is full or starting. A row that a late database writes after that answer becomes a view by the
   * next compare, or expires.
   */
  private announce(given: Arrival): void {
    const { databaseWaitMs, edges, run } = this.at
    if (!edges.present) return this.commit(given, 0)
    const arrival = this.awaited(given)
    const late = new UpstreamError({
      reason: "unreachable",
      message: `no answer within ${databaseWaitMs} ms (SVC_DATABASE_WAIT_MS)`
    })
    const registering = Effect.timeoutFail(edges.register(arrival.stored), {
      duration: databaseWaitMs,
      onTimeout: () => late
    })
    run(registering, (answered) => {
      if (Either.isRight(answered)) return this.commit(arrival, answered.right)
      this.release(arrival)
      arrival.resume(Effect.fail(databaseUnreachable(answered.left)))
    })
  }

  /** The same arrival, announced to readers unless the current view already has this query. */
  private awaited(arrival: Arrival): Arrival {
    const { key } = arrival.stored
    if (hasSameQuery(this.at.registry.get(key)?.stored, arrival.registration)) return arrival
    const latch = Effect.unsafeMakeLatch(false)
    this.announced.set(key, latch)
    const resume: Arrival["resume"] = (answer) => {
      if (this.announced.get(key) === latch) this.announced.delete(key)
      latch.unsafeOpen()
      arrival.resume(answer)
    }
    return { ...arrival, resume }
  }

  /** A reset has released the instances that were filled before it. */
  private release({ instance, resets }: Arrival): void {
    if (resets === this.at.resets()) this.at.engine.release(instance)
  }

  private commit(arrival: Arrival, assignment: number): void {
    const { committer, resets } = this.at
    const { instance, registration, resume, shown, stored } = arrival
    committer.submit({
      changes: [],
      putViews: [stored],
      removeViews: [],
      done: (outcome) => {
        if (Either.isLeft(outcome)) {
          this.release(arrival)
          const error = outcome.left
          // A registration carries no positions, so the errors of D5 cannot come from it.
          return resume(
            error._tag === "Overloaded" || error._tag === "StoreFailed" ? Effect.fail(error) : Effect.die(error)
          )
        }
        if (registration.still?.() === false) {
          this.release(arrival)
          return resume(
            Effect.fail(new Overloaded({ message: "this SSP has bootstrapped anew meanwhile", retryAfterSecs: 1 }))
          )
        }
        // Installed here and not by the caller's fiber: a client that disconnects must not leave a durable view that is
        // not served.
        const live = arrival.resets === resets() ? Either.right(instance) : drain(acquire(this.at, registration))
        if (Either.isLeft(live)) return resume(Effect.die(live.left))
        const view = this.install(stored, live.right, assignment)
        resume(
          shown === undefined
            ? Effect.sync(() => placedAnswer(view, registration.id, this.at.engine))
            : this.at.reading.first(view, registration.id, shown)
        )
      }
    })
  }

  /** Installs a durable registration: refreshes the same view, or replaces another one of its key (D9). */
  private install(stored: StoredView, instance: View, assignment: number): RegisteredView {
    const { edges, engine, put, registry, replace } = this.at
    const existing = registry.get(stored.key)
    if (existing !== undefined && existing.instance === instance && formatOf(existing) === formatGiven(stored.format)) {
      existing.stored = stored
      existing.assignment = assignment
      engine.release(instance)
      edges.refreshed(stored, instance, assignment)
      return existing
    }
    if (existing !== undefined) replace(existing)
    return put(stored, instance, assignment)
  }
}
