/**
 * Writes what becomes of jobs: gathered, so that many that end at once share a transaction, and never forgotten.
 *
 * A store that cannot be reached is asked again for as long as the process lives: until its outcome is written a job
 * keeps its slot, so that a backend is not called for what cannot be recorded. A job has one write under way at most,
 * so batches may overtake each other.
 */
import { Deferred, Effect, Queue } from "effect"
import type { Holder } from "../../core/job/lease.ts"
import * as Backoff from "../../node/work/backoff.ts"
import type { JobStoreError, JobStoreShape, JobWrite } from "../../ports/JobStore.ts"

const maxBatch = 200
/** Batches under way together: a job that has just ended does not wait for the answer about an earlier one. */
const maxFlying = 4

const unwritten = { baseMs: 50, capMs: 5_000 }

interface Pending {
  readonly write: JobWrite
  /** Whether the lease was still held. */
  readonly done: Deferred.Deferred<boolean, JobStoreError>
}

export interface Writer {
  /** Answers whether it was written; false: another has the job. Fails when the store will never take it. */
  readonly write: (write: JobWrite) => Effect.Effect<boolean, JobStoreError>
  /** The loop that writes; the writer works for as long as it runs. */
  readonly loop: Effect.Effect<never>
}

export const make = (store: JobStoreShape, by: Holder): Effect.Effect<Writer> =>
  Effect.gen(function* () {
    // Never holds more than there are slots.
    const inbox = yield* Queue.unbounded<Pending>()
    let complained = false
    const writeAll = (writes: ReadonlyArray<JobWrite>) =>
      Effect.tap(
        Backoff.patiently(unwritten, (error: JobStoreError) => {
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
