/**
 * A leader that still writes its log, and is out of reach for SSPs, clients and the other scheduler: one way, the other
 * way, or both. The other scheduler leads, nothing acknowledged is lost, and the first one stands by once it is healed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort, sleep, until } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import { Process } from "../../kit/processes/processCluster.ts"
import { StandbyCluster } from "../../kit/processes/standbyCluster.ts"
import { TcpProxy } from "../../kit/processes/tcpProxy.ts"

/** A scheduler, and the only way to it. */
interface Reached {
  readonly scheduler: Process
  readonly proxy: TcpProxy
  readonly outside: Process
}

const cuts: { readonly [what: string]: (proxy: TcpProxy) => void } = {
  "what it is asked": (proxy) => proxy.lose(false),
  "what it answers": (proxy) => proxy.lose(),
  both: (proxy) => proxy.hold()
}

const engines: ReadonlyArray<readonly [name: string, isThere: boolean, freshLog: () => string]> = [
  ["PostgreSQL", Postgres.isReachable, Postgres.freshLog],
  ["NATS", Nats.isReachable, Nats.freshLog]
]

const noneStarts = (): Promise<never> => Promise.reject(new Error("it is started at its own address"))

describe.each(engines)("a leader cut off from all but its log on %s", (_, isThere, freshLog) => {
  let cluster: StandbyCluster
  let all: ReadonlyArray<Reached> = []
  let n = 0

  const write = (at: Process) =>
    at.ask({ method: "POST", path: "/ingest", body: { table: "item", op: "UPDATE", id: "item:1", record: { n: ++n } } })
  /** As a feed that knows both schedulers. */
  const written = async (): Promise<boolean> => {
    for (const { outside } of all) if ((await write(outside))?.status === 200) return true
    return false
  }

  beforeAll(async () => {
    if (!isThere) return
    const ports = [await freePort(), await freePort()]
    const proxies = await Promise.all(ports.map((port) => TcpProxy.to("127.0.0.1", port)))
    const places = ports.map((port, i) => ({
      port,
      env: { SVC_SCHEDULER_ADVERTISE: `http://127.0.0.1:${proxies[i]!.port}` }
    }))
    const env = { SVC_LEASE_MS: "3000", SVC_LOG_REPLICAS: "1" }
    cluster = await StandbyCluster.start(2, 1, env, { idleSsps: 1, places, url: freshLog() })
    all = cluster.schedulers.map((scheduler, i) => {
      const proxy = proxies[i]!
      return { scheduler, proxy, outside: new Process(scheduler.name, `http://127.0.0.1:${proxy.port}`, noneStarts) }
    })
    cluster.known = all.map(({ outside }) => outside)
    await cluster.ssps[0]!.start()
    await cluster.settled()
  }, 120_000)
  afterAll(async () => {
    await cluster?.close()
    await Promise.all(all.map(({ proxy }) => proxy.close()))
  })

  for (const [what, cut] of Object.entries(cuts))
    it.skipIf(!isThere)(
      `D70 ${what}: it gives up its lead, the other one takes writes, and it stands by again`,
      async () => {
        await until("both are there", () => cluster.isWhole())
        const leader = await cluster.leader()
        const first = all.find(({ scheduler }) => scheduler === leader)!
        const other = all.find(({ scheduler }) => scheduler !== leader)!
        await until("a write is taken", written)
        cut(first.proxy)
        const begun = performance.now()
        await until("the other one takes writes", async () => (await write(other.outside))?.status === 200)
        process.stdout.write(`cut ${what}: writes stood ${Math.round(performance.now() - begun)} ms\n`)
        const last = n
        expect((await leader.door?.exited)?.code).toBe(4)
        expect(leader.logs).toContain("it gives up its lead")
        expect(other.scheduler.logs).toContain("has answered nothing at")
        first.proxy.find()
        if (first.proxy.holds) first.proxy.release()
        await leader.start()
        await until("it stands by", () => cluster.standsBy(leader))
        await cluster.settled()
        expect(await cluster.query("SELECT VALUE n FROM item")).toEqual([last])
      },
      120_000
    )

  it.skipIf(!isThere)(
    "D70 a scheduler that stands by and is cut off changes nothing",
    async () => {
      await until("both are there", () => cluster.isWhole())
      const leader = await cluster.leader()
      const other = all.find(({ scheduler }) => scheduler !== leader)!
      other.proxy.hold()
      await sleep(10_000)
      expect([leader.door?.exit, await cluster.leads(leader)]).toEqual([undefined, true])
      other.proxy.release()
    },
    120_000
  )
})
