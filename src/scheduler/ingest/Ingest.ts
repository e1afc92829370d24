/**
 * Ingest of record changes: decides versions, appends to the log, applies to the replica, fills the delivery queues,
 * answers.
 *
 * Order of a batch (D26): versions (D4) -> log, flushed -> replica -> delivery queues -> answer, once the ready SSPs
 * have applied the batch or their deadline has passed. Batches are committed one after the other, because versions are
 * decided over the state that the batch before left; the next batch gathers meanwhile. This code uses callbacks and no
 * fiber per request: its cost limits the throughput of the service.
 */
import { Context, Duration, Effect, Either, Layer, Runtime, type Scope } from "effect"
import * as State from "../../core/cluster/state.ts"
import type { Change } from "../../core/record/change.ts"
import * as Event from "../../core/record/event.ts"
import { fullMessage } from "../../core/record/memory.ts"
import { lostId } from "../../core/record/reconcile.ts"
import * as Version from "../../core/record/version.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { defaultGatherTurns, GroupCommit } from "../../node/work/groupCommit.ts"
import * as Metered from "../../node/work/metered.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import { Replica, type ReplicaError, type ReplicaRecord } from "../../ports/Replica.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { steadyOf, Turn } from "../../ports/Turn.ts"
import { Wal, type WalFailed } from "../../ports/Wal.ts"
import { SchedulerConfig, type SchedulerConfigShape } from "../Config.ts"
import * as Errors from "../errors.ts"
import { DeclaredTables } from "../pool/DeclaredTables.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"
import { JobFeed } from "./JobFeed.ts"
import { Waiters } from "./Waiters.ts"

interface Ingested {
  /** Position of the last change in the log; if none was logged, the log's position then. */
  readonly seq: number
  /** Ready SSPs that have applied it (D7). */
  readonly delivered: number
}

export type Refusal = Errors.Overloaded | Errors.NotLeader | Errors.ReplicaFailed

/** Whether a change may still be made, given its record when its turn comes; if not, the change is dropped. */
type Holds = (change: Change, known: Version.Known | undefined) => boolean

/** How a caller's changes are treated. */
interface Taking {
  readonly holds?: Holds | undefined
  /** `durable`: the caller is answered when the changes are durable, and does not wait for SSPs. */
  readonly answers?: "durable" | undefined
  /** Whether the changes are one step, which SSPs show at once. */
  readonly asOne?: boolean | undefined
}

type Moved = (records: ReadonlyArray<ReplicaRecord>, through: number) => void

/** One caller's changes. `done` is called exactly once. */
interface Work extends Taking {
  readonly arrived: ReadonlyArray<Event.ReceivedChange>
  /** Number of the schema by which untyped changes were typed. */
  readonly typedBy: number
  /** New definitions of the database, if the one change holds them. */
  readonly defines?: string | undefined
  /** Trace of the changes. */
  readonly trace?: string | undefined
  readonly done: (outcome: Either.Either<Ingested, Refusal>) => void
}

/** A batch that is logged and not yet applied to the replica; the next batch is logged only after it. */
interface Owed {
  readonly records: ReadonlyArray<ReplicaRecord>
  readonly lines: ReadonlyArray<string>
  readonly traces: ReadonlyArray<string | undefined> | undefined
  readonly through: number
  /** New definitions of the database, if the line logs them. */
  readonly defines: string | undefined
}

/** Most changes in one flush. */
const maxBatch = 2000
const retryMs = 1000
/** Records worth a write of the replica beside a flush. */
const worthWriting = 64

