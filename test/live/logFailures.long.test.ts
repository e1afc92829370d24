/**
 * What may happen to the way between schedulers and their log in PostgreSQL, and to that itself, with real servers,
 * processes and networks: nothing that was acknowledged is lost, nothing is there twice, and never do two answer 200.
 *
 * Short by default; `SVC_CAMPAIGN=1 SVC_RUNS=N` kills and cuts N times as often. The clock of a kernel is one for the
 * whole machine: here one process is told another time by its C library.
 */
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { campaign, runs } from "../../kit/data/random.ts"
import { Door, freePort, schedulerEnv, sleep, until } from "../../kit/processes/Door.ts"
import { lacking as noPostgres, OwnPostgres } from "../../kit/processes/ownPostgres.ts"
import { lacking as noPartition, Partition } from "../../kit/processes/partition.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import { type Place, StandbyCluster } from "../../kit/processes/standbyCluster.ts"
import { SystemClock } from "../../kit/processes/systemClock.ts"
import { TcpProxy } from "../../kit/processes/tcpProxy.ts"

const rounds = campaign ? runs(10) : 1
const supervised = { isSupervised: true } as const

const closers: Array<() => unknown> = []
const closing = <A extends { readonly close: () => unknown }>(what: A): A => {
  closers.push(() => what.close())
  return what
}
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** Writes one record a time, each with a content of its own, and remembers what was acknowledged. */
class Feed {
  readonly acknowledged = new Set<number>()
  readonly repeated = new Set<number>()
  readonly statuses = new Set<number>()
  private n = 0
  private asks = 0
  private isOver = false
  private readonly cluster: StandbyCluster
  readonly running: Promise<void>

  constructor(cluster: StandbyCluster) {
    this.cluster = cluster
    this.running = this.run()
  }

  static body(n: number) {
    return { table: "item", op: "UPDATE", id: `item:${n}`, record: { n } }
  }

  private async run(): Promise<void> {
    while (!this.isOver) {
      const n = ++this.n
      for (;;) {
        // One scheduler at a time: what is sent to another one is sent again.
        const { schedulers } = this.cluster
        const asked = schedulers[this.asks % schedulers.length]!
        const answer = await asked.ask({ method: "POST", path: "/ingest", body: Feed.body(n) }, 8000)
        if (answer !== undefined) this.statuses.add(answer.status)
        if (answer?.status === 200) break
        this.repeated.add(n)
        // Whatever it is: for an address that is cut off a gateway may answer.
        this.asks++
        if (this.isOver) return
        await sleep(50)
      }
      this.acknowledged.add(n)
      await sleep(2)
    }
  }

  /** Writes are taken again, by the count of them. */
  async goesOn(): Promise<void> {
    const before = this.acknowledged.size
    await until("writes are taken", () => this.acknowledged.size > before + 10, 60_000)
  }

  /** Ends it; what was acknowledged is there, and what was sent once is in the log once. */
  async check(at?: string): Promise<void> {
    this.isOver = true
    await this.running
    const rows = await this.cluster.query("SELECT VALUE n FROM item")
    const found = new Set(rows.map(Number))
    expect([...this.acknowledged].filter((n) => !found.has(n))).toEqual([])
    const log = Postgres.nameOf(this.cluster.url)
    const twice = await Postgres.ask(
      `SELECT (line::json -> 'record' ->> 'n')::int AS n FROM svc_log WHERE log = $1
       AND line::json -> 'record' ->> 'n' IS NOT NULL GROUP BY 1 HAVING count(*) > 1`,
      [log],
      at
    )
    expect(twice.map(({ n }) => Number(n)).filter((n) => !this.repeated.has(n))).toEqual([])
    const [ends] = await Postgres.ask(
      "SELECT count(*) AS count, max(seq) AS last, (SELECT last_seq FROM svc_log_head WHERE log = $1) AS said FROM svc_log WHERE log = $1",
      [log],
      at
    )
    expect([Number(ends?.count), Number(ends?.said)]).toEqual([Number(ends?.last), Number(ends?.last)])
  }
}

