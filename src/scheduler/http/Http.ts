/**
 * The handlers of the scheduler's endpoints, each a line or two: everything they decide lies elsewhere.
 *
 * Kept uninterruptible where the pool is asked: a client that hangs up must not leave a registration half made.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as OpenApi from "@effect/platform/OpenApi"
import { Effect, Either, Layer } from "effect"
import type { Reply, SspRegistration } from "../../core/cluster/messages.ts"
import * as State from "../../core/cluster/state.ts"
import * as Text from "../../core/telemetry/metricText.ts"
import * as SaidAgain from "../../core/view/saidAgain.ts"
import * as Answers from "../../node/http/answers.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Bodies from "../../node/http/bodies.ts"
import * as Documents from "../../node/http/documents.ts"
import * as Guard from "../../node/http/guard.ts"
import * as IngestRoute from "../../node/http/ingestRoute.ts"
import { UnderWay } from "../../node/http/repeatedRegistrations.ts"
import * as WebHeaders from "../../node/http/webHeaders.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import * as Audit from "../../ports/Audit.ts"
import { NodeFigures } from "../../ports/NodeFigures.ts"
import * as Pages from "../../ports/Pages.ts"
import { Progress } from "../../ports/Progress.ts"
import { Release } from "../../ports/Release.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { SspClient } from "../../ports/SspClient.ts"
import { aheadMs, steadyMs } from "../../ports/Turn.ts"
import { Caller } from "../../protocol/access.ts"
import { AssignedViews } from "../../protocol/overview.ts"
import { taskOf } from "../../protocol/progress.ts"
import { Cloned, SchedulerApi, SchedulerBearer } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig } from "../Config.ts"
import * as HttpFeed from "../feed/HttpFeed.ts"
import * as Errors from "../HttpErrors.ts"
import { JobFeed } from "../ingest/JobFeed.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"
import * as Speaking from "../pool/speaking.ts"
import * as Views from "../pool/viewRequests.ts"
import { Clone } from "../replica/Clone.ts"
import * as HttpBrowsers from "./HttpBrowsers.ts"
import * as HttpIngest from "./HttpIngest.ts"
import * as HttpIntegrity from "./HttpIntegrity.ts"
import * as HttpJobs from "./HttpJobs.ts"
import * as HttpOverview from "./HttpOverview.ts"
import * as HttpPass from "./HttpPass.ts"
import * as HttpProxy from "./HttpProxy.ts"
import * as HttpReplica from "./HttpReplica.ts"
import * as Leading from "./leading.ts"
import * as Monitor from "./monitor.ts"
import * as Overview from "./overview.ts"

const ok = { status: "ok" } as const
const assignedViews = Answers.jsonOf(AssignedViews)
const whole = { uninterruptible: true } as const

const layerData = HttpApiBuilder.group(SchedulerApi, "data", (handlers) =>
  Effect.gen(function* () {
    const ingest = yield* IngestRoute.handler(yield* HttpIngest.makeTake)
    const proxy = yield* HttpProxy.handler
    const replica = yield* HttpReplica.make
    const { logId } = (yield* Pool).identity
    return handlers
      .handleRaw("ingest", ({ request }) => ingest(request), whole)
      .handle("query", ({ payload, request }) => proxy(payload, request))
      .handle("signin", () => Effect.succeed(ok))
      .handle("use", () => Effect.succeed(ok))
      .handleRaw("replica", () => replica(logId))
  })
)

const layerView = HttpApiBuilder.group(SchedulerApi, "view", (handlers) =>
  Effect.gen(function* () {
    const pool = yield* Pool
    const pass = yield* HttpPass.toOwner
    const client = yield* SspClient
    const underWay = yield* UnderWay
    const audited = yield* Audit.make(SchedulerApi)
    return handlers
      .handle(
        "register",
        ({ payload }) =>
          Effect.clockWith((clock) => {
            const said = SaidAgain.read(payload, clock.unsafeCurrentTimeMillis())
            const known = (again: SaidAgain.Said) => {
              const at = Views.known(pool.state(), again, aheadMs(clock))
              return at && Effect.succeed(at)
            }
            const placing = underWay.once(said, known, audited(payload.id)(Views.register(pool, payload)))
            return Effect.map(placing, (placed) => Views.placingOf(payload.id, placed, aheadMs(clock)))
          }),
        whole
      )
      .handle(
        "unregister",
        ({ payload }) => audited(payload.id)(Effect.as(Views.unregister(pool, payload.id), ok)),
        whole
      )
      .handle("free", ({ payload }) => audited(payload.id)(Effect.as(Views.free(pool, client, payload.id), ok)), whole)
      .handle(
        "registerQuery",
        ({ payload }) =>
          Effect.flatMap(Views.ofPlan(payload), (registration) =>
            audited(registration.id)(
              Effect.map(Views.register(pool, registration), ({ ssp, url }) => ({ ssp_id: ssp, ssp_url: url }))
            )
          ),
        whole
      )
      .handleRaw("views", ({ urlParams: { after, limit = 100, order, search, ssp } }) =>
        Effect.clock.pipe(
          Effect.map(aheadMs),
          Effect.flatMap((ahead) =>
            order === "cost"
              ? Overview.costliest(pool.state(), ahead, client, { limit, search, ssp })
              : Effect.succeed(Overview.views(pool.state(), ahead, { after, limit, search, ssp }))
          ),
          Effect.flatMap(assignedViews)
        )
      )
      .handleRaw("view", ({ path, request, urlParams }) =>
        pass(request, path.view_id, (id) => `/view/${id}`, urlParams)
      )
      .handleRaw("stream", ({ path, request, urlParams }) =>
        pass(request, path.view_id, (id) => `/view/${id}/stream`, urlParams)
      )
  })
)

const joinRefusal = (reply: Reply) => {
  switch (reply.kind) {
    case "cloning":
      return Errors.cloning
    case "overloaded":
      return Errors.busy(reply)
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
      return Errors.overflow
    case "fenced":
      return Errors.fenced(reply.url)
    default:
      return Errors.unexpected(reply)
  }
}

/** Answer to a registration: with extensions where the SSP has named any (D77). */
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

