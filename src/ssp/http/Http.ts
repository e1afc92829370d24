/**
 * The handlers of the SSP's endpoints, each a line or two: everything they decide lies elsewhere.
 *
 * Kept uninterruptible where they write: a client that hangs up must not leave a registration half made.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as OpenApi from "@effect/platform/OpenApi"
import { Effect, Layer, LogLevel, Stream } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import * as Text from "../../core/telemetry/metricText.ts"
import * as Answers from "../../node/http/answers.ts"
import * as Bodies from "../../node/http/bodies.ts"
import * as Documents from "../../node/http/documents.ts"
import * as IngestRoute from "../../node/http/ingestRoute.ts"
import * as WebHeaders from "../../node/http/webHeaders.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import * as Audit from "../../ports/Audit.ts"
import { Serving } from "../../ports/Front.ts"
import { NodeFigures } from "../../ports/NodeFigures.ts"
import * as Pages from "../../ports/Pages.ts"
import { Progress } from "../../ports/Progress.ts"
import { Release } from "../../ports/Release.ts"
import { Caller, type Sees } from "../../protocol/access.ts"
import { ListedViews } from "../../protocol/overview.ts"
import { taskOf } from "../../protocol/progress.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { SspConfig } from "../Config.ts"
import * as Assigned from "../membership/assigned.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import { debugToldOf } from "../views/debug.ts"
import * as ResultTag from "../views/resultTag.ts"
import { Views } from "../views/Views.ts"
import type { ViewAnswer, ViewPlaced } from "../viewTypes.ts"
import * as HttpBrowsers from "./HttpBrowsers.ts"
import { mapped } from "./HttpErrors.ts"
import * as Guards from "./HttpGuards.ts"
import * as Ingest from "./HttpIngest.ts"
import * as HttpIntegrity from "./HttpIntegrity.ts"
import * as HttpJobs from "./HttpJobs.ts"
import * as Registrations from "./HttpRegistration.ts"
import * as EventStream from "./HttpStream.ts"
import * as Overview from "./overview.ts"

const ok = { status: "ok" } as const
const defaultListed = 100
const listedViews = Answers.jsonOf(ListedViews)
const whole = { uninterruptible: true } as const

const levels = {
  error: LogLevel.Error,
  warn: LogLevel.Warning,
  info: LogLevel.Info,
  debug: LogLevel.Debug,
  trace: LogLevel.Trace
}

/** Says why a view that has just been answered does not follow each write (D57). */
const cautioned = Effect.map(
  Effect.all([Views, DeclaredTypes]),
  ([views, types]) =>
    <A extends object>(id: string, answer: A) => {
      const warnings = types.cautions(views.tablesOf(id))
      return warnings.length === 0 ? answer : { ...answer, warnings }
    }
)

const layerData = HttpApiBuilder.group(SspApi, "data", (handlers) =>
  Effect.gen(function* () {
    const views = yield* Views
    const lifecycle = yield* Lifecycle
    const ingest = yield* IngestRoute.handler(yield* Ingest.makeTake)
    const audited = yield* Audit.make(SspApi)
    return handlers
      .handleRaw("ingest", ({ request }) => ingest(request), whole)
      .handle(
        "reset",
        () => audited("")(Effect.as(Effect.zipRight(lifecycle.loaded, lifecycle.emptying(mapped(views.reset))), ok)),
        whole
      )
      .handle("log", ({ payload: { data, level, message } }) =>
        Effect.logWithLevel(levels[level ?? "info"], message).pipe(
          Effect.annotateLogs(data === undefined ? { from: "client" } : { from: "client", data }),
          Effect.as(ok)
        )
      )
  })
)

