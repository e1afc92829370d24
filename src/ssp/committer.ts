/**
 * The one writer: gathers what has arrived, makes it durable in one commit, then applies it (group commit).
 *
 * Order of a batch: admit (D5) -> plan -> commit -> apply -> answer. Nothing is applied that is not durable, and
 * nothing is answered that is not applied; a failed commit fails the whole batch and leaves memory as it was. While a
 * commit runs, the next batch gathers, so the cost of a flush is shared by all who wait for it.
 */
import { Effect, Either } from "effect"
import type { Change } from "../core/change.ts"
import type { Engine } from "../core/ivm/engine.ts"
import type { Touched } from "../core/ivm/instance.ts"
import type { Write } from "../core/ivm/store.ts"
import { admit, type Rejected } from "../core/sequence.ts"
import type { Database, StoredPosition, StoredView } from "../ports/Database.ts"
import type { Turn } from "../ports/Turn.ts"
import { type IngestError, Overloaded, SequenceGap, StaleEpoch, StoreFailed } from "./viewTypes.ts"

/** What one change did to the views; `seq` is its position in the scheduler's log, if it had one. */
export interface AppliedChange {
  readonly seq: number | null
  readonly touched: ReadonlyArray<Touched>
}

/** One caller's part of a batch. `done` is called exactly once, after its changes are applied. */
export interface Work {
  readonly changes: ReadonlyArray<Change>
  readonly putViews: ReadonlyArray<StoredView>
  readonly removeViews: ReadonlyArray<string>
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
}

type Entry = Work | { readonly alone: Effect.Effect<void> }

export class Committer {
  position: StoredPosition
  private readonly engine: Engine
  private readonly database: Database["Type"]
  private readonly turn: Turn["Type"]
  private readonly maxPending: number
  private queue: Array<Entry> = []
  private pending = 0
  private wake: (() => void) | undefined = undefined

  constructor(engine: Engine, database: Database["Type"], turn: Turn["Type"], position: StoredPosition, maxPending: number) {
    this.engine = engine
    this.database = database
    this.turn = turn
    this.position = position
    this.maxPending = maxPending
  }

  submit(work: Work): void {
    if (this.pending + work.changes.length > this.maxPending && this.pending > 0) {
      const message = `${this.pending} changes are waiting for the store, the limit is ${this.maxPending} (${maxPendingSetting})`
      work.done(Either.left(new Overloaded({ message, retryAfterSecs: 1 })))
      return
    }
    this.pending += work.changes.length
    this.enqueue(work)
  }

  /** Runs an effect with no batch before, beside or half-way through it; answers its result. */
  alone<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.async<A, E>((resume) => {
      this.enqueue({ alone: Effect.exit(effect).pipe(Effect.map((exit) => resume(exit))) })
    })
  }

  /** Serves the queue for ever; the owner forks it. */
  readonly run: Effect.Effect<never> = Effect.forever(Effect.suspend(() => this.next()))

  /** Resolves when everything submitted so far has been answered. */
  readonly drained: Effect.Effect<void> = Effect.suspend(() => this.alone(Effect.void))

  private enqueue(entry: Entry): void {
    this.queue.push(entry)
    const { wake } = this
    this.wake = undefined
    wake?.()
  }

  private next(): Effect.Effect<void> {
    return Effect.gen(this, function*() {
      if (this.queue.length === 0) yield* Effect.async<void>((resume) => void (this.wake = () => resume(Effect.void)))
      yield* this.turn.next
      const first = this.queue[0]
      if (first === undefined) return
      if ("alone" in first) {
        this.queue.shift()
        yield* Effect.uninterruptible(first.alone)
      } else yield* Effect.uninterruptible(this.batch(this.take()))
    })
  }

  /** The leading entries that can share a commit. */
  private take(): ReadonlyArray<Work> {
    const batch: Array<Work> = []
    let size = 0
    for (const entry of this.queue) {
      if ("alone" in entry || (batch.length > 0 && size + entry.changes.length > maxBatch)) break
      batch.push(entry)
      size += entry.changes.length
    }
    this.queue = this.queue.slice(batch.length)
    this.pending -= size
    return batch
  }

  private batch(batch: ReadonlyArray<Work>): Effect.Effect<void> {
    return Effect.gen(this, function*() {
      const { planned, position } = this.planAll(batch)
      const writes = planned.flatMap((part) => part.writes).filter((write) => write !== undefined)
      const putViews = planned.flatMap((part) => part.work.putViews)
      const removeViews = planned.flatMap((part) => part.work.removeViews)
      const after = { ...position, writes: position.writes + writes.length }
      if (writes.length + putViews.length + removeViews.length > 0 || position !== this.position) {
        const records = writes.map((write) => ({ id: write.id, version: write.version, doc: write.after?.doc }))
        const failed = yield* this.database.commit({ records, putViews, removeViews, position: after }).pipe(Effect.flip, Effect.option)
        if (failed._tag === "Some") {
          const error = new StoreFailed({ message: `the store refused the write: ${failed.value.message}`, cause: failed.value })
          yield* Effect.logError(error.message)
          for (const part of planned) part.work.done(Either.left(error))
          return
        }
        this.position = after
      }
      yield* this.applyAll(planned)
    })
  }

  /** Admits and plans every part; a part that is rejected is answered here and takes no place in the batch. */
  private planAll(batch: ReadonlyArray<Work>): { readonly planned: ReadonlyArray<Planned>; readonly position: StoredPosition } {
    let position = this.position
    const admitted: Array<{ readonly work: Work; readonly changes: ReadonlyArray<Change> }> = []
    for (const work of batch) {
      const result = admit(position, work.changes)
      if (Either.isLeft(result)) work.done(Either.left(rejection(result.left)))
      else {
        position = result.right.position
        admitted.push({ work, changes: result.right.changes })
      }
    }
    const writes = this.engine.plan(admitted.flatMap((part) => part.changes))
    let offset = 0
    const planned = admitted.map(({ work, changes }) => {
      const own = writes.slice(offset, offset + changes.length)
      offset += changes.length
      return { work, changes, writes: own }
    })
    return { planned, position }
  }

  private applyAll(planned: ReadonlyArray<Planned>): Effect.Effect<void> {
    return Effect.gen(this, function*() {
      let sinceTurn = 0
      for (const { work, changes, writes } of planned) {
        const applied: Array<AppliedChange> = []
        for (let i = 0; i < writes.length; i++) {
          const write = writes[i]
          applied.push({ seq: changes[i]?.position?.seq ?? null, touched: write === undefined ? [] : this.engine.apply(write) })
          if (++sinceTurn >= sliceSize) {
            sinceTurn = 0
            yield* this.turn.next
          }
        }
        work.done(Either.right(applied))
      }
    })
  }
}

const rejection = (rejected: Rejected): SequenceGap | StaleEpoch =>
  rejected.kind === "gap"
    ? new SequenceGap({ message: `seq ${rejected.got} leaves a gap: the next expected is ${rejected.expected}`, expected: rejected.expected })
    : new StaleEpoch({ message: rejected.reason })
