/**
 * Views and who holds them, over real sockets: moved when their SSP dies, brought back to one that returns, expired,
 * never on two (D14, D31, D32).
 *
 * The fakes keep what they were told; what they hold at the end is compared with what the scheduler believes.
 */
import { describe, expect, it } from "vitest"
import { type Body, bodyOf } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { sleep, until } from "../../kit/processes/Door.ts"
import { FakeSsp, range } from "./FakeSsp.ts"
import { Node } from "./node.ts"

const afterwards = closing()
const start = async (env: { readonly [name: string]: string } = {}, callTimeoutMs?: number): Promise<Node> => {
  const node = await Node.start({ env, callTimeoutMs })
  afterwards(node.close)
  return node
}
const fake = async (id: string): Promise<FakeSsp> => {
  const ssp = await FakeSsp.start(id)
  afterwards(() => ssp.close())
  return ssp
}
const register = (node: Node, id: string, more: Body = {}) =>
  node.post("/view/register", registration(id, "SELECT * FROM t", more))

/** Keys of the views an SSP holds, by the calls it took. */
const held = (ssp: FakeSsp): ReadonlyArray<string> => {
  const views = new Set<string>()
  for (const { json, path } of ssp.told) {
    const key = String((json as Body | undefined)?.["id"] ?? "").replace("incantation:", "")
    if (path === "/view/register") views.add(key)
    if (path === "/view/unregister") views.delete(key)
  }
  return [...views].sort()
}
/** Heartbeats until it is told to be silent. */
const beating = (node: Node, ssp: FakeSsp): (() => Promise<void>) => {
  let stopped = false
  const loop = (async () => {
    for (; !stopped; await sleep(20)) await ssp.beat(node).catch(() => undefined)
  })()
  const silence = (): Promise<void> => {
    stopped = true
    return loop
  }
  afterwards(silence)
  return silence
}

describe("D31 views move", () => {
  it("D31 from an SSP that falls silent to the others, each with a greater assignment", async () => {
    const node = await start({ SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "1500" })
    const [a, b] = [await (await fake("a")).join(node), await (await fake("b")).join(node)]
    const silence = beating(node, a)
    beating(node, b)
    for (const n of range(1, 6)) expect((await register(node, `v${n}`)).status).toBe(200)
    expect([held(a).length, held(b).length]).toEqual([3, 3])
    const before = new Map(
      a.calls("/view/register").map(({ json }) => [(json as Body)["id"], Number((json as Body)["assignment"])])
    )
    await silence()
    await a.shown(node, undefined)
    await until("all views are with the other", () => held(b).length === 6)
    for (const { json } of b.calls("/view/register").slice(3)) {
      expect(Number((json as Body)["assignment"])).toBeGreaterThan(
        before.get((json as Body)["id"]) ?? Number.POSITIVE_INFINITY
      )
    }
  })
  it("D31 from an SSP that deregisters; a new SSP gets its share, and no view is ever on two", async () => {
    const node = await start()
    const a = await (await fake("a")).join(node)
    for (const n of range(1, 8)) await register(node, `v${n}`)
    const b = await (await fake("b")).join(node)
    await until("it has its share", () => held(b).length === 4 && held(a).length === 4)
    expect([...held(a), ...held(b)].sort()).toEqual(range(1, 8).map((n) => `v${n}`))
    await node.post("/ssp/deregister", { ssp_id: "b" })
    await until("all are back", () => held(a).length === 8)
  })
  it("D31 wait when no SSP is left, and are placed on the next one that is ready", async () => {
    const node = await start()
    await (await fake("a")).join(node)
    await register(node, "v")
    await node.post("/ssp/deregister", { ssp_id: "a" })
    expect(bodyOf(await node.get("/metrics"))["scheduler"]).toMatchObject({ total_ssps: 0, total_queries: 1 })
    const b = await (await fake("b")).join(node)
    await until("it is placed", () => held(b).length === 1)
  })
  it("D31 a view whose registration was not answered is unregistered at that SSP before the SSP gets it again", async () => {
    const node = await start({}, 300)
    const [a, b] = [await (await fake("a")).join(node), await (await fake("b")).join(node)]
    a.behaviour = ({ path }) => (path === "/view/register" ? "never" : undefined)
    expect(bodyOf(await register(node, "v"))["ssp_id"]).toBe("b")
    await until("the first is told to drop it", () => a.calls("/view/unregister").length > 0)
    expect([held(a), held(b)]).toEqual([[], ["v"]])
  })
})

