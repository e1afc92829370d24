/**
 * The whole SSP: routes, guards, views, lifecycle and loops as one layer that needs only ports.
 *
 * Another deployment provides other ports (`Database`, `SavedState`, `Turn`, `RequestBody`, `SchedulerClient`,
 * `Release`, `SspConfig`) and any server that takes `HttpApi.Api`; `src/programs/ssp/serve.ts` is one example. For two
 * SSPs in one runtime wrap each, its server included, in `Layer.fresh`, and never put `Layer.fresh` between a node and
 * what serves its routes.
 */
import { Effect, Layer } from "effect"
import { Audit } from "../ports/Audit.ts"
import { Serving } from "../ports/Front.ts"
import { IngestTimes } from "../ports/IngestTimes.ts"
import { Meters } from "../ports/Meters.ts"
import { Progress } from "../ports/Progress.ts"
import { Release } from "../ports/Release.ts"
import { SspConfig, type SspConfigShape } from "./Config.ts"
import { ChangeFeed } from "./database/ChangeFeed.ts"
import { describeStore } from "./database/describeStore.ts"
import { Integrity } from "./database/Integrity.ts"
import * as Reconciling from "./database/reconciling.ts"
import * as SchemaFollowing from "./database/schemaFollowing.ts"
import { EdgeWriter } from "./edges/EdgeWriter.ts"
import * as Http from "./http/Http.ts"
import * as HttpBrowsers from "./http/HttpBrowsers.ts"
import * as Figures from "./http/nodeFigures.ts"
import * as RowErrorLog from "./http/rowErrorLog.ts"
import { JobIntake } from "./jobs/JobIntake.ts"
import { Jobs } from "./jobs/Jobs.ts"
import * as Expiry from "./membership/Expiry.ts"
import { Lease } from "./membership/Lease.ts"
import { Lifecycle } from "./membership/Lifecycle.ts"
import { DeclaredTypes } from "./reconcile/DeclaredTypes.ts"
import { Reconcile } from "./reconcile/Reconcile.ts"
import { Views } from "./views/Views.ts"

const layerAudit = Layer.unwrapEffect(
  Effect.map(SspConfig, ({ auditTurnedPerMinute }) => Audit.layer(auditTurnedPerMinute))
)

/** Routes and loops over any `Views` and `Serving`. */
export const layerOver = Layer.mergeAll(
  Http.layer,
  Expiry.layer,
  RowErrorLog.layer,
  Reconciling.layer,
  SchemaFollowing.layer
).pipe(
  Layer.provide(HttpBrowsers.layerBrowsers),
  Layer.provideMerge(Figures.layer),
  Layer.provideMerge(ChangeFeed.layer),
  Layer.provideMerge(Jobs.layer),
  Layer.provideMerge(JobIntake.layer),
  Layer.provideMerge(Integrity.layer),
  Layer.provideMerge(Lifecycle.layer),
  Layer.provideMerge(IngestTimes.layer),
  Layer.provideMerge(Reconcile.layer),
  Layer.provideMerge(DeclaredTypes.layer),
  Layer.provideMerge(Lease.layer),
  Layer.provide(layerAudit)
)

/** Edges are written while the SSP is ready. */
const layerEdgesWhenReady = Layer.effectDiscard(
  Effect.gen(function* () {
    const { phase } = yield* Lifecycle
    const edges = yield* EdgeWriter
    edges.allowWhen(() => phase() === "ready")
  })
)

/** Routes, services and loops of an SSP, over ports. A server and routes of your own are built on it. */
export const layer = layerEdgesWhenReady.pipe(
  Layer.provideMerge(layerOver),
  Layer.provideMerge(Views.layer),
  Layer.provideMerge(EdgeWriter.layer),
  Layer.provideMerge(Lease.layer),
  Layer.provideMerge(Serving.layer),
  Layer.provideMerge(Progress.layer),
  Layer.provideMerge(Meters.layer)
)

/** Logs what runs and where, then waits; fails if a loop of the node does. */
export const serve = (config: SspConfigShape) =>
  Effect.gen(function* () {
    const serving = yield* Serving
    const { version } = yield* Release
    for (const warning of config.warnings) yield* Effect.logWarning(warning)
    const port = yield* serving.port
    const host = config.listen.host === undefined ? "all interfaces" : config.listen.host
    yield* Effect.logInfo(
      `SSP ${config.sspId} ${version} listens on ${host}, port ${port}: ${config.mode} mode, store ${describeStore(config)}`
    )
    return yield* serving.crashed
  })
