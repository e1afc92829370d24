/**
 * What it takes to bring up a scheduler beside one that has a million records: by a snapshot, by reading the whole log,
 * and, for scale, what an SSP takes that loads them page by page (D64).
 *
 * A campaign: `SVC_CAMPAIGN=1 npx vitest run test/live/snapshotsMillion.test.ts` prints the figures; `SVC_RUNS=0.1` for
 * a tenth of the records.
 */
import { statSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { campaign } from "../../kit/data/random.ts"
import { until } from "../../kit/processes/Door.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import { StandbyCluster } from "../../kit/processes/standbyCluster.ts"

const records = Math.round(1_000_000 * Number(process.env.SVC_RUNS ?? 1))
const batch = 500
const text = "a record of about two hundred bytes, as a row of an application may be: ".padEnd(150, "x")

const timed = async (what: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now()
  await what()
  return (performance.now() - begun) / 1000
}

const fill = async (scheduler: Process): Promise<void> => {
  let next = 0
  const feed = async (): Promise<void> => {
    while (next < records) {
      const from = next
      next += batch
      const body = Array.from({ length: batch }, (_, i) => ({
        table: "item",
        op: "UPDATE",
        id: `item:${from + i}`,
        record: { n: from + i, group: (from + i) % 1000, text }
      }))
      await until("a batch is taken", async () => {
        const answer = await scheduler.ask({ method: "POST", path: "/ingest", body }, 60_000)
        return answer?.status === 200
      })
    }
  }
  await Promise.all([feed(), feed(), feed(), feed()])
}

test.runIf(campaign && Postgres.isReachable)(
  "D64 a scheduler beside a million records: by snapshot, by log, and an SSP by pages",
  async ({ onTestFinished }) => {
    const cluster = await StandbyCluster.start(
      3,
      1,
      { SVC_LEASE_MS: "30000", SVC_LOG_COPIES: "1", SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "86400" },
      { idle: 2, idleSsps: 1 }
    )
    onTestFinished(() => cluster.close())
    const [leader, byLog, bySnapshot] = cluster.schedulers as [Process, Process, Process]
    const [ssp] = cluster.ssps as [Process]
    await fill(leader)
    const whole = (scheduler: Process) =>
      until("it has all of it", async () => ((await cluster.told(scheduler))?.seq ?? 0) >= records, 1_800_000)
    const log = await timed(async () => {
      await byLog.start()
      await whole(byLog)
    })
    const bytes = statSync(join(cluster.replicaOf(byLog), "replica.db")).size
    await byLog.stop()
    const pages = await timed(async () => {
      await ssp.start()
      await until("it has loaded", () => ssp.logs.includes("bootstrapped at position"), 1_800_000)
    })
    await ssp.stop()
    await Postgres.ask("UPDATE svc_log_head SET kept_after = last_seq WHERE log = $1", [Postgres.nameOf(cluster.url)])
    await Postgres.ask("DELETE FROM svc_log WHERE log = $1", [Postgres.nameOf(cluster.url)])
    const snapshot = await timed(async () => {
      await bySnapshot.start()
      await whole(bySnapshot)
    })
    expect(bySnapshot.logs).toContain("restored the replica from")
    const said = /(restored the replica from .*? ms)/.exec(bySnapshot.logs)?.[1]
    console.log(
      `${records} records, ${(bytes / 1e6).toFixed(0)} MB: snapshot ${snapshot.toFixed(1)} s, whole log ${log.toFixed(1)} s, an SSP by pages ${pages.toFixed(1)} s; starts included (${said})`
    )
  },
  3_600_000
)
