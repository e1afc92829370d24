/**
 * What the scheduler tells about itself: `/metrics`, `/info`, `/health`, `/progress`, from the pool's state at that moment.
 *
 * Pure and from memory alone, so that looking at a scheduler in trouble costs it nothing.
 */
import { HashMap, HashSet } from "effect"
import * as Member from "../core/cluster/member.ts"
import * as Outbox from "../core/cluster/outbox.ts"
import * as State from "../core/cluster/state.ts"
import * as Waiting from "../core/cluster/waiting.ts"
import type { Progress, SchedulerMetrics } from "../protocol/schedulerWire.ts"
import type { Info } from "../protocol/wire.ts"

const members = (state: State.State): ReadonlyArray<State.SspMember> => [...HashMap.values(state.members)].sort((a, b) => (a.ssp < b.ssp ? -1 : 1))

/** Views that are somebody's, or wait to be. */
const viewCount = (state: State.State): number => HashMap.reduce(state.views, 0, (count, view) => (view.gone ? count : count + 1))

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000))

/** Views of the last heartbeat are whole and not negative by contract; figures that are none count as 0. */
const figure = (value: number | undefined): number => (value !== undefined && Number.isFinite(value) ? value : 0)

export const metrics = (state: State.State, now: number, startedAt: number): typeof SchedulerMetrics.Type => ({
  scheduler: {
    total_ssps: HashMap.size(state.members), ready_ssps: State.ready(state).length, total_queries: viewCount(state),
    running_jobs: HashMap.size(state.jobs), uptime_seconds: seconds(now - startedAt)
  },
  ssps: members(state).map((member) => ({
    id: member.ssp, query_count: HashSet.size(member.views), views: member.heartbeat.views, cpu_usage: figure(member.heartbeat.cpu), memory_usage: figure(member.heartbeat.memory),
    last_heartbeat_seconds_ago: seconds(now - member.heardAt)
  }))
})

export const info = (state: State.State, schedulerId: string): typeof Info.Type => [
  { entity: "scheduler", id: schedulerId, status: state.phase.toLowerCase(), views: viewCount(state) },
  ...members(state).map((member) => ({ entity: "ssp" as const, id: member.ssp, status: Member.shown[member.state], views: HashSet.size(member.views) }))
]

export const progress = (state: State.State, clone: (typeof Progress.Type)["clone"] | undefined): typeof Progress.Type => ({
  state: state.phase.toLowerCase(), seq: state.log.head, clone: state.phase === "Cloning" ? clone ?? null : null,
  ssps: members(state).map((member) => ({ id: member.ssp, status: Member.shown[member.state], waiting: member.state === "Overflowed" ? 0 : Outbox.waiting(member.outbox, state.log) }))
})

const escaped = (label: string): string => label.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")

/** The same figures as Prometheus reads them (D34). SSPs are labels: there are a few, and those that are gone are gone here too. */
export const prometheus = (state: State.State, now: number, startedAt: number): string => {
  const { scheduler, ssps } = metrics(state, now, startedAt)
  const behind = new Map(progress(state, undefined).ssps.map(({ id, waiting }) => [id, waiting]))
  const lines: Array<string> = []
  const gauge = (name: string, help: string, values: ReadonlyArray<readonly [labels: string, value: number]>): void => {
    lines.push(`# HELP svc_scheduler_${name} ${help}`, `# TYPE svc_scheduler_${name} gauge`, ...values.map(([labels, value]) => `svc_scheduler_${name}${labels} ${value}`))
  }
  const perSsp = (of: (ssp: (typeof ssps)[number]) => number) => ssps.map((ssp) => [`{ssp="${escaped(ssp.id)}"}`, of(ssp)] as const)
  gauge("ssps", "Registered SSPs.", [["", scheduler.total_ssps]])
  gauge("ready_ssps", "Ready SSPs.", [["", scheduler.ready_ssps]])
  gauge("queries", "Registered views.", [["", scheduler.total_queries]])
  gauge("running_jobs", "Jobs that are not finished.", [["", scheduler.running_jobs]])
  gauge("waiting_jobs", "Jobs that no SSP has been told of.", [["", Waiting.size(state.waitingJobs)]])
  gauge("uptime_seconds", "Seconds since the start.", [["", scheduler.uptime_seconds]])
  gauge("seq", "Last position of the log.", [["", state.log.head]])
  gauge("log_events", "Events kept in the log.", [["", Math.max(0, state.log.head - state.log.first + 1)]])
  gauge("ssp_queries", "Views assigned to an SSP.", perSsp((ssp) => ssp.query_count))
  gauge("ssp_jobs", "Jobs it has that are not finished.", members(state).map(({ jobs, ssp }) => [`{ssp="${escaped(ssp)}"}`, HashSet.size(jobs)] as const))
  gauge("ssp_views", "Views of its last heartbeat.", perSsp((ssp) => ssp.views))
  gauge("ssp_cpu_percent", "CPU of its last heartbeat.", perSsp((ssp) => ssp.cpu_usage))
  gauge("ssp_memory_megabytes", "Memory of its last heartbeat.", perSsp((ssp) => ssp.memory_usage))
  gauge("ssp_heartbeat_age_seconds", "Seconds since it was heard of.", perSsp((ssp) => ssp.last_heartbeat_seconds_ago))
  gauge("ssp_waiting_events", "Events it lacks.", perSsp((ssp) => behind.get(ssp.id) ?? 0))
  return `${lines.join("\n")}\n`
}
