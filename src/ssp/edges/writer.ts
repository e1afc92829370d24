/**
 * The writer of edges: two loops over one queue (D21).
 *
 * The flush loop writes a batch in one transaction and repeats it until the database confirms it; only then it counts
 * as written. The compare loop reads an opened view's edges from the database, and from its look at the view's result
 * on deltas are kept. Failures are retried with full jitter, and never block a change.
 *
 * A view waiting for its compare keeps no deltas: the compare uses the result at its end, which includes them. So a
 * database that is away for long costs memory only for changed edges, not for opened views.
 */
import { Effect, Either, type Scope, Stream } from "effect"
import { type Batch, EdgeQueue } from "../../core/edges/edgeQueue.ts"
import { difference, type EdgeOp, nameOf, ViewEdgeState } from "../../core/edges/viewEdges.ts"
import type { View } from "../../core/ivm/view/view.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import type { StoredView } from "../../ports/Database.ts"
import { atEnd } from "../../ports/Front.ts"
import type {
  Edge,
  EdgePlace,
  EdgesApplied,
  OwnedRegistration,
  UpstreamError,
  UpstreamShape,
  ViewEdges
} from "../../ports/Upstream.ts"
import { formatGiven, Overloaded } from "../viewTypes.ts"
import { backoff, WakeSignal } from "./bell.ts"
import { DatabaseRegistrations } from "./DatabaseRegistrations.ts"
import type { EdgeCounts, EdgesShape, Fork, RefusedEdges } from "./EdgeWriter.ts"

const maxPendingSetting = "SVC_MAX_PENDING_EDGES"
/**
 * Operations in one transaction: the edges of one step stay together up to this number, so that readers of the table
 * see a user's transaction whole or not at all. Half a second of the database's time.
 */
const batchSize = 5_000
/** Batch size after a failure, for instance a conflict with a registration that was refreshed meanwhile. */
const carefulSize = 500
/**
 * A flush waits until no edge has come for a millisecond, and this long at most: a burst is one write, and the user's
 * transaction behind it has time to commit.
 */
const gatherMs = 5
/** Pause between two looks whether writing is allowed. */
const lookMs = 100
/** Views compared at the same time. */
const comparing = 16
/** Pause before a view with unreadable edges is compared again. */
const stuckMs = 30_000
/** First pause before a view with refused edges is compared again; later pauses double. */
const healMs = 30_000
/** Time limit of the last write at a stop; the next start compares the edges that were not written. */
const farewellMs = 2_000

interface WriterSettings {
  /** Owner under which edges are written. */
  readonly owner: string
  readonly maxPending: number
  /** Asked before each write: whether this SSP may write at all. */
  readonly held: () => boolean
  /** Longest pause between two compares of a view with refused edges. */
  readonly maxHealMs: number
}

interface WrittenView {
  readonly stored: StoredView
  readonly instance: View
  /** Undefined until the registration is claimed. */
  assignment: number | undefined
  readonly edges: ViewEdgeState
  /** All edges are written, even equal ones, because they name another client. */
  readonly everything: boolean
  /** False while the view waits for its compare: deltas do not count yet. */
  live: boolean
  lost: boolean
  /** Edges that the database has refused since the last compare. */
  refused: RefusedEdges | undefined
  /** Whether a refusal was logged and its end was not yet. */
  isToldOf: boolean
}

interface Part {
  readonly view: WrittenView
  readonly part: ViewEdges
}

export const makeWriter = (
  upstream: UpstreamShape,
  settings: WriterSettings,
  fork: Fork
): Effect.Effect<EdgesShape, never, Scope.Scope> =>
  Effect.gen(function* () {
    const writer = new Writer(upstream, settings)
    // Registered before the loops are forked, so that it runs after they have ended.
    yield* Effect.addFinalizer(() => writer.farewell)
    for (const loop of writer.loops) yield* fork(loop)
    return writer
  })