export class Ingest extends Context.Tag("scheduler/ingest/Ingest")<
  Ingest,
  {
    /** Offers changes; `done` is called exactly once, now or later. */
    readonly offer: (arrived: ReadonlyArray<Event.ReceivedChange>, done: Work["done"], trace?: string) => void
    /** Returns when the changes are durable, or (by default) when the ready SSPs have applied them too. */
    readonly ingest: (arrived: ReadonlyArray<Event.ReceivedChange>, taking?: Taking) => Effect.Effect<Ingested, Refusal>
    /** Logs definitions (a text of `core/surreal/definitionsRecord`), unless the log holds them already. */
    readonly define: (text: string) => Effect.Effect<void, Refusal>
    /** Called with the changes just applied to the replica, before any other is. */
    readonly watch: (listener: Moved) => void
    /** Changes that wait for the log. */
    readonly waiting: () => number
  }
>() {
  static readonly layer: Layer.Layer<
    Ingest,
    never,
    Pool | JobFeed | Replica | Wal | Turn | DeclaredTables | SchedulerConfig | Serving
  > = Layer.scoped(
    Ingest,
    Effect.suspend(() => make)
  )
}

interface PipelineDependencies {
  readonly config: SchedulerConfigShape
  readonly pool: PoolShape
  readonly jobs: typeof JobFeed.Service
  readonly replica: typeof Replica.Service
  readonly wal: typeof Wal.Service
  readonly turn: typeof Turn.Service
  readonly declared: typeof DeclaredTables.Service
  readonly waiters: Waiters
  readonly meters: typeof Meters.Service
  readonly moved: Moved
  /** Runs an effect; `done` is called exactly once. A defect ends the process. */
  readonly run: <A>(effect: Effect.Effect<A>, done: (value: A) => void) => void
}

/** Failures after which the client may send the change again. */
const busy: ReadonlySet<WalFailed["reason"]> = new Set(["overloaded", "closed", "unreachable"])

const notLeading = new Errors.NotLeader({ message: "another scheduler leads this cluster now, or may" })

const refusalOf = (error: WalFailed | ReplicaError): Refusal => {
  if (error._tag === "WalFailed" && error.reason === "fenced") return notLeading
  return error._tag === "WalFailed" && busy.has(error.reason)
    ? new Errors.Overloaded({ message: error.message, retryAfterSecs: 1 })
    : new Errors.ReplicaFailed({
        message: `${error._tag === "WalFailed" ? "the log" : "the replica"} did not take the change, nothing was delivered: ${error.message}`
      })
}

/**
 * Callers that wait for their answer. When this scheduler loses the right to answer, each is refused at once, whatever
 * becomes of its changes.
 *
 * An array with a free list, and no `Set`: V8 grows a set by a new table and lets the old one point to it, so an old
 * table would keep every answered request alive until a full collection.
 */
class Owing {
  private refusals: Array<(() => void) | undefined> = []
  private free: Array<number> = []

  guarded(done: Work["done"]): Work["done"] {
    const refuse = (): void => done(Either.left(notLeading))
    const place = this.free.pop() ?? this.refusals.length
    this.refusals[place] = refuse
    return (outcome) => {
      if (this.refusals[place] !== refuse) return
      this.refusals[place] = undefined
      this.free.push(place)
      done(outcome)
    }
  }

  refuse(): void {
    const { refusals } = this
    this.refusals = []
    this.free = []
    for (const refuse of refusals) refuse?.()
  }
}

/** A change to be logged, and its record afterwards. */
interface Made extends Event.ReceivedChange {
  readonly record: ReplicaRecord
  readonly trace: string | undefined
  /** State of the record before the change. */
  readonly was: Version.Known | undefined
  /** Whether the next change belongs to the same step. */
  continues: boolean
}

/** A batch prepared for the log: changes in order, and the number of each caller's. */
interface Plan {
  readonly made: ReadonlyArray<Made>
  readonly counts: ReadonlyArray<number>
}

