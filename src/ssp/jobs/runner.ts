/**
 * Runs jobs: claims them, calls their backends, writes their outcomes, and retries (D35, D37, D38, D39).
 *
 * One loop per job table fills its free slots; an attempt is a fiber. Decisions are made in `core/job`; the state of a
 * job is in the store, so a runner may die at any point: its leases end and another runner takes over. A job that waits
 * for its next attempt keeps its lease and holds no slot.
 */
import { Clock, Deferred, Duration, Effect, Either, Exit, Fiber, Queue, Random, Redacted, Scope } from "effect"
import * as Leases from "../../core/job/lease.ts"
import * as Outcome from "../../core/job/outcome.ts"
import * as Request from "../../core/job/request.ts"
import type { Result } from "../../core/job/result.ts"
import * as Retry from "../../core/job/retry.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import type { BackendShape } from "../../ports/Backend.ts"
import { atEnd } from "../../ports/Front.ts"
import type { JobStoreError, JobStoreShape, StoredJob } from "../../ports/JobStore.ts"
import type { RetryPolicyShape } from "../../ports/RetryPolicy.ts"
import { steadyMs } from "../../ports/Turn.ts"
import type { SspConfigShape } from "../Config.ts"
import { Lane, type LaneJob } from "./lane.ts"
import * as Writer from "./writer.ts"

export const sweepMs = 30_000
const tickMs = 1_000
const renewMs = 2_000
/** Most jobs found by one sweep. */
const sweepBatch = 2_000
/**
 * How long a stop waits for running calls; with {@link releaseWithin} for the other jobs it is less than a process has
 * to stop.
 */
export const graceMs = 7_000
const releaseWithin = Duration.seconds(2)

/** Settings of a job table. */
export type JobTableSettings = SspConfigShape["jobTables"][number]

/** Stores, backend and limits of a runner. */
export interface RunnerOptions {
  readonly store: JobStoreShape
  readonly backend: BackendShape
  readonly tables: ReadonlyArray<JobTableSettings>
  readonly by: Leases.Holder
  readonly policy: Retry.Policy
  /** Longest answer that is stored as a result, in bytes; absent: no result is stored. */
  readonly resultBytes?: number
  /** Decides about further attempts under `policy`. */
  readonly retries: RetryPolicyShape
  /** Jobs per table that may wait for a slot here. */
  readonly maxQueued: number
  /** Pause between two searches of the store for jobs without a runner. */
  readonly sweepMs: number
  /** Whether this process may claim jobs now (D21). */
  readonly mayClaim: () => boolean
  /** Called when a job begins and when it ends, with the stored part of the backend's answer. Must not fail. */
  readonly report: (job: StoredJob, decision: Retry.Decision | "begun", result?: Result) => Effect.Effect<void>
}

/** Attempts at a table's jobs since the start, by outcome. */
interface Counts {
  success: number
  retry: number
  failed: number
  /** Jobs that another runner took while this one held them. */
  lost: number
}

/** Figures of one job table. */
export interface Figures {
  readonly table: string
  readonly queued: number
  readonly running: number
  readonly waiting: number
  readonly counts: Readonly<Counts>
}

export interface Runner {
  /** Queues a job without waiting; false: the queue is full, and the sweep will find the job. */
  readonly offer: (ref: RecordId, traceparent?: string) => boolean
  /** For an operator's cancel: forgets a waiting job, interrupts a running call. */
  readonly drop: (ref: RecordId) => Effect.Effect<void>
  /** Called when a job's record is deleted: a running call goes on, a waiting job is forgotten. */
  readonly deleted: (ref: RecordId) => void
  /** Forgets every job that is not running. */
  readonly forget: () => void
  readonly figures: () => ReadonlyArray<Figures>
  /** Begins no further job; answers the ids of jobs whose calls run, and lets these go on. */
  readonly close: () => ReadonlyArray<string>
  /** Sweeps, claims, calls and renews leases for ever. */
  readonly run: Effect.Effect<never>
  /** Begins no further job, waits for running calls, releases the other jobs. */
  readonly stop: Effect.Effect<void>
}

interface Work {
  readonly table: JobTableSettings
  readonly lane: Lane
  readonly wake: Queue.Queue<void>
  readonly leaseMs: number
  readonly calls: Map<string, Fiber.RuntimeFiber<void>>
  readonly counts: Counts
  sweptAtMs: number
}

