/**
 * Two schedulers over one log on three NATS servers, as processes: a leader that is killed, a server that is, two of
 * them, and the disks of both schedulers. The log is cut all the while, and snapshots are kept beside it.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { until } from "../../kit/processes/Door.ts"
import * as Nats from "../../kit/processes/nats.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import { StandbyCluster } from "../../kit/processes/standbyCluster.ts"

const missing = Nats.hasServer ? "" : " (skipped: no nats-server in the path)"

const env = {
  SVC_LEASE_MS: "3000",
  SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "1",
  SVC_SNAPSHOT_URL: "log:",
  SVC_SNAPSHOT_INTERVAL_SECS: "1"
}

let servers: Nats.Servers
let cluster: StandbyCluster
let n = 0

const write = (at: Pick<Process, "ask">, ms = 5_000) =>
  at.ask(
    { method: "POST", path: "/ingest", body: { table: "item", op: "UPDATE", id: "item:1", record: { n: ++n } } },
    ms
  )

/** A write that any scheduler takes, at last. */
const written = (): Promise<boolean> =>
  until("a write is taken", async () => (await write(cluster.scheduler))?.status === 200, 60_000)

const record = () => cluster.query("SELECT VALUE n FROM item")

describe.skipIf(!Nats.hasServer)(`schedulers over one log on three NATS servers${missing}`, () => {
  beforeAll(async () => {
    servers = await Nats.Servers.start(3)
    const url = Nats.freshLog(servers.url)
    cluster = await StandbyCluster.start(2, 0, env, { url, isSupervised: true })
  }, 120_000)
  afterAll(async () => {
    await cluster?.close()
    await servers?.close()
  })

  it("D62 says that a write is on most of the servers, and not that it is flushed", async () => {
    await written()
    const leader = await cluster.leader()
    expect(await cluster.told(leader)).toMatchObject({ log: { role: "leader", durability: "replicated" } })
    const text = (await leader.ask({ path: "/metrics?format=prometheus" }))?.text ?? ""
    expect(text).toContain('svc_scheduler_log_durability{durability="replicated"} 1')
  })

  it("D62 kill -9 of the leader: the other one takes writes, with everything that was acknowledged", async () => {
    await written()
    const last = n
    const leader = await cluster.leader()
    await leader.kill()
    await until("the other leads", async () => (await cluster.leader()) !== leader, 60_000)
    expect(await record()).toEqual([last])
    await written()
    await leader.start()
    await until("one stands by", () => cluster.isWhole(), 60_000)
  }, 120_000)

  it("D62 one of three NATS servers is killed: writes go on, and nothing acknowledged is lost", async () => {
    await written()
    const last = n
    await servers.kill(0)
    await until(
      "it is read",
      async () => ((await record().catch(() => [])) as ReadonlyArray<unknown>).length > 0,
      60_000
    )
    expect((await record())[0]).toBeGreaterThanOrEqual(last)
    await written()
    await servers.run(0)
  }, 120_000)

  it("D62 two of three are killed: nothing is acknowledged, until one is back", async () => {
    await until("one leads", () => cluster.isWhole(), 60_000)
    await written()
    const [last] = [n]
    await Promise.all([servers.kill(0), servers.kill(1)])
    for (let i = 0; i < 4; i++) {
      const answer = await write(cluster.scheduler, 3_000)
      expect([undefined, 503], JSON.stringify(answer)).toContain(answer?.status)
    }
    await servers.run(1)
    await written()
    expect((await record())[0]).toBeGreaterThan(last)
    await servers.run(0)
  }, 180_000)

  it("D64 the disks of both schedulers are deleted, the log is cut: a snapshot beside the log has what is missing", async () => {
    await until("one leads", () => cluster.isWhole(), 60_000)
    const items = Array.from({ length: 50 }, (_, i) => `other:${i}`)
    const body = items.map((id) => ({ table: "other", op: "UPDATE", id, record: { id } }))
    await until(
      "they are taken",
      async () => (await cluster.scheduler.ask({ method: "POST", path: "/ingest", body }, 5_000))?.status === 200
    )
    const log = Nats.nameOf(cluster.url)
    const infoOf = (stream: string) =>
      Nats.asking((ask) => ask(`STREAM.INFO.${stream}`), servers.url).catch(() => ({})) as Promise<{
        readonly config?: { readonly num_replicas: number }
        readonly state?: { readonly last_seq: number; readonly first_seq: number }
      }>
    const end = (await infoOf(`svc-log-${log}`)).state!.last_seq
    await until(
      "the log is cut behind them",
      async () => {
        await write(cluster.scheduler)
        return ((await infoOf(`svc-log-${log}`)).state?.first_seq ?? 0) > end
      },
      60_000
    )
    await written()
    const last = n
    for (const each of cluster.schedulers) await cluster.lose(each)
    expect((await infoOf(`OBJ_svc-snapshots-${log}`)).config?.num_replicas).toBe(3)
    for (const each of cluster.schedulers) await each.start()
    await until("both are back", () => cluster.isWhole(), 60_000).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${cluster.logs}`)
    })
    expect(await record()).toEqual([last])
    expect((await cluster.query("SELECT VALUE id FROM other")).map(String).sort()).toEqual(items.sort())
    expect(cluster.schedulers.map(({ door }) => door?.logs.includes("restored the replica from OBJ_svc-"))).toEqual([
      true,
      true
    ])
    await written()
  }, 180_000)
})
