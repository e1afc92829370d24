/**
 * The one writer: gathers what has arrived, makes it durable in one commit, then applies it (group commit).
 *
 * Order of a batch: admit (D5) -> plan -> commit -> apply -> answer. Nothing is applied that is not durable, and
 * nothing is answered that is not applied; a failed commit fails the whole batch and leaves memory as it was. While a
 * commit runs, the next batch gathers, so the cost of a flush is shared by all callers that wait for it.
 */
import { Effect, Either } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import type { Write } from "../../core/ivm/store/recordSlot.ts"
import type { Touched } from "../../core/ivm/view/view.ts"
import type { Change } from "../../core/record/change.ts"
import { admit, type Rejected } from "../../core/record/sequence.ts"
import { GroupCommit, usualGathering } from "../../node/groupCommit.ts"
import {
  type Database,
  type DatabaseError,
  type StoredPosition,
  type StoredRecord,
  type StoredView,
  startPosition
} from "../../ports/Database.ts"
import type { Turn } from "../../ports/Turn.ts"
import { type IngestError, Overloaded, SequenceGap, StaleEpoch, StoreFailed } from "./viewTypes.ts"

/** What one change, or several as one, did to the views; `seq`: its position in the scheduler's log, if it has one. */
export interface AppliedChange {
  readonly seq: number | null
  readonly touched: ReadonlyArray<Touched>
}

/** One caller's part of a batch. `done` is called exactly once, after its changes are applied. */
export interface Work {
  readonly changes: ReadonlyArray<Change>
  readonly putViews: ReadonlyArray<StoredView>
  readonly removeViews: ReadonlyArray<string>
  /**
   * Asked of each change while everything that came before to its work's records is applied: one it refuses is left
   * out. It may look at those records only.
   */
  readonly still?: (change: Change) => boolean
  /** Its changes, which have no position, are one step: each view that they touch is told one delta for all of them. */
  readonly asOne?: boolean
  readonly done: (outcome: Either.Either<ReadonlyArray<AppliedChange>, IngestError>) => void
}

/** Changes that may wait at once; beyond it callers are told to come back. */
export const maxPendingSetting = "SVC_MAX_PENDING_CHANGES"
/** Changes taken into one commit. */
const maxBatch = 2_000
/** Changes applied between two turns of the event loop, so that a large batch does not hold up health checks. */
const sliceSize = 200

interface Planned {
  readonly work: Work
  readonly changes: ReadonlyArray<Change>
  readonly writes: ReadonlyArray<Write | undefined>
  /**
   * Why nothing of it is applied. Told in its turn: what came before it is applied then, which is what it speaks of.
   */
  readonly rejected?: SequenceGap | StaleEpoch
}

/**
 * What the committer needs of the world around it, all by callback: a fiber per request would cost more than its work.
 */
export interface Surroundings {
  readonly engine: Engine
  readonly database: Database["Type"]
  readonly turn: Turn["Type"]
  /** Runs an effect; `done` is called exactly once. A defect in either ends the process. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>, done: (result: Either.Either<A, E>) => void) => void
}

export class Committer {
  position: StoredPosition = startPosition
  private readonly around: Surroundings
  private readonly maxPending: number
  private readonly group: GroupCommit<Work>

  constructor(around: Surroundings, maxPending: number) {
    this.around = around
    this.maxPending = maxPending
    this.group = new GroupCommit<Work>({
      sizeOf: ({ changes }) => changes.length,
      maxPending,
      maxBatch,
      maxGathering: around.database.kind === "memory" ? 0 : usualGathering,
      next: (run) => around.turn.next(run),
      begin: beginBatch,
      commit: (batch, done) => this.commit(batch, done)
    })
  }

  /** Changes that wait for their batch. */
  get waiting(): number {
    return this.group.waiting
  }

  submit(work: Work): void {
    if (this.group.submit(work)) return
    const message = `${this.waiting} changes are waiting for the store, the limit is ${this.maxPending} (${maxPendingSetting})`
    work.done(Either.left(new Overloaded({ message, retryAfterSecs: 1 })))
  }