const layerSsp = HttpApiBuilder.group(SchedulerApi, "ssp", (handlers) =>
  Effect.gen(function* () {
    const pool = yield* Pool
    const client = yield* SspClient
    const config = yield* SchedulerConfig
    const { spoken } = yield* Leadership
    const audited = yield* Audit.make(SchedulerApi)
    const speakingFor = yield* Speaking.make
    const feed = yield* HttpFeed.handlers
    const jobs = yield* JobFeed
    return handlers
      .handleRaw("feed", ({ urlParams }) => feed.feed(urlParams))
      .handle("applied", ({ payload }) => feed.applied(payload))
      .handle(
        "join",
        ({ payload: { batch, incarnation, job_tables, ssp_id, tables, url } }) =>
          Effect.zipRight(
            speakingFor(ssp_id),
            audited(ssp_id)(
              Effect.gen(function* () {
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
                // Its records are jobs from now on, though it may be gone when the first one comes.
                for (const table of job_tables ?? []) jobs.learn(table)
                return registeredAs(registration, reply, pool.identity, config)
              })
            )
          ),
        whole
      )
      .handle(
        "heartbeat",
        ({ payload: { cpu_usage, incarnation, memory_usage, registration, ssp_id, unheard, views } }) =>
          Effect.gen(function* () {
            yield* speakingFor(ssp_id)
            if (unheard !== true) spoken()
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
          }),
        whole
      )
      .handle(
        "leave",
        ({ payload: { calling, incarnation, ssp_id } }) =>
          Effect.zipRight(
            speakingFor(ssp_id),
            audited(ssp_id)(
              Effect.as(
                pool.ask((ref) => ({ tag: "Deregister", ref, from: { ssp: ssp_id, incarnation }, calling })),
                ok
              )
            )
          ),
        whole
      )
  })
)

const jobRefusal = (error: Effect.Effect.Error<ReturnType<typeof Jobs.Service.dispatch>>) =>
  "_tag" in error ? Errors.fromIngest(error) : error

const layerJob = HttpApiBuilder.group(SchedulerApi, "job", (handlers) =>
  Effect.gen(function* () {
    const jobs = yield* Jobs
    const operators = yield* HttpJobs.make
    const speakingFor = yield* Speaking.make
    const audited = yield* Audit.make(SchedulerApi)
    return handlers
      .handle("dispatch", ({ payload }) => Effect.mapError(jobs.dispatch(payload), jobRefusal), whole)
      .handle(
        "result",
        ({ payload }) =>
          Effect.gen(function* () {
            const { onlySsp } = yield* Caller
            if (payload.ssp_id !== undefined) yield* speakingFor(payload.ssp_id)
            yield* Effect.mapError(
              onlySsp === undefined ? jobs.result(payload) : jobs.resultOfOne({ ...payload, ssp_id: onlySsp }),
              Errors.fromIngest
            )
            return ok
          }),
        whole
      )
      .handleRaw("jobs", ({ request, urlParams }) => operators.list(request, urlParams))
      .handleRaw("job", ({ path, request }) => operators.look(request, path.job_id))
      .handleRaw(
        "retry",
        ({ path, request }) => audited(path.job_id)(operators.amend(request, path.job_id, "Retried")),
        whole
      )
      .handleRaw(
        "cancel",
        ({ path, request }) => audited(path.job_id)(operators.amend(request, path.job_id, "Cancelled")),
        whole
      )
  })
)

