/**
 * `GET /overview` and `GET /views` of the scheduler: the cluster in the pool's current state.
 *
 * Pure and from memory alone, like `monitor.ts`; counters only grow, and readers derive rates.
 */
import { Effect, HashMap, HashSet } from "effect"
import * as DeliveryQueue from "../../core/cluster/deliveryQueue.ts"
import * as Quarantine from "../../core/cluster/poolQuarantine.ts"
import * as State from "../../core/cluster/state.ts"
import * as Waiting from "../../core/cluster/waiting.ts"
import { mentions, page } from "../../core/listing.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { isoOf } from "../../core/view/viewTimes.ts"
import type { SspClientShape } from "../../ports/SspClient.ts"
import type { AssignedView, AssignedViews, SchedulerOverview, SspSeen } from "../../protocol/overview.ts"
import { isFormat } from "../../protocol/wire.ts"

const seconds = (ms: number): number => Math.max(0, ms) / 1000

const whole = (value: number | undefined): number | null =>
  value !== undefined && Number.isFinite(value) ? value : null

const states = {
  Bootstrapping: "bootstrapping",
  Replaying: "replaying",
  Ready: "ready",
  Suspect: "suspect",
  Overflowed: "overflowed"
} as const satisfies { readonly [S in State.SspMember["state"]]: (typeof SspSeen.Type)["state"] }

const seen =
  (state: State.State, now: number) =>
  (member: State.SspMember): typeof SspSeen.Type => {
    const { acked, failures, flight, late } = member.queue
    return {
      id: member.ssp,
      url: member.url,
      state: states[member.state],
      state_seconds: seconds(now - member.since),
      heard_seconds: seconds(now - member.heardAt),
      acked,
      waiting: member.state === "Overflowed" ? 0 : DeliveryQueue.waiting(member.queue, state.log),
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

interface About {
  readonly id: string
  readonly version: string
  readonly logId: string
  readonly epoch: number
  readonly startedAt: number
  readonly used: (typeof SchedulerOverview.Type)["used"]
  readonly ingest: (typeof SchedulerOverview.Type)["ingest"]
  readonly warnings: ReadonlyArray<string>
  readonly jobTables: Iterable<string>
  readonly clone: (typeof SchedulerOverview.Type)["clone"] | undefined
  readonly sharedLog: (typeof SchedulerOverview.Type)["shared_log"]
}

export const overview = (
  state: State.State,
  now: number,
  aheadMs: number,
  { clone, epoch, id, ingest, jobTables, logId, sharedLog, startedAt, used, version, warnings }: About
): typeof SchedulerOverview.Type => ({
  id,
  version,
  status: state.phase.toLowerCase(),
  uptime_seconds: seconds(now - startedAt),
  used,
  ingest,
  warnings,
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
  clone: state.phase === "Cloning" ? (clone ?? null) : null,
  max_buffer_per_ssp: state.config.maxBuffer,
  ssps: [...HashMap.values(state.members)].sort((a, b) => (a.ssp < b.ssp ? -1 : 1)).map(seen(state, now)),
  views: HashMap.size(state.views),
  views_waiting: Waiting.size(state.waitingViews),
  quarantined: [...HashMap.values(state.quarantined)].map(({ at, ends, query, view }) => ({
    id: view,
    query: Quarantine.partsOf(query).surql,
    ends,
    last: isoOf(at - aheadMs)
  })),
  jobs: HashMap.size(state.jobs),
  jobs_waiting: Waiting.size(state.waitingJobs),
  job_tables: [...jobTables].sort()
})

/** Body of the registration. The schema has checked it, but its type is lost. */
const bodyOf = ({ spec: { body } }: State.View): { readonly [field: string]: unknown } =>
  typeof body === "object" && body !== null ? { ...body } : {}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** A view as listings show it. `aheadMs`: how far the pool's steady time is ahead of the time of day. */
const assigned =
  (state: State.State, aheadMs: number) =>
  (view: State.View): typeof AssignedView.Type => {
    const body = bodyOf(view)
    const member = State.at(state, view.home)
    const owner = member?.ssp ?? null
    return {
      id: textOf(body["id"]),
      query: textOf(body["surql"]),
      params: body["params"] ?? null,
      format: isFormat(body["format"]) ? body["format"] : "flat",
      client_id: textOf(body["clientId"]),
      ttl_seconds: view.spec.ttlMs / 1000,
      last_active_at: isoOf(view.spec.lastActiveAt - aheadMs),
      owner,
      state:
        owner === null
          ? Quarantine.of(state, view.spec) === undefined
            ? "waiting"
            : "quarantined"
          : member?.state === "Suspect"
            ? "suspect"
            : view.placed && view.op === undefined
              ? "placed"
              : "moving",
      assigned_at: Math.max(0, Math.floor((view.assignedAt - aheadMs) / 1000))
    }
  }

export const views = (
  state: State.State,
  aheadMs: number,
  {
    after,
    limit,
    search,
    ssp
  }: {
    readonly after: string | undefined
    readonly limit: number
    readonly search: string | undefined
    readonly ssp: string | undefined
  }
): typeof AssignedViews.Type => {
  const wanted = (view: State.View): boolean => {
    if (view.gone || (ssp !== undefined && State.at(state, view.home)?.ssp !== ssp)) return false
    if (search === undefined || search === "") return true
    const body = bodyOf(view)
    return mentions(search, textOf(body["id"]), textOf(body["clientId"]), textOf(body["surql"]))
  }
  const { items, next } = page(HashMap.entries(state.views), {
    after: after === undefined ? undefined : (viewKey(after) ?? after),
    limit,
    wanted
  })
  return {
    views: items.map(assigned(state, aheadMs)),
    total: HashMap.size(state.views),
    next: next === undefined ? null : textOf(bodyOf(items.at(-1)!)["id"])
  }
}

/** The views with the highest cost, as their SSPs report; those of an SSP that does not answer are missing. */
export const costliest = (
  state: State.State,
  aheadMs: number,
  client: Pick<SspClientShape, "costliest">,
  {
    limit,
    search,
    ssp
  }: { readonly limit: number; readonly search: string | undefined; readonly ssp: string | undefined }
): Effect.Effect<typeof AssignedViews.Type> =>
  Effect.map(
    Effect.forEach(
      State.ready(state).filter((member) => ssp === undefined || member.ssp === ssp),
      (member) =>
        Effect.map(client.costliest(member, limit, search), (answer) =>
          (answer?.views ?? []).flatMap(({ id, total_cost }) => {
            const view = State.view(state, viewKey(id) ?? "")
            // A view that has moved may still be listed by its former SSP.
            const isThere = view !== undefined && !view.gone && State.at(state, view.home)?.ssp === member.ssp
            return isThere ? [{ ...assigned(state, aheadMs)(view), total_cost }] : []
          })
        ),
      { concurrency: "unbounded" }
    ),
    (found) => {
      const views = found.flat().sort((a, b) => b.total_cost - a.total_cost || (a.id < b.id ? -1 : 1))
      return { views: views.slice(0, limit), total: HashMap.size(state.views), next: null }
    }
  )
