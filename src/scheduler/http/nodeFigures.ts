/**
 * Current figures of this scheduler for its metrics, from its parts and the pool's state (D34).
 *
 * From memory but for the disk's free space and the replica's position, so that looking at a scheduler in trouble costs
 * it nothing. SSPs are labels: there are few, and an SSP that is gone has no figures.
 */
import { Effect, HashMap, HashSet, Option } from "effect"
import * as State from "../../core/cluster/state.ts"
import * as Waiting from "../../core/cluster/waiting.ts"
import * as Latency from "../../core/telemetry/latency.ts"
import * as Core from "../../core/telemetry/meters.ts"
import { declared } from "../../core/telemetry/metrics.ts"
import { readings as changeReadings } from "../../node/database/changeReader.ts"
import * as Figures from "../../node/http/nodeFigures.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { Meters } from "../../ports/Meters.ts"
import { Progress } from "../../ports/Progress.ts"
import { Replica } from "../../ports/Replica.ts"
import { Leadership } from "../../ports/SharedLog.ts"
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
  const members = Monitor.sortedMembers(state)
  const each = (of: (member: State.SspMember) => number) => members.map((member) => [[member.ssp], of(member)] as const)
  return {
    schedulerSsps: schedulerSsps.labels.state.map(
      (name) => [[name], members.filter(({ state: own }) => own.toLowerCase() === name).length] as const
    ),
    sspLag: each((member) => Monitor.lacking(state, member)),
    sspLagLimit: state.config.maxBuffer,
    schedulerQuarantined: HashMap.size(state.quarantined),
    sspAssigned: each(({ views }) => HashSet.size(views)),
    sspJobs: each(({ jobs }) => HashSet.size(jobs)),
    sspReported: each(({ heartbeat }) => heartbeat.views),
    sspCpu: each(({ heartbeat }) => Monitor.finiteOrZero(heartbeat.cpu) / 100),
    sspMemory: each(({ heartbeat }) => bytesOf(Monitor.finiteOrZero(heartbeat.memory))),
    sspHeartbeatAge: each(({ heardAt }) => Math.max(0, now - heardAt) / 1000)
  }
}

const ofState = (state: State.State, now: number): Core.Readings => ({
  ...ofMembers(state, now),
  schedulerStatus: Core.oneOf(schedulerStatus.labels.status, state.phase.toLowerCase()),
  schedulerViews: State.viewCount(state),
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
  const { latency } = yield* IngestTimes
  const leadership = yield* Leadership
  PoolMeters.watch(pool, yield* Meters, yield* Progress)
  const ofStores = Effect.gen(function* () {
    const usage = wal.usage === undefined ? undefined : yield* wal.usage
    const applied = Option.getOrUndefined(yield* Effect.option(replica.applied))
    return { walBytes: usage?.bytes, walFree: usage?.freeBytes, replicaSeq: applied }
  })
  return (now: number) =>
    Effect.map(ofStores, (stores) => ({
      ...ofState(pool.state(), now),
      ...stores,
      ...Monitor.logReadings(leadership.status()),
      snapshotAge: Math.max(0, now - pool.checkpointedAt()) / 1000,
      ingestDuration: Latency.histogram(latency),
      ingestPending: waiting(),
      ingestPendingLimit: config.maxPendingChanges,
      ...changeReadings(feed.figures())
    }))
})

export const layer = Figures.layer("scheduler", make)
