/**
 * A standby's replica that follows the leader's log, so that it is current when its own term begins.
 *
 * The tail takes versions from the log's lines and decides none. A replica that is older than the log's beginning is
 * restored from a snapshot first.
 */
import { Effect } from "effect"
import { type Replica, startFault } from "../../ports/Replica.ts"
import type { LogRow, SharedLogShape } from "../../ports/SharedLog.ts"
import type { ReplicaFileShape, SnapshotsShape } from "../../ports/Snapshots.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { steadyMs } from "../../ports/Turn.ts"
import { makeReplay, type Replay } from "../pool/recovery.ts"
import type { FollowerReplica } from "./LeaderElection.ts"
import * as Restoring from "./restoring.ts"

/** Pause between two syncs of the replica to disk; the log can be cut up to the last one. */
const syncMs = 5000
/** Pause between two attempts to restore the replica. */
const restoreMs = 1000

/** Leases for which missing snapshots are no fault: other schedulers may only be starting. */
const patienceLeases = 10

interface TailOptions {
  readonly replicaDbPath: string
  readonly leaseMs: number
  readonly snapshotTimeoutSecs: number
  /** Whether lost records can be cloned from a database. */
  readonly canClone: boolean
  /** The replica as a file, and the sources of snapshots. */
  readonly own: ReplicaFileShape
  readonly snapshots: SnapshotsShape
}

const unusable = (message: string): StartFault => new StartFault({ exitCode: 3, message })

/** Applies the log's events to the replica and tracks its positions. */
class Tail implements FollowerReplica {
  private readonly restore: ReturnType<typeof Restoring.make>
  private at: { readonly applied: number; readonly synced: number; readonly replays: Replay }
  private syncedAt: number
  /** Set while no snapshot could be had: since when, when the next attempt is due, whether a full disk was logged. */
  private lacking: { readonly since: number; readonly nextAt: number; readonly saidFull: boolean } | undefined

  constructor(
    private readonly log: SharedLogShape,
    private readonly replica: typeof Replica.Service,
    private readonly options: TailOptions,
    applied: number,
    replays: Replay,
    now: number
  ) {
    const { own, snapshots, snapshotTimeoutSecs } = options
    this.restore = Restoring.make({ logId: log.logId, own, snapshots, timeoutMs: snapshotTimeoutSecs * 1000 })
    this.at = { applied, synced: applied, replays }
    this.syncedAt = now
  }

  readonly applied = (): number => this.at.applied

  readonly synced = (): number => this.at.synced

  readonly canLead = ({ keptAfter, lastSeq }: LogRow): boolean => {
    const { applied } = this.at
    const clonesInstead = this.options.canClone && this.lacking !== undefined
    return applied <= lastSeq && (applied >= keptAfter || clonesInstead)
  }

  readonly step = (row: LogRow): Effect.Effect<boolean, StartFault> =>
    Effect.gen(this, function* () {
      const { applied } = this.at
      if (applied > row.lastSeq)
        return yield* unusable(
          `the replica in ${this.options.replicaDbPath} stands at seq ${applied}, but the log at ${this.log.shown} ends at ${row.lastSeq}: they are not of one piece. Put the log back, or move both away to begin anew`
        )
      if (applied < row.keptAfter) return yield* this.restored(row)
      yield* this.sync
      if (applied === row.lastSeq) return false
      const page = yield* Effect.either(this.log.page(applied, row.lastSeq))
      if (page._tag === "Left") {
        if (page.left.reason === "damaged") return yield* unusable(page.left.message)
        // The page was cut meanwhile, or the log is out of reach; the next step finds out.
        return false
      }
      this.at = { ...this.at, applied: yield* this.at.replays.apply(page.right) }
      return this.at.applied < row.lastSeq
    })

  private readonly sync = Effect.suspend(() =>
    Effect.gen(this, function* () {
      const now = yield* steadyMs
      const { applied, synced } = this.at
      if (synced === applied || now - this.syncedAt < syncMs) return
      yield* Effect.mapError(this.replica.sync, startFault)
      this.at = { ...this.at, synced: applied }
      this.syncedAt = now
    })
  )

  /** Restores a snapshot when an attempt is due; answers false if the replica has not moved. */
  private restored(row: LogRow): Effect.Effect<boolean, StartFault> {
    return Effect.gen(this, function* () {
      const now = yield* steadyMs
      if (this.lacking !== undefined && now < this.lacking.nextAt) return false
      const lacking = yield* this.restore(row)
      if (lacking !== undefined) return yield* this.lacks(row, lacking, now)
      const applied = yield* Effect.mapError(this.replica.applied, startFault)
      // A restored file was flushed before it was renamed.
      this.at = { applied, synced: applied, replays: yield* makeReplay(this.log.shown, this.replica) }
      this.lacking = undefined
      return true
    })
  }

  /**
   * Schedules the next attempt, or fails when patience is over. A full disk is waited for without end: nothing is lost.
   */
  private lacks(
    row: LogRow,
    { faults, isFull }: Restoring.MissingSnapshot,
    now: number
  ): Effect.Effect<boolean, StartFault> {
    return Effect.gen(this, function* () {
      const { canClone, leaseMs, replicaDbPath } = this.options
      const triedAt = yield* steadyMs
      const room = isFull ? `. Make room in ${replicaDbPath} (SVC_SCHEDULER_REPLICA_DB_PATH)` : ""
      const why = `the replica in ${replicaDbPath} stands at seq ${this.at.applied}, but the log at ${this.log.shown} begins at ${row.keptAfter + 1}: what lies between is not in it any more, and no snapshot can be had (${faults.join("; ")})${room}`
      if (this.lacking === undefined || (isFull && !this.lacking.saidFull)) {
        const otherwise = canClone ? "; it is cloned from the database if this scheduler leads before" : ""
        yield* Effect.logWarning(`${why}: trying again${otherwise}`)
      }
      const since = isFull ? triedAt : (this.lacking?.since ?? now)
      // Each attempt on a full disk copies a replica until the disk is full, so it waits longer.
      const nextAt = triedAt + (isFull ? Math.max(restoreMs, leaseMs) : restoreMs)
      this.lacking = { since, nextAt, saidFull: isFull || (this.lacking?.saidFull ?? false) }
      if (canClone || triedAt - since < patienceLeases * leaseMs) return false
      return yield* unusable(
        `${why}. Start a scheduler of this log that has a replica, or put a snapshot where SVC_SNAPSHOT_URL points`
      )
    })
  }
}

export const make = (
  log: SharedLogShape,
  replica: typeof Replica.Service,
  options: TailOptions
): Effect.Effect<FollowerReplica, StartFault> =>
  Effect.gen(function* () {
    const applied = yield* Effect.mapError(replica.applied, startFault)
    const replays = yield* makeReplay(log.shown, replica)
    return new Tail(log, replica, options, applied, replays, yield* steadyMs)
  })