class Writer implements EdgesShape {
  readonly present = true
  private readonly bells = { flush: new WakeSignal(), compare: new WakeSignal(), heal: new WakeSignal() }
  private readonly queue = new EdgeQueue()
  private readonly views = new Map<string, WrittenView>()
  private readonly toCompare = new Set<string>()
  /** Views with refused edges. */
  private readonly owing = new Set<string>()
  /** Open while no batch is being written: work that must not be overtaken waits for it. */
  private readonly flight = Effect.unsafeMakeLatch(true)
  private readonly registrations: DatabaseRegistrations
  private failures = 0
  private allowed: () => boolean = () => false
  private lost: (key: string) => void = () => undefined
  private readonly done = {
    puts: 0,
    removals: 0,
    batches: 0,
    failures: 0,
    refused: 0,
    lost: 0,
    compared: 0,
    found: 0,
    differences: 0
  }
  /** Results of the compares since the last log line. */
  private summary = { views: 0, found: 0, differences: 0 }

  constructor(
    private readonly upstream: UpstreamShape,
    private readonly settings: WriterSettings
  ) {
    this.registrations = new DatabaseRegistrations(upstream, settings.owner, this.flight)
  }

  get register(): EdgesShape["register"] {
    return this.registrations.register
  }

  get clear(): EdgesShape["clear"] {
    return this.registrations.clear
  }

  get loops(): ReadonlyArray<Effect.Effect<never>> {
    return [this.flushing, this.comparing, this.healing, this.registrations.loop]
  }

  readonly allowWhen: EdgesShape["allowWhen"] = (may) => void (this.allowed = may)

  private get mayWrite(): boolean {
    return this.allowed() && this.settings.held()
  }

  readonly counts = (): EdgeCounts => ({ waiting: this.queue.size, ...this.done })

  readonly overloaded = (): Overloaded | undefined =>
    this.queue.size < this.settings.maxPending
      ? undefined
      : new Overloaded({
          message: `${this.queue.size} edges wait for the database, the limit is ${this.settings.maxPending} (${maxPendingSetting})`,
          retryAfterSecs: 2
        })

  readonly open: EdgesShape["open"] = (stored, instance, assignment) => {
    const before = this.views.get(stored.key)
    const everything =
      before !== undefined && ((before.everything && !before.live) || before.stored.clientId !== stored.clientId)
    this.views.set(stored.key, {
      stored,
      instance,
      assignment,
      edges: new ViewEdgeState(instance),
      everything,
      live: false,
      lost: false,
      refused: before?.refused,
      isToldOf: before?.isToldOf === true
    })
    this.queue.drop(stored.key)
    this.toCompare.add(stored.key)
    this.bells.compare.ring()
  }

  readonly refreshed: EdgesShape["refreshed"] = (stored, instance, assignment) => {
    const view = this.views.get(stored.key)
    if (
      view === undefined ||
      view.assignment !== assignment ||
      view.stored.clientId !== stored.clientId ||
      view.refused !== undefined
    )
      this.open(stored, instance, assignment)
  }

  readonly changed: EdgesShape["changed"] = (key, delta) => {
    const view = this.views.get(key)
    if (view === undefined || !view.live) return
    for (const op of view.edges.changes(delta)) this.queue.add(key, op)
    if (this.queue.waiting > 0) this.bells.flush.ring()
  }

  readonly close: EdgesShape["close"] = (key, remove) => {
    this.views.delete(key)
    this.queue.drop(key)
    this.toCompare.delete(key)
    if (remove) this.registrations.leave(key)
  }

  readonly refused: EdgesShape["refused"] = (key) => this.views.get(key)?.refused

  readonly isLost = (key: string): boolean => this.views.get(key)?.lost === true
  readonly isLeaving = (key: string): boolean => this.registrations.has(key)

  readonly onLost: EdgesShape["onLost"] = (lost) => void (this.lost = lost)