const why = (lacking: string | undefined): string => (lacking === undefined ? "" : ` (skipped: ${lacking})`)

describe.skipIf(noPostgres !== undefined || !Postgres.isReachable)(
  `PostgreSQL that is killed${why(noPostgres)}`,
  () => {
    it("D60 all its processes killed and started again: 503 meanwhile, nothing acknowledged is lost or there twice", async () => {
      const server = closing(await OwnPostgres.start())
      const cluster = closing(
        await StandbyCluster.start(2, 0, { SVC_LEASE_MS: "3000" }, { ...supervised, url: `${server.url}?log=own` })
      )
      const feed = new Feed(cluster)
      for (let i = 0; i < rounds; i++) {
        await feed.goesOn()
        await server.kill()
        const at = await cluster.schedulers[0]!.ask({ method: "POST", path: "/ingest", body: Feed.body(0) }, 10_000)
        expect([undefined, 503]).toContain(at?.status)
        await server.run()
        await feed.goesOn()
      }
      await feed.check(server.url)
      expect([...feed.statuses].filter((status) => status !== 200 && status !== 503)).toEqual([])
    }, 1_800_000)
  }
)

const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"

/** The PostgreSQL of the tests by way of a proxy. */
const proxied = async (): Promise<{ readonly proxy: TcpProxy; readonly url: string }> => {
  const { hostname, port } = new URL(Postgres.address)
  const proxy = closing(await TcpProxy.to(hostname, Number(port || 5432)))
  const url = new URL(Postgres.freshLog())
  url.host = `127.0.0.1:${proxy.port}`
  return { proxy, url: url.href }
}

describe.skipIf(!Postgres.isReachable)(`the way to PostgreSQL${missing}`, () => {
  it("D60 answers that are lost while requests arrive: 503 and an end with 4, and each record is there once", async () => {
    const { proxy, url } = await proxied()
    const cluster = closing(await StandbyCluster.start(1, 0, { SVC_LEASE_MS: "2000" }, { ...supervised, url }))
    const feed = new Feed(cluster)
    for (let i = 0; i < rounds; i++) {
      await feed.goesOn()
      const before = cluster.superseded
      proxy.lose()
      await until("it has ended", () => cluster.superseded > before, 60_000)
      proxy.find()
      await feed.goesOn()
    }
    await feed.check()
  }, 1_800_000)

  it("D60 the clock of a leader jumps by an hour, forth and back, and goes too fast: it goes on leading", async () => {
    const clock = closing(new SystemClock())
    const place: Place = { env: clock.env }
    const cluster = closing(
      await StandbyCluster.start(2, 0, { SVC_LEASE_MS: "3000" }, { ...supervised, idle: 1, places: [place] })
    )
    const [leader, other] = cluster.schedulers as [Process, Process]
    const feed = new Feed(cluster)
    await feed.goesOn()
    await other.start()
    await until("the other stands by", () => cluster.standsBy(other))
    const epoch = (await cluster.told(leader))?.log.epoch
    const ends = cluster.superseded
    for (const [secs, rate] of [
      [3600, 1],
      [-3600, 1],
      [0, 1.05]
    ] as const) {
      clock.set(secs, rate)
      await until("its clock is set", () => clock.isSeenIn(leader.logs))
      await feed.goesOn()
      // Longer than the lease.
      await sleep(4000)
    }
    // Unless this machine was so busy that the leader lost its lease: then it says so, and ends.
    if (cluster.superseded === ends) expect((await cluster.told(leader))?.log).toMatchObject({ role: "leader", epoch })
    await feed.check()
  }, 300_000)

  it("D60 rows that are deleted by hand: no scheduler starts on what is left, and each names both positions", async () => {
    const cluster = closing(await StandbyCluster.start(1, 0, { SVC_LEASE_MS: "2000" }, supervised))
    const feed = new Feed(cluster)
    await feed.goesOn()
    await feed.check()
    const [only] = cluster.schedulers as [Process]
    await only.stop()
    const log = Postgres.nameOf(cluster.url)
    await Postgres.ask("DELETE FROM svc_log WHERE log = $1 AND seq <= 5", [log])
    await only.start()
    expect((await only.door?.exited)?.code).toBe(3)
    expect(only.logs).toMatch(/its records are seq 6 to (\d+), and it should hold 1 to \1/)
    // The end of it, as from a backup: a replica is further than the log.
    await Postgres.ask("DELETE FROM svc_log WHERE log = $1 AND seq > 8", [log])
    await Postgres.ask("UPDATE svc_log_head SET last_seq = 8, kept_after = 5 WHERE log = $1", [log])
    await only.start()
    expect((await only.door?.exited)?.code).toBe(3)
    expect(only.logs).toMatch(/stands at seq \d+, but the log at postgres:.* ends at 8: they are not of one piece/)
  })

  it("a second scheduler on the same folder is refused, and the first goes on", async () => {
    const cluster = closing(await StandbyCluster.start(1, 0, { SVC_LEASE_MS: "3000" }, supervised))
    const [only] = cluster.schedulers as [Process]
    const folder = join(cluster.replicaOf(only), "..")
    const second = closing(
      await Door.spawn({
        command: [process.execPath, "dist/scheduler.js"],
        dataDir: folder,
        env: { ...schedulerEnv(folder, await freePort()), SCHEDULER_ID: "second", SVC_LOG_URL: cluster.url }
      })
    )
    expect((await second.exited).code).not.toBe(0)
    expect(second.logs).toContain("another process has it")
    await cluster.leader()
  })
})

