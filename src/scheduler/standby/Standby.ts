/**
 * The node of a standby scheduler: its own endpoints, and a forward to the leader for all others.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect, Layer } from "effect"
import * as Text from "../../core/telemetry/metricText.ts"
import * as Answers from "../../node/http/answers.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Front from "../../node/http/front.ts"
import * as Guard from "../../node/http/guard.ts"
import * as Figures from "../../node/http/nodeFigures.ts"
import { routeGroup } from "../../node/http/routes.ts"
import { Audit } from "../../ports/Audit.ts"
import type { IncomingRequest } from "../../ports/Front.ts"
import { NodeFigures } from "../../ports/NodeFigures.ts"
import { Progress } from "../../ports/Progress.ts"
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

/** Whether this process answers the request itself. `/metrics` as JSON shows the cluster, so the leader answers it. */
const isOwn = ({ headers, url }: Pick<IncomingRequest, "headers" | "url">): boolean => {
  const { pathname, searchParams } = new URL(url, "http://standby")
  return (
    own.has(pathname) ||
    (pathname === "/metrics" && Text.wantsText(headers["accept"], searchParams.get("format") ?? undefined))
  )
}

const layerFigures = (election: LeaderElection, follower: FollowerReplica) =>
  Figures.layer(
    "scheduler",
    Effect.succeed(() =>
      Effect.sync(() => ({ ...Monitor.logReadings(election.status()), replicaSeq: follower.applied() }))
    )
  )

const monitor = (election: LeaderElection, follower: FollowerReplica) =>
  Effect.gen(function* () {
    const { tasks } = yield* Progress
    const figures = yield* NodeFigures
    const isLed = () => election.leaderUrl() !== undefined
    return routeGroup(StandbyApi, "monitor", {
      metrics: { response: () => Effect.map(figures, Answers.figures) },
      health: {
        value: () => Effect.sync(() => (isLed() ? { status: "healthy" as const } : { status: "unavailable" as const }))
      },
      progress: {
        value: () =>
          Effect.sync(() => ({
            state: "standby",
            seq: follower.applied(),
            tasks: tasks().map(taskOf),
            clone: null,
            ssps: [],
            log: Monitor.logProgress(election.status())
          }))
      },
      livez: { value: () => Effect.succeed(ok) },
      readyz: { value: () => (isLed() ? Effect.succeed(ok) : Effect.fail(Errors.notLeader)) }
    })
  })

const replica = (election: LeaderElection) =>
  Effect.map(HttpReplica.make, (answer) =>
    routeGroup(StandbyApi, "replica", { replica: { response: () => answer(election.log.logId) } })
  )

const layerAudit = Layer.unwrapEffect(
  Effect.map(SchedulerConfig, ({ auditTurnedPerMinute }) => Audit.layer(auditTurnedPerMinute))
)

/** The front of a standby scheduler, and the same for any server that takes `HttpApi.Api`. */
export const layer = (election: LeaderElection, follower: FollowerReplica) =>
  Front.layer(
    Effect.gen(function* () {
      const { bearers, browserOrigins, corsOrigins, maxBodyBytes } = yield* SchedulerConfig
      const forward = yield* Forward.make(election)
      return {
        api: StandbyApi,
        routes: { monitor: yield* monitor(election, follower), replica: yield* replica(election) },
        guards: { [SchedulerBearer.key]: Guard.make(makeJudge(bearers, Errors.unauthorized)) },
        // A standby clones nothing; its replica is as complete as its position says.
        gates: { [Cloned.key]: () => undefined },
        maxBodyBytes,
        origins: { all: corsOrigins, browser: browserOrigins },
        isOwn,
        around: (app) =>
          Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => (isOwn(request) ? app : forward(request)))
      }
    })
  ).pipe(Layer.provide(layerAudit), Layer.provideMerge(layerFigures(election, follower)))
