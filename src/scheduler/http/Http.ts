/**
 * The routes of the scheduler's endpoints, a line or two each: decisions are made elsewhere.
 *
 * Routes that ask the pool are uninterruptible: a client that hangs up must not leave a registration half made.
 */
import { Effect, Either } from "effect"
import type { Reply, SspRegistration } from "../../core/cluster/messages.ts"
import * as State from "../../core/cluster/state.ts"
import * as Text from "../../core/telemetry/metricText.ts"
import * as Answers from "../../node/http/answers.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Front from "../../node/http/front.ts"
import * as Guard from "../../node/http/guard.ts"
import { routeGroup } from "../../node/http/routes.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import * as Audit from "../../ports/Audit.ts"
import { NodeFigures } from "../../ports/NodeFigures.ts"
import { Progress } from "../../ports/Progress.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { SspClient } from "../../ports/SspClient.ts"
import { steadyAheadMs, steadyMs } from "../../ports/Turn.ts"
import { AssignedViews } from "../../protocol/overview.ts"
import { taskOf } from "../../protocol/progress.ts"
import { Cloned, SchedulerApi, SchedulerBearer, ViewBearer } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig } from "../Config.ts"
import * as HttpFeed from "../feed/HttpFeed.ts"
import * as Errors from "../HttpErrors.ts"
import { JobFeed } from "../ingest/JobFeed.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"
import * as SspAuthority from "../pool/sspAuthority.ts"
import * as Views from "../pool/viewRequests.ts"
import { Clone } from "../replica/Clone.ts"
import * as HttpBrowsers from "./HttpBrowsers.ts"
import * as HttpIngest from "./HttpIngest.ts"
import * as HttpIntegrity from "./HttpIntegrity.ts"
import * as HttpJobs from "./HttpJobs.ts"
import * as HttpPass from "./HttpPass.ts"
import * as HttpProxy from "./HttpProxy.ts"
import * as HttpReads from "./HttpReads.ts"
import * as HttpRegistration from "./HttpRegistration.ts"
import * as HttpReplica from "./HttpReplica.ts"
import * as Monitor from "./monitor.ts"
import * as Overview from "./overview.ts"
import * as ViewListing from "./viewListing.ts"

const ok = { status: "ok" } as const
const assignedViews = Answers.jsonOf(AssignedViews)

const data = Effect.gen(function* () {
  const replica = yield* HttpReplica.make
  const { logId } = (yield* Pool).identity
  return routeGroup(SchedulerApi, "data", {
    ingest: yield* HttpIngest.make,
    query: { response: yield* HttpProxy.handler },
    signin: { value: () => Effect.succeed(ok) },
    use: { value: () => Effect.succeed(ok) },
    replica: { response: () => replica(logId) }
  })
})

const view = Effect.gen(function* () {
  const pool = yield* Pool
  const client = yield* SspClient
  const audited = yield* Audit.make
  return routeGroup(SchedulerApi, "view", {
    ...(yield* HttpReads.make),
    register: yield* HttpRegistration.make,
    unregister: {
      isWhole: true,
      value: (call) => audited(call, call.payload.id)(Effect.as(Views.unregister(pool, call.payload.id), ok))
    },
    free: {
      isWhole: true,
      value: (call) => audited(call, call.payload.id)(Effect.as(Views.free(pool, client, call.payload.id), ok))
    },
    registerQuery: {
      isWhole: true,
      value: (call) =>
        Effect.flatMap(Views.registrationOfPlan(call.payload), (registration) =>
          audited(
            call,
            registration.id
          )(Effect.map(Views.register(pool, registration), ({ ssp, url }) => ({ ssp_id: ssp, ssp_url: url })))
        )
    },
    views: {
      response: ({ urlParams: { after, limit = 100, order, search, ssp } }) =>
        Effect.clock.pipe(
          Effect.map(steadyAheadMs),
          Effect.flatMap((ahead) =>
            order === "cost"
              ? ViewListing.costliest(pool.state(), ahead, client, { limit, search, ssp })
              : Effect.succeed(ViewListing.views(pool.state(), ahead, { after, limit, search, ssp }))
          ),
          Effect.flatMap(assignedViews)
        )
    }
  })
})

const joinRefusal = (reply: Reply) => {
  switch (reply.kind) {
    case "cloning":
      return Errors.cloning
    case "overloaded":
      return Errors.poolOverloaded(reply)
    case "fenced":
      return Errors.fenced(reply.url)
    default:
      return Errors.unexpected(reply)
  }
}

