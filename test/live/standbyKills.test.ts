/**
 * The leader of a log in PostgreSQL is killed again and again under load: what was acknowledged is there, once, views
 * and records are right everywhere, and no SSP loads anything again (D60).
 *
 * Three kills by default; `SVC_CAMPAIGN=1 SVC_RUNS=5` kills 200 times, one every 5 s, with the lease of a deployment
 * and 60 views, and prints how long writes were away.
 */
import { afterAll, beforeAll, describe, expect } from "vitest"
import * as Checks from "../kit/clusterChecks.ts"
import { sleep, until } from "../kit/Door.ts"
import * as Postgres from "../kit/postgres.ts"
import { Load } from "../kit/processCluster.ts"
import { campaign, runs, seeded } from "../kit/random.ts"
import { StandbyCluster } from "../kit/standbyCluster.ts"

const file = "test/live/standbyKills.test.ts"
const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"
const scale = campaign
  ? { keys: 2000, views: 60, perSecond: 50, kills: runs(40), everyMs: 5000, leaseMs: 3000 }
  : { keys: 300, views: 8, perSecond: 40, kills: 3, everyMs: 0, leaseMs: 2000 }

/** How long after each moment it took until a write was acknowledged that was begun after it. */
const awayMs = ({ times }: Load, moments: ReadonlyArray<number>): ReadonlyArray<number> =>
  moments.map((at) => Math.min(...times.filter(([begun]) => begun >= at).map(([, done]) => done)) - at)

/** Writes that are in the log more than once, though each was sent once. */
const twice = async (log: string, repeated: ReadonlySet<number>): Promise<ReadonlyArray<unknown>> => {
  const rows = await Postgres.ask(
    `SELECT (line::json -> 'record' ->> 'n')::int AS n FROM svc_log
     WHERE log = $1 AND line::json -> 'record' ->> 'n' IS NOT NULL GROUP BY 1 HAVING count(*) > 1`,
    [log]
  )
  return rows.map(({ n }) => Number(n)).filter((n) => !repeated.has(n))
}

let cluster: StandbyCluster

describe.skipIf(!Postgres.isReachable)(`a leader that dies${missing}`, () => {
  beforeAll(async () => {
    cluster = await StandbyCluster.start(2, 2, { SVC_LEASE_MS: String(scale.leaseMs) }, { isSupervised: true })
    await cluster.settled()
  }, 120_000)
  afterAll(() => cluster?.close())

  seeded(
    "D60 kill -9 of the leader under load: nothing acknowledged is lost, nothing is there twice, no SSP loads again",
    file,
    async (random) => {
      await Checks.registerViews(cluster, scale.views)
      const load = new Load(cluster.scheduler, random, scale.keys)
      const loading = load.run(scale.perSecond)
      const killed: Array<number> = []
      for (let i = 0; i < scale.kills; i++) {
        const begun = performance.now()
        const before = load.acknowledged
        await until("writes are taken", () => load.acknowledged > before + 20)
        await sleep(random.below(300))
        const leader = await cluster.leader()
        killed.push(performance.now())
        await leader.kill()
        await leader.start()
        await until("one stands by", () => cluster.isWhole(), 60_000).catch((error: unknown) => {
          throw new Error(`${String(error)}\n${cluster.logs}`)
        })
        await sleep(Math.max(0, scale.everyMs - (performance.now() - begun)))
      }
      const before = load.acknowledged
      await until("writes are taken", () => load.acknowledged > before + 20)
      load.end()
      await loading
      await cluster.settled()
      await Checks.checkRecords(cluster, load.known)
      await Checks.checkViews(cluster, scale.views)
      await Checks.checkTrees(cluster)
      expect(await twice(Postgres.nameOf(cluster.url), load.repeated)).toEqual([])
      for (const { logs, name } of cluster.ssps) expect(logs.split("bootstrapped at position").length, name).toBe(2)
      const away = [...awayMs(load, killed)].sort((a, b) => a - b)
      if (campaign)
        console.log(
          `${scale.kills} kills, ${load.acknowledged} writes acknowledged; ${cluster.superseded} more ends of a term; writes were back after p50 ${away[away.length >> 1]?.toFixed(0)} ms, max ${away.at(-1)?.toFixed(0)} ms`
        )
    },
    1_800_000
  )
})
