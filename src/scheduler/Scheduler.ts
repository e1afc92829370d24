/**
 * The whole scheduler: routes, ingest and pool as one layer that needs only ports.
 *
 * Another deployment provides other ports (`Balance`, `Wal`, `Replica`, `PoolStore`, `SspClient`, `Upstream`, `Turn`,
 * `RequestBody`, `Release`, `SchedulerConfig`) and any server that takes `HttpApi.Api`;
 * `src/programs/scheduler/serve.ts` is one example.
 */
import { Effect, Layer } from "effect"
import { Audit } from "../ports/Audit.ts"
import { Serving } from "../ports/Front.ts"
import { IngestTimes } from "../ports/IngestTimes.ts"
import { Meters } from "../ports/Meters.ts"
import { Progress } from "../ports/Progress.ts"
import { Release } from "../ports/Release.ts"
import { SchedulerConfig, type SchedulerConfigShape } from "./Config.ts"
import { Feeds } from "./feed/Feeds.ts"
import * as Http from "./http/Http.ts"
import * as HttpBrowsers from "./http/HttpBrowsers.ts"
import * as Figures from "./http/nodeFigures.ts"
import { Ingest } from "./ingest/Ingest.ts"
import { JobFeed } from "./ingest/JobFeed.ts"
import { Jobs } from "./jobs/Jobs.ts"
import { DeclaredTables } from "./pool/DeclaredTables.ts"
import { Pool } from "./pool/Pool.ts"
import { ChangeFeed } from "./replica/ChangeFeed.ts"
import { ChangeTableLease } from "./replica/ChangeTableLease.ts"
import { Clone } from "./replica/Clone.ts"
import * as IntegrityNodes from "./replica/IntegrityNodes.ts"
import { ProxyQuery } from "./replica/ProxyQuery.ts"
import * as Reconcile from "./replica/Reconcile.ts"
import { RecordTrees } from "./replica/RecordTrees.ts"
import * as SspComparison from "./replica/SspComparison.ts"
import * as SchemaFollowing from "./replica/schemaFollowing.ts"
import { FollowedViews } from "./streams/FollowedViews.ts"

const layerProxy = Layer.unwrapEffect(
  Effect.map(SchedulerConfig, ({ queryBytes, queryBytesTotal, queryRowSteps, queryRows, querySteps }) =>
    ProxyQuery.layer({ queryBytes, queryBytesTotal, queryRows, querySteps, rowSteps: queryRowSteps })
  )
)

const layerAudit = Layer.unwrapEffect(
  Effect.map(SchedulerConfig, ({ auditTurnedPerMinute }) => Audit.layer(auditTurnedPerMinute))
)

/** Routes, services and loops of a scheduler, over ports. A server and routes of your own are built on it. */
export const layer = Layer.mergeAll(Http.layer, SspComparison.layer, IntegrityNodes.layer, SchemaFollowing.layer).pipe(
  Layer.provide(HttpBrowsers.layerBrowsers),
  Layer.provide(FollowedViews.layer),
  Layer.provideMerge(Figures.layer),
  Layer.provideMerge(ChangeFeed.layer),
  Layer.provideMerge(Reconcile.layer),
  Layer.provideMerge(ChangeTableLease.layer),
  Layer.provideMerge(IngestTimes.layer),
  Layer.provideMerge(Layer.mergeAll(Clone.layer, RecordTrees.layer, Jobs.layer)),
  Layer.provideMerge(Layer.mergeAll(Ingest.layer, layerProxy)),
  Layer.provideMerge(Layer.mergeAll(JobFeed.layer, Feeds.layer)),
  Layer.provideMerge(Pool.layer),
  Layer.provideMerge(DeclaredTables.layer),
  Layer.provideMerge(Serving.layer),
  Layer.provideMerge(Progress.layer),
  Layer.provideMerge(Meters.layer),
  Layer.provide(layerAudit)
)

const sourceText = ({ database }: SchedulerConfigShape): string =>
  database === undefined
    ? "no database to clone"
    : `cloned from ${database.url}, ${database.namespace}/${database.name}`

/** Logs what runs and where, then waits; fails if a loop of the node does. */
export const serve = (config: SchedulerConfigShape) =>
  Effect.gen(function* () {
    const serving = yield* Serving
    const { version } = yield* Release
    for (const warning of config.warnings) yield* Effect.logWarning(warning)
    const port = yield* serving.port
    yield* Effect.logInfo(
      `scheduler ${config.schedulerId} ${version} listens on ${config.listen.host ?? "all interfaces"}, port ${port}: log ${config.logName}, replica ${config.replicaDbPath}, ${sourceText(config)}`
    )
    return yield* serving.crashed
  })
