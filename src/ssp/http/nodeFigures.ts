/**
 * Current figures of this SSP for its metrics (D34).
 *
 * From memory alone; only the number of rows costs more than a look, a pass over the views.
 */
import { Effect } from "effect"
import * as Latency from "../../core/telemetry/latency.ts"
import * as Core from "../../core/telemetry/meters.ts"
import { declared } from "../../core/telemetry/metrics.ts"
import { readings as changeReadings } from "../../node/database/changeReader.ts"
import * as Figures from "../../node/http/nodeFigures.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import { SspConfig } from "../Config.ts"
import { ChangeFeed } from "../database/ChangeFeed.ts"
import { EdgeWriter } from "../edges/EdgeWriter.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Views } from "../views/Views.ts"

const jobStates = declared.jobs.labels.state
const attemptResults = declared.jobAttempts.labels.result

const make = Effect.gen(function* () {
  const config = yield* SspConfig
  const { phase } = yield* Lifecycle
  const { fed, latency } = yield* IngestTimes
  const edges = yield* EdgeWriter
  const jobs = yield* Jobs
  const views = yield* Views
  const changeFeed = yield* ChangeFeed
  const edgeReadings = (): Core.Readings => {
    if (!edges.present) return {}
    const { differences, failures, lost, puts, refused, removals, waiting } = edges.counts()
    return {
      edgesPending: waiting,
      edgesLimit: config.maxPendingEdges,
      edgesWritten: [
        [["put"], puts],
        [["removal"], removals]
      ],
      edgeFailures: failures,
      edgesRefused: refused,
      edgeViewsLost: lost,
      edgeDifferences: differences
    }
  }
  return () =>
    Effect.sync(() => {
      const figures = views.figures()
      const held = figures.held()
      const lanes = jobs.figures()
      return {
        ...edgeReadings(),
        ...changeReadings(changeFeed.figures()),
        ingestDuration: Latency.histogram(latency),
        feedApply: Latency.histogram(fed),
        ingestPending: figures.pendingChanges,
        ingestPendingLimit: config.maxPendingChanges,
        sspStatus: Core.oneOf(declared.sspStatus.labels.status, phase()),
        sspViews: figures.views,
        sspViewsLimit: config.maxViews,
        viewsQuarantined: figures.quarantined.length,
        sspViewRows: figures.rows(),
        sspInstances: held.instances,
        sspHeldRows: held.heldRows,
        sspTombstones: held.tombstones,
        sspRecords: figures.records,
        sspRecordBytes: figures.record_bytes,
        sspTables: views.records.tableNames().length,
        sspStreams: figures.streams,
        sspStreamedChars: figures.streamedChars,
        sspStreamsLimit: config.maxStreams,
        sspLogSeq: figures.seq ?? undefined,
        jobs: lanes.flatMap((lane) => jobStates.map((state) => [[lane.table, state], lane[state]] as const)),
        jobAttempts: lanes.flatMap(({ counts, table }) =>
          attemptResults.map((result) => [[table, result], counts[result]] as const)
        ),
        jobLeasesLost: lanes.map(({ counts, table }) => [[table], counts.lost] as const)
      }
    })
})

export const layer = Figures.layer("ssp", make)