const layerMonitor = HttpApiBuilder.group(SchedulerApi, "monitor", (handlers) =>
  Effect.gen(function* () {
    const pool = yield* Pool
    const { schedulerId } = yield* SchedulerConfig
    const clone = yield* Clone
    const pass = yield* HttpPass.toOwner
    const nodeFigures = yield* NodeFigures
    const { tasks } = yield* Progress
    const leadership = yield* Leadership
    const startedAt = yield* steadyMs
    const overview = yield* HttpOverview.make(startedAt)
    return handlers
      .handleRaw("metrics", ({ request, urlParams }) =>
        Text.wanted(request.headers["accept"], urlParams.format)
          ? Effect.map(nodeFigures, (families) =>
              HttpServerResponse.text(Text.render(families), { contentType: Text.contentType })
            )
          : Effect.map(steadyMs, (now) => HttpServerResponse.unsafeJson(Monitor.metrics(pool.state(), now, startedAt)))
      )
      .handle("health", () =>
        Effect.sync(() =>
          State.ready(pool.state()).length > 0 ? { status: "healthy" as const } : { status: "unavailable" as const }
        )
      )
      .handle("info", () => Effect.sync(() => Monitor.info(pool.state(), schedulerId)))
      .handle("progress", () =>
        Effect.sync(() =>
          Monitor.progress(
            pool.state(),
            clone.progress(),
            tasks().map(taskOf),
            Monitor.logProgress(leadership.status())
          )
        )
      )
      .handleRaw("debugView", ({ path, request, urlParams }) =>
        pass(request, path.view_id, (id) => `/debug/view/${id}`, urlParams)
      )
      .handleRaw("overview", () => Effect.map(overview, HttpServerResponse.unsafeJson))
      .handle("livez", () => Effect.succeed(ok))
      .handle("readyz", () => Effect.succeed(ok))
  })
)

const layerCloned = Layer.effect(
  Cloned,
  Effect.map(Pool, (pool) =>
    Cloned.of(Effect.suspend(() => (pool.state().phase === "Cloning" ? Effect.fail(Errors.cloning) : Effect.void)))
  )
)

const layerBearer = Layer.effect(
  SchedulerBearer,
  Effect.map(
    Effect.flatMap(Effect.all([SchedulerConfig, Browsers]), ([{ bearers }, { tokens }]) =>
      Guard.make(SchedulerApi, makeJudge(bearers, Errors.unauthorized), tokens)
    ),
    (check) => SchedulerBearer.of({ bearer: () => check })
  )
)

const layerBody = Layer.unwrapEffect(
  Effect.map(SchedulerConfig, ({ maxBodyBytes }) => Bodies.layerJsonBody(maxBodyBytes))
)

/** The documents carry the version of this build. */
const layerApi = Layer.unwrapEffect(
  Effect.map(Release, ({ version }) => HttpApiBuilder.api(SchedulerApi.annotate(OpenApi.Version, version)))
)

/** The Api with its handlers, guards, error answers and documents, for whatever server serves it. */
export const layer = Layer.mergeAll(
  HttpApiBuilder.middleware(
    SchedulerApi,
    Effect.map(
      Effect.all([SchedulerConfig, Pages.paths, IngestRoute.refusals, Leading.make]),
      ([{ browserOrigins, corsOrigins }, paths, refused, leading]) =>
        (app) =>
          WebHeaders.around({ all: corsOrigins, browser: browserOrigins })(
            IngestRoute.counted(refused)(Bodies.answerEverything(Bodies.allowedBy(SchedulerApi, paths))(leading(app)))
          )
    )
  ),
  Pages.layerRoutes,
  Documents.layer
).pipe(
  Layer.provideMerge(layerApi),
  Layer.provide([layerData, layerView, HttpBrowsers.layer, layerSsp, layerJob, layerMonitor, HttpIntegrity.layer]),
  Layer.provide([layerBearer, HttpBrowsers.layerBearer, layerCloned, layerBody]),
  Layer.provideMerge(Bodies.layerRouting)
)