const heartbeatRefusal = (reply: Reply, ssp: string) => {
  switch (reply.kind) {
    case "unknownSsp":
      return Errors.notRegistered(ssp)
    case "conflict":
      return Errors.bufferOverflow
    case "fenced":
      return Errors.fenced(reply.url)
    default:
      return Errors.unexpected(reply)
  }
}

/** Answer to an SSP's registration; extensions only for an SSP that has named any (D77). */
const registeredAs = (
  by: SspRegistration,
  { registration, snapshotSeq }: Reply & { readonly kind: "registered" },
  { epoch, logId }: PoolShape["identity"],
  {
    bootstrapChunkSize,
    heartbeatTimeoutMs
  }: Pick<typeof SchedulerConfig.Service, "bootstrapChunkSize" | "heartbeatTimeoutMs">
) =>
  State.isPlain(by)
    ? { snapshot_seq: snapshotSeq }
    : {
        snapshot_seq: snapshotSeq,
        registration,
        log_id: logId,
        epoch,
        bootstrap_chunk_size: bootstrapChunkSize,
        heartbeat_timeout_ms: heartbeatTimeoutMs,
        ...(by.tables === undefined ? {} : { feed: true })
      }

const ssp = Effect.gen(function* () {
  const pool = yield* Pool
  const client = yield* SspClient
  const config = yield* SchedulerConfig
  const { sspCalled } = yield* Leadership
  const audited = yield* Audit.make
  const actingFor = yield* SspAuthority.make
  const jobs = yield* JobFeed
  return routeGroup(SchedulerApi, "ssp", {
    ...(yield* HttpFeed.make),
    join: {
      isWhole: true,
      value: (call) => {
        const { batch, incarnation, job_tables, ssp_id, tables, url } = call.payload
        const joining = Effect.gen(function* () {
          const checked = yield* client.check(url)
          if (Either.isLeft(checked))
            return yield* Effect.fail(Answers.invalidRequest([{ path: "url", reason: checked.left }]))
          const registration = {
            ssp: ssp_id,
            incarnation,
            url: checked.right,
            batch,
            jobTables: job_tables,
            tables
          }
          const reply = yield* pool.ask((ref) => ({ tag: "Register", ref, registration }))
          if (reply.kind !== "registered") return yield* Effect.fail(joinRefusal(reply))
          // The tables hold jobs from now on, even if the SSP is gone when the first job comes.
          for (const table of job_tables ?? []) jobs.learn(table)
          return registeredAs(registration, reply, pool.identity, config)
        })
        return Effect.zipRight(actingFor(call, ssp_id), audited(call, ssp_id)(joining))
      }
    },
    heartbeat: {
      isWhole: true,
      value: (call) =>
        Effect.gen(function* () {
          const { cpu_usage, incarnation, memory_usage, registration, ssp_id, unheard, views } = call.payload
          yield* actingFor(call, ssp_id)
          if (unheard !== true) sspCalled()
          const reply = yield* pool.ask((ref) => ({
            tag: "Heartbeat",
            ref,
            from: { ssp: ssp_id, incarnation },
            registration,
            views,
            cpu: cpu_usage,
            memory: memory_usage
          }))
          return reply.kind === "ok" ? ok : yield* Effect.fail(heartbeatRefusal(reply, ssp_id))
        })
    },
    leave: {
      isWhole: true,
      value: (call) => {
        const { calling, incarnation, ssp_id } = call.payload
        const leaving = pool.ask((ref) => ({ tag: "Deregister", ref, from: { ssp: ssp_id, incarnation }, calling }))
        return Effect.zipRight(actingFor(call, ssp_id), audited(call, ssp_id)(Effect.as(leaving, ok)))
      }
    }
  })
})

const jobRefusal = (error: Effect.Effect.Error<ReturnType<typeof Jobs.Service.dispatch>>) =>
  "_tag" in error ? Errors.ingestError(error) : error

