/**
 * Delivery to SSPs that are fast, slow, dead, forgetful or new: everything once and in order, and nobody waits for
 * anybody (D5, D26, D27).
 *
 * Over real sockets with fake SSPs; what the fakes hold at the end is compared with what was ingested.
 */
import { describe, expect, it } from "vitest"
import { type Answer, bodyOf } from "../../kit/checks/http.ts"
import { create } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { until } from "../../kit/processes/Door.ts"
import { FakeSsp, range } from "./FakeSsp.ts"
import { Node } from "./node.ts"

const afterwards = closing()
const start = async (env: { readonly [name: string]: string } = {}, callTimeoutMs?: number): Promise<Node> => {
  const node = await Node.start({ env, callTimeoutMs })
  afterwards(node.close)
  return node
}
const fake = async (id: string, options: { readonly batch?: boolean } = {}): Promise<FakeSsp> => {
  const ssp = await FakeSsp.start(id, options)
  afterwards(() => ssp.close())
  return ssp
}
const ingest = (node: Node, key: number | string): Promise<Answer> =>
  node.post("/ingest", create(`t:${key}`, { n: key }))
const seqOf = (answer: Answer): number => Number(bodyOf(answer)["seq"])
const caughtUp = (ssp: FakeSsp, seq: number): Promise<unknown> => until(`${ssp.id} has ${seq}`, () => ssp.last === seq)

describe("live delivery", () => {
  it("D26 every ready SSP gets every event once and in order, one request at a time, and the answer counts them", async () => {
    // Long enough for a machine that is busy with other things: the figures of the answers are about order, not about
    // time.
    const node = await start({ SVC_SCHEDULER_DELIVERY_WAIT_MS: "30000" })
    const [a, b] = [await (await fake("a")).join(node), await (await fake("b")).join(node)]
    const answers = await Promise.all(range(1, 200).map((n) => ingest(node, n)))
    expect(new Set(answers.map(seqOf))).toEqual(new Set(range(1, 200)))
    expect(answers.map((answer) => bodyOf(answer)["delivered"])).toEqual(answers.map(() => 2))
    expect([a.applied, b.applied]).toEqual([range(1, 200), range(1, 200)])
    expect([a.mostAtOnce, b.mostAtOnce]).toEqual([1, 1])
  })
  it("D5 an event carries seq, log_id, epoch and its version; arrays only go to SSPs that take them", async () => {
    const node = await start()
    const [arrays, single] = [
      await (await fake("arrays")).join(node),
      await (await fake("single", { batch: false })).join(node)
    ]
    await node.post("/ingest", [create("t:1", { n: 1 }), create("t:1", { n: 2 }), create("t:2")])
    const { epoch, logId } = node.pool.identity
    const event = (seq: number, id: string, record: object) => ({
      table: "t",
      op: "CREATE",
      id,
      record,
      seq,
      log_id: logId,
      epoch
    })
    const events = [
      event(1, "t:1", { n: 1, _svc_rv: 1 }),
      event(2, "t:1", { n: 2, _svc_rv: 2 }),
      event(3, "t:2", { _svc_rv: 1 })
    ]
    expect(arrays.calls("/ingest").map((told) => told.json)).toEqual([events])
    expect(single.calls("/ingest").map((told) => told.json)).toEqual(events)
  })
  it("D26 one SSP that hangs delays neither the others nor, once its time is over, the answers", async () => {
    const node = await start({ SVC_SCHEDULER_DELIVERY_WAIT_MS: "1000" }, 300)
    const [good, stuck] = [await (await fake("good")).join(node), await (await fake("stuck")).join(node)]
    stuck.behaviour = ({ path }) => (path === "/ingest" ? "never" : undefined)
    const answers = []
    for (const n of range(1, 20)) answers.push(bodyOf(await ingest(node, n))["delivered"])
    expect(answers).toEqual(range(1, 20).map(() => 1))
    expect(good.applied).toEqual(range(1, 20))
    stuck.behaviour = () => undefined
    stuck.release()
    await caughtUp(stuck, 20)
    expect(stuck.applied).toEqual(range(1, 20))
    expect(bodyOf(await ingest(node, 21))["delivered"]).toBe(2)
  })
  it("D26 503, 500 and time-outs are tried again in order; 409 is replayed from the position that is expected", async () => {
    const node = await start({ SVC_SCHEDULER_DELIVERY_WAIT_MS: "0" }, 300)
    const ssp = await (await fake("a")).join(node)
    const plan = [
      { status: 503 },
      { status: 500 },
      "never" as const,
      { status: 408 },
      { status: 302, headers: { location: "http://127.0.0.1:1/" } }
    ]
    ssp.behaviour = ({ path }) => (path === "/ingest" ? plan.shift() : undefined)
    for (const n of range(1, 5)) await ingest(node, n)
    await caughtUp(ssp, 5)
    expect(plan).toEqual([])
    ssp.applied.splice(2)
    await ingest(node, 6)
    await caughtUp(ssp, 6)
    expect(ssp.applied).toEqual(range(1, 6))
  })
  for (const status of [400, 413, 404]) {
    it(`D26 an SSP that answers ${status} to an event must bootstrap again: its next heartbeat gets 409`, async () => {
      const node = await start({ SVC_SCHEDULER_DELIVERY_WAIT_MS: "0" })
      const ssp = await (await fake("a")).join(node)
      ssp.behaviour = ({ path }) => (path === "/ingest" ? { status } : undefined)
      await ingest(node, 1)
      await ssp.shown(node, "bootstrapping")
      expect(await ssp.beat(node)).toMatchObject({ status: 409, json: { code: "BUFFER_OVERFLOW" } })
      ssp.behaviour = () => undefined
      await ssp.join(node)
      expect((await ssp.beat(node)).status).toBe(200)
    })
  }
  it("D15 a redirect is not followed: the secret does not go where the SSP points", async () => {
    const node = await start({ SVC_SCHEDULER_DELIVERY_WAIT_MS: "0" })
    const [ssp, thief] = [await (await fake("a")).join(node), await fake("thief")]
    const plan = [307, 308, 302]
    ssp.behaviour = ({ path }) => {
      const status = path === "/ingest" ? plan.shift() : undefined
      return status === undefined ? undefined : { status, headers: { location: `${thief.url}/ingest` } }
    }
    await ingest(node, 1)
    await caughtUp(ssp, 1)
    expect([plan, thief.told]).toEqual([[], []])
  })
  it("D15 POSTs carry the bearer, health polls do not, and a 401 names the setting in the log", async () => {
    const node = await start({ SVC_SCHEDULER_DELIVERY_WAIT_MS: "0" })
    const ssp = await (await fake("a")).join(node)
    ssp.behaviour = ({ path }) => (path === "/ingest" ? { status: 401 } : undefined)
    await ingest(node, 1)
    await until("the 401 is logged", () =>
      node.logs.some((line) => line.includes("401") && line.includes("SVC_AUTH_SECRET"))
    )
    expect(new Set(ssp.calls("/health").map((told) => told.authorization))).toEqual(new Set([undefined]))
    expect(new Set(ssp.calls("/ingest").map((told) => told.authorization))).toEqual(
      new Set(["Bearer s3cret-for-tests"])
    )
    expect(new Set(ssp.calls("/ingest").map((told) => told.registration))).toEqual(new Set([String(ssp.registration)]))
  })
})

