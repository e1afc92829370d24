/**
 * `GET /metrics` as text and `GET /progress` of a real scheduler (D34): what it says is what happened, and every
 * declared metric is there.
 *
 * Why over a folder: the log's size and the free space of its disk are only there. SSPs are fakes, so that one falls
 * behind on demand.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { parse, type ReadFamily } from "../../kit/checks/exposition.ts"
import { bodyOf } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { metrics } from "../../src/core/telemetry/metrics.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { inFolder, Node } from "../scheduler/node.ts"

const folder = temporaryFolder()
let node: Node
let a: FakeSsp
let b: FakeSsp
beforeAll(async () => {
  node = await Node.start({
    stores: inFolder(folder),
    env: { SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "5", SVC_SCHEDULER_DELIVERY_WAIT_MS: "200" }
  })
  a = await (await FakeSsp.start("a")).join(node)
  b = await (await FakeSsp.start("b")).join(node)
})
afterAll(async () => {
  await node.close()
  await Promise.all([a.close(), b.close()])
  removeFolder(folder)
})

type Families = ReadonlyMap<string, ReadFamily>
const read = async (): Promise<Families> => parse((await node.get("/metrics?format=prometheus")).text)
const valueOf = (families: Families, name: string, label?: string): number | undefined =>
  [...families.values()]
    .flatMap(({ samples }) => samples)
    .find((sample) => sample.name === name && (label === undefined || Object.values(sample.labels).includes(label)))
    ?.value

describe("GET /metrics", () => {
  it("GET /metrics 200 D34 has every metric declared for a scheduler, each as declared, by Accept or by ?format=", async () => {
    for (const answer of [
      await node.get("/metrics?format=prometheus"),
      await send(node, { ask: "GET /metrics", headers: { accept: "text/plain" } })
    ]) {
      expect(answer.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8")
      const families = parse(answer.text)
      // No runtime tells this node about its process, no database stands beside it, and its log is its own.
      const own = metrics.filter(
        ({ help, name, on }) =>
          on !== "ssp" &&
          !help.startsWith("With SVC_LOG_URL") &&
          !/^process_|^svc_(?:heap|memory|event_loop|reconcile_age|change_table_)/.test(name)
      )
      expect([...families.keys()]).toEqual(own.map(({ name }) => name))
      for (const { help, name, type } of own)
        expect([families.get(name)?.type, families.get(name)?.help]).toEqual([type, help])
    }
  })
  it("GET /metrics 200 D34 counts changes, deliveries and what was refused, and shows log and replica", async () => {
    const before = await read()
    await node.post("/ingest", [create("t:1"), create("t:2")])
    await node.post("/ingest", create("t:3"))
    await node.post("/ingest", "{")
    await node.post("/view/register", registration("v", "SELECT * FROM t"))
    await a.beat(node, { views: 7, cpu_usage: 12.5, memory_usage: 2 })
    const after = await read()
    const grown = (name: string, label?: string): number =>
      (valueOf(after, name, label) ?? NaN) - (valueOf(before, name, label) ?? NaN)
    expect([
      grown("svc_ingest_changes_total"),
      grown("svc_ingest_duration_seconds_count"),
      grown("svc_ingest_refused_total", "4xx"),
      grown("svc_scheduler_log_seq"),
      grown("svc_scheduler_replica_seq")
    ]).toEqual([3, 2, 1, 3, 3])
    expect([
      grown("svc_scheduler_wal_append_duration_seconds_count"),
      grown("svc_scheduler_replica_commit_duration_seconds_count"),
      grown("svc_scheduler_delivery_duration_seconds_count", "applied")
    ]).toEqual([2, 2, 4])
    expect(grown("svc_scheduler_wal_bytes")).toBeGreaterThan(100)
    expect(valueOf(after, "svc_scheduler_wal_disk_free_bytes")).toBeGreaterThan(1e6)
    expect(
      [
        "svc_scheduler_views",
        "svc_scheduler_views_waiting",
        "svc_scheduler_jobs",
        "svc_scheduler_ssp_registrations_total",
        "svc_scheduler_ssp_overflows_total"
      ].map((name) => valueOf(after, name))
    ).toEqual([1, 0, 0, 2, 0])
    expect(
      [
        "svc_scheduler_ssp_views",
        "svc_scheduler_ssp_views_reported",
        "svc_scheduler_ssp_cpu_ratio",
        "svc_scheduler_ssp_memory_bytes",
        "svc_scheduler_ssp_lag_events"
      ].map((name) => valueOf(after, name, "a"))
    ).toEqual([1, 7, 0.125, 2_097_152, 0])
    expect([
      valueOf(after, "svc_scheduler_ssps", "ready"),
      valueOf(after, "svc_scheduler_status", "ready"),
      valueOf(after, "svc_scheduler_status", "cloning"),
      valueOf(after, "svc_task_duration_seconds_count", "replay")
    ]).toEqual([2, 1, 0, 0])
  })
  it("GET /metrics 200 D34 an SSP that falls behind: its lag, then its overflow, then its new registration; an SSP that left is not listed", async () => {
    b.behaviour = ({ path }) => (path === "/ingest" ? { status: 503 } : undefined)
    await node.post("/ingest", [create("u:1"), create("u:2")])
    expect(valueOf(await read(), "svc_scheduler_ssp_lag_events", "b")).toBe(2)
    await node.post(
      "/ingest",
      Array.from({ length: 5 }, (_, n) => create(`u:${n + 3}`))
    )
    await until("it overflows", async () => valueOf(await read(), "svc_scheduler_ssps", "overflowed") === 1)
    const families = await read()
    expect([
      valueOf(families, "svc_scheduler_ssp_overflows_total"),
      valueOf(families, "svc_scheduler_ssps", "ready")
    ]).toEqual([1, 1])
    expect(valueOf(families, "svc_scheduler_delivery_duration_seconds_count", "retry")).toBeGreaterThan(0)
    await b.register(node)
    expect(valueOf(await read(), "svc_scheduler_ssp_registrations_total")).toBe(3)
    await node.post("/ssp/deregister", { ssp_id: "b" })
    expect(valueOf(await read(), "svc_scheduler_ssp_lag_events", "b")).toBeUndefined()
  })
})

describe("GET /progress", () => {
  it("GET /progress 200 D34 a replay shows how far it is, and is over when the SSP is ready", async () => {
    const replays = async () => bodyOf(await node.get("/progress"))["tasks"] as ReadonlyArray<unknown>
    expect(await replays()).toEqual([])
    const c = await (await FakeSsp.start("c")).join(node)
    c.health = "bootstrapping"
    await c.register(node)
    await node.post("/ingest", [create("w:1"), create("w:2"), create("w:3")])
    c.behaviour = ({ path }) => (path === "/ingest" ? { status: 503 } : undefined)
    c.health = "ready"
    await until("it is replayed to", async () => (await replays()).length === 1)
    expect(await replays()).toEqual([
      {
        kind: "replay",
        of: "c",
        at: null,
        unit: "events",
        done: 0,
        total: 3,
        elapsed_seconds: expect.any(Number),
        per_second: 0,
        remaining_seconds: null
      }
    ])
    expect(valueOf(await read(), "svc_tasks_running", "replay")).toBe(1)
    c.behaviour = () => undefined
    await until("it is over", async () => (await replays()).length === 0)
    expect(c.last).toBeGreaterThan(0)
    await c.close()
  })
})
