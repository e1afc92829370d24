/**
 * Parts of the scheduler's overview beside the pool: identity, process figures, latencies.
 */
import { Effect } from "effect"
import { warningsOf } from "../../node/database/schemaWatch.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { ProcessFigures } from "../../ports/ProcessFigures.ts"
import { Release } from "../../ports/Release.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { aheadMs, steadyMs } from "../../ports/Turn.ts"
import { SchedulerConfig } from "../Config.ts"
import { JobFeed } from "../ingest/JobFeed.ts"
import { Declared } from "../pool/Declared.ts"
import { Pool } from "../pool/Pool.ts"
import { ChangeFeed } from "../replica/ChangeFeed.ts"
import { Clone } from "../replica/Clone.ts"
import * as Monitor from "./monitor.ts"
import * as Overview from "./overview.ts"

/** The effect that answers. */
export const make = (startedAt: number) =>
  Effect.gen(function* () {
    const pool = yield* Pool
    const { schedulerId: id } = yield* SchedulerConfig
    const { version } = yield* Release
    const { latency } = yield* IngestTimes
    const clone = yield* Clone
    const feed = yield* JobFeed
    const declared = yield* Declared
    const changes = yield* ChangeFeed
    const figures = yield* ProcessFigures
    const leadership = yield* Leadership
    return Effect.gen(function* () {
      const used = yield* figures
      return Overview.overview(pool.state(), yield* steadyMs, yield* Effect.map(Effect.clock, aheadMs), {
        id,
        version,
        ...pool.identity,
        startedAt,
        ingest: latency.snapshot(),
        warnings: warningsOf(declared.tables(), changes.figures()),
        clone: clone.progress(),
        sharedLog: Monitor.logProgress(leadership.status()),
        jobTables: feed.tables(),
        used:
          used === undefined ? null : { cpu_seconds: used.cpuMicros / 1e6, memory_megabytes: used.residentBytes / 1e6 }
      })
    })
  })
