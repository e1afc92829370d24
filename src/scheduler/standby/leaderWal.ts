/**
 * The WAL of a leader over a log that several schedulers reach.
 *
 * Appends run one at a time. An append whose answer was lost is sent again, the same records at the same position,
 * until the log's row shows its outcome: a record that others may read must never lie behind one that may still arrive.
 * The answer to the client is decided elsewhere.
 */
import { Chunk, Duration, Effect, Fiber, Option, Stream } from "effect"
import * as Cutting from "../../core/cluster/cutting.ts"
import * as Term from "../../core/cluster/term.ts"
import type { WalRecord } from "../../core/wal/walFormat.ts"
import type { SnapshotFailed } from "../../ports/Snapshots.ts"
import { appendChecked, recordsDropped, WalFailed, type WalShape } from "../../ports/Wal.ts"
import type { FollowerReplica, LeaderElection } from "./LeaderElection.ts"

const retryMs = 50
/** Records dropped by one statement. */
const dropStep = 5000

const failed = (election: LeaderElection, reason: WalFailed["reason"], what: string): WalFailed =>
  new WalFailed({ reason, message: `the log at ${election.log.shown} (SVC_LOG_URL): ${what}` })

class LeaderLog {
  private readonly epoch: number
  lastSeq: number

  constructor(
    private readonly election: LeaderElection,
    { epoch, lastSeq }: Term.Frame,
    public keptAfter: number
  ) {
    this.epoch = epoch
    this.lastSeq = lastSeq
  }

  private get fenced(): Effect.Effect<never, WalFailed> {
    const { election } = this
    return Effect.fail(failed(election, "fenced", "another scheduler leads it now, or may"))
  }

  /** Whether the records are in the log, after a statement without a clear answer. */
  private settle(attempt: Term.Attempt): Effect.Effect<boolean, WalFailed> {
    const { election } = this
    return Effect.flatMap(Effect.either(election.log.row), (answer) => {
      if (answer._tag === "Left")
        return answer.left.reason === "unreachable" ? Effect.succeed(false) : Effect.fail(answer.left)
      switch (Term.outcomeOf(attempt, answer.right)) {
        case "there":
          return Effect.succeed(true)
        case "absent":
          return Effect.succeed(false)
        case "superseded":
          return Effect.zipRight(election.superseded, this.fenced)
        case "damaged":
          return Effect.fail(
            failed(
              election,
              "damaged",
              `it ends at seq ${answer.right.lastSeq}, and this process wrote it up to ${attempt.lastSeq}`
            )
          )
      }
    })
  }

  readonly append = Effect.fnUntraced(function* (this: LeaderLog, records: ReadonlyArray<string>) {
    const { election } = this
    if (records.length === 0) return this.lastSeq
    const attempt = { epoch: this.epoch, lastSeq: this.lastSeq, count: records.length }
    /** Set after a lost answer: the earlier try may still arrive, so no failure of a later try is final. */
    let isOpen = false
    for (;;) {
      if (election.isOver()) return yield* this.fenced
      const sentAt = election.time()
      const answer = yield* Effect.either(election.log.append(attempt, records))
      if (answer._tag === "Left") {
        if (answer.left.reason !== "unreachable" && !isOpen) return yield* answer.left
        isOpen = true
        yield* Effect.logWarning(`writes wait: ${answer.left.message}`)
      }
      const durability = answer._tag === "Right" ? answer.right : undefined
      if (durability !== undefined) yield* election.accepted(sentAt, durability)
      if (durability !== undefined || (yield* this.settle(attempt))) {
        this.lastSeq += records.length
        return this.lastSeq
      }
      yield* Effect.sleep(Duration.millis(retryMs))
    }
  })

  read(afterSeq: number): Stream.Stream<WalRecord, WalFailed> {
    return Stream.suspend(() => {
      if (afterSeq < this.keptAfter) return Stream.fail(recordsDropped(afterSeq, this.keptAfter))
      const upTo = this.lastSeq
      if (afterSeq >= upTo) return Stream.empty
      return Stream.paginateChunkEffect(afterSeq, (after) =>
        Effect.map(
          Effect.retry(this.election.log.page(after, upTo), {
            while: ({ reason }) => reason === "unreachable",
            times: 20
          }),
          (records) => {
            const last = after + records.length
            return [
              Chunk.unsafeFromArray([...records]),
              last < upTo ? Option.some(last) : Option.none<number>()
            ] as const
          }
        )
      )
    })
  }

  /**
   * Drops the log before `wanted`, as far as the copies allow. `own`: the replica here is on disk through this seq.
   * Drops in steps, because an append waits for each of them.
   */
  readonly dropBefore = Effect.fnUntraced(function* (
    this: LeaderLog,
    wanted: number,
    own: number,
    { copies, keep }: Pick<LeaderOptions, "copies" | "keep">
  ) {
    const { election } = this
    const snapshot = yield* Effect.mapError(keep(wanted), ({ message }) =>
      failed(election, "failed", `it is not cut: no snapshot can be kept: ${message}`)
    )
    const others = yield* election.copies
    const seq = Cutting.cutBefore(wanted, { own, others, snapshot }, copies)
    if (seq === 0)
      yield* Effect.logWarning(
        `the log at ${election.log.shown} is not cut: ${1 + others.filter(({ isNear }) => isNear).length} schedulers keep a replica of it${snapshot === undefined ? "" : " and a snapshot"}, and SVC_LOG_COPIES asks for ${copies} copies`
      )
    while (this.keptAfter < seq - 1) {
      const before = this.keptAfter
      this.keptAfter = Math.max(before, yield* election.log.drop(this.epoch, Math.min(seq, before + 1 + dropStep)))
      if (this.keptAfter === before) return
    }
  })
}

/** The leader's WAL, and the positions of its own replica. */
interface Led extends Pick<FollowerReplica, "applied" | "synced"> {
  readonly wal: WalShape
}

interface LeaderOptions {
  /** Position through which the replica was on disk when the term began. */
  readonly synced: number
  /** Setting `SVC_LOG_COPIES`. */
  readonly copies: number
  /** `SnapshotsShape.keep` for the replica here. */
  readonly keep: (wanted: number) => Effect.Effect<number | undefined, SnapshotFailed>
}

/** The WAL of the term that began with `frame`. */
export const make = (
  election: LeaderElection,
  frame: Term.Frame,
  { copies, keep, synced }: LeaderOptions
): Effect.Effect<Led, WalFailed> =>
  Effect.gen(function* () {
    const { keptAfter } = yield* Effect.retry(election.log.row, {
      while: ({ reason }) => reason === "unreachable",
      times: 20
    })
    const log = new LeaderLog(election, frame, keptAfter)
    const turn = yield* Effect.makeSemaphore(1)
    let onDisk = synced
    const wal: WalShape = {
      logId: election.log.logId,
      lastSeq: Effect.sync(() => log.lastSeq),
      keptAfter: Effect.sync(() => log.keptAfter),
      // Forked: an append whose caller is interrupted must still find out where the log ends.
      append: (records) =>
        appendChecked(records, Effect.flatMap(Effect.forkDaemon(turn.withPermits(1)(log.append(records))), Fiber.join)),
      read: (afterSeq) => log.read(afterSeq),
      // The pool calls this once the replica is on disk through `seq - 1`.
      dropBefore: (seq) => {
        onDisk = Math.max(onDisk, seq - 1)
        return log.dropBefore(seq, onDisk, { copies, keep })
      },
      lost: election.lost
    }
    return { wal, applied: () => log.lastSeq, synced: () => onDisk }
  })