  /** Runs an effect with no batch before, beside or half-way through it; answers its result. */
  alone<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.async<A, E>((resume) =>
      this.group.alone((done) =>
        this.around.run(Effect.exit(effect).pipe(Effect.map((exit) => resume(exit))), () => done())
      )
    )
  }

  /** Resolves when everything submitted so far has been answered. */
  readonly drained: Effect.Effect<void> = Effect.suspend(() => this.alone(Effect.void))

  private commit(batch: ReadonlyArray<Work>, again: () => void): void {
    const { planned, position } = this.planAll(batch)
    const records: Array<StoredRecord> = []
    for (const { writes } of planned) {
      for (const write of writes)
        if (write !== undefined) records.push({ id: write.id, version: write.version, doc: write.after })
    }
    const taken = planned.filter(({ rejected }) => rejected === undefined)
    const putViews = taken.flatMap((part) => part.work.putViews)
    const removeViews = taken.flatMap((part) => part.work.removeViews)
    if (records.length + putViews.length + removeViews.length === 0 && position === this.position)
      return this.applyFrom(planned, 0, again)
    const after = { ...position, writes: position.writes + records.length }
    this.around.run(this.around.database.commit({ records, putViews, removeViews, position: after }), (result) => {
      if (Either.isLeft(result)) return this.refuse(planned, result.left, again)
      this.position = after
      this.applyFrom(planned, 0, again)
    })
  }

  private refuse(planned: ReadonlyArray<Planned>, cause: DatabaseError, again: () => void): void {
    const error = new StoreFailed({ message: `the store refused the write: ${cause.message}`, cause })
    for (const { work } of planned) work.done(Either.left(error))
    this.around.run(Effect.logError(error.message), again)
  }

  /** Admits and plans every part; one that is rejected keeps its place in the batch and changes nothing. */
  private planAll(batch: ReadonlyArray<Work>): {
    readonly planned: ReadonlyArray<Planned>
    readonly position: StoredPosition
  } {
    let position = this.position
    const parts: Array<Omit<Planned, "writes">> = []
    for (const work of batch) {
      const result = admit(position, work.still === undefined ? work.changes : work.changes.filter(work.still))
      if (Either.isLeft(result)) parts.push({ work, changes: [], rejected: rejection(result.left) })
      else {
        position = result.right.position
        parts.push({ work, changes: result.right.changes })
      }
    }
    const writes = this.around.engine.plan(parts.flatMap((part) => part.changes))
    let offset = 0
    const planned = parts.map((part) => ({ ...part, writes: writes.slice(offset, (offset += part.changes.length)) }))
    return { planned, position }
  }

  /** Applies and answers part by part, each whole (law L3), with a turn of the event loop between slices. */
  private applyFrom(planned: ReadonlyArray<Planned>, from: number, again: () => void): void {
    let applied = 0
    for (let i = from; i < planned.length; i++) {
      const { changes, rejected, work, writes } = planned[i]!
      if (rejected === undefined)
        work.done(Either.right(work.asOne === true ? this.applyAsOne(writes) : this.applyEach(changes, writes)))
      else work.done(Either.left(rejected))
      applied += writes.length
      if (applied >= sliceSize && i + 1 < planned.length)
        return this.around.turn.next(() => this.applyFrom(planned, i + 1, again))
    }
    again()
  }

  private applyEach(
    changes: ReadonlyArray<Change>,
    writes: ReadonlyArray<Write | undefined>
  ): ReadonlyArray<AppliedChange> {
    return writes.map((write, n) => ({
      seq: changes[n]?.position?.seq ?? null,
      touched: write === undefined ? untouched : this.around.engine.apply(write)
    }))
  }

  private applyAsOne(writes: ReadonlyArray<Write | undefined>): ReadonlyArray<AppliedChange> {
    const done = writes.filter((write) => write !== undefined)
    return done.length === 0 ? [] : [{ seq: null, touched: this.around.engine.applyAll(done) }]
  }
}

/** A work that asks about its records shares no batch with an earlier change of them: its answer would be outdated. */
const beginBatch = (): ((work: Work) => boolean) => {
  const touched = new Set<string>()
  return ({ changes, still }) => {
    if (still !== undefined && changes.some(({ id }) => touched.has(id.text))) return false
    for (const { id } of changes) touched.add(id.text)
    return true
  }
}

const untouched: ReadonlyArray<Touched> = []

const rejection = (rejected: Rejected): SequenceGap | StaleEpoch =>
  rejected.kind === "gap"
    ? new SequenceGap({
        message: `seq ${rejected.got} leaves a gap behind ${rejected.behind}: the first that is not applied is ${rejected.expected}`,
        expected: rejected.expected
      })
    : new StaleEpoch({ message: rejected.reason, otherLog: rejected.otherLog })
