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
import { GroupCommit, usualGathering } from "../../node/work/groupCommit.ts"
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
import { Declared } from "../pool/Declared.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"
import { JobFeed } from "./JobFeed.ts"
import { Waiters } from "./Waiters.ts"

interface Ingested {
  /** Position of the last change in the log; of a dropped one, where the log stood. */
  readonly seq: number
  /** Ready SSPs that have applied it (D7). */
  readonly delivered: number
}

export type Refusal = Errors.Overloaded | Errors.NotLeader | Errors.ReplicaFailed

/**
 * Whether a change may still be made, given what its record is when it is its turn; it counts nothing and is dropped
 * when not.
 */
type Holds = (change: Change, known: Version.Known | undefined) => boolean

/** How a caller's changes are taken. */
interface Taking {
  readonly holds?: Holds | undefined
  /** The caller needs the changes durable only, and does not wait for SSPs. */
  readonly answers?: "durable" | undefined
  /** Whether the changes are one step, which SSPs show at once. */
  readonly asOne?: boolean | undefined
}

type Moved = (records: ReadonlyArray<ReplicaRecord>, through: number) => void

/** One caller's changes. `done` is called exactly once. */
interface Work extends Taking {
  readonly arrived: ReadonlyArray<Event.Arrived>
  /** Which declarations have typed those that name no types. */
  readonly typedBy: number
  /** Definitions of the database from here on, if the one change holds them. */
  readonly defines?: string | undefined
  /** The trace its changes belong to. */
  readonly trace?: string | undefined
  readonly done: (outcome: Either.Either<Ingested, Refusal>) => void
}

/** A batch that is logged and not yet applied to the replica: no other is logged before it is. */
interface Owed {
  readonly records: ReadonlyArray<ReplicaRecord>
  readonly lines: ReadonlyArray<string>
  readonly traces: ReadonlyArray<string | undefined> | undefined
  readonly through: number
  /** The database's definitions from here on, where the line logs definitions. */
  readonly defines: string | undefined
}

/** Changes taken into one flush. */
const maxBatch = 2000
const retryMs = 1000
/** Records that are written together. */
const worthWriting = 64

export class Ingest extends Context.Tag("scheduler/ingest/Ingest")<
  Ingest,
  {
    /** Offers changes; `done` is called exactly once, now or later. */
    readonly offer: (arrived: ReadonlyArray<Event.Arrived>, done: Work["done"], trace?: string) => void
    /** Answers at once when the change is durable, or (by default) when the ready SSPs have it too. */
    readonly ingest: (arrived: ReadonlyArray<Event.Arrived>, taking?: Taking) => Effect.Effect<Ingested, Refusal>
    /** Logs what the database defines (a text of `core/surreal/definitionsRecord`), unless the log says it already. */
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
    Pool | JobFeed | Replica | Wal | Turn | Declared | SchedulerConfig | Serving
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
  readonly declared: typeof Declared.Service
  readonly waiters: Waiters
  readonly meters: typeof Meters.Service
  readonly moved: Moved
  /** Runs an effect; `done` is called exactly once. A defect ends the process. */
  readonly run: <A>(effect: Effect.Effect<A>, done: (value: A) => void) => void
}

/** The change may be sent again. */
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
 * Callers whose answer is still owed. When this scheduler may not answer any more each is told so at once, whatever
 * becomes of its changes: an append whose answer is lost is settled without them.
 *
 * By place in an array, and no `Set`: each table that V8's sets outgrow keeps its entries and leads to the next one, so
 * with one that has grown old every answered request would live until a full collection.
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

/** A change that is to be made, and what its record is afterwards. */
interface Made extends Event.Arrived {
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

/** `floor`: versions up to it may have been given out for records that are forgotten (D4). */
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
  /** Records the replica has taken since it was told to catch up. */
  private unwritten = 0
  /** Read once, at the first batch: what sets it is done by then. */
  private floor: number | undefined

  constructor(private readonly parts: PipelineDependencies) {
    this.group = new GroupCommit<Work>({
      sizeOf: ({ arrived }) => arrived.length,
      maxPending: parts.config.maxPendingChanges,
      maxBatch,
      maxGathering: usualGathering,
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

  /** Whether nothing is being logged or waits for it. */
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

  /** Tries again to apply logged changes to the replica, though no change waits. */
  private readonly retry = (): void => {
    if (this.owed !== undefined) this.group.wake()
  }

  // A generator written inside would be one of its own for each batch, and V8 keeps what such a one closes over until a
  // full collection: every request.
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

  /** Types changes anew that were typed by older definitions: SSPs get them behind the new ones. */
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
   * Definitions go into the log alone: every batch behind them is typed by them. `done` is told when they are in the
   * replica.
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

  /** The replica writes while the log is flushed, when there is enough to write: no change waits for that then. */
  private catchUpMeanwhile(): void {
    const { replica, run, turn } = this.parts
    if (this.unwritten < worthWriting) return
    this.unwritten = 0
    // The log begins its flush in the turn that comes next.
    turn.next(() =>
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
    )
  }

  private readonly lost: Effect.Effect<number, ReplicaError> = Effect.suspend(() =>
    Effect.map(this.parts.replica.current([lostId]), (found) => found.get(lostId.text)?.version ?? 0)
  )

  /** Applies logged changes; while that fails nothing else is taken (D26). */
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
      if (answers === "durable") done(Either.right({ seq, delivered: State.delivered(this.parts.pool.state(), seq) }))
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

/** The size of a record before its change is on disk here, so only deletes are known not to grow. */
const outOfMemory = (heap: HeapShape, arrived: ReadonlyArray<Event.Arrived>): Errors.Overloaded | undefined => {
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
  Pool | JobFeed | Replica | Wal | Turn | Declared | SchedulerConfig | Serving | Scope.Scope
> = Effect.gen(function* () {
  const config = yield* SchedulerConfig
  const pool = yield* Pool
  const declared = yield* Declared
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
  // The server has answered or cut every request by now; what a cut one left behind still goes to its end.
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
