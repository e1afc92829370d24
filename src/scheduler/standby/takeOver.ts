/**
 * A scheduler over a shared log: follows as a standby, then leads, and ends when its term ends.
 *
 * Both nodes answer on one listener. While the leader's state is opened the standby node still answers; no leader is
 * known then.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import type { Frame } from "../../core/cluster/term.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { PoolStore } from "../../ports/PoolStore.ts"
import { Progress } from "../../ports/Progress.ts"
import { Replica } from "../../ports/Replica.ts"
import { Leadership, SharedLog, type SharedLogShape } from "../../ports/SharedLog.ts"
import { ReplicaFile, type SnapshotsShape } from "../../ports/Snapshots.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { startFault, Wal } from "../../ports/Wal.ts"
import type { SchedulerConfigShape } from "../Config.ts"
import { LeaderElection } from "./LeaderElection.ts"
import * as LeaderWal from "./leaderWal.ts"
import * as Standby from "./Standby.ts"
import * as Tail from "./tail.ts"

/** The layers of the process. `N`: services that the standby node provides to its layers. */
interface TakeOverLayers<N, R> {
  /** Client for requests to other schedulers; built twice, for the process's own calls and for forwarded ones. */
  readonly client: Layer.Layer<HttpClient.HttpClient>
  readonly snapshots: (
    log: SharedLogShape,
    peers: LeaderElection["peers"]
  ) => Effect.Effect<SnapshotsShape, StartFault, HttpClient.HttpClient>
  /** Layers on top of the standby node: its listener and its figures. */
  readonly standby: Layer.Layer<never, StartFault, N>
  /** Serves the leader's node on the same listener; `begun` runs once that node answers. */
  readonly leading: (begun: Effect.Effect<void>) => Effect.Effect<void, StartFault, R>
  /** Ends the process with a fault, even while it stops. */
  readonly end: (fault: StartFault) => Effect.Effect<void>
}

/** Serves the term that began with `frame`: returns when the process stops, fails when it must end. */
const lead = <R>(
  election: LeaderElection,
  frame: Frame,
  log: SharedLogShape,
  options: Parameters<typeof LeaderWal.make>[2],
  {
    end,
    leading
  }: { readonly end: TakeOverLayers<never, R>["end"]; readonly leading: Effect.Effect<void, StartFault, R> }
) =>
  Effect.gen(function* () {
    const { applied, synced, wal } = yield* Effect.mapError(LeaderWal.make(election, frame, options), startFault)
    yield* election.lead({ applied, synced })
    const led = Layer.mergeAll(
      Layer.succeed(Wal, wal),
      Layer.succeed(PoolStore, log.pool(election.termOf(frame))),
      Layer.succeed(Leadership, election)
    )
    // Watched during a stop too: the term may be superseded then.
    yield* Effect.forkDaemon(Effect.catchAll(election.lost, end))
    // Forked in the scope of the term, so it ends first: requests under way are finished and the pool is written while
    // this process still leads.
    const serving = yield* Effect.forkScoped(Effect.provide(leading, led))
    return yield* Effect.raceFirst(Fiber.join(serving), election.lost)
  })

/** Serves over a shared log until the process is told to stop. */
export const serve = <N, R>(config: SchedulerConfigShape, layers: TakeOverLayers<N, R>) =>
  Effect.gen(function* () {
    const log = yield* SharedLog
    const replica = yield* Replica
    const file = yield* ReplicaFile
    if (file === undefined) return yield* Effect.dieMessage("broken invariant: the replica of a shared log is a file")
    const { present } = yield* Upstream
    const client = Layer.fresh(layers.client)
    const own = yield* Layer.build(client)
    const asks = Context.get(own, HttpClient.HttpClient)
    const election = yield* LeaderElection.make(log, { ...config, name: config.schedulerId, asks })
    const snapshots = yield* Effect.provide(
      layers.snapshots(log, () => election.peers()),
      own
    )
    const tail = yield* Tail.make(log, replica, { ...config, canClone: present, own: file, snapshots })
    const standby = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Scope.close(standby, exit))
    const around = yield* layers.standby.pipe(
      Layer.provideMerge(Standby.layer(election, tail)),
      Layer.provide(client),
      Layer.provideMerge(Layer.mergeAll(Serving.layer, Progress.layer, Meters.layer)),
      Layer.fresh,
      Layer.buildWithScope(standby)
    )
    const url = config.advertisedUrl(yield* Context.get(around, Serving).port)
    yield* Effect.logInfo(`scheduler ${config.schedulerId} stands by at ${url}: log ${config.logName}`)
    const frame = yield* Effect.provideService(election.follow(url, tail), Progress, Context.get(around, Progress))
    yield* Effect.logInfo(`this scheduler leads: term ${frame.epoch}, from seq ${tail.applied()} to ${frame.lastSeq}`)
    const options = {
      copies: config.logCopies,
      synced: tail.synced(),
      keep: (wanted: number) => snapshots.keep(file, wanted)
    }
    // Forked: the leader does not wait for requests that the standby node still answers.
    const begun = Effect.forkDaemon(Scope.close(standby, Exit.void))
    return yield* lead(election, frame, log, options, {
      end: layers.end,
      leading: layers.leading(Effect.asVoid(begun))
    })
  }).pipe(Effect.scoped)