/** `floor`: versions up to it may have been given to records that are lost (D4). */
const plan = (
  batch: ReadonlyArray<Work>,
  current: ReadonlyMap<string, ReplicaRecord>,
  floor: number,
  jobs: PipelineDependencies["jobs"]
): Plan => {
  const known = new Map<string, Version.Known>(current)
  const made: Array<Made> = []
  const counts = batch.map(({ arrived, asOne = false, holds, trace }) => {
    const before = made.length
    for (const { change, raw } of arrived) {
      const was = known.get(change.id.text)
      if (holds?.(change, was) === false || jobs.hasRun(change, was)) continue
      const next = Version.after(was, change, floor)
      if (next === undefined) continue
      known.set(change.id.text, next)
      made.push({
        change,
        raw,
        record: { id: change.id, version: next.version, doc: next.doc },
        trace: change.traceparent ?? trace,
        was,
        continues: asOne
      })
    }
    const last = made.length > before ? made.at(-1) : undefined
    if (last !== undefined) last.continues = false
    return made.length - before
  })
  return { made, counts }
}

class Pipeline {
  private readonly group: GroupCommit<Work>
  private owed: Owed | undefined
  /** Records that the replica has taken since it last wrote. */
  private unwritten = 0
  /** Read at the first batch; the clone has set it by then. */
  private floor: number | undefined

  constructor(private readonly parts: PipelineDependencies) {
    this.group = new GroupCommit<Work>({
      sizeOf: ({ arrived }) => arrived.length,
      maxPending: parts.config.maxPendingChanges,
      maxBatch,
      maxGathering: defaultGatherTurns,
      next: (run) => parts.turn.next(run),
      commit: (batch, done) => this.cycle(batch, done)
    })
  }

  offer(work: Work): void {
    if (this.group.submit(work)) return
    const message = `${this.waiting} changes are waiting for the log, the limit is ${this.parts.config.maxPendingChanges} (SVC_MAX_PENDING_CHANGES)`
    work.done(Either.left(new Errors.Overloaded({ message, retryAfterSecs: 1 })))
  }

  get waiting(): number {
    return this.group.waiting
  }

  /** Whether no change is being logged or waits. */
  get idle(): boolean {
    return this.group.idle
  }

  private cycle(batch: ReadonlyArray<Work>, done: () => void): void {
    const { meters, run } = this.parts
    meters.ingestChanges.add(batch.reduce((sum, { arrived }) => sum + arrived.length, 0))
    run(Effect.either(this.commit(batch)), (result) => {
      if (Either.isLeft(result)) for (const work of batch) work.done(Either.left(result.left))
      done()
      if (this.idle && this.owed !== undefined) run(Effect.sleep(Duration.millis(retryMs)), this.retry)
    })
  }

  /** Retries to apply logged changes to the replica, even if no change waits. */
  private readonly retry = (): void => {
    if (this.owed !== undefined) this.group.wake()
  }

  // `fnUntraced` is called once per class: a generator function made for each batch would keep all requests of the
  // batch in memory until a full collection.
  private readonly commit = Effect.fnUntraced(
    function* (this: Pipeline, taken: ReadonlyArray<Work>) {
      if (this.owed !== undefined) yield* this.settle(this.owed)
      if (taken.length === 0) return
      const batch = this.retyped(taken)
      const { counts, made } = plan(
        batch,
        yield* this.parts.replica.current(idsOf(batch)),
        (this.floor ??= yield* this.lost),
        this.parts.jobs
      )
      if (made.length > 0) yield* this.log(made, batch.length === 1 ? batch[0]?.defines : undefined)
      this.hold(batch, counts, made.length)
    },
    Effect.mapError(refusalOf),
    Effect.tapError((error) => Effect.logError(error.message))
  )

  /** Types changes again that were typed by older definitions, since SSPs get them behind the new ones. */
  private retyped(batch: ReadonlyArray<Work>): ReadonlyArray<Work> {
    const { count, schema } = this.parts.declared
    const typedBy = count()
    if (batch.every((work) => work.typedBy === typedBy)) return batch
    return batch.map((work) =>
      work.typedBy === typedBy
        ? work
        : {
            ...work,
            typedBy,
            arrived: work.arrived.map((one) => {
              const { change, raw } = one
              const isTyped = change.op === "DELETE" || (raw.types !== undefined && raw.types !== null)
              return isTyped ? one : Event.fromRaw(raw, change.op, schema)
            })
          }
    )
  }

