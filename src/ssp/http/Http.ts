/**
 * The routes of the SSP's endpoints, a line or two each: decisions are made elsewhere.
 *
 * Routes that write are uninterruptible: a client that hangs up must not leave a registration half made.
 */
import { Effect, LogLevel } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import * as Answers from "../../node/http/answers.ts"
import * as Front from "../../node/http/front.ts"
import { routeGroup } from "../../node/http/routes.ts"
import * as Audit from "../../ports/Audit.ts"
import { NodeFigures } from "../../ports/NodeFigures.ts"
import { Progress } from "../../ports/Progress.ts"
import { Release } from "../../ports/Release.ts"
import { ListedViews } from "../../protocol/overview.ts"
import { taskOf } from "../../protocol/progress.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { visibleDebugView } from "../views/debug.ts"
import { Views } from "../views/Views.ts"
import * as HttpBrowsers from "./HttpBrowsers.ts"
import { mapErrors } from "./HttpErrors.ts"
import * as HttpGuards from "./HttpGuards.ts"
import * as HttpIngest from "./HttpIngest.ts"
import * as HttpIntegrity from "./HttpIntegrity.ts"
import * as HttpJobs from "./HttpJobs.ts"
import * as HttpReads from "./HttpReads.ts"
import * as HttpRegistration from "./HttpRegistration.ts"
import * as Overview from "./overview.ts"

const ok = { status: "ok" } as const
const defaultListed = 100
const listedViews = Answers.jsonOf(ListedViews)

const levels = {
  error: LogLevel.Error,
  warn: LogLevel.Warning,
  info: LogLevel.Info,
  debug: LogLevel.Debug,
  trace: LogLevel.Trace
}

const data = Effect.gen(function* () {
  const views = yield* Views
  const lifecycle = yield* Lifecycle
  const audited = yield* Audit.make
  return routeGroup(SspApi, "data", {
    ingest: yield* HttpIngest.make,
    reset: {
      isWhole: true,
      value: (call) =>
        audited(call, "")(Effect.as(Effect.zipRight(lifecycle.loaded, lifecycle.emptying(mapErrors(views.reset))), ok))
    },
    log: {
      value: ({ payload: { data, level, message } }) =>
        Effect.logWithLevel(levels[level ?? "info"], message).pipe(
          Effect.annotateLogs(data === undefined ? { from: "client" } : { from: "client", data }),
          Effect.as(ok)
        )
    }
  })
})

const view = Effect.gen(function* () {
  const views = yield* Views
  const { assignments, loaded } = yield* Lifecycle
  const audited = yield* Audit.make
  return routeGroup(SspApi, "view", {
    ...(yield* HttpReads.make),
    register: yield* HttpRegistration.make,
    unregister: {
      isWhole: true,
      value: (call) =>
        audited(
          call,
          call.payload.id
        )(Effect.as(Effect.zipRight(loaded, mapErrors(assignments.unregister(views, call.payload))), ok))
    },
    free: {
      isWhole: true,
      value: (call) => {
        const { id, params, surql } = call.payload
        const query = surql === undefined ? undefined : { surql, params: JsonText.write(params ?? null) }
        return audited(call, id)(Effect.as(Effect.zipRight(loaded, mapErrors(views.free(id, query))), ok))
      }
    },
    views: {
      response: ({ urlParams: { after, limit = defaultListed, order = "id", search } }) =>
        Effect.flatMap(views.list({ after, limit, order, search }), listedViews)
    }
  })
})

const monitor = Effect.gen(function* () {
  const views = yield* Views
  const lifecycle = yield* Lifecycle
  const { version } = yield* Release
  const { sspId } = yield* SspConfig
  const nodeFigures = yield* NodeFigures
  const warned = yield* HttpRegistration.withWarnings
  const { tasks } = yield* Progress
  const overview = yield* Overview.make
  return routeGroup(SspApi, "monitor", {
    health: { value: () => Effect.sync(() => ({ status: lifecycle.phase() })) },
    version: { value: () => Effect.succeed({ version, mode: lifecycle.mode }) },
    info: {
      value: () =>
        Effect.map(views.count, (count) => [
          { entity: "ssp" as const, id: sspId, status: lifecycle.phase(), views: count }
        ])
    },
    debugView: {
      value: ({ caller: { sees }, path, urlParams }) =>
        Effect.map(mapErrors(views.debugView(path.view_id)), (debug) =>
          warned(path.view_id, visibleDebugView(debug, urlParams.errors ?? sees))
        )
    },
    debugDeps: { value: () => views.debugDeps },
    overview: { response: () => Effect.map(overview, Answers.plainJson) },
    metrics: { response: () => Effect.map(nodeFigures, Answers.figures) },
    progress: {
      value: () =>
        Effect.sync(() => ({ state: lifecycle.phase(), seq: views.figures().seq, tasks: tasks().map(taskOf) }))
    }
  })
})

/** The front of the SSP, and the same for any server that serves its Api. */
export const layer = Front.layer(
  Effect.gen(function* () {
    const { bodyLimitBytes, browserOrigins, corsOrigins } = yield* SspConfig
    return {
      ...(yield* HttpGuards.make),
      api: SspApi,
      routes: {
        data: yield* data,
        view: yield* view,
        browser: yield* HttpBrowsers.make,
        monitor: yield* monitor,
        job: yield* HttpJobs.make,
        integrity: yield* HttpIntegrity.make
      },
      maxBodyBytes: bodyLimitBytes,
      origins: { all: corsOrigins, browser: browserOrigins }
    }
  })
)
