/**
 * The scheduler's write-ahead log: every accepted event, in order, durable before it is answered (D26).
 *
 * The log assigns the positions (`seq`, from 1, without gaps), because order and durability are one decision: a
 * position without a flushed record must not exist. Only flushed records are read. `layerMemory` keeps nothing beyond
 * the process; the layer over files needs a runtime and lives in `host/`.
 */
import { Context, Data, Effect, Layer, Stream } from "effect"
import { isOneLine, type WalRecord } from "../core/wal/walFormat.ts"
import { exitCodeOf, StartFault } from "./StartFault.ts"

/** Kinds of failure, see {@link WalFailed}. */
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

/** An append-only log of JSON lines. Methods fail with {@link WalFailed}. */
export interface WalShape {
  /** Random id, drawn when the log is made (D5). */
  readonly logId: string
  /** Position of the last record that has been flushed; 0 before the first. */
  readonly lastSeq: Effect.Effect<number>
  /** Every record after this position can be read. */
  readonly keptAfter: Effect.Effect<number>
  /**
   * Appends records, JSON texts of one line each, in order and with consecutive positions; answers the last position
   * when all are flushed. Either all records of a call are added or, if it fails, none, except for a crash before the
   * answer. An interrupted call may still add its records.
   */
  readonly append: (records: ReadonlyArray<string>) => Effect.Effect<number, WalFailed>
  /**
   * The records after a position, up to the last one flushed when the stream begins. Any number of readers may run
   * beside appends.
   */
  readonly read: (afterSeq: number) => Stream.Stream<WalRecord, WalFailed>
  /** Allows to drop records before `seq`; they are deleted with the segment that they are in. */
  readonly dropBefore: (seq: number) => Effect.Effect<void, WalFailed>
  /**
   * Fails when the process must end: another one has taken the log over, or the content of the log is unknown. Absent
   * if neither can happen.
   */
  readonly lost?: Effect.Effect<never, StartFault>
  /** Bytes of the log on its disk, and bytes free there (undefined: unknown); absent if it is on none. */
  readonly usage?: Effect.Effect<{ readonly bytes: number; readonly freeBytes: number | undefined }>
}

/** Failure of a read after `afterSeq`, when records up to `keptAfter` were dropped. */
export const recordsDropped = (afterSeq: number, keptAfter: number): WalFailed =>
  new WalFailed({
    reason: "dropped",
    seq: afterSeq + 1,
    message: `the WAL no longer holds seq ${afterSeq + 1}: it was dropped at a checkpoint, the first one kept is ${keptAfter + 1}`
  })

/** `append` for valid records; fails with a record that would break the log's format. */
export const appendChecked = <A, E>(
  records: ReadonlyArray<string>,
  append: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  records.every(isOneLine) ? append : Effect.dieMessage("a record of the WAL must be one line of JSON")

/** The fault that ends a start: exit code 3 for data that cannot be used as it is, 1 for anything else. */
export const startFault = ({ message, reason }: WalFailed): StartFault =>
  new StartFault({ exitCode: exitCodeOf(reason), message })

/** The scheduler's log. A layer of your own passes `conformance.wal` of `testing`. */
export class Wal extends Context.Tag("ports/Wal")<Wal, WalShape>() {
  /** A log in memory. The caller brings `logId`, because randomness is a runtime's. */
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
          appendChecked(
            added,
            Effect.sync(() => {
              for (const json of added) records.push({ seq: last() + 1, json })
              return last()
            })
          ),
        read: (afterSeq) =>
          Stream.suspend(() =>
            afterSeq < keptAfter
              ? Stream.fail(recordsDropped(afterSeq, keptAfter))
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