describe.skipIf(noPartition !== undefined || noPostgres !== undefined)(
  `a leader in a network of its own${why(noPartition ?? noPostgres)}`,
  () => {
    /** A leader behind a cable to PostgreSQL and to the other scheduler. */
    const apart = async () => {
      const partition = closing(new Partition())
      const server = closing(await OwnPostgres.start(partition.outside))
      const cluster = closing(
        await StandbyCluster.start(
          2,
          0,
          { SVC_LEASE_MS: "2000" },
          {
            ...supervised,
            url: `${server.url}?log=own`,
            idle: 1,
            places: [{ host: partition.inside, within: partition.within }]
          }
        )
      )
      const feed = new Feed(cluster)
      await feed.goesOn()
      await cluster.schedulers[1]!.start()
      const [far, near] = cluster.schedulers as [Process, Process]
      await until("the other stands by", () => cluster.standsBy(near))
      return { cluster, far, near, feed, partition, server }
    }

    const lost = async (
      { cluster, far, feed, near, partition, server }: Awaited<ReturnType<typeof apart>>,
      cut: () => void,
      heal: () => void
    ): Promise<void> => {
      for (let i = 0; i < rounds; i++) {
        // Only a leader is worth cutting off.
        if (!(await cluster.leads(far))) await near.stop()
        await until("it leads", () => cluster.leads(far), 60_000)
        if (near.door === undefined) await near.start()
        await until("the other stands by", () => cluster.standsBy(near), 60_000)
        const before = cluster.superseded
        cut()
        const refused = partition.ask(far.url, Feed.body(0), 10)
        expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("NOT_LEADER")])
        await until("the other leads", () => cluster.leads(near), 60_000)
        await until("the one that is cut off has ended with 4", () => cluster.superseded > before, 60_000)
        await feed.goesOn()
        heal()
        await until("it stands by", () => cluster.standsBy(far), 60_000)
      }
      await feed.check(server.url)
    }

    it("D60 cut off from its log it answers 503 and ends with 4, and another one leads", async () => {
      const parts = await apart()
      await lost(
        parts,
        () => parts.partition.cut(),
        () => parts.partition.heal()
      )
    }, 1_800_000)

    // In the other direction answers are lost, which the proxy above does in every run.
    it.runIf(campaign)(
      "D60 the same where only what comes towards it is lost",
      async () => {
        const parts = await apart()
        await lost(
          parts,
          () => parts.partition.dropInward(),
          () => parts.partition.passInward()
        )
      },
      1_800_000
    )
  }
)