describe("bootstrap and replay", () => {
  it("D27 an SSP gets what came while it pulled, from its snapshot_seq on, and what comes meanwhile, without a seam", async () => {
    const node = await start()
    for (const n of range(1, 10)) await ingest(node, n)
    const ssp = await fake("a")
    await ssp.register(node)
    expect(ssp.snapshotSeq).toBe(10)
    for (const n of range(11, 30)) await ingest(node, n)
    expect((await node.post("/proxy/query", { query: "RETURN count(SELECT * FROM t)" })).json).toBe(10)
    const load = (async () => {
      for (const n of range(31, 60)) await ingest(node, n)
    })()
    ssp.health = "ready"
    await ssp.shown(node, "ready")
    await load
    await caughtUp(ssp, 60)
    expect(ssp.applied).toEqual(range(11, 60))
    expect((await node.post("/proxy/query", { query: "RETURN count(SELECT * FROM t)" })).json).toBe(60)
  })
  it("D27 SSPs that register while the snapshot is frozen share it, and it thaws when the last one is done", async () => {
    const node = await start()
    await ingest(node, 1)
    const [a, b] = [await fake("a"), await fake("b")]
    await a.register(node)
    await ingest(node, 2)
    await b.register(node)
    expect([a.snapshotSeq, b.snapshotSeq]).toEqual([1, 1])
    expect(node.pool.state().phase).toBe("Frozen")
    a.health = "ready"
    await a.shown(node, "ready")
    expect(node.pool.state().phase).toBe("Frozen")
    b.health = "ready"
    await b.shown(node, "ready")
    expect(node.pool.state().phase).toBe("Ready")
  })
  it("D26 more events than max_buffer_per_ssp: 409 to every heartbeat until it registers, then everything after the new snapshot", async () => {
    const node = await start({ SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "5" })
    const ssp = await fake("a")
    await ssp.register(node)
    for (const n of range(1, 6)) await ingest(node, n)
    for (const _ of [1, 2])
      expect(await ssp.beat(node)).toMatchObject({ status: 409, json: { code: "BUFFER_OVERFLOW" } })
    await ssp.join(node)
    expect(ssp.snapshotSeq).toBe(6)
    await ingest(node, 7)
    await caughtUp(ssp, 7)
    expect(ssp.applied).toEqual([7])
  })
  it("D18 an SSP that reports failed is removed and registers again; 404 to its heartbeats until then", async () => {
    const node = await start()
    const ssp = await fake("a")
    ssp.health = "failed"
    await ssp.register(node)
    await ssp.shown(node, undefined)
    expect(await ssp.beat(node)).toMatchObject({ status: 404, json: { code: "SSP_NOT_REGISTERED" } })
    await ssp.join(node)
  })
  it("D27 a dead SSP does not hold the snapshot: no heartbeat for the time-out, and it is gone", async () => {
    const node = await start({ SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "150" }, 300)
    const ssp = await fake("a")
    ssp.behaviour = () => "never"
    await ssp.register(node)
    await ssp.shown(node, undefined)
    expect(node.pool.state().phase).toBe("Ready")
    expect(node.pool.state().freeze).toBeUndefined()
  })
})
