/**
 * Current figures of this scheduler for its metrics, from its parts and the pool's state (D34).
 *
 * From memory but for the disk's free space and the replica's position, so that looking at a scheduler in trouble costs
 * it nothing. SSPs are labels: there are few, and an SSP that is gone has no figures.
 */
import { Effect, HashMap, HashSet, Layer, Option } from "effect"
import * as DeliveryQueue from "../../core/cluster/deliveryQueue.ts"
import type * as State from "../../core/cluster/state.ts"
import * as Waiting from "../../core/cluster/waiting.ts"
import * as Latency from "../../core/telemetry/latency.ts"
import * as Core from "../../core/telemetry/meters.ts"
import { declared } from "../../core/telemetry/metrics.ts"
import { readings as changeReadings } from "../../node/database/changeReader.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { Meters } from "../../ports/Meters.ts"
import { NodeFigures, ofMemory, ofProcess } from "../../ports/NodeFigures.ts"
import { Heap, ProcessFigures } from "../../ports/ProcessFigures.ts"
import { Progress, running } from "../../ports/Progress.ts"
import { Release } from "../../ports/Release.ts"
import { Replica } from "../../ports/Replica.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { steadyMs } from "../../ports/Turn.ts"
import { Wal } from "../../ports/Wal.ts"
import { SchedulerConfig } from "../Config.ts"
import { Ingest } from "../ingest/Ingest.ts"
import { Pool } from "../pool/Pool.ts"
import * as PoolMeters from "../pool/poolMeters.ts"
import { ChangeFeed } from "../replica/ChangeFeed.ts"
import * as Monitor from "./monitor.ts"

const { schedulerSsps, schedulerStatus } = declared

/** Figures of a heartbeat are in the SSP's units: percent of a core, megabytes. */
const bytesOf = (megabytes: number): number => megabytes * 1_048_576

const ofMembers = (state: State.State, now: number): Core.Readings => {
  const members = Monitor.members(state)
  const each = (of: (member: State.SspMember) => number) => members.map((member) => [[member.ssp], of(member)] as const)
  return {
    schedulerSsps: schedulerSsps.labels.state.map(
      (name) => [[name], members.filter(({ state: own }) => own.toLowerCase() === name).length] as const
    ),
    sspLag: each((member) => (member.state === "Overflowed" ? 0 : DeliveryQueue.waiting(member.queue, state.log))),
    sspLagLimit: state.config.maxBuffer,
    schedulerQuarantined: HashMap.size(state.quarantined),
    sspAssigned: each(({ views }) => HashSet.size(views)),
    sspJobs: each(({ jobs }) => HashSet.size(jobs)),
    sspReported: each(({ heartbeat }) => heartbeat.views),
    sspCpu: each(({ heartbeat }) => Monitor.figure(heartbeat.cpu) / 100),
    sspMemory: each(({ heartbeat }) => bytesOf(Monitor.figure(heartbeat.memory))),
    sspHeartbeatAge: each(({ heardAt }) => Math.max(0, now - heardAt) / 1000)
  }
}

const ofState = (state: State.State, now: number): Core.Readings => ({
  ...ofMembers(state, now),
  schedulerStatus: Core.oneOf(schedulerStatus.labels.status, state.phase.toLowerCase()),
  schedulerViews: Monitor.viewCount(state),
  schedulerViewsWaiting: Waiting.size(state.waitingViews),
  schedulerJobs: HashMap.size(state.jobs),
  schedulerJobsWaiting: Waiting.size(state.waitingJobs),
  logSeq: state.log.head,
  logEvents: Math.max(0, state.log.head - state.log.first + 1),
  freezeAge: state.freeze === undefined ? 0 : Math.max(0, now - state.freeze.at) / 1000
})

const make = Effect.gen(function* () {
  const config = yield* SchedulerConfig
  const pool = yield* Pool
  const { waiting } = yield* Ingest
  const feed = yield* ChangeFeed
  const wal = yield* Wal
  const replica = yield* Replica
  const { version } = yield* Release
  const { latency } = yield* IngestTimes
  const meters = yield* Meters
  const progress = yield* Progress
  const process = yield* ProcessFigures
  const heap = yield* Heap
  const leadership = yield* Leadership
  PoolMeters.watch(pool, meters, progress)
  const ofStores = Effect.gen(function* () {
    const usage = wal.usage === undefined ? undefined : yield* wal.usage
    const applied = Option.getOrUndefined(yield* Effect.option(replica.applied))
    return { walBytes: usage?.bytes, walFree: usage?.freeBytes, replicaSeq: applied }
  })
  return Effect.gen(function* () {
    const now = yield* steadyMs
    const compared = progress.endedAt("reconcile")
    return Core.families("scheduler", meters, {
      ...ofProcess(yield* process),
      ...ofMemory(heap.memory()),
      ...ofState(pool.state(), now),
      ...(yield* ofStores),
      ...Monitor.logReadings(leadership.status()),
      buildInfo: [[[version, "scheduler"], 1]],
      tasksRunning: running(progress.tasks()),
      reconcileAge: compared === undefined ? undefined : Math.max(0, now - compared) / 1000,
      snapshotAge: Math.max(0, now - pool.checkpointedAt()) / 1000,
      ingestDuration: Latency.histogram(latency),
      ingestPending: waiting(),
      ingestPendingLimit: config.maxPendingChanges,
      ...changeReadings(feed.figures())
    })
  })
})

export const layer = Layer.effect(NodeFigures, make)
