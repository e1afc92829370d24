/**
 * The only writer: gathers arrived changes, makes them durable in one commit, then applies them (group commit).
 *
 * Order of a batch: admit (D5) -> plan -> commit -> apply -> answer. A change is applied only when it is durable, and
 * answered only when it is applied; a failed commit fails the whole batch and leaves memory as it was. While a commit
 * runs, the next batch gathers, so that callers share the cost of a flush.
 */
import { Effect, Either } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import type { Write } from "../../core/ivm/store/recordSlot.ts"
import type { Touched } from "../../core/ivm/view/view.ts"
import type { Change } from "../../core/record/change.ts"
import { type Applied, admit, type Rejected } from "../../core/record/sequence.ts"
import * as Steps from "../../core/record/steps.ts"
import { isDefinitions } from "../../core/surreal/definitionsRecord.ts"
import { defaultGatherTurns, GroupCommit } from "../../node/work/groupCommit.ts"
import {
  type Database,
  type DatabaseError,
  type StoredPosition,
  type StoredRecord,
  type StoredView,
  startPosition
} from "../../ports/Database.ts"
import type { Turn } from "../../ports/Turn.ts"
import { type IngestError, Overloaded, SequenceGap, StaleEpoch, StoreFailed } from "../viewTypes.ts"

/**
 * Effect of one change, or of several as one step, on the views. `seq`: position of the last of them in the scheduler's
 * log.
 */
export interface AppliedChange {
  readonly seq: number | null
  readonly touched: ReadonlyArray<Touched>
}

/** One caller's part of a batch. `done` is called exactly once, after its changes are applied. */
export interface CommitWork {
  readonly changes: ReadonlyArray<Change>
  readonly putViews: ReadonlyArray<StoredView>
  readonly removeViews: ReadonlyArray<string>
  /**
   * Asked of each change when everything before it is applied: a change it refuses is left out. It may read the records
   * of this work only.
   */
  readonly still?: (change: Change) => boolean
  /** Whether the changes are one step, whatever their positions: each view gets one delta for all. */
  readonly asOne?: boolean
  /**
   * Position behind the changes, which are known to be complete up to there for the tables held here, in whole steps
   * (D61).
   */
  readonly through?: Omit<StoredPosition, "writes">
  /** `taken`: the changes applied, including earlier ones that had waited for the end of their step. */
  readonly done: (
    outcome: Either.Either<ReadonlyArray<AppliedChange>, IngestError>,
    taken: ReadonlyArray<Change>
  ) => void
}

/** Setting that limits waiting changes; beyond it callers get `Overloaded`. */
const maxPendingSetting = "SVC_MAX_PENDING_CHANGES"
/** Most changes in one commit. */
const maxBatch = 2_000
/** Changes applied between two turns of the event loop, so that a large batch does not block health checks. */
const sliceSize = 200

interface Planned {
  readonly work: CommitWork
  readonly taken: ReadonlyArray<Change>
  /** The taken changes of records, without definitions. */
  readonly changes: ReadonlyArray<Change>
  readonly writes: ReadonlyArray<Write | undefined>
  /** Why none of the work is applied; answered in its turn, when everything before it is applied. */
  readonly rejected?: SequenceGap | StaleEpoch
}

/** The committer's context, all by callback: a fiber per request would cost more than its work. */
export interface CommitContext {
  readonly engine: Engine
  readonly database: Database["Type"]
  readonly turn: Turn["Type"]
  /** Runs an effect; `done` is called exactly once. A defect in either ends the process. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>, done: (result: Either.Either<A, E>) => void) => void
}

/** The committer's position behind a batch. */
interface Stand {
  /** Position through which changes were received. */
  readonly received: Applied
  /** Last received changes of a step that is incomplete: neither applied nor stored. */
  readonly unfinished: ReadonlyArray<Change>
}

const isSame = (a: Applied, b: Applied): boolean => a.seq === b.seq && a.epoch === b.epoch && a.logId === b.logId

export class Committer {
  private applied: StoredPosition = startPosition
  private stand: Stand = { received: startPosition, unfinished: [] }
  private readonly group: GroupCommit<CommitWork>

  constructor(
    private readonly context: CommitContext,
    private readonly maxPending: number
  ) {
    this.group = new GroupCommit<CommitWork>({
      sizeOf: ({ changes }) => changes.length,
      maxPending,
      maxBatch,
      maxGathering: context.database.kind === "memory" ? 0 : defaultGatherTurns,
      next: (run) => context.turn.next(run),
      begin: beginBatch,
      commit: (batch, done) => this.commit(batch, done)
    })
  }

  /** Position through which everything is applied and durable. */
  get position(): StoredPosition {
    return this.applied
  }

  /** Sets the position; an incomplete step is dropped. */
  standAt(position: StoredPosition): void {
    this.applied = position
    this.stand = { received: position, unfinished: [] }
  }

  /** Changes that wait for their batch. */
  get waiting(): number {
    return this.group.waiting
  }

  submit(work: CommitWork): void {
    if (this.group.submit(work)) return
    const message = `${this.waiting} changes are waiting for the store, the limit is ${this.maxPending} (${maxPendingSetting})`
    work.done(Either.left(new Overloaded({ message, retryAfterSecs: 1 })), [])
  }

  /** Runs an effect while no batch is under way; answers its result. */
  alone<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.async<A, E>((resume) =>
      this.group.alone((done) =>
        this.context.run(Effect.exit(effect).pipe(Effect.map((exit) => resume(exit))), () => done())
      )
    )
  }

  /** Returns when everything submitted so far is answered. */
  readonly drained: Effect.Effect<void> = Effect.suspend(() => this.alone(Effect.void))

