/**
 * Writes outcomes of jobs in batches, so that jobs that end together share a transaction.
 *
 * While the store cannot be reached a write is repeated for as long as the process lives: a job keeps its slot until
 * its outcome is written, so that no backend is called without a record of it. A job has one write under way at most,
 * so batches may overtake each other.
 */
import { Deferred, Effect, Queue } from "effect"
import type { Holder } from "../../core/job/lease.ts"
import * as Backoff from "../../node/work/backoff.ts"
import type { JobStoreError, JobStoreShape, JobWrite } from "../../ports/JobStore.ts"

const maxBatch = 200
/** Batches written at the same time: a job that has just ended does not wait for an earlier batch. */
const maxFlying = 4

const unwritten = { baseMs: 50, capMs: 5_000 }

interface Pending {
  readonly write: JobWrite
  /** Whether this runner still held the lease. */
  readonly done: Deferred.Deferred<boolean, JobStoreError>
}

export interface Writer {
  /**
   * Answers whether the outcome was written; false: another runner has the job. Fails if the store will never accept
   * it.
   */
  readonly write: (write: JobWrite) => Effect.Effect<boolean, JobStoreError>
  /** The writing loop; the writer works while it runs. */
  readonly loop: Effect.Effect<never>
}

export const make = (store: JobStoreShape, by: Holder): Effect.Effect<Writer> =>
  Effect.gen(function* () {
    // Bounded by the number of slots.
    const inbox = yield* Queue.unbounded<Pending>()
    let complained = false
    const writeAll = (writes: ReadonlyArray<JobWrite>) =>
      Effect.tap(
        Backoff.untilSuccess(unwritten, (error: JobStoreError) => {
          if (!error.transient) return Effect.fail(error)
          if (complained) return Effect.void
          complained = true
          return Effect.logWarning(
            `the state of ${writes.length} jobs cannot be written: ${error.message}; trying again`
          )
        })(store.write(writes, by)),
        () => void (complained = false)
      )
    const lane = Effect.forever(
      Effect.gen(function* () {
        const batch = [...(yield* Queue.takeBetween(inbox, 1, maxBatch))]
        const result = yield* Effect.either(writeAll(batch.map(({ write }) => write)))
        for (const { done, write } of batch) {
          yield* result._tag === "Left"
            ? Deferred.fail(done, result.left)
            : Deferred.succeed(done, result.right.has(write.ref.text))
        }
      })
    )
    return {
      write: (write) =>
        Effect.gen(function* () {
          const done = yield* Deferred.make<boolean, JobStoreError>()
          yield* Queue.offer(inbox, { write, done })
          return yield* Deferred.await(done)
        }),
      loop: Effect.zipRight(
        Effect.all(
          Array.from({ length: maxFlying }, () => lane),
          { concurrency: "unbounded" }
        ),
        Effect.never
      )
    }
  })