  /** A view that another SSP keeps alive is noted as lost here: if its edges do not change, no write would tell. */
  readonly expire: EdgesShape["expire"] = (keys, nowMs) =>
    Effect.tap(this.upstream.expire(keys, this.settings.owner, nowMs), (left) =>
      Effect.forEach(
        left,
        ({ key, owner }) => {
          const view = owner === this.settings.owner ? undefined : this.views.get(key)
          return view === undefined ? Effect.void : this.lose(view)
        },
        { discard: true }
      )
    )

  readonly settled: Effect.Effect<void> = Effect.suspend(() =>
    this.queue.size + this.toCompare.size + this.registrations.size === 0
      ? Effect.void
      : Effect.zipRight(Effect.sleep(2), this.settled)
  )

  /** One attempt at the remaining edges. */
  readonly farewell: Effect.Effect<void> = Effect.suspend(() => {
    this.queue.back()
    const last: Effect.Effect<void, UpstreamError> = Effect.suspend(() =>
      this.queue.waiting === 0 || !this.mayWrite
        ? Effect.void
        : Effect.zipRight(this.send(this.queue.take(batchSize)), last)
    )
    return Effect.catchAll(atEnd(Effect.zipRight(last, this.registrations.last), farewellMs), (error) =>
      Effect.logWarning(
        `stopped with ${this.queue.size} edges and ${this.registrations.size} removed registrations not written (${error.message}); the next start compares the edges of every view`
      )
    )
  })

  private readonly flushing: Effect.Effect<never> = Effect.forever(
    Effect.gen(this, function* () {
      yield* this.bells.flush.wait
      while (this.queue.waiting > 0) {
        yield* this.gather
        if (this.mayWrite) yield* this.flush
        else yield* Effect.sleep(lookMs)
      }
    })
  )

  /** Waits until no further edges come. */
  private readonly gather: Effect.Effect<void> = Effect.gen(this, function* () {
    for (
      let ms = 0, seen = -1;
      ms < gatherMs && this.queue.waiting < carefulSize && seen !== this.queue.arrived;
      ms++
    ) {
      seen = this.queue.arrived
      yield* Effect.sleep(1)
    }
  })