  /**
   * Logs definitions alone: every batch behind them is typed by them. `done` is called when they are in the replica.
   */
  define(text: string, done: (outcome: Either.Either<void, Refusal>) => void): void {
    const { declared, run } = this.parts
    const arrived = [Event.fromRaw(Definitions.rawOf(text), "UPDATE")]
    const work = Effect.suspend(() => {
      if (declared.text() === text) return Effect.void
      return this.commit([{ arrived, typedBy: declared.count(), defines: text, answers: "durable", done: () => {} }])
    })
    this.group.alone((next) =>
      run(Effect.either(work), (outcome) => {
        done(outcome)
        next()
      })
    )
  }

  /** Appends the changes to the log, jobs with their SSP (D35), then applies them. */
  private readonly log = Effect.fnUntraced(function* (
    this: Pipeline,
    made: ReadonlyArray<Made>,
    defines: string | undefined
  ) {
    const { jobs, wal } = this.parts
    const assigned = yield* jobs.assign(made, this.parts.pool.state().log.head + 1)
    const lines = made.map(({ change, continues, raw, record }) =>
      Event.toLine(raw, change.op, record.version, assigned.to(change), continues)
    )
    this.catchUpMeanwhile()
    const through = yield* Effect.tapError(wal.append(lines), () => assigned.undo)
    yield* this.settle({
      records: made.map(({ record }) => record),
      lines,
      through,
      defines,
      traces: made.some(({ trace }) => trace !== undefined) ? made.map(({ trace }) => trace) : undefined
    })
  })

  /** Lets the replica write while the log is flushed, if there is enough to write: no change waits for that time. */
  private catchUpMeanwhile(): void {
    const { replica, run, turn } = this.parts
    if (this.unwritten < worthWriting) return
    this.unwritten = 0
    // The log has begun its flush by then.
    turn.next(() =>
      run(
        Effect.catchAll(replica.catchUp, ({ message }) =>
          Effect.logError(
            `the replica cannot write what it has taken, which is safe in the log: ${message}; trying again with the next changes`
          )
        ),
        () => {}
      )
    )
  }

  private readonly lost: Effect.Effect<number, ReplicaError> = Effect.suspend(() =>
    Effect.map(this.parts.replica.current([lostId]), (found) => found.get(lostId.text)?.version ?? 0)
  )

  /** Applies logged changes; until that succeeds no further change is logged (D26). */
  private settle(owed: Owed): Effect.Effect<void, ReplicaError> {
    const { jobs, pool, replica } = this.parts
    this.owed = owed
    const step = Effect.map(replica.commit({ records: owed.records, through: owed.through }), () => {
      this.owed = undefined
      this.unwritten += owed.records.length
      if (owed.defines !== undefined) this.parts.declared.take(owed.defines)
      this.parts.moved(owed.records, owed.through)
      pool.events.appended(owed.lines, owed.through, owed.traces)
      return { tag: "Appended", through: owed.through } as const
    })
    return Effect.zipRight(pool.alone(step), jobs.moved(owed.records))
  }

  /** Each caller waits for the log position of its last change. */
  private hold(batch: ReadonlyArray<Work>, counts: ReadonlyArray<number>, total: number): void {
    let seq = this.parts.pool.state().log.head - total
    batch.forEach(({ answers, done }, i) => {
      seq += counts[i] ?? 0
      if (answers === "durable") done(Either.right({ seq, delivered: State.appliedBy(this.parts.pool.state(), seq) }))
      else this.parts.waiters.add(seq, (delivered, at) => done(Either.right({ seq: at, delivered })))
    })
  }
}

const idsOf = (batch: ReadonlyArray<Work>): ReadonlyArray<RecordId> => {
  const ids = new Map<string, RecordId>()
  for (const { arrived } of batch)
    for (const {
      change: { id }
    } of arrived)
      ids.set(id.text, id)
  return [...ids.values()]
}