  private commit(batch: ReadonlyArray<CommitWork>, again: () => void): void {
    const { planned, stand } = this.planAll(batch)
    const position = Steps.appliedOf(stand.received, stand.unfinished)
    const records: Array<StoredRecord> = []
    for (const { writes } of planned) {
      for (const write of writes)
        if (write !== undefined) records.push({ id: write.id, version: write.version, doc: write.after })
    }
    const taken = planned.filter(({ rejected }) => rejected === undefined)
    const putViews = taken.flatMap((part) => part.work.putViews)
    const removeViews = taken.flatMap((part) => part.work.removeViews)
    if (records.length + putViews.length + removeViews.length === 0 && isSame(position, this.applied)) {
      this.stand = stand
      return this.applyFrom(planned, 0, again)
    }
    const after = { ...position, writes: this.applied.writes + records.length }
    this.context.run(this.context.database.commit({ records, putViews, removeViews, position: after }), (result) => {
      if (Either.isLeft(result)) return this.refuse(planned, result.left, again)
      this.applied = after
      this.stand = stand
      this.applyFrom(planned, 0, again)
    })
  }

  private refuse(planned: ReadonlyArray<Planned>, cause: DatabaseError, again: () => void): void {
    const error = new StoreFailed({ message: `the store refused the write: ${cause.message}`, cause })
    for (const { work } of planned) work.done(Either.left(error), [])
    this.context.run(Effect.logError(error.message), again)
  }

  /** Admits and plans every work of a batch; a rejected one keeps its place and changes nothing. */
  private planAll(batch: ReadonlyArray<CommitWork>): {
    readonly planned: ReadonlyArray<Planned>
    readonly stand: Stand
  } {
    let { received, unfinished } = this.stand
    const parts: Array<Omit<Planned, "writes">> = []
    for (const work of batch) {
      const { through } = work
      if (through !== undefined) {
        received = { ...received, ...through }
        parts.push({ work, taken: work.changes, changes: recordsOf(work.changes) })
        continue
      }
      const result = admit(received, work.still === undefined ? work.changes : work.changes.filter(work.still))
      if (Either.isLeft(result)) parts.push({ work, taken: [], changes: [], rejected: rejection(result.left) })
      else {
        received = result.right.position
        const gathered = Steps.gather(unfinished, result.right.changes, this.maxPending)
        unfinished = gathered.unfinished
        parts.push({ work, taken: gathered.ready, changes: recordsOf(gathered.ready) })
      }
    }
    const writes = this.context.engine.plan(parts.flatMap((part) => part.changes))
    let offset = 0
    const planned = parts.map((part) => ({ ...part, writes: writes.slice(offset, (offset += part.changes.length)) }))
    return { planned, stand: { received, unfinished } }
  }

  /** Applies and answers work by work, each as a whole (law L3), with a turn of the event loop between slices. */
  private applyFrom(planned: ReadonlyArray<Planned>, from: number, again: () => void): void {
    let applied = 0
    for (let i = from; i < planned.length; i++) {
      const { changes, rejected, taken, work, writes } = planned[i]!
      if (rejected === undefined)
        work.done(
          Either.right(
            work.asOne === true ? this.applyAsOne(writes, work.through?.seq ?? null) : this.applySteps(changes, writes)
          ),
          taken
        )
      else work.done(Either.left(rejected), taken)
      applied += writes.length
      if (applied >= sliceSize && i + 1 < planned.length)
        return this.context.turn.next(() => this.applyFrom(planned, i + 1, again))
    }
    again()
  }

  /** Applies each change by itself, but the changes of one step as one. */
  private applySteps(
    changes: ReadonlyArray<Change>,
    writes: ReadonlyArray<Write | undefined>
  ): ReadonlyArray<AppliedChange> {
    const applied: Array<AppliedChange> = []
    for (let from = 0; from < writes.length; ) {
      const to = Steps.endOfStep(changes, from)
      const seq = changes[to - 1]?.position?.seq ?? null
      const write = writes[from]
      if (to - from > 1) applied.push(...this.applyAsOne(writes.slice(from, to), seq))
      else applied.push({ seq, touched: write === undefined ? untouched : this.context.engine.apply(write) })
      from = to
    }
    return applied
  }

  private applyAsOne(writes: ReadonlyArray<Write | undefined>, seq: number | null): ReadonlyArray<AppliedChange> {
    const done = writes.filter((write) => write !== undefined)
    return done.length === 0 ? [] : [{ seq, touched: this.context.engine.applyAll(done) }]
  }
}

/** A work with `still` never shares a batch with an earlier change of its records: its answer would be outdated. */
const beginBatch = (): ((work: CommitWork) => boolean) => {
  const touched = new Set<string>()
  return ({ changes, still }) => {
    if (still !== undefined && changes.some(({ id }) => touched.has(id.text))) return false
    for (const { id } of changes) touched.add(id.text)
    return true
  }
}

const untouched: ReadonlyArray<Touched> = []

/** Without the scheduler's definitions records, which are no view's data. */
const recordsOf = (changes: ReadonlyArray<Change>): ReadonlyArray<Change> =>
  changes.some(isDefinitions) ? changes.filter((change) => !isDefinitions(change)) : changes

const rejection = (rejected: Rejected): SequenceGap | StaleEpoch =>
  rejected.kind === "gap"
    ? new SequenceGap({
        message: `seq ${rejected.got} leaves a gap behind ${rejected.behind}: the first that is not applied is ${rejected.expected}`,
        expected: rejected.expected
      })
    : new StaleEpoch({ message: rejected.reason, otherLog: rejected.otherLog })