it("D32 round_robin goes on where it was", async () => {
  const node = await start({ SVC_SCHEDULER_LOAD_BALANCE: "round_robin" })
  for (const id of ["a", "b", "c"]) await (await fake(id)).join(node)
  const owners = []
  for (const n of range(1, 6)) owners.push(bodyOf(await register(node, `v${n}`))["ssp_id"])
  expect(owners).toEqual(["a", "b", "c", "a", "b", "c"])
})

it("D14 a view whose time is over is dropped and its SSP told; a refreshed one is not", async () => {
  const node = await start()
  const a = await (await fake("a")).join(node)
  await register(node, "old", { ttl: "1s", lastActiveAt: "2020-01-01T00:00:00Z" })
  await register(node, "young", { ttl: "1s" })
  await register(node, "young", { ttl: "1h" })
  await until("the old one is gone", () => held(a).join() === "young")
  const idle = new Map(a.calls("/view/register").map(({ json }) => [(json as Body)["id"], (json as Body)["idleMs"]]))
  expect(idle.get("old"), "told as time that has gone by, not by this machine's clock").toBeGreaterThan(1e11)
  expect(idle.get("young")).toBeLessThan(60_000)
  expect((await node.post("/view/unregister", { id: "old" })).status).toBe(404)
})

it("D31 the listing and the overview count a view no more once its removal is asked for, though its SSP is silent", async () => {
  const node = await start({}, 1000)
  const a = await (await fake("a")).join(node)
  for (const id of ["one", "two"]) await register(node, id)
  a.behaviour = ({ path }) => (path === "/view/unregister" ? "never" : undefined)
  const counts = async (): Promise<ReadonlyArray<unknown>> =>
    Promise.all([
      node.get("/views").then((answer) => bodyOf(answer)["total"]),
      node.get("/views?order=cost").then((answer) => bodyOf(answer)["total"]),
      node.get("/overview").then((answer) => bodyOf(answer)["views"])
    ])
  expect(await counts()).toEqual([2, 2, 2])
  const removed = node.post("/view/unregister", { id: "two" })
  await until("the SSP is asked to remove it", () => a.calls("/view/unregister").length > 0)
  expect(await counts()).toEqual([1, 1, 1])
  a.behaviour = () => undefined
  await removed
})

it("D31 registering SSPs and views during load: every SSP ends with every event behind its snapshot, every view has one owner", async () => {
  const node = await start({ SVC_SCHEDULER_DELIVERY_WAIT_MS: "20" })
  let sent = 0
  let stop = false
  const load = (async () => {
    while (!stop) await Promise.all(range(1, 8).map(() => node.post("/ingest", create(`t:${++sent}`, { sent }))))
  })()
  const ssps: Array<FakeSsp> = []
  for (const id of ["a", "b", "c"]) {
    ssps.push(await (await fake(id)).join(node))
    for (const n of range(1, 5)) expect((await register(node, `${id}${n}`)).status).toBe(200)
  }
  stop = true
  await load
  for (const ssp of ssps) await until(`${ssp.id} has everything`, () => ssp.last === sent)
  for (const ssp of ssps) expect(ssp.applied).toEqual(range(ssp.snapshotSeq + 1, sent))
  await until("each view has one owner", () => ssps.flatMap((ssp) => held(ssp)).length === 15)
  expect(new Set(ssps.flatMap((ssp) => held(ssp))).size).toBe(15)
  expect(sent).toBeGreaterThan(20)
})

describe("D65 where a view goes whose query follows a link", () => {
  it.each([
    ["names the tables that it has read, to the SSP that has the table behind it", { tables: ["post", "author"] }, "a"],
    ["answers by the result, as other makers' SSPs do, by what the text names", { result_data: [["post:1", 1]] }, "b"],
    ["names none that can be read, by what the text names", { tables: "author" }, "b"]
  ])("once an SSP %s", async (_, answer, home) => {
    const node = await start()
    const [a, b] = [await fake("a"), await fake("b")]
    for (const [ssp, tables] of [
      [a, ["post", "author"]],
      [b, ["post"]]
    ] as const) {
      ssp.behaviour = ({ path }) => (path === "/view/register" ? { status: 200, body: answer } : undefined)
      ssp.health = "ready"
      await ssp.register(node, { tables })
      await ssp.shown(node, "ready")
    }
    // As many that each SSP may get one more before it is too far above the mean.
    for (const n of range(1, 8)) await node.post("/view/register", registration(`v${n}`, `SELECT ${n} FROM post`))
    const surql = "SELECT author.name FROM post WHERE by = $who"
    const place = async (who: string): Promise<unknown> => {
      const params = { who: { name: who } }
      return bodyOf(await node.post("/view/register", registration(who, surql, { clientId: who, params })))["ssp_id"]
    }
    expect([await place("first"), await place("second")]).toEqual(["a", home])
  })
})
