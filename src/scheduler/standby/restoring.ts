/**
 * Restores a replica that is older than the log's beginning from a snapshot; the rest is read from the log.
 *
 * Every offer is tried, the best first. A snapshot of another log, or one that ends before the log begins, is refused
 * before its content is read.
 */
import { Duration, Effect, Stream } from "effect"
import { Progress } from "../../ports/Progress.ts"
import type { LogRow } from "../../ports/SharedLog.ts"
import {
  type ReplicaFileShape,
  type Snapshot,
  SnapshotFailed,
  type SnapshotOffer,
  type SnapshotsShape
} from "../../ports/Snapshots.ts"
import { steadyMs } from "../../ports/Turn.ts"

interface RestoringOptions {
  readonly logId: string
  readonly own: ReplicaFileShape
  readonly snapshots: SnapshotsShape
  /** Time limit of one transfer. */
  readonly timeoutMs: number
}

const faultOf = (snapshot: Snapshot, logId: string, { keptAfter }: LogRow): string | undefined => {
  if (snapshot.logId !== logId) return `it is of the log ${snapshot.logId}, and this one is ${logId}`
  return snapshot.seq < keptAfter
    ? `it stands at seq ${snapshot.seq}, and the log begins at ${keptAfter + 1}`
    : undefined
}

/** Why no snapshot could be restored, one fault for each source. */
export interface MissingSnapshot {
  readonly faults: ReadonlyArray<string>
  /** Whether a snapshot did not fit on this disk. */
  readonly isFull: boolean
}

/** Restores the replica; answers why it could not, or undefined if it could. */
export const make = ({ logId, own, snapshots, timeoutMs }: RestoringOptions) => {
  const take = (offer: SnapshotOffer, row: LogRow): Effect.Effect<void, SnapshotFailed> =>
    Effect.gen(function* () {
      const snapshot = yield* offer.open
      const fault = faultOf(snapshot, logId, row)
      if (fault !== undefined) return yield* new SnapshotFailed({ reason: "failed", message: fault })
      const begunAt = yield* steadyMs
      yield* Progress.during("recovery", `the replica from ${offer.from}`, "bytes", (step) => {
        step.expect(snapshot.bytes)
        const content = Stream.tap(snapshot.content, (piece) => Effect.sync(() => step.add(piece.length)))
        return own.restore({ ...snapshot, content })
      })
      const ms = (yield* steadyMs) - begunAt
      yield* Effect.logInfo(
        `restored the replica from ${offer.from}: ${snapshot.bytes} bytes at seq ${snapshot.seq} in ${ms} ms`
      )
    }).pipe(
      Effect.scoped,
      Effect.timeoutFail({
        duration: Duration.millis(timeoutMs),
        onTimeout: () =>
          new SnapshotFailed({
            reason: "failed",
            message: `not whole within ${timeoutMs / 1000} s (SVC_SNAPSHOT_TIMEOUT_SECS)`
          })
      })
    )

  return (row: LogRow): Effect.Effect<MissingSnapshot | undefined> =>
    Effect.gen(function* () {
      const offers = yield* Effect.either(snapshots.offers(row.keptAfter))
      if (offers._tag === "Left") return { faults: [offers.left.message], isFull: false }
      const faults: Array<string> = []
      let isFull = false
      for (const offer of offers.right) {
        const taken = yield* Effect.either(take(offer, row))
        if (taken._tag === "Right") return undefined
        faults.push(`${offer.from}: ${taken.left.message}`)
        isFull ||= taken.left.reason === "full"
      }
      return { faults: faults.length === 0 ? ["no snapshot is offered"] : faults, isFull }
    })
}
