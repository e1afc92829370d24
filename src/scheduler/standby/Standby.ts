/**
 * A scheduler that stands by, put together: its own endpoints, and the way to the leader for everything else.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Layer } from "effect"
import * as Core from "../../core/telemetry/meters.ts"
import * as Text from "../../core/telemetry/metricText.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Bodies from "../../node/http/bodies.ts"
import * as Guard from "../../node/http/guard.ts"
import * as WebHeaders from "../../node/http/webHeaders.ts"
import { Audit } from "../../ports/Audit.ts"
import { HotRoutes } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { NodeFigures, ofMemory, ofProcess } from "../../ports/NodeFigures.ts"
import { Heap, ProcessFigures } from "../../ports/ProcessFigures.ts"
import { Progress } from "../../ports/Progress.ts"
import { Release } from "../../ports/Release.ts"
import { taskOf } from "../../protocol/progress.ts"
import { Cloned, SchedulerBearer } from "../../protocol/SchedulerApi.ts"
import { StandbyApi } from "../../protocol/StandbyApi.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import * as HttpReplica from "../http/HttpReplica.ts"
import * as Monitor from "../http/monitor.ts"
import * as Forward from "./Forward.ts"
import type { FollowerReplica, LeaderElection } from "./LeaderElection.ts"

const ok = { status: "ok" } as const

const own: ReadonlySet<string> = new Set(["/health", "/livez", "/progress", "/readyz", "/replica"])

/** Whether this process answers by itself; figures as JSON are the cluster's, and the leader's. */
const isOwn = ({ headers, url }: HttpServerRequest.HttpServerRequest): boolean => {
  const { pathname, searchParams } = new URL(url, "http://standby")
  return (
    own.has(pathname) ||
    (pathname === "/metrics" && Text.wanted(headers["accept"], searchParams.get("format") ?? undefined))
  )
}

const layerFigures = (election: LeaderElection, following: FollowerReplica) =>
  Layer.effect(
    NodeFigures,
    Effect.gen(function* () {
      const { version } = yield* Release
      const process = yield* ProcessFigures
      const heap = yield* Heap
      const meters = yield* Meters
      return Effect.map(process, (used) =>
        Core.families("scheduler", meters, {
          ...ofProcess(used),
          ...ofMemory(heap.memory()),
          ...Monitor.logReadings(election.status()),
          buildInfo: [[[version, "scheduler"], 1]],
          replicaSeq: following.applied()
        })
      )
    })
  )

const layerMonitor = (election: LeaderElection, following: FollowerReplica) =>
  HttpApiBuilder.group(StandbyApi, "monitor", (handlers) =>
    Effect.gen(function* () {
      const { tasks } = yield* Progress
      const figures = yield* NodeFigures
      const isLed = () => election.leaderUrl() !== undefined
      return handlers
        .handleRaw("metrics", () =>
          Effect.map(figures, (families) =>
            HttpServerResponse.text(Text.render(families), { contentType: Text.contentType })
          )
        )
        .handle("health", () =>
          Effect.sync(() => (isLed() ? { status: "healthy" as const } : { status: "unavailable" as const }))
        )
        .handle("progress", () =>
          Effect.sync(() => ({
            state: "standby",
            seq: following.applied(),
            tasks: tasks().map(taskOf),
            clone: null,
            ssps: [],
            log: Monitor.logProgress(election.status())
          }))
        )
        .handle("livez", () => Effect.succeed(ok))
        .handle("readyz", () => (isLed() ? Effect.succeed(ok) : Effect.fail(Errors.notLeader)))
    })
  )

const layerReplica = (election: LeaderElection) =>
  HttpApiBuilder.group(StandbyApi, "replica", (handlers) =>
    Effect.map(HttpReplica.make, (answer) => handlers.handleRaw("replica", () => answer(election.log.logId)))
  )

const layerBearer = Layer.effect(
  SchedulerBearer,
  Effect.map(
    Effect.flatMap(SchedulerConfig, ({ bearers }) => Guard.make(StandbyApi, makeJudge(bearers, Errors.unauthorized))),
    (check) => SchedulerBearer.of({ bearer: () => check })
  )
)

const layerAudit = Layer.unwrapEffect(
  Effect.map(SchedulerConfig, ({ auditTurnedPerMinute }) => Audit.layer(auditTurnedPerMinute))
)

/** For any server that takes `HttpApi.Api`. */
export const layer = (election: LeaderElection, following: FollowerReplica) =>
  Layer.mergeAll(
    HttpApiBuilder.middleware(
      StandbyApi,
      Effect.map(
        Effect.all([SchedulerConfig, Forward.make(election)]),
        ([{ browserOrigins, corsOrigins }, forward]) =>
          (app) =>
            WebHeaders.around({ all: corsOrigins, browser: browserOrigins })(
              Bodies.answerEverything(Bodies.allowedBy(StandbyApi))(
                Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
                  isOwn(request) ? app : forward(request)
                )
              )
            )
      )
    ),
    HotRoutes.layerNone
  ).pipe(
    Layer.provideMerge(HttpApiBuilder.api(StandbyApi)),
    Layer.provide([layerMonitor(election, following), layerReplica(election)]),
    Layer.provide([layerBearer, Layer.succeed(Cloned, Cloned.of(Effect.void))]),
    Layer.provideMerge(Bodies.layerRouting),
    Layer.provide(layerAudit),
    Layer.provideMerge(layerFigures(election, following))
  )
