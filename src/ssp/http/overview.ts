/**
 * `GET /overview`: all figures of this SSP that memory gives at once, for readers that ask every second.
 *
 * Counters that only grow, and current figures. Readers derive rates themselves, so no state is kept per reader.
 */
import { Effect } from "effect"
import { warningsOf } from "../../node/database/schemaWatch.ts"
import { usedOf } from "../../node/http/nodeFigures.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { ProcessFigures } from "../../ports/ProcessFigures.ts"
import { Release } from "../../ports/Release.ts"
import { steadyMs } from "../../ports/Turn.ts"
import type { SspOverview } from "../../protocol/overview.ts"
import { SspConfig } from "../Config.ts"
import { ChangeFeed } from "../database/ChangeFeed.ts"
import { describeStore } from "../database/describeStore.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import { Views } from "../views/Views.ts"

/** The effect that answers; uptime counts from when it was made. */
export const make = Effect.gen(function* () {
  const config = yield* SspConfig
  const { mode, phase } = yield* Lifecycle
  const { version } = yield* Release
  const { fed, latency } = yield* IngestTimes
  const jobs = yield* Jobs
  const views = yield* Views
  const types = yield* DeclaredTypes
  const feed = yield* ChangeFeed
  const figures = yield* ProcessFigures
  const startedAt = yield* steadyMs
  const store = describeStore(config)
  return Effect.gen(function* () {
    const {
      pendingChanges,
      pendingEdges,
      rows: _rows,
      held: _held,
      streamedChars: _chars,
      ...counted
    } = views.figures()
    return {
      id: config.sspId,
      version,
      status: phase(),
      mode,
      store,
      uptime_seconds: ((yield* steadyMs) - startedAt) / 1000,
      used: usedOf(yield* figures),
      ingest: latency.snapshot(),
      feed: views.tables.held() === undefined ? null : fed.snapshot(),
      warnings: warningsOf(types.known(), feed.figures()),
      ...counted,
      max_views: config.maxViews,
      max_streams: config.maxStreams,
      pending: {
        changes: pendingChanges,
        max_changes: config.maxPendingChanges,
        edges: pendingEdges,
        max_edges: config.maxPendingEdges
      },
      jobs: jobs.figures()
    } satisfies typeof SspOverview.Type
  })
})
