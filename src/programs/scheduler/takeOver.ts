/**
 * A scheduler whose log others reach too: it stands by, then leads, and ends when it leads no more.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import * as Exchange from "../../host/http/exchange.ts"
import * as Process from "../../host/process/Process.ts"
import type * as Telemetry from "../../host/process/telemetry.ts"
import * as Sources from "../../host/snapshots/snapshotSources.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { PoolStore } from "../../ports/PoolStore.ts"
import { Progress } from "../../ports/Progress.ts"
import { Replica } from "../../ports/Replica.ts"
import { Leadership, SharedLog } from "../../ports/SharedLog.ts"
import { ReplicaFile } from "../../ports/Snapshots.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { startFault, Wal } from "../../ports/Wal.ts"
import type { SchedulerConfigShape } from "../../scheduler/Config.ts"
import { LeaderElection } from "../../scheduler/standby/LeaderElection.ts"
import * as LeaderWal from "../../scheduler/standby/leaderWal.ts"
import * as Standby from "../../scheduler/standby/Standby.ts"
import * as Tail from "../../scheduler/standby/tail.ts"
import { serveOn, serverOn } from "./serveOn.ts"

/** A term that is over has nothing to finish, and calls to a server that does not answer would keep the process. */
const endMs = 1000

/** Serves over a shared log and drivers until the process is told to stop. */
export const serve = (config: SchedulerConfigShape, { metrics }: Telemetry.Layers) =>
  Effect.gen(function* () {
    const log = yield* SharedLog
    const replica = yield* Replica
    const file = yield* ReplicaFile
    if (file === undefined) return yield* Effect.dieMessage("broken invariant: the replica of a shared log is a file")
    const { present } = yield* Upstream
    const client = Layer.fresh(Exchange.layerClient(config.tls))
    const own = yield* Layer.build(client)
    const asks = Context.get(own, HttpClient.HttpClient)
    const election = yield* LeaderElection.make(log, { ...config, name: config.schedulerId, asks })
    const snapshots = yield* Effect.provide(Sources.make({ ...config, log, peers: () => election.peers() }), own)
    const tail = yield* Tail.make(log, replica, { ...config, canClone: present, own: file, snapshots })
    const standby = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Scope.close(standby, exit))
    const around = yield* Layer.merge(serverOn(config, config.listen.port), metrics).pipe(
      Layer.provideMerge(Standby.layer(election, tail)),
      Layer.provide(client),
      Layer.provideMerge(Layer.mergeAll(Serving.layer, Progress.layer, Meters.layer)),
      Layer.fresh,
      Layer.buildWithScope(standby)
    )
    const port = yield* Context.get(around, Serving).port
    const url = config.advertisedUrl(port)
    yield* Effect.logInfo(`scheduler ${config.schedulerId} stands by at ${url}: log ${config.logName}`)
    const frame = yield* Effect.provideService(election.follow(url, tail), Progress, Context.get(around, Progress))
    yield* Effect.logInfo(`this scheduler leads: term ${frame.epoch}, from seq ${tail.applied()} to ${frame.lastSeq}`)
    const { applied, synced, wal } = yield* Effect.mapError(
      LeaderWal.make(election, frame, {
        copies: config.logCopies,
        synced: tail.synced(),
        keep: (wanted) => snapshots.keep(file, wanted)
      }),
      startFault
    )
    yield* election.lead({ applied, synced })
    const led = Layer.mergeAll(
      Layer.succeed(Wal, wal),
      Layer.succeed(PoolStore, log.pool(election.termOf(frame))),
      Layer.succeed(Leadership, election)
    )
    // While it stops, too: it may be superseded then.
    yield* Effect.forkDaemon(Effect.catchAll(election.lost, (fault) => Process.endWithin(fault, endMs)))
    // Ended before the term is: what is under way at a stop is finished, and the pool written, while this one leads.
    const leading = yield* Effect.forkScoped(
      Effect.provide(serveOn(config, metrics, port, Scope.close(standby, Exit.void)), led)
    )
    return yield* Effect.raceFirst(Fiber.join(leading), election.lost)
  }).pipe(Effect.scoped)
