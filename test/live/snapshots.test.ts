/**
 * Schedulers that have lost their disk, or never had one, over a log that does not reach back to its beginning: they
 * get a snapshot by themselves, from another scheduler or from a folder, and nothing that was acknowledged is lost.
 */
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { long } from "../../kit/data/random.ts"
import { freePort, secret, sleep, until } from "../../kit/processes/Door.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import { makeRoom, missing as noSmallDisk, seenBy, withRoom } from "../../kit/processes/smallDisk.ts"
import { type Place, StandbyCluster } from "../../kit/processes/standbyCluster.ts"
import { TcpProxy } from "../../kit/processes/tcpProxy.ts"

const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"

/** Cuts the log as soon as it may. */
const cutting = { SVC_LEASE_MS: "2000", SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "1", SVC_LOG_COPIES: "1" }
/** A busy machine may cost a leader its lease. */
const supervised = { isSupervised: true } as const

let cluster: StandbyCluster | undefined
let proxy: TcpProxy | undefined
afterEach(async () => {
  await cluster?.close()
  await proxy?.close()
  cluster = undefined
  proxy = undefined
})

/** Records by key, as they were acknowledged. */
const known = new Map<string, number>()

const write = async (of: StandbyCluster, count: number): Promise<void> => {
  const batch = Array.from({ length: count }, (_, i) => ({ key: `item:${known.size + i}`, n: known.size + i }))
  await until("a batch is taken", async () => {
    const body = batch.map(({ key, n }) => ({ table: "item", op: "UPDATE", id: key, record: { n } }))
    return (await of.scheduler.ask({ method: "POST", path: "/ingest", body }, 20_000))?.status === 200
  })
  for (const { key, n } of batch) known.set(key, n)
}

/** All that was acknowledged is there, by the word of whichever scheduler leads. */
const check = async (of: StandbyCluster): Promise<void> => {
  const rows = await of.query("SELECT id, n FROM item")
  const found = new Map(rows.map(({ id, n }) => [String(id), Number(n)]))
  expect(found.size).toBe(known.size)
  for (const [key, n] of known) expect(found.get(key), key).toBe(n)
}

const keptAfter = async ({ url }: StandbyCluster): Promise<number> =>
  Number(
    (await Postgres.ask("SELECT kept_after FROM svc_log_head WHERE log = $1", [Postgres.nameOf(url)]))[0]?.kept_after
  )

/** Writes until the log has been cut through there. */
const cut = (of: StandbyCluster, through: number): Promise<true> =>
  until("the log is cut", async () => {
    await write(of, 10)
    return (await keptAfter(of)) >= through
  })

const files = (folder: string): ReadonlyArray<string> => (existsSync(folder) ? readdirSync(folder).sort() : [])

