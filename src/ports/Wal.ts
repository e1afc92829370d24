/**
 * The scheduler's write-ahead log: every accepted event, in order, durable before it is answered (D26).
 *
 * The log gives out the positions (`seq`, from 1, without gaps), because order and durability are one decision: a
 * position that was given but not flushed must not exist. Only flushed records are read. `layerMemory`
 * keeps nothing beyond the process; the layer over files needs a runtime and lives in `host/`.
 */
import { Context, Data, Effect, Layer, Stream } from "effect"
import { isOneLine, type WalRecord } from "../core/wal/walFormat.ts"
import { exitCodeOf, StartFault } from "./StartFault.ts"

export type WalReason =
  | "full"
  | "failed"
  | "damaged"
  | "newer"
  | "locked"
  | "dropped"
  | "overloaded"
  | "closed"
  | "fenced"
  | "unreachable"

/**
 * The log could not do its work. `full`: no room on the disk; `failed`: any other fault of the disk; both keep the log
 * as it is and are gone when the fault is. `damaged`: a file is not as it was written; `newer`: written by a later
 * version; `locked`: another process has it; `dropped`: the position lies before the kept records; `overloaded`: too
 * much is waiting; `closed`: it is shut down; `fenced`: another process has taken the log over, nothing was added;
 * `unreachable`: the server that keeps it does not answer. A failure is definite: nothing of the call was added.
 */
export class WalFailed extends Data.TaggedError("WalFailed")<{
  readonly reason: WalReason
  readonly message: string
  readonly file?: string
  readonly offset?: number
  readonly seq?: number
  readonly cause?: unknown
}> {}

export interface WalShape {
  /** Random, born with the log (D5). */
  readonly logId: string
  /** Position of the last record that has been flushed; 0 before the first. */
  readonly lastSeq: Effect.Effect<number>
  /** Every record behind this position is there to be read. */
  readonly keptAfter: Effect.Effect<number>
  /**
   * Adds records, JSON texts of one line each, in order and with consecutive positions; answers the last one's when all
   * are flushed. Records of one call are there all or (when it fails) none, save for a crash before the answer. An
   * interrupted call may still add its records.
   */
  readonly append: (records: ReadonlyArray<string>) => Effect.Effect<number, WalFailed>
  /**
   * The records behind a position, up to those flushed when the stream begins. Any number may read while records are
   * added.
   */
  readonly read: (afterSeq: number) => Stream.Stream<WalRecord, WalFailed>
  /** Records before `seq` are needed no longer; they go when the piece they are in goes. */
  readonly dropBefore: (seq: number) => Effect.Effect<void, WalFailed>
  /**
   * Fails when the process must end: another one has taken the log over, or it is unknown what the log holds. Absent
   * where neither can be.
   */
  readonly lost?: Effect.Effect<never, StartFault>
  /** The bytes it takes of its disk, and those left there (undefined: unknown); absent where it is on none. */
  readonly usage?: Effect.Effect<{ readonly bytes: number; readonly freeBytes: number | undefined }>
}

export const dropped = (afterSeq: number, keptAfter: number): WalFailed =>
  new WalFailed({
    reason: "dropped",
    seq: afterSeq + 1,
    message: `the WAL no longer holds seq ${afterSeq + 1}: it was dropped at a checkpoint, the first one kept is ${keptAfter + 1}`
  })

/** `append` unless the added records would break the log. */
export const checked = <A, E>(records: ReadonlyArray<string>, append: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  records.every(isOneLine) ? append : Effect.dieMessage("a record of the WAL must be one line of JSON")

/** Why a node does not start: 3 for data that cannot be used as it is, 1 for anything else. */
export const startFault = ({ message, reason }: WalFailed): StartFault =>
  new StartFault({ exitCode: exitCodeOf(reason), message })

/** The scheduler's log. A layer of your own passes `conformance.wal` of `testing`. */
export class Wal extends Context.Tag("ports/Wal")<Wal, WalShape>() {
  /** Keeps everything in the process. `logId` is the caller's, because randomness is a runtime's. */
  static readonly layerMemory = (logId: string): Layer.Layer<Wal> =>
    Layer.sync(Wal, () => {
      const records: Array<WalRecord> = []
      let keptAfter = 0
      const last = (): number => keptAfter + records.length
      return {
        logId,
        lastSeq: Effect.sync(last),
        keptAfter: Effect.sync(() => keptAfter),
        append: (added) =>
          checked(
            added,
            Effect.sync(() => {
              for (const json of added) records.push({ seq: last() + 1, json })
              return last()
            })
          ),
        read: (afterSeq) =>
          Stream.suspend(() =>
            afterSeq < keptAfter
              ? Stream.fail(dropped(afterSeq, keptAfter))
              : Stream.fromIterable(records.slice(afterSeq - keptAfter))
          ),
        dropBefore: (seq) =>
          Effect.sync(() => {
            const count = Math.min(records.length, Math.max(0, seq - 1 - keptAfter))
            records.splice(0, count)
            keptAfter += count
          })
      }
    })
}