const job = Effect.gen(function* () {
  const jobs = yield* Jobs
  const operators = yield* HttpJobs.make
  const actingFor = yield* SspAuthority.make
  const audited = yield* Audit.make
  return routeGroup(SchedulerApi, "job", {
    dispatch: { isWhole: true, value: ({ payload }) => Effect.mapError(jobs.dispatch(payload), jobRefusal) },
    result: {
      isWhole: true,
      value: (call) =>
        Effect.gen(function* () {
          const { caller, payload } = call
          const { onlySsp } = caller
          if (payload.ssp_id !== undefined) yield* actingFor(call, payload.ssp_id)
          yield* Effect.mapError(
            onlySsp === undefined ? jobs.result(payload) : jobs.resultOfOne({ ...payload, ssp_id: onlySsp }),
            Errors.ingestError
          )
          return ok
        })
    },
    jobs: { response: (call) => operators.list(call, call.urlParams) },
    job: { response: (call) => operators.look(call, call.path.job_id) },
    retry: {
      isWhole: true,
      response: (call) => audited(call, call.path.job_id)(operators.amend(call, call.path.job_id, "Retried"))
    },
    cancel: {
      isWhole: true,
      response: (call) => audited(call, call.path.job_id)(operators.amend(call, call.path.job_id, "Cancelled"))
    }
  })
})

const monitor = Effect.gen(function* () {
  const pool = yield* Pool
  const { schedulerId } = yield* SchedulerConfig
  const clone = yield* Clone
  const pass = yield* HttpPass.toOwner
  const nodeFigures = yield* NodeFigures
  const { tasks } = yield* Progress
  const leadership = yield* Leadership
  const startedAt = yield* steadyMs
  const overview = yield* Overview.make(startedAt)
  return routeGroup(SchedulerApi, "monitor", {
    metrics: {
      response: ({ asked: { headers }, urlParams }) =>
        Text.wantsText(headers["accept"], urlParams.format)
          ? Effect.map(nodeFigures, Answers.figures)
          : Effect.map(steadyMs, (now) => Answers.plainJson(Monitor.metrics(pool.state(), now, startedAt)))
    },
    health: {
      value: () =>
        Effect.sync(() =>
          State.ready(pool.state()).length > 0 ? { status: "healthy" as const } : { status: "unavailable" as const }
        )
    },
    info: { value: () => Effect.sync(() => Monitor.info(pool.state(), schedulerId)) },
    progress: {
      value: () =>
        Effect.sync(() =>
          Monitor.progress(
            pool.state(),
            clone.progress(),
            tasks().map(taskOf),
            Monitor.logProgress(leadership.status())
          )
        )
    },
    debugView: { response: (call) => pass(call, call.path.view_id, (id) => `/debug/view/${id}`, call.urlParams) },
    overview: { response: () => Effect.map(overview, Answers.plainJson) },
    livez: { value: () => Effect.succeed(ok) },
    readyz: { value: () => Effect.succeed(ok) }
  })
})

const guards = Effect.gen(function* () {
  const { bearers, viewSecrets } = yield* SchedulerConfig
  const { tokens } = yield* Browsers
  const { state } = yield* Pool
  return {
    guards: {
      [SchedulerBearer.key]: Guard.make(makeJudge(bearers, Errors.unauthorized), tokens),
      [ViewBearer.key]: Guard.make(makeJudge(viewSecrets, Errors.unauthorizedView), tokens)
    },
    gates: { [Cloned.key]: () => (state().phase === "Cloning" ? Errors.cloning : undefined) }
  }
})

/** Paths that an operator asks about this process itself. */
const own = /^\/(?:livez|metrics|progress)(?:\?|$)/

/**
 * 503 `NOT_LEADER` of a scheduler that has lost the lead, or may have: its state may be old. Checked before the request
 * is carried out and before it is answered, because another scheduler may take over meanwhile.
 */
const silence = Effect.map(
  Leadership,
  ({ mayAnswer }) =>
    (path: string) =>
      mayAnswer() || own.test(path) ? undefined : Errors.notLeader
)

/** The front of the scheduler, and the same for any server that serves its Api. */
export const layer = Front.layer(
  Effect.gen(function* () {
    const { browserOrigins, corsOrigins, maxBodyBytes } = yield* SchedulerConfig
    return {
      ...(yield* guards),
      silent: yield* silence,
      api: SchedulerApi,
      routes: {
        data: yield* data,
        view: yield* view,
        browser: yield* HttpBrowsers.make,
        ssp: yield* ssp,
        job: yield* job,
        monitor: yield* monitor,
        integrity: yield* HttpIntegrity.make
      },
      maxBodyBytes,
      origins: { all: corsOrigins, browser: browserOrigins }
    }
  })
)