/**
 * Refuses all but deletes while the heap is full: whether a change shrinks its record is unknown, as records are on
 * disk.
 */
const outOfMemory = (heap: HeapShape, arrived: ReadonlyArray<Event.ReceivedChange>): Errors.Overloaded | undefined => {
  const memory = heap.memory()
  return memory.isFull && arrived.some(({ change: { op } }) => op !== "DELETE")
    ? new Errors.Overloaded({ message: fullMessage(memory, "deletes"), retryAfterSecs: 5 })
    : undefined
}

const owed = Effect.map(Leadership, ({ mayAnswer, onSilenced, status }) => {
  const owing = new Owing()
  onSilenced(() => owing.refuse())
  const isAlone = status() === undefined
  return { mayAnswer, guarded: (done: Work["done"]): Work["done"] => (isAlone ? done : owing.guarded(done)) }
})

const make: Effect.Effect<
  typeof Ingest.Service,
  never,
  Pool | JobFeed | Replica | Wal | Turn | DeclaredTables | SchedulerConfig | Serving | Scope.Scope
> = Effect.gen(function* () {
  const config = yield* SchedulerConfig
  const pool = yield* Pool
  const declared = yield* DeclaredTables
  const serving = yield* Serving
  const runtime = yield* Effect.runtime()
  const clock = yield* Effect.clock
  const gauge = { meters: yield* Meters, clock }
  const log = yield* Wal
  if (log.lost !== undefined) yield* Effect.forkScoped(Effect.catchAllCause(log.lost, serving.crash))
  const run: PipelineDependencies["run"] = (effect, done) => {
    const finished = Effect.flatMap(effect, (value) => Effect.sync(() => done(value)))
    Runtime.runFork(runtime)(Effect.catchAllCause(finished, (cause) => serving.crash(cause)))
  }
  const listeners: Array<Moved> = []
  const waiters = new Waiters(pool, config.deliveryWaitMs, steadyOf(clock), run)
  const pipeline = new Pipeline({
    config,
    pool,
    jobs: yield* JobFeed,
    replica: Metered.replica(yield* Replica, gauge),
    wal: Metered.wal(log, gauge),
    turn: yield* Turn,
    declared,
    waiters,
    meters: gauge.meters,
    moved: (records, through) => listeners.forEach((listener) => listener(records, through)),
    run
  })
  pool.watch(() => waiters.look())
  // All requests are answered or cut by now; the changes of a cut one are still logged.
  yield* Effect.addFinalizer(() =>
    Effect.repeat(Effect.sleep(Duration.millis(5)), { until: () => pipeline.idle, times: 1000 })
  )
  const heap = yield* Heap
  const { guarded, mayAnswer } = yield* owed
  const offer: (typeof Ingest.Service)["offer"] = (arrived, done, trace) => {
    if (!mayAnswer()) return done(Either.left(notLeading))
    const full = outOfMemory(heap, arrived)
    if (full === undefined) pipeline.offer({ arrived, typedBy: declared.count(), done: guarded(done), trace })
    else done(Either.left(full))
  }
  return {
    offer,
    ingest: (arrived, taking) =>
      Effect.async<Ingested, Refusal>((resume) => {
        if (!mayAnswer()) return resume(Effect.fail(notLeading))
        pipeline.offer({
          ...taking,
          arrived,
          typedBy: declared.count(),
          done: guarded((outcome) =>
            resume(Either.isRight(outcome) ? Effect.succeed(outcome.right) : Effect.fail(outcome.left))
          )
        })
      }),
    define: (text) =>
      Effect.async<void, Refusal>((resume) =>
        pipeline.define(text, (outcome) => resume(Either.isRight(outcome) ? Effect.void : Effect.fail(outcome.left)))
      ),
    watch: (listener) => void listeners.push(listener),
    waiting: () => pipeline.waiting
  }
})
