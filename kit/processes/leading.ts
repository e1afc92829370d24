/** A term of a log that a server keeps, whichever the engine: what a scheduler has open while it leads. */
import { Context, Effect, Layer } from "effect"
import { SharedLog } from "../../src/ports/SharedLog.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import { Wal, WalFailed } from "../../src/ports/Wal.ts"
import { type FollowerReplica, LeaderElection } from "../../src/scheduler/standby/LeaderElection.ts"
import * as LeaderWal from "../../src/scheduler/standby/leaderWal.ts"

/** A lease that no busy machine lets pass: what takes over here is handed the log. */
export const leaseMs = 20_000

export interface LeadingOptions {
  readonly name: string
  readonly leaseMs: number
  readonly copies: number
}

const nothing: FollowerReplica = {
  step: () => Effect.succeed(false),
  canLead: () => true,
  applied: () => 0,
  synced: () => 0
}

/** Its WAL and pool once it leads. */
export const leadingOf = (shared: Layer.Layer<SharedLog, StartFault>, { copies, leaseMs, name }: LeadingOptions) =>
  Effect.gen(function* () {
    const log = Context.get(yield* Layer.build(shared), SharedLog)
    const election = yield* LeaderElection.make(log, { name, leaseMs })
    const frame = yield* election.follow(`http://${name}`, nothing)
    const led = yield* LeaderWal.make(election, frame, { copies, synced: 0, keep: () => Effect.succeed(undefined) })
    yield* election.lead(led)
    return { log, election, wal: led.wal, pool: log.pool(election.termOf(frame)), epoch: frame.epoch }
  })

/** For a layer whose error is the port's own. */
export const layerWal = (shared: Layer.Layer<SharedLog, StartFault>, name: string): Layer.Layer<Wal, WalFailed> =>
  Layer.scoped(
    Wal,
    leadingOf(shared, { name, leaseMs, copies: 1 }).pipe(
      Effect.map(({ wal }) => wal),
      Effect.mapError(({ message }) => new WalFailed({ reason: "failed", message }))
    )
  ).pipe(Layer.fresh)
