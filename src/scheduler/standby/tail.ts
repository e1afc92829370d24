/**
 * A replica that follows the log of another scheduler: warm when its own term begins.
 *
 * It takes versions from the log's lines and decides none.
 */
import { Clock, Effect } from "effect"
import { type Replica, startFault } from "../../ports/Replica.ts"
import type { LogRow, SharedLogShape } from "../../ports/SharedLog.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { replaying } from "../ingest/recovery.ts"
import type { Following } from "./Standing.ts"

/** How often it brings what it has applied to its disk, so that the log may be cut behind it. */
const syncMs = 5000

export interface TailOptions {
  readonly replicaDbPath: string
  /** Lost records can be had from a database. */
  readonly canClone: boolean
}

const unusable = (message: string): StartFault => new StartFault({ exitCode: 3, message })

export const make = (
  log: SharedLogShape,
  replica: typeof Replica.Service,
  { canClone, replicaDbPath }: TailOptions
): Effect.Effect<Following, StartFault> =>
  Effect.gen(function* () {
    let applied = yield* Effect.mapError(replica.applied, startFault)
    let synced = applied
    let syncedAt = yield* Clock.currentTimeMillis
    let isTold = false
    const replays = yield* replaying(log.shown, replica)

    const sync = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (synced === applied || now - syncedAt < syncMs) return
      const through = applied
      yield* Effect.mapError(replica.sync, startFault)
      synced = through
      syncedAt = now
    })

    /** Why this replica cannot follow, if it cannot. */
    const fault = ({ keptAfter, lastSeq }: LogRow): string | undefined => {
      if (applied > lastSeq)
        return `the replica in ${replicaDbPath} stands at seq ${applied}, but the log at ${log.shown} ends at ${lastSeq}: they are not of one piece. Put the log back, or move both away to begin anew`
      return applied < keptAfter
        ? `the replica in ${replicaDbPath} stands at seq ${applied}, but the log at ${log.shown} begins at ${keptAfter + 1}: what lies between is not in it any more. Stop another scheduler of this log, copy its replica folder here, and start both`
        : undefined
    }

    const step = (row: LogRow): Effect.Effect<boolean, StartFault> =>
      Effect.gen(function* () {
        const why = fault(row)
        if (why !== undefined && applied < row.keptAfter && canClone) {
          if (!isTold) yield* Effect.logWarning(`${why}; or it is cloned from the database when this scheduler leads`)
          isTold = true
          return false
        }
        if (why !== undefined) return yield* unusable(why)
        yield* sync
        if (applied === row.lastSeq) return false
        const page = yield* Effect.either(log.page(applied, row.lastSeq))
        if (page._tag === "Left") {
          if (page.left.reason === "damaged") return yield* unusable(page.left.message)
          // Cut meanwhile, or out of reach: the next look says which.
          return false
        }
        applied = yield* replays.apply(page.right)
        return applied < row.lastSeq
      })

    return { step, applied: () => applied, synced: () => synced }
  })
