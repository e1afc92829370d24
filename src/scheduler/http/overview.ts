/**
 * `GET /overview` of the scheduler: the cluster in the pool's current state, and this process.
 *
 * From memory alone, like `monitor.ts`; counters only grow, and readers derive rates.
 */
import { Effect, HashMap, HashSet } from "effect"
import * as Quarantine from "../../core/cluster/poolQuarantine.ts"
import * as State from "../../core/cluster/state.ts"
import * as Waiting from "../../core/cluster/waiting.ts"
import { isoOf } from "../../core/view/viewTimes.ts"
import { warningsOf } from "../../node/database/schemaWatch.ts"
import { usedOf } from "../../node/http/nodeFigures.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { ProcessFigures } from "../../ports/ProcessFigures.ts"
import { Release } from "../../ports/Release.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { steadyAheadMs, steadyMs } from "../../ports/Turn.ts"
import type { SchedulerOverview, SspSummary } from "../../protocol/overview.ts"
import { SchedulerConfig } from "../Config.ts"
import { JobFeed } from "../ingest/JobFeed.ts"
import { DeclaredTables } from "../pool/DeclaredTables.ts"
import { Pool } from "../pool/Pool.ts"
import { ChangeFeed } from "../replica/ChangeFeed.ts"
import { Clone } from "../replica/Clone.ts"
import * as Monitor from "./monitor.ts"

const seconds = (ms: number): number => Math.max(0, ms) / 1000

const whole = (value: number | undefined): number | null =>
  value !== undefined && Number.isFinite(value) ? value : null

const states = {
  Bootstrapping: "bootstrapping",
  Replaying: "replaying",
  Ready: "ready",
  Suspect: "suspect",
  Overflowed: "overflowed"
} as const satisfies { readonly [S in State.SspMember["state"]]: (typeof SspSummary.Type)["state"] }

const seen =
  (state: State.State, now: number) =>
  (member: State.SspMember): typeof SspSummary.Type => {
    const { acked, failures, flight, late } = member.queue
    return {
      id: member.ssp,
      url: member.url,
      state: states[member.state],
      state_seconds: seconds(now - member.since),
      heard_seconds: seconds(now - member.heardAt),
      acked,
      waiting: Monitor.lacking(state, member),
      in_flight: flight === undefined ? 0 : flight.to - flight.from + 1,
      failures,
      late,
      views: HashSet.size(member.views),
      jobs: HashSet.size(member.jobs),
      cpu_usage: whole(member.heartbeat.cpu),
      memory_usage: whole(member.heartbeat.memory),
      job_tables: member.jobTables ?? null,
      tables: member.tables === undefined ? null : [...member.tables].sort()
    }
  }

/** The effect that answers. */
export const make = (startedAt: number) =>
  Effect.gen(function* () {
    const pool = yield* Pool
    const { schedulerId: id } = yield* SchedulerConfig
    const { version } = yield* Release
    const { latency } = yield* IngestTimes
    const clone = yield* Clone
    const jobs = yield* JobFeed
    const declared = yield* DeclaredTables
    const changes = yield* ChangeFeed
    const figures = yield* ProcessFigures
    const leadership = yield* Leadership
    const clock = yield* Effect.clock
    return Effect.gen(function* () {
      const state = pool.state()
      const now = yield* steadyMs
      const { epoch, logId } = pool.identity
      const sharedLog = Monitor.logProgress(leadership.status())
      return {
        id,
        version,
        status: state.phase.toLowerCase(),
        uptime_seconds: seconds(now - startedAt),
        used: usedOf(yield* figures),
        ingest: latency.snapshot(),
        warnings: warningsOf(declared.tables(), changes.figures()),
        seq: state.log.head,
        log: { first: state.log.first, events: Math.max(0, state.log.head - state.log.first + 1), id: logId, epoch },
        ...(sharedLog === undefined ? {} : { shared_log: sharedLog }),
        snapshot:
          state.freeze === undefined
            ? null
            : {
                seq: state.freeze.seq,
                age_seconds: seconds(now - state.freeze.at),
                owners: [...state.freeze.owners.keys()].sort()
              },
        checkpointing: state.checkpointing,
        clone: state.phase === "Cloning" ? (clone.progress() ?? null) : null,
        max_buffer_per_ssp: state.config.maxBuffer,
        ssps: Monitor.sortedMembers(state).map(seen(state, now)),
        views: State.viewCount(state),
        views_waiting: Waiting.size(state.waitingViews),
        quarantined: [...HashMap.values(state.quarantined)].map(({ at, ends, query, view }) => ({
          id: view,
          query: Quarantine.partsOf(query).surql,
          ends,
          last: isoOf(at - steadyAheadMs(clock))
        })),
        jobs: HashMap.size(state.jobs),
        jobs_waiting: Waiting.size(state.waitingJobs),
        job_tables: [...jobs.tables()].sort()
      } satisfies typeof SchedulerOverview.Type
    })
  })