const layerView = HttpApiBuilder.group(SspApi, "view", (handlers) =>
  Effect.gen(function* () {
    const views = yield* Views
    const { assignments, loaded } = yield* Lifecycle
    const warned = yield* cautioned
    const serving = yield* Serving
    const { tokens } = yield* Browsers
    const register = yield* Registrations.handler
    const audited = yield* Audit.make(SspApi)
    const answered = (answer: ViewAnswer | ViewPlaced, asked?: Sees, headers = {}) =>
      Effect.flatMap(Caller, ({ sees }) =>
        Effect.map(views.written(answer, asked ?? sees), (pieces) => Answers.ofPieces(pieces, { headers }))
      )
    const tagged = (request: HttpServerRequest.HttpServerRequest, answer: ViewAnswer, asked: Sees | undefined) => {
      const tag = ResultTag.tagOf(answer)
      const headers = ResultTag.headersOf(tag)
      return ResultTag.isNamed(request.headers["if-none-match"], tag)
        ? Effect.succeed(HttpServerResponse.empty({ status: 304, headers }))
        : answered(answer, asked, headers)
    }
    return handlers
      .handle(
        "register",
        ({ payload }) => Effect.flatMap(register(payload), (answer) => answered(warned(payload.id, answer))),
        whole
      )
      .handle(
        "unregister",
        ({ payload }) =>
          audited(payload.id)(
            Effect.as(Effect.zipRight(loaded, mapped(Assigned.unregister(views, assignments, payload))), ok)
          ),
        whole
      )
      .handle(
        "free",
        ({ payload }) =>
          audited(payload.id)(
            Effect.as(
              Effect.zipRight(
                loaded,
                mapped(
                  views.free(
                    payload.id,
                    payload.surql === undefined
                      ? undefined
                      : { surql: payload.surql, params: JsonText.write(payload.params ?? null) }
                  )
                )
              ),
              ok
            )
          ),
        whole
      )
      .handle("view", ({ path, request, urlParams }) =>
        Effect.flatMap(mapped(views.read(path.view_id, urlParams.format)), (answer) =>
          tagged(request, answer, urlParams.errors)
        )
      )
      .handleRaw("views", ({ urlParams: { after, limit = defaultListed, order = "id", search } }) =>
        Effect.flatMap(views.list({ after, limit, order, search }), listedViews)
      )
      .handleRaw("stream", ({ path, request, urlParams }) =>
        request.method === "HEAD"
          ? Effect.as(mapped(views.read(path.view_id, "flat")), EventStream.respond(Stream.empty, serving.stopping))
          : Effect.zipWith(
              mapped(views.stream(path.view_id, urlParams.format, request.headers["last-event-id"])),
              Caller,
              (events, { grant }) =>
                EventStream.respond(
                  grant === undefined ? events : EventStream.untilLapsed(events, tokens.lapse(grant)),
                  serving.stopping
                )
            )
      )
  })
)

const layerMonitor = HttpApiBuilder.group(SspApi, "monitor", (handlers) =>
  Effect.gen(function* () {
    const views = yield* Views
    const lifecycle = yield* Lifecycle
    const { version } = yield* Release
    const { sspId } = yield* SspConfig
    const nodeFigures = yield* NodeFigures
    const warned = yield* cautioned
    const { tasks } = yield* Progress
    const overview = yield* Overview.make
    return handlers
      .handle("health", () => Effect.sync(() => ({ status: lifecycle.phase() })))
      .handle("version", () => Effect.succeed({ version, mode: lifecycle.mode }))
      .handle("info", () =>
        Effect.map(views.count, (count) => [
          { entity: "ssp" as const, id: sspId, status: lifecycle.phase(), views: count }
        ])
      )
      .handle("debugView", ({ path, urlParams }) =>
        Effect.zipWith(mapped(views.debugView(path.view_id)), Caller, (debug, { sees }) =>
          warned(path.view_id, debugToldOf(debug, urlParams.errors ?? sees))
        )
      )
      .handle("debugDeps", () => views.debugDeps)
      .handleRaw("overview", () => Effect.map(overview, HttpServerResponse.unsafeJson))
      .handleRaw("metrics", () =>
        Effect.map(nodeFigures, (families) =>
          HttpServerResponse.text(Text.render(families), { contentType: Text.contentType })
        )
      )
      .handle("progress", () =>
        Effect.sync(() => ({ state: lifecycle.phase(), seq: views.figures().seq, tasks: tasks().map(taskOf) }))
      )
  })
)

/** The documents carry the version of this build. */
const layerApi = Layer.unwrapEffect(
  Effect.map(Release, ({ version }) => HttpApiBuilder.api(SspApi.annotate(OpenApi.Version, version)))
)

/** The Api with its handlers, guards, error answers and documents, for whatever server serves it. */
export const layer = Layer.mergeAll(
  HttpApiBuilder.middleware(
    SspApi,
    Effect.map(
      Effect.all([SspConfig, Pages.paths, IngestRoute.refusals]),
      ([{ browserOrigins, corsOrigins }, paths, refused]) =>
        (app) =>
          WebHeaders.around({ all: corsOrigins, browser: browserOrigins })(
            IngestRoute.counted(refused)(Bodies.answerEverything(Bodies.allowedBy(SspApi, paths))(app))
          )
    )
  ),
  Pages.layerRoutes,
  Documents.layer
).pipe(
  Layer.provideMerge(layerApi),
  Layer.provide([layerData, layerView, HttpBrowsers.layer, layerMonitor, HttpJobs.layer, HttpIntegrity.layer]),
  Layer.provide(Guards.layer),
  Layer.provideMerge(Bodies.layerRouting)
)