export const make = (options: RunnerOptions): Effect.Effect<Runner, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const attempts = yield* Scope.make()
    yield* Scope.addFinalizer(scope, Scope.close(attempts, Exit.void))
    const works = new Map<string, Work>()
    for (const table of options.tables) {
      works.set(table.table, {
        table,
        lane: new Lane(table.concurrency, options.maxQueued),
        wake: yield* Queue.sliding<void>(1),
        leaseMs: Leases.leaseMs(table.timeoutMs),
        calls: new Map(),
        counts: { success: 0, retry: 0, failed: 0, lost: 0 },
        sweptAtMs: -Infinity
      })
    }
    return new JobRunner(options, works, yield* Writer.make(options.store, options.by), attempts)
  })

class JobRunner implements Runner {
  private closing = false
  private idle: Deferred.Deferred<void> | undefined
  private complained = false

  constructor(
    private readonly options: RunnerOptions,
    private readonly works: ReadonlyMap<string, Work>,
    private readonly writer: Writer.Writer,
    private readonly attempts: Scope.CloseableScope
  ) {}

  offer(ref: RecordId, traceparent?: string): boolean {
    const work = this.works.get(ref.table)
    if (work === undefined || this.closing) return false
    const taken = work.lane.offer(ref, traceparent)
    work.wake.unsafeOffer(undefined)
    return taken
  }

  drop(ref: RecordId): Effect.Effect<void> {
    return Effect.suspend(() => {
      const work = this.works.get(ref.table)
      work?.lane.forget(ref.text)
      const call = work?.calls.get(ref.text)
      return call === undefined ? Effect.void : Effect.asVoid(Fiber.interrupt(call))
    })
  }

  deleted(ref: RecordId): void {
    this.works.get(ref.table)?.lane.deleted(ref.text)
  }

  forget(): void {
    for (const { lane } of this.works.values()) for (const text of [...lane.known.keys()]) lane.forget(text)
  }

  figures(): ReadonlyArray<Figures> {
    return [...this.works.values()].map(({ counts, lane, table }) => ({
      table: table.table,
      queued: lane.known.size - lane.running - lane.waiting,
      running: lane.running,
      waiting: lane.waiting,
      counts: { ...counts }
    }))
  }

  get run(): Effect.Effect<never> {
    const loops = [...this.works.values()].map((work) => this.takeLoop(work))
    // The writer is forked in the attempts' scope: a stop waits for its pending writes.
    return Effect.zipRight(
      Effect.forkIn(this.writer.loop, this.attempts),
      Effect.all([...loops, this.sweepLoop, this.renewLoop], { concurrency: "unbounded" })
    ).pipe(Effect.zipRight(Effect.never))
  }

  close(): ReadonlyArray<string> {
    this.closing = true
    return [...this.works.values()].flatMap(({ lane }) =>
      [...lane.known.values()].flatMap(({ ref, state }) => (state === "running" ? [ref.text] : []))
    )
  }

  readonly stop: Effect.Effect<void> = Effect.gen(this, function* () {
    this.close()
    const held = [...this.works.values()].flatMap(({ lane }) =>
      [...lane.known.values()].filter((entry) => entry.state !== "running" && entry.heldUntilMs !== undefined)
    )
    const released = Effect.forEach(
      held,
      ({ ref }) => Effect.ignore(this.writer.write({ ref, event: "Released", error: undefined })),
      { concurrency: "unbounded" }
    )
    yield* Effect.ignore(atEnd(released, releaseWithin))
    this.idle = yield* Deferred.make<void>()
    this.settled()
    const left = yield* Effect.either(atEnd(Deferred.await(this.idle), Duration.millis(graceMs)))
    if (Either.isLeft(left))
      yield* Effect.logWarning(
        `${this.runningJobs} jobs are cut off by the stop after ${graceMs} ms; they are taken up again when their leases run out`
      )
    yield* Scope.close(this.attempts, Exit.void)
  })

  private get runningJobs(): number {
    let running = 0
    for (const { lane } of this.works.values()) running += lane.running
    return running
  }

  private settled(): void {
    if (this.idle !== undefined && this.runningJobs === 0) Deferred.unsafeDone(this.idle, Effect.void)
  }

