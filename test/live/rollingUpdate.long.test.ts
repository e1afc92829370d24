/**
 * Three schedulers over one log, in PostgreSQL and on three NATS servers, are updated: one after the other, each once
 * the one before stands by, and all at once. Nothing acknowledged is lost, no SSP loads again, and how long writes stood
 * is printed; `SVC_CAMPAIGN=1 SVC_RUNS=3` does so three times as often.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { runs } from "../../kit/data/random.ts"
import { registration } from "../../kit/data/registration.ts"
import { sleep, until } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import { StandbyCluster } from "../../kit/processes/standbyCluster.ts"

const leaseMs = 3000

const engines: ReadonlyArray<
  readonly [
    name: string,
    isThere: boolean,
    start: () => Promise<{ readonly url: string; readonly close: () => Promise<void> }>
  ]
> = [
  ["PostgreSQL", Postgres.isReachable, async () => ({ url: Postgres.freshLog(), close: async () => {} })],
  [
    "three NATS servers",
    Nats.hasServer,
    async () => {
      const servers = await Nats.Servers.start(3)
      return { url: Nats.freshLog(servers.url), close: () => servers.close() }
    }
  ]
]

/** A feed that writes one change after the other, each until it is taken. */
class Feed {
  taken = 0
  /** Since the last one was taken, and the longest such time so far. */
  private at = performance.now()
  longestMs = 0
  private isOver = false
  private readonly to: StandbyCluster["one"]

  constructor(to: StandbyCluster["one"]) {
    this.to = to
  }

  async run(): Promise<void> {
    while (!this.isOver) {
      const change = { table: "item", op: "UPDATE", id: "item:1", record: { n: this.taken + 1 } }
      const answer = await this.to.ask({ method: "POST", path: "/ingest", body: change }, 20_000)
      if (answer?.status !== 200) {
        await sleep(50)
        continue
      }
      this.taken++
      const now = performance.now()
      this.longestMs = Math.max(this.longestMs, now - this.at)
      this.at = now
      await sleep(10)
    }
  }

  /** Until it is taken again, the longest time from here on. */
  async during(work: () => Promise<void>): Promise<number> {
    this.longestMs = 0
    await work()
    const { taken } = this
    await until("writes are taken", () => this.taken > taken + 5, 60_000)
    return Math.round(this.longestMs)
  }

  end(): void {
    this.isOver = true
  }
}

/** How often an SSP has loaded records. */
const loads = ({ logs }: Process): number => logs.split(/bootstrapped at position|joins at position/).length - 1

describe.each(engines)("an update of three schedulers over %s", (name, isThere, start) => {
  let engine: Awaited<ReturnType<typeof start>> | undefined
  let cluster: StandbyCluster
  let feed: Feed
  let running: Promise<void>

  beforeAll(async () => {
    if (!isThere) return
    engine = await start()
    cluster = await StandbyCluster.start(3, 2, { SVC_LEASE_MS: String(leaseMs) }, { url: engine.url })
    await cluster.settled()
    const view = registration("n", "SELECT n FROM item", { format: "tree" })
    await until(
      "a view is registered",
      async () => (await cluster.scheduler.ask({ method: "POST", path: "/view/register", body: view }))?.status === 200
    )
    feed = new Feed(cluster.one)
    running = feed.run()
  }, 180_000)
  afterAll(async () => {
    feed?.end()
    await running
    await cluster?.close()
    await engine?.close()
  })

  /** All at once none stands by, so writes wait until one has started: three starts share the processors. */
  const updates: { readonly [how: string]: () => Promise<void> } = {
    "one after the other": async () => {
      for (const each of cluster.schedulers) {
        await each.stop()
        await each.start()
        await until("it stands by", () => cluster.standsBy(each), 60_000)
      }
    },
    "all at once": async () => {
      await Promise.all(
        cluster.schedulers.map(async (each) => {
          await each.stop()
          await each.start()
        })
      )
    }
  }

  for (const [how, update] of Object.entries(updates))
    it.skipIf(!isThere)(
      `${how}: writes go on, nothing acknowledged is lost, no SSP loads again`,
      async () => {
        const loaded = cluster.ssps.map(loads)
        for (let round = 1; round <= runs(1); round++) {
          const stood = await feed.during(update)
          await until("all are there", () => cluster.isWhole(), 60_000)
          process.stdout.write(`${name}, ${how}, round ${round}: writes stood ${stood} ms at most\n`)
        }
        await cluster.settled()
        expect(cluster.ssps.map(loads)).toEqual(loaded)
      },
      600_000
    )

  it.skipIf(!isThere)("the last write that was acknowledged is the one that is shown", async () => {
    feed.end()
    await running
    expect(await cluster.query("SELECT VALUE n FROM item")).toEqual([feed.taken])
  })
})
