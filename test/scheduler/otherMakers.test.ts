/**
 * A scheduler with an SSP of another maker, which knows the specification alone, through a whole life: nothing that it
 * is sent or pulls has a field beyond the specification's, whatever the change, the registration or the record brought
 * along.
 */
import { afterEach, describe, expect, it } from "vitest"
import type { Body } from "../../kit/checks/http.ts"
import { change, create } from "../../kit/data/registration.ts"
import { until } from "../../kit/processes/Door.ts"
import { StrictSsp } from "../../kit/processes/strictSsp.ts"
import { FakeSsp } from "./FakeSsp.ts"
import { Node } from "./node.ts"

const open: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

const start = async (env: { readonly [name: string]: string } = {}): Promise<Node> => {
  const node = await Node.start({ env })
  open.push(() => node.close())
  return node
}

const strict = async (node: Node, id = "strict"): Promise<StrictSsp> => {
  const ssp = await StrictSsp.start(id, node.url)
  open.push(() => ssp.close())
  return ssp
}

const shown = (node: Node, id: string, status: string): Promise<unknown> =>
  until(`${id} is ${status}`, async () =>
    ((await node.get("/info")).json as ReadonlyArray<Body>).some(
      (entry) => entry["id"] === id && entry["status"] === status
    )
  )

const view = (id: string, more: Body = {}) => ({ id, surql: "SELECT * FROM t", clientId: "c", ttl: "1h", ...more })

/** Every record of the replica, as a plain client reads it. */
const replica = async (node: Node): Promise<Body> => {
  const rows: Record<string, unknown> = {}
  const { tables } = (await node.post("/proxy/query", { query: "INFO FOR DB" })).json as { readonly tables: Body }
  for (const table of Object.keys(tables))
    for (const row of (await node.post("/proxy/query", { query: `SELECT * FROM ${table}` }))
      .json as ReadonlyArray<Body>)
      rows[String(row["id"])] = row
  return rows
}

/** Changes with everything that may come along with one. */
const changes = (from: number): ReadonlyArray<Body> => [
  create(`t:${from}`, { n: from }),
  create(`t:${from + 1}`, {}),
  change("UPDATE", `t:${from}`, {
    _svc_rv: from + 40,
    n: from + 1,
    text: 'ends in "_svc_rv":9}',
    last: { _svc_rv: 1 }
  }),
  change("UPDATE", `t:${from + 1}`, { a: 1, _svc_rv: from + 50, b: ["_svc_rv", { '_svc_rv":': [1, "}"] }] }),
  { ...create(`t:${from + 2}`, { at: "2020-01-01T00:00:00Z", n: 1 }), types: { at: "datetime", _svc_rv: "int" } },
  { ...create(`t:${from + 3}`), traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
  create(`mail_job:${from}`, { status: "pending", path: "/mail", payload: {} }),
  change("DELETE", `t:${from + 3}`)
]

describe("an SSP that knows the specification alone", () => {
  it("lives a whole life: it pulls, replays, follows, holds views, and bootstraps again", async () => {
    const node = await start({ SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "100" })
    await node.post("/ingest", changes(1))
    const ssp = await strict(node)
    await ssp.bootstrap()
    await node.post("/ingest", changes(11))
    await shown(node, "strict", "ready")
    expect((await ssp.heartbeat()).status).toBe(200)
    for (const one of changes(21)) await node.post("/ingest", one)
    const whole = await replica(node)
    expect(Object.keys(whole)).toHaveLength(12)
    expect(JSON.stringify(whole["t:21"])).not.toContain('"_svc_rv":61')
    await until("it has everything", () => ssp.records.size === 12)
    expect(Object.fromEntries(ssp.records)).toEqual(whole)

    for (const [id, more] of [
      ["incantation:one", { params: { x: 1 }, lastActiveAt: new Date().toISOString(), format: "tree" }],
      ["_svc_query:two", { params: null, format: null, assignment: 7, more: 1 }],
      ["three", {}]
    ] as const)
      expect((await node.post("/view/register", view(id, more))).status).toBe(200)
    expect((await node.post("/query/register", { query_id: "four", view_plan: "SELECT * FROM t" })).status).toBe(200)
    expect([...ssp.views.keys()].sort()).toEqual(["four", "one", "three", "two"].map((key) => `incantation:${key}`))
    for (const id of ["one", "two", "three"]) await node.post("/view/unregister", { id })
    await until("three views are gone", () => ssp.views.size === 1)

    await ssp.bootstrap()
    await shown(node, "strict", "ready")
    await until("its view is back", () => ssp.views.has("incantation:four"))
    expect(Object.fromEntries(ssp.records)).toEqual(whole)
    expect(ssp.refused).toEqual([])
  })
  it("gets and loses views beside an SSP that has extensions", async () => {
    const node = await start()
    const ours = await FakeSsp.start("ours")
    open.push(() => ours.close())
    await ours.join(node)
    for (let n = 0; n < 6; n++) await node.post("/view/register", view(`incantation:${n}`))
    const ssp = await strict(node)
    await ssp.bootstrap()
    await until("views have moved to it", () => ssp.views.size === 3)
    await node.post("/ingest", changes(1))
    await node.post("/ssp/deregister", { ssp_id: "ours" })
    await until("it has all", () => ssp.views.size === 6)
    expect(ssp.refused).toEqual([])
    const sent = ours.calls("/ingest").flatMap(({ json }) => json as ReadonlyArray<Body>)
    expect(sent.every((each) => "seq" in each && "log_id" in each && "epoch" in each)).toBe(true)
  })
  it("D82 each pending job runs on one of several that each run what they are told is pending", async () => {
    const node = await start()
    const job = (n: number, status = "pending") => create(`job:${n}`, { status, path: "/mail", payload: { n: 1.5 } })
    const told = { job_id: "job:0", table: "job", payload: { path: "/mail", body: {} } }
    expect((await node.post("/job/dispatch", told)).status).toBe(503)
    await node.post("/ingest", job(1))
    const [a, b] = [await strict(node, "a"), await strict(node, "b")]
    for (const [name, ssp] of [
      ["a", a],
      ["b", b]
    ] as const) {
      await ssp.bootstrap()
      await shown(node, name, "ready")
    }
    await until("what had waited is handed over", () => a.jobs.length === 1)
    await node.post("/ingest", [job(2), job(3)])
    await node.post("/ingest", job(4))
    await node.post("/ingest", job(5, "success"))
    await until("all is told", () => a.records.size === 5 && b.records.size === 5)
    const jobs = [...a.jobs, ...b.jobs]
    expect(jobs.sort()).toEqual(["job:1", "job:2", "job:3", "job:4"])
    expect([a.jobs.length, b.jobs.length]).toEqual([2, 2])
    for (const { jobs: its, records } of [a, b])
      for (const n of [2, 3, 4]) {
        const status = its.includes(`job:${n}`) ? "pending" : "processing"
        expect(records.get(`job:${n}`)).toEqual({ id: `job:${n}`, status, path: "/mail", payload: { n: 1.5 } })
      }
    const [left, done] = a.jobs as [string, string]
    await node.post("/job/result", { job_id: done, status: "completed" })
    await node.post("/ssp/deregister", { ssp_id: "a" })
    await until("b runs what a has not", () => b.jobs.length === 3)
    expect(b.jobs).toContain(left)
    expect(b.jobs).not.toContain(done)
    expect([...a.refused, ...b.refused]).toEqual([])
  })
})
