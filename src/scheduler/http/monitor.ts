/**
 * Bodies of `/metrics`, `/info`, `/health` and `/progress`, from the pool's current state.
 *
 * Pure and from memory alone, so that looking at a scheduler in trouble costs it nothing.
 */
import { HashMap, HashSet } from "effect"
import * as DeliveryQueue from "../../core/cluster/deliveryQueue.ts"
import * as Member from "../../core/cluster/member.ts"
import * as State from "../../core/cluster/state.ts"
import * as Core from "../../core/telemetry/meters.ts"
import { declared } from "../../core/telemetry/metrics.ts"
import type { LogStatus } from "../../ports/SharedLog.ts"
import type { Progress, SchedulerMetrics } from "../../protocol/schedulerWire.ts"
import type { Info } from "../../protocol/wire.ts"

export const sortedMembers = (state: State.State): ReadonlyArray<State.SspMember> =>
  [...HashMap.values(state.members)].sort((a, b) => (a.ssp < b.ssp ? -1 : 1))

/** Number of events that an SSP lacks; 0 if it must bootstrap again before it is sent any. */
export const lacking = (state: State.State, { queue, state: its }: State.SspMember): number =>
  its === "Overflowed" ? 0 : DeliveryQueue.waiting(queue, state.log)

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000))

/** A figure of a heartbeat; a missing or infinite one counts as 0. */
export const finiteOrZero = (value: number | undefined): number =>
  value !== undefined && Number.isFinite(value) ? value : 0

export const metrics = (state: State.State, now: number, startedAt: number): typeof SchedulerMetrics.Type => ({
  scheduler: {
    total_ssps: HashMap.size(state.members),
    ready_ssps: State.ready(state).length,
    total_queries: State.viewCount(state),
    running_jobs: HashMap.size(state.jobs),
    uptime_seconds: seconds(now - startedAt)
  },
  ssps: sortedMembers(state).map((member) => ({
    id: member.ssp,
    query_count: HashSet.size(member.views),
    views: member.heartbeat.views,
    cpu_usage: finiteOrZero(member.heartbeat.cpu),
    memory_usage: finiteOrZero(member.heartbeat.memory),
    last_heartbeat_seconds_ago: seconds(now - member.heardAt)
  }))
})

export const info = (state: State.State, schedulerId: string): typeof Info.Type => [
  { entity: "scheduler", id: schedulerId, status: state.phase.toLowerCase(), views: State.viewCount(state) },
  ...sortedMembers(state).map((member) => ({
    entity: "ssp" as const,
    id: member.ssp,
    status: Member.shown[member.state],
    views: HashSet.size(member.views),
    ...(member.refusesSecret ? { fault: State.secretFault(member.ssp) } : {})
  }))
]

/**
 * Number of events that this scheduler's replica lacks beside the replica of the log's member that has applied most.
 */
const waitingOf = ({ members }: LogStatus, applied: number): number =>
  Math.max(0, members.reduce((most, member) => Math.max(most, member.applied), 0) - applied)

/** The schedulers of the log; undefined if the log belongs to one scheduler. */
export const logProgress = (status: LogStatus | undefined): (typeof Progress.Type)["log"] =>
  status && {
    role: status.role,
    epoch: status.epoch,
    leader: status.leader ?? null,
    leader_url: status.leaderUrl ?? null,
    durability: status.durability,
    schedulers: status.members.map(({ applied, name, synced, url }) => ({
      id: name,
      url,
      applied,
      synced,
      waiting: waitingOf(status, applied)
    }))
  }

export const logReadings = (status: LogStatus | undefined): Core.Readings =>
  status === undefined
    ? {}
    : {
        logRole: Core.oneOf(declared.logRole.labels.role, status.role),
        logEpoch: status.epoch,
        logTakeOvers: status.takeOvers,
        logDurability: Core.oneOf(declared.logDurability.labels.durability, status.durability),
        logLag: status.members.map(({ applied, name }) => [[name], waitingOf(status, applied)] as const)
      }

export const progress = (
  state: State.State,
  clone: (typeof Progress.Type)["clone"] | undefined,
  tasks: (typeof Progress.Type)["tasks"],
  log: (typeof Progress.Type)["log"]
): typeof Progress.Type => ({
  ...(log === undefined ? {} : { log }),
  state: state.phase.toLowerCase(),
  seq: state.log.head,
  tasks,
  clone: state.phase === "Cloning" ? (clone ?? null) : null,
  ssps: sortedMembers(state).map((member) => ({
    id: member.ssp,
    status: Member.shown[member.state],
    waiting: lacking(state, member)
  }))
})