  private takeLoop(work: Work): Effect.Effect<never> {
    const { lane, wake } = work
    return Effect.forever(
      Effect.gen(this, function* () {
        yield* Queue.take(wake)
        while (!this.closing && lane.ready) {
          if (!this.options.mayClaim()) yield* Effect.sleep(Duration.millis(tickMs))
          else yield* this.takeUp(work)
        }
      })
    )
  }

  /** Claims jobs for the free slots and starts those that were claimed. */
  private takeUp(work: Work): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { lane, leaseMs } = work
      const entries = lane.take()
      const nowMs = yield* steadyMs
      const won = yield* Effect.either(
        this.options.store.claim(
          entries.map(({ ref }) => ref),
          this.options.by,
          leaseMs
        )
      )
      if (won._tag === "Left") return yield* this.claimFailed(lane, entries, won.left)
      this.complained = false
      const jobs = new Map(won.right.map((job) => [job.id, job]))
      for (const entry of entries) {
        const job = jobs.get(entry.ref.text)
        if (job === undefined) {
          lane.leave(entry)
          continue
        }
        entry.heldUntilMs = nowMs + leaseMs
        const fiber = yield* Effect.forkIn(this.attempt(work, entry, job), this.attempts)
        work.calls.set(job.id, fiber)
        fiber.addObserver(() => {
          if (work.calls.get(job.id) === fiber) work.calls.delete(job.id)
        })
      }
      this.settled()
    })
  }

  private claimFailed(lane: Lane, entries: ReadonlyArray<LaneJob>, error: JobStoreError): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      if (error.transient) lane.putBack(entries)
      else for (const entry of entries) lane.leave(entry)
      this.settled()
      if (!this.complained) yield* Effect.logWarning(`jobs cannot be claimed: ${error.message}; trying again`)
      this.complained = true
      yield* Effect.sleep(Duration.millis(tickMs))
    })
  }

  /**
   * One call and its consequences, not before the time that an earlier runner has set. The slot is given up exactly
   * once.
   */
  private attempt(work: Work, entry: LaneJob, job: StoredJob): Effect.Effect<void> {
    const { lane } = work
    let given = false
    const give = (how: () => void): void => {
      if (given) return
      given = true
      how()
      work.wake.unsafeOffer(undefined)
      this.settled()
    }
    return Effect.gen(this, function* () {
      const waitMs = entry.waited ? 0 : Retry.waitMs(job.errors, yield* Clock.currentTimeMillis)
      if (waitMs > 0) {
        this.delays.set(entry, waitMs)
        return give(() => lane.wait(entry))
      }
      yield* this.options.report(job, "begun")
      const outcome = yield* this.call(
        work.table,
        entry.traceparent === undefined ? job : { ...job, traceparent: entry.traceparent }
      )
      const decision = this.options.retries.decide(job, outcome, this.options.policy, {
        nowMs: yield* Clock.currentTimeMillis,
        jitter: yield* Random.nextRange(-1, 1)
      })
      work.counts[decision.kind]++
      const result = outcome.kind === "success" && decision.kind === "success" ? outcome.result : undefined
      const written = yield* Effect.either(this.write(entry, decision, result))
      if (written._tag === "Left") {
        yield* Effect.logError(
          `job ${job.id}: the store does not take its outcome (${decision.kind}): ${written.left.message}; this process does not run it again`
        )
        return give(() => lane.refuse(entry))
      }
      if (!written.right)
        yield* this.closing
          ? Effect.void
          : this.lost(work, `job ${job.id}: it was taken away before its outcome (${decision.kind}) could be written`)
      else if (decision.kind === "retry") return give(() => lane.wait(entry))
      else yield* this.options.report(job, decision, result)
      give(() => lane.leave(entry))
    }).pipe(
      Effect.ensuring(Effect.sync(() => give(() => lane.leave(entry)))),
      Effect.zipRight(Effect.suspend(() => (entry.state === "waiting" ? this.later(work, entry) : Effect.void)))
    )
  }

  private lost({ counts }: Work, message: string): Effect.Effect<void> {
    counts.lost++
    return Effect.logWarning(message)
  }

  private write(
    entry: LaneJob,
    decision: Retry.Decision,
    result: Result | undefined
  ): Effect.Effect<boolean, JobStoreError> {
    const { ref } = entry
    if (decision.kind === "success")
      return this.writer.write({
        ref,
        event: "Succeeded",
        error: undefined,
        ...(result === undefined ? {} : { result })
      })
    if (decision.kind === "failed") return this.writer.write({ ref, event: "GaveUp", error: decision.error })
    const wait = this.writer.write({ ref, event: "AttemptFailed", error: decision.error })
    this.delays.set(entry, decision.delayMs)
    return Effect.flatMap(wait, (written) =>
      written && this.closing
        ? Effect.as(this.writer.write({ ref, event: "Released", error: undefined }), false)
        : Effect.succeed(written)
    )
  }

  /** Delay until the next attempt, between the decision and {@link later}. */
  private readonly delays = new WeakMap<LaneJob, number>()

  private later({ lane, wake }: Work, entry: LaneJob): Effect.Effect<void> {
    return Effect.sync(() => {
      lane.due(entry)
      wake.unsafeOffer(undefined)
    }).pipe(Effect.delay(Duration.millis(this.delays.get(entry) ?? 0)), Effect.forkIn(this.attempts), Effect.asVoid)
  }

  private call(table: JobTableSettings, job: StoredJob): Effect.Effect<Outcome.Outcome> {
    const call = Request.prepare(job, {
      baseUrl: table.baseUrl,
      token: table.authToken === undefined ? undefined : Redacted.value(table.authToken),
      timeoutMs: table.timeoutMs,
      resultBytes: this.options.resultBytes ?? 0
    })
    if (call._tag === "Left") return Effect.succeed(Outcome.noCall(call.left))
    return this.options.backend.call(call.right).pipe(
      Effect.flatMap((answer) =>
        Effect.map(Clock.currentTimeMillis, (nowMs) => Outcome.ofAnswer(answer, nowMs, this.options.resultBytes))
      ),
      Effect.catchTag("BackendFailed", ({ message }) => Effect.succeed(Outcome.noAnswer(message)))
    )
  }

  private readonly sweepLoop: Effect.Effect<never> = Effect.forever(
    Effect.gen(this, function* () {
      for (const work of this.works.values()) {
        const nowMs = yield* steadyMs
        const { lane } = work
        if (
          nowMs - work.sweptAtMs < this.options.sweepMs &&
          !(lane.more && lane.queued * 2 <= Math.min(sweepBatch, this.options.maxQueued))
        )
          continue
        work.sweptAtMs = nowMs
        lane.more = false
        const found = yield* Effect.either(this.options.store.open(work.table.table, sweepBatch))
        if (found._tag === "Left")
          yield* Effect.logWarning(
            `the jobs of ${work.table.table} cannot be looked for: ${found.left.message}; trying again`
          )
        else {
          const fresh = found.right.filter((ref) => !lane.known.has(ref.text))
          const kept = fresh.filter((ref) => this.offer(ref))
          if ((found.right.length === sweepBatch && fresh.length > 0) || kept.length < fresh.length) lane.more = true
        }
      }
      yield* Effect.sleep(Duration.millis(Math.min(tickMs, this.options.sweepMs)))
    })
  )

  private readonly renewLoop: Effect.Effect<never> = Effect.forever(
    Effect.gen(this, function* () {
      yield* Effect.sleep(Duration.millis(renewMs))
      for (const { counts, lane, leaseMs } of this.works.values()) {
        const nowMs = yield* steadyMs
        const due = [...lane.known.values()].filter(
          ({ heldUntilMs }) => heldUntilMs !== undefined && Leases.isRenewalDue(heldUntilMs, leaseMs, nowMs)
        )
        if (due.length === 0) continue
        const kept = yield* Effect.either(
          this.options.store.renew(
            due.map(({ ref }) => ref),
            this.options.by,
            leaseMs
          )
        )
        if (kept._tag === "Left") {
          yield* Effect.logWarning(
            `the leases of ${due.length} jobs cannot be renewed: ${kept.left.message}; trying again`
          )
          continue
        }
        for (const entry of due) {
          if (kept.right.has(entry.ref.text)) entry.heldUntilMs = nowMs + leaseMs
          else {
            // A running job counts itself as lost when it writes its outcome.
            if (entry.heldUntilMs !== undefined && entry.state === "waiting") counts.lost++
            entry.heldUntilMs = undefined
            lane.forget(entry.ref.text)
          }
        }
      }
    })
  )
}