  private readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    const batch = this.queue.take(this.failures === 0 ? batchSize : carefulSize)
    this.flight.unsafeClose()
    return this.send(batch).pipe(
      Effect.ensuring(Effect.sync(() => this.flight.unsafeOpen())),
      Effect.zipRight(
        Effect.suspend(() => {
          const failed = this.failures
          this.failures = 0
          return failed < 3
            ? Effect.void
            : Effect.logInfo(`edges are written again after ${failed} failed attempts; ${this.queue.size} wait`)
        })
      ),
      Effect.catchAll((error) => {
        this.queue.back()
        this.failures++
        this.done.failures++
        // A transient first failure, as by a conflict with the user's own transaction, is logged for debugging only,
        // and so are most repeated ones.
        const say =
          this.failures === 3
            ? Effect.logWarning
            : error.transient || this.failures > 1
              ? Effect.logDebug
              : Effect.logError
        return Effect.zipRight(
          say(`edges could not be written (${this.queue.size} wait): ${error.message}; trying again`),
          backoff(this.failures)
        )
      })
    )
  })

  /** Writes one batch in one transaction; it counts as written when this returns. */
  private send(batch: Batch): Effect.Effect<void, UpstreamError> {
    const parts: Array<Part> = []
    for (const { key, ops } of batch.views) {
      const view = this.views.get(key)
      if (view !== undefined) parts.push({ view, part: this.partOf(view, ops) })
    }
    return Effect.flatMap(this.upstream.apply(parts.map(({ part }) => part)), (applied) => {
      this.queue.landed()
      this.done.batches++
      for (const { part } of parts) {
        this.done.puts += part.puts.length
        this.done.removals += part.removals.length
      }
      return this.note(applied, parts)
    })
  }

  private partOf({ assignment, stored: { clientId, key } }: WrittenView, ops: ReadonlyArray<EdgeOp>): ViewEdges {
    const puts: Array<Edge> = [],
      removals: Array<EdgePlace> = []
    for (const { out: text, parent: parentText, path, version } of ops) {
      const out = Ids.parse(text)
      const parent = path === "" ? undefined : Ids.parse(parentText)
      if (out === undefined || (path !== "" && parent === undefined))
        throw new Error(`an edge of view ${key} names what is no record: ${JSON.stringify([text, parentText])}`)
      if (version === undefined) removals.push({ path, parent, out })
      else puts.push({ path, parent, out, version })
    }
    return { key, clientId, owner: this.settings.owner, assignment: assignment ?? 0, puts, removals }
  }

  /**
   * Compares views with refused edges again, since the rule that refused them may be gone, and logs views that have
   * none any more.
   */
  readonly heal: EdgesShape["heal"] = Effect.suspend(() => {
    const healed: Array<string> = []
    for (const key of this.owing) {
      const view = this.views.get(key)
      if (view === undefined || view.lost) this.owing.delete(key)
      else if (!view.live) continue
      else if (view.refused !== undefined) this.open(view.stored, view.instance, view.assignment)
      else {
        this.owing.delete(key)
        view.isToldOf = false
        healed.push(view.stored.id)
      }
    }
    return healed.length === 0
      ? Effect.void
      : Effect.logInfo(`the database takes the edges that it had refused of the views ${healed.join(", ")}`)
  })

  private readonly healing: Effect.Effect<never> = Effect.forever(
    Effect.gen(this, function* () {
      yield* this.bells.heal.wait
      const { maxHealMs } = this.settings
      for (let pauseMs = healMs; this.owing.size > 0; pauseMs *= 2) {
        yield* Effect.sleep(Math.min(pauseMs, maxHealMs))
        yield* this.heal
      }
    })
  )

  private note({ lost, refused }: EdgesApplied, parts: ReadonlyArray<Part>): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const sent = new Map(parts.map(({ view }) => [view.stored.key, view]))
      this.done.refused += refused.length
      for (const { edge, key, reason } of refused) {
        const view = sent.get(key)
        if (view === undefined) continue
        const { count = 0, ...first } = view.refused ?? { edge: edge.out.text, reason }
        view.refused = { ...first, count: count + 1 }
        this.owing.add(key)
        this.bells.heal.ring()
        if (view.isToldOf) continue
        view.isToldOf = true
        yield* Effect.logWarning(
          `the database does not take an edge of view ${view.stored.id} to ${edge.out.text}: ${reason}; others of this view that it refuses are only counted; they are tried again`
        )
      }
      for (const key of lost) {
        const view = sent.get(key)
        // The view was closed or opened anew meanwhile, so this opening has not lost it.
        if (view === undefined || view !== this.views.get(key)) continue
        yield* Effect.logWarning(
          `view ${view.stored.id} has another owner or no registration in the database any more; it is no longer served here`
        )
        yield* this.lose(view)
      }
    })
  }

  private readonly comparing: Effect.Effect<never> = Effect.forever(
    Effect.gen(this, function* () {
      yield* this.bells.compare.wait
      for (let failed = 0; this.toCompare.size > 0; ) {
        if (!this.mayWrite) {
          yield* Effect.sleep(lookMs)
          continue
        }
        const ended = yield* Effect.forEach([...this.toCompare].slice(0, 100), (key) => this.compare(key), {
          concurrency: comparing
        })
        failed = ended.some((ok) => !ok) ? failed + 1 : 0
        if (failed > 0) yield* backoff(failed)
      }
      const { differences, found, views } = this.summary
      this.summary = { views: 0, found: 0, differences: 0 }
      const say = found > 0 ? Effect.logInfo : Effect.logDebug
      yield* say(`edges of ${views} views compared with the database: ${found} there, ${differences} to be written`)
    })
  )

  /** Compares a view with its edges in the database; false if the database did not answer. */
  private compare(key: string): Effect.Effect<boolean> {
    return Effect.gen(this, function* () {
      const view = this.views.get(key)
      if (view === undefined || view.live || view.lost) return this.toCompare.delete(key)
      if (view.assignment === undefined) {
        const claimed = yield* Effect.either(this.upstream.claim([key], this.settings.owner))
        if (Either.isLeft(claimed)) return yield* this.unread(view, claimed.left)
        if (!(yield* this.claimed(view, claimed.right[0]))) return this.toCompare.delete(key)
      }
      // Waits for writes of an earlier opening, so that the read sees their outcome.
      yield* this.flight.await
      const there = new Map<string, { readonly op: EdgeOp }>()
      const read = yield* Effect.either(
        Stream.runForEach(this.upstream.edges(key), (chunk) =>
          Effect.sync(() => {
            for (const { out, parent, path, version } of chunk) {
              const op = { path, parent: parent?.text ?? "", out: out.text, version }
              there.set(nameOf(op), { op })
            }
          })
        )
      )
      if (Either.isLeft(read)) return yield* this.unread(view, read.left)
      if (this.views.get(key) === view && !view.lost) this.settle(view, there)
      return true
    })
  }

  /** Whether the registration is this view's. */
  private claimed(view: WrittenView, registration: OwnedRegistration | undefined): Effect.Effect<boolean> {
    const { id, ...own } = view.stored
    if (registration === undefined || this.views.get(own.key) !== view) return Effect.succeed(false)
    view.assignment = registration.assignment
    if (
      registration.surql === own.surql &&
      registration.params === own.params &&
      formatGiven(registration.format) === formatGiven(own.format)
    )
      return Effect.succeed(true)
    return Effect.as(
      Effect.zipRight(
        Effect.logWarning(`view ${id} has another query in the database than here; it is registered anew from there`),
        this.lose(view)
      ),
      false
    )
  }

  private lose(view: WrittenView): Effect.Effect<void> {
    return Effect.sync(() => {
      view.lost = true
      view.live = false
      this.queue.drop(view.stored.key)
      this.done.lost++
      this.lost(view.stored.key)
    })
  }

  private settle(view: WrittenView, there: ReadonlyMap<string, { readonly op: EdgeOp }>): void {
    const { key } = view.stored
    const ops = difference(view.edges.all(), there, view.everything)
    for (const op of ops) this.queue.add(key, op)
    view.live = true
    view.refused = undefined
    this.toCompare.delete(key)
    this.done.compared++
    this.done.found += there.size
    this.done.differences += ops.length
    this.summary = {
      views: this.summary.views + 1,
      found: this.summary.found + there.size,
      differences: this.summary.differences + ops.length
    }
    if (ops.length > 0) this.bells.flush.ring()
  }

  /** If the database is away, all compares wait; if this view's edges are unreadable, only this view waits. */
  private unread(view: WrittenView, error: UpstreamError): Effect.Effect<boolean> {
    if (error.reason !== "refused")
      return Effect.as(
        Effect.logDebug(`the edges of view ${view.stored.id} could not be read: ${error.message}; trying again`),
        false
      )
    const { key } = view.stored
    this.toCompare.delete(key)
    const later = Effect.sync(() => {
      if (this.views.get(key) !== view) return
      this.toCompare.add(key)
      this.bells.compare.ring()
    })
    return Effect.logError(
      `the edges of view ${view.stored.id} cannot be read: ${error.message}; trying again in ${stuckMs / 1000} s`
    ).pipe(Effect.zipRight(Effect.forkDaemon(Effect.delay(later, stuckMs))), Effect.as(true))
  }
}