const isWhole = (of: StandbyCluster, scheduler: Process): Promise<unknown> =>
  until("it stands by with all of the log", async () => {
    const told = await of.told(scheduler)
    return told?.state === "standby" && told.log.leader !== null && told.seq >= known.size
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${of.logs}`)
  })

/** A leader that the other scheduler reaches through the proxy alone, and that one, which the test starts. */
const withProxyBetween = async (place: Place = {}) => {
  const port = await freePort()
  const between = await TcpProxy.to("127.0.0.1", port)
  proxy = between
  const places = [{ port, env: { SVC_SCHEDULER_ADVERTISE: `http://127.0.0.1:${between.port}` } }, place]
  const of = await StandbyCluster.start(2, 0, cutting, { ...supervised, idle: 1, places })
  cluster = of
  const [first, second] = of.schedulers as [Process, Process]
  return { between, first, of, second }
}

describe.skipIf(!Postgres.isReachable)(`replicas that are behind the log${missing}`, () => {
  it("D64 a scheduler without a disk gets its replica from another one, and is whole when that one is gone", async () => {
    known.clear()
    cluster = await StandbyCluster.start(
      2,
      0,
      { ...cutting, SVC_SCHEDULER_AUTH_SECRET: secret },
      { ...supervised, idle: 1 }
    )
    const [first, second] = cluster.schedulers as [Process, Process]
    await write(cluster, 200)
    await cut(cluster, 150)
    await second.start()
    await isWhole(cluster, second)
    expect(second.logs).toContain("restored the replica from scheduler-1")
    expect(files(cluster.replicaOf(second))).not.toContain("replica.db.part")
    await write(cluster, 5)
    await isWhole(cluster, second)
    await first.kill()
    await until("it leads", () => cluster!.leads(second))
    await check(cluster)
    // And the other way round, from one that follows.
    await cluster.lose(first)
    // As if it had been away for longer than the log is kept for one.
    await Postgres.ask("DELETE FROM svc_log_member WHERE log = $1 AND name = $2", [
      Postgres.nameOf(cluster.url),
      first.name
    ])
    await cut(cluster, known.size)
    await first.start()
    await isWhole(cluster, first)
    expect(first.logs).toContain("restored the replica from scheduler-2")
  })

  it.runIf(long)("D64 every scheduler's disk is deleted: with snapshots in a folder nothing is lost", async () => {
    known.clear()
    const folder = join(StandbyCluster.newShared(), "snapshots")
    const env = { ...cutting, SVC_SNAPSHOT_URL: `file://${folder}`, SVC_SNAPSHOT_INTERVAL_SECS: "1" }
    cluster = await StandbyCluster.start(2, 0, env, supervised)
    await write(cluster, 200)
    await cut(cluster, 150)
    const kept = await keptAfter(cluster)
    expect(files(folder).some((name) => Number(/-(\d{16})-/.exec(name)?.[1]) >= kept)).toBe(true)
    await write(cluster, 50)
    for (const each of cluster.schedulers) await cluster.lose(each)
    expect(cluster.schedulers.map((each) => files(cluster!.replicaOf(each)))).toEqual([[], []])
    for (const each of cluster.schedulers) await each.start()
    await cluster.leader()
    await check(cluster)
    expect(cluster.schedulers.map(({ logs }) => /restored the replica from .*snapshots\/svc-/.test(logs))).toEqual([
      true,
      true
    ])
    await write(cluster, 5)
    await check(cluster)
    await until("nothing is on its way", () => files(folder).every((name) => !name.endsWith(".part")))
  })

  it("D64 every scheduler's disk is deleted: with a log that was never cut nothing is lost", async () => {
    known.clear()
    cluster = await StandbyCluster.start(2, 0, { SVC_LEASE_MS: "2000" }, supervised)
    await write(cluster, 200)
    for (const each of cluster.schedulers) await cluster.lose(each)
    for (const each of cluster.schedulers) await each.start()
    await cluster.leader()
    await check(cluster)
  })

  it("D64 without a snapshot anywhere it leads nothing, and ends with 3 naming both positions", async () => {
    known.clear()
    cluster = await StandbyCluster.start(1, 0, { ...cutting, SVC_LEASE_MS: "1000" }, supervised)
    const [only] = cluster.schedulers as [Process]
    await write(cluster, 20)
    await cut(cluster, 15)
    await cluster.lose(only)
    await only.start()
    expect((await only.door?.exited)?.code).toBe(3)
    expect(only.logs).toMatch(/stands at seq 0, but the log at postgres:.* begins at \d+.*no snapshot is offered/)
    // A life before this one may have led twice, where the lease ran out on a busy machine.
    expect(only.door?.logs).not.toContain("this scheduler leads")
  })

  it.runIf(long)(
    "D64 killed in the middle of a restore, it begins anew at its next start, and nothing is left of the first",
    async () => {
      known.clear()
      const { between, first, of, second } = await withProxyBetween()
      await write(of, 200)
      await cut(of, 150)
      between.holdAfter(20_000, true)
      await second.start()
      const part = join(of.replicaOf(second), "replica.db.part")
      await until("half of the snapshot is there", () => between.holds && existsSync(part) && statSync(part).size > 0)
      await second.kill()
      expect(files(of.replicaOf(second))).toContain("replica.db.part")
      // Nothing comes through yet, so what is gone by then was swept at the start, and not replaced by another restore.
      await second.start()
      await until("it stands by", () => of.standsBy(second))
      expect(files(of.replicaOf(second))).not.toContain("replica.db.part")
      between.release()
      await isWhole(of, second)
      expect(files(of.replicaOf(second))).not.toContain("replica.db.part")
      expect(second.logs.split("restored the replica from scheduler-1").length).toBe(2)
      await first.kill()
      await until("it leads", () => of.leads(second))
      await check(of)
    }
  )

  const skipped = noSmallDisk === undefined ? "" : ` (skipped: ${noSmallDisk})`

  it.skipIf(!long || noSmallDisk !== undefined)(
    `D64 no room for a snapshot: it says so, goes on trying, and gets one once there is room${skipped}`,
    async () => {
      known.clear()
      const small = { within: withRoom("SVC_SCHEDULER_REPLICA_DB_PATH", 1024) }
      const leaseMs = 1000
      cluster = await StandbyCluster.start(
        2,
        0,
        { ...cutting, SVC_LEASE_MS: String(leaseMs) },
        { ...supervised, idle: 1, places: [undefined, small] }
      )
      const [first, second] = cluster.schedulers as [Process, Process]
      const text = "x".repeat(10_000)
      const body = Array.from({ length: 150 }, (_, i) => ({
        table: "big",
        op: "UPDATE",
        id: `big:${i}`,
        record: { text }
      }))
      expect((await first.ask({ method: "POST", path: "/ingest", body }, 20_000))?.status).toBe(200)
      await write(cluster, 20)
      await cut(cluster, 150)
      await second.start()
      const folder = cluster.replicaOf(second)
      await until("it says what has no room where", () =>
        second.logs.includes(`scheduler-1 at ${first.url}: ${join(folder, "replica.db.part")}: ENOSPC`)
      )
      expect(second.logs).toContain(`Make room in ${folder} (SVC_SCHEDULER_REPLICA_DB_PATH)`)
      // Longer than one waits for whom no snapshot is offered.
      await sleep(12 * leaseMs)
      expect(second.door?.exit).toBeUndefined()
      expect(await cluster.told(second)).toMatchObject({ state: "standby", seq: 0 })
      makeRoom(second.door!.pid, folder, 65_536)
      await isWhole(cluster, second)
      expect(files(seenBy(second.door!.pid, folder))).not.toContain("replica.db.part")
      await first.kill()
      await until("it leads", () => cluster!.leads(second))
      await check(cluster)
      expect(await cluster.query("SELECT VALUE id FROM big")).toHaveLength(150)
    },
    90_000
  )
})
