/**
 * A scheduler that stops, dies and comes back: nothing acknowledged is lost, nobody bootstraps because of it, what
 * cannot be of one piece is refused (D25, D26, D31).
 *
 * Over real files; a crash is a copy of the folder while the node is running, which is what a killed process leaves
 * behind.
 */

import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { type Body, bodyOf } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import * as MemoryUpstream from "../../src/drivers/memoryUpstream.ts"
import { Upstream, UpstreamError } from "../../src/ports/Upstream.ts"
import { FakeSsp, range } from "./FakeSsp.ts"
import { inFolder, Node } from "./node.ts"

const afterwards = closing()
const folder = (): string => {
  const path = temporaryFolder()
  afterwards(() => removeFolder(path))
  return path
}
const start = async (
  path: string,
  env: { readonly [name: string]: string } = {},
  upstream: Layer.Layer<Upstream> = Upstream.layerNone
): Promise<Node> => {
  const node = await Node.start({ stores: Layer.merge(inFolder(path), upstream), env })
  afterwards(node.close)
  return node
}
const fake = async (id: string): Promise<FakeSsp> => {
  const ssp = await FakeSsp.start(id)
  afterwards(() => ssp.close())
  return ssp
}
const ingest = async (node: Node, from: number, to: number): Promise<void> => {
  for (const n of range(from, to)) expect((await node.post("/ingest", create(`t:${n}`, { n }))).status).toBe(200)
}
const ids = async (node: Node): Promise<unknown> =>
  (await node.post("/proxy/query", { query: "SELECT VALUE id FROM t" })).json
const named = (from: number, to: number): ReadonlyArray<string> => range(from, to).map((n) => `t:${n}`)
/** What a process that is killed now leaves behind; sockets of locks are not copied. */
const crashed = (path: string): string => {
  const copy = folder()
  cpSync(path, copy, { recursive: true, filter: (from) => !from.endsWith(".lock") })
  return copy
}
const shown = async (node: Node, id: string): Promise<string | undefined> =>
  ((await node.get("/info")).json as ReadonlyArray<{ id: string; status: string }>).find((entry) => entry.id === id)
    ?.status

describe("D31 a restart", () => {
  it("D31 keeps SSPs, views and versions; no SSP bootstraps, missed events are replayed from the log in a later epoch", async () => {
    const path = folder()
    const first = await start(path)
    const ssp = await (await fake("a")).join(first)
    await ingest(first, 1, 5)
    await first.post("/view/register", registration("v", "SELECT * FROM t"))
    ssp.behaviour = ({ path: asked }) => (asked === "/ingest" ? { status: 503 } : undefined)
    await ingest(first, 6, 8)
    await first.close()
    ssp.behaviour = () => undefined
    const before = ssp.registration
    const second = await start(path)
    expect(second.pool.identity).toEqual({ logId: first.pool.identity.logId, epoch: 2 })
    await ssp.shown(second, "ready")
    await until("the rest has come", () => ssp.last === 8)
    expect(ssp.applied).toEqual(range(1, 8))
    expect((ssp.calls("/ingest").at(-1)?.json as ReadonlyArray<Body>).map((event) => event["epoch"])).toEqual([2, 2, 2])
    expect((await ssp.beat(second, { registration: before })).status).toBe(200)
    expect(ssp.calls("/view/register")).toHaveLength(1)
    expect((await second.post("/view/unregister", { id: "v" })).status).toBe(200)
    expect((await second.post("/ingest", create("t:1", { n: "new" }))).json).toEqual({ seq: 9, delivered: 1 })
    expect((await second.post("/proxy/query", { query: "SELECT _svc_rv, * FROM t:1" })).json).toEqual([
      { id: "t:1", n: "new", _svc_rv: 2 }
    ])
  })
  it("D31 a stop waits for what has been accepted, and a view that waits for an SSP gets one afterwards", async () => {
    const path = folder()
    const first = await start(path)
    const ssp = await (await fake("a")).join(first)
    const accepted = range(1, 50).map((n) => first.post("/ingest", create(`t:${n}`, { n })))
    await first.post("/view/register", registration("v", "SELECT * FROM t"))
    await first.post("/ssp/deregister", { ssp_id: "a" })
    const answers = (async () => (await Promise.all(accepted)).map(({ status }) => status))()
    await first.close()
    // What comes in behind the stop is refused, and is not in the log either.
    const taken = (await answers).filter((status) => status === 200).length
    expect([(await answers).every((status) => status === 200 || status === 503), taken > 0]).toEqual([true, true])
    const second = await start(path)
    await ssp.join(second)
    await until("the view is registered again", () => ssp.calls("/view/register").length === 2)
    expect(ssp.snapshotSeq).toBe(taken)
  })
})

describe("D26 a crash", () => {
  it("D26 loses nothing that was acknowledged: the replica is brought to the end of the log", async () => {
    const path = folder()
    const node = await start(path)
    await ingest(node, 1, 20)
    const copy = crashed(path)
    // As if the replica's last commits had never reached the disk.
    rmSync(join(copy, "replica", "replica.db-wal"), { force: true })
    rmSync(join(copy, "replica", "replica.db-shm"), { force: true })
    const again = await start(copy)
    expect(await ids(again)).toEqual(named(1, 20))
    expect((await again.post("/ingest", create("t:21", { n: 21 }))).json).toEqual({ seq: 21, delivered: 0 })
    expect(again.logs.join("\n")).toMatch(/recovered \d+ events from the log, through seq 20/)
  })
  it("D26 a torn tail is cut off and reported", async () => {
    const path = folder()
    const node = await start(path)
    await ingest(node, 1, 3)
    const copy = crashed(path)
    appendFileSync(join(copy, "wal.log"), '0123 4 {"table":')
    const again = await start(copy)
    expect(again.logs.join("\n")).toMatch(/cut off \d+ bytes/)
    expect((await again.post("/ingest", create("t:4", {}))).json).toEqual({ seq: 4, delivered: 0 })
  })
  it("D26 a checkpoint drops the log behind the slowest SSP, and not before", async () => {
    const node = await Node.start({
      env: { SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "1", SVC_SCHEDULER_DELIVERY_WAIT_MS: "0" }
    })
    afterwards(node.close)
    const slow = await (await fake("slow")).join(node)
    await ingest(node, 1, 2)
    await until("two have come", () => slow.last === 2)
    slow.behaviour = ({ path }) => (path === "/ingest" ? { status: 503 } : undefined)
    await ingest(node, 3, 5)
    await until("what it has is dropped", () => node.pool.state().log.first === 3)
    slow.behaviour = () => undefined
    await until("the rest is dropped", () => node.pool.state().log.first === 6)
    expect(slow.applied).toEqual(range(1, 5))
  })
})

describe("what cannot be of one piece", () => {
  const refusal = (path: string): Promise<string> =>
    start(path).then(
      () => "it started",
      (error: unknown) => String(error)
    )

  it("D26 a log that is shorter than the replica is refused, naming both", async () => {
    const path = folder()
    const node = await start(path)
    await ingest(node, 1, 3)
    await node.close()
    for (const name of readdirSync(path)) if (name.startsWith("wal.log")) rmSync(join(path, name), { recursive: true })
    expect(await refusal(path)).toMatch(/replica.*stands at seq 3.*wal\.log ends at 0/)
  })
  it("a second scheduler on the same folder is told so", async () => {
    const path = folder()
    await start(path)
    expect(await refusal(path)).toMatch(/another process has it/)
  })
  it("D5 a new log makes every SSP bootstrap again, views stay", async () => {
    const path = folder()
    const node = await start(path)
    await (await fake("a")).join(node)
    await node.post("/view/register", registration("v", "SELECT * FROM t"))
    await node.close()
    for (const name of readdirSync(path)) if (name.startsWith("wal.log")) rmSync(join(path, name), { recursive: true })
    const again = await start(path)
    expect(again.pool.identity).toEqual({ logId: expect.not.stringMatching(node.pool.identity.logId), epoch: 2 })
    expect(await shown(again, "a")).toBeUndefined()
    expect(bodyOf(await again.get("/metrics"))["scheduler"]).toMatchObject({ total_ssps: 0, total_queries: 1 })
  })
})

describe("D25 a database to clone", () => {
  const records = (count: number) => MemoryUpstream.layer(range(1, count).map((n) => ({ id: Ids.make("t", n), n })))

  it("D25 the scheduler is ready when its replica holds what the database holds", async () => {
    const node = await start(folder(), { SVC_SCHEDULER_BOOTSTRAP_CHUNK_SIZE: "7" }, records(30))
    await until("it is ready", async () => (await node.get("/readyz")).status === 200)
    expect(await ids(node)).toEqual(named(1, 30))
    expect((await node.post("/ingest", create("t:1", { n: "new" }))).json).toEqual({ seq: 1, delivered: 0 })
  })
  it("D25 a replica that is whole serves while its database does not answer; what differs comes as changes once it does", async () => {
    const path = folder()
    const first = await start(path, {}, records(3))
    await until("it is ready", async () => (await first.get("/readyz")).status === 200)
    const ssp = await (await fake("a")).join(first)
    await first.post("/ingest", create("t:own", {}))
    await until("it has come", () => ssp.last === 1)
    const copy = crashed(path)
    let away = true
    const gone = Effect.suspend(() =>
      away ? Effect.fail(new UpstreamError({ reason: "unreachable", message: "no answer" })) : Effect.void
    )
    const moody = Layer.effect(
      Upstream,
      Effect.map(Upstream, (inner) => ({ ...inner, tables: Effect.zipRight(gone, inner.tables) }))
    ).pipe(Layer.provide(records(5)))
    const second = await start(copy, {}, moody)
    expect([(await second.get("/readyz")).status, (await second.get("/info")).json]).toEqual([
      200,
      expect.arrayContaining([expect.objectContaining({ entity: "scheduler", status: "ready" })])
    ])
    expect(await ids(second)).toEqual([...named(1, 3), "t:own"])
    expect((await second.post("/ingest", create("t:9", {}))).json).toMatchObject({ seq: 2 })
    const joined = await (await fake("b")).join(second)
    expect(joined.snapshotSeq).toBe(2)
    expect(second.logs.join("\n")).toMatch(/the compare with the database failed: no answer/)
    away = false
    // The database has what it had, and two more: what only `/ingest` told of goes.
    await until(
      "the difference has come",
      async () => JSON.stringify(await ids(second)) === JSON.stringify(named(1, 5))
    )
    await until("both have it", () => joined.last === 6 && ssp.last === 6)
    await until("it says so", () =>
      /replica and database are compared: 5 records, 4 of them written or removed/.test(second.logs.join("\n"))
    )
  })
  it("D25 after a restart what differs becomes ordinary changes with new positions, which SSPs get without a bootstrap", async () => {
    const path = folder()
    const first = await start(path, {}, records(3))
    await until("it is ready", async () => (await first.get("/readyz")).status === 200)
    const ssp = await (await fake("a")).join(first)
    await first.close()
    const second = await start(path, {}, records(5))
    await until("it is ready", async () => (await second.get("/readyz")).status === 200)
    await ssp.shown(second, "ready")
    await until("the difference has come", () => ssp.last === 2)
    expect(
      ssp
        .calls("/ingest")
        .flatMap((told) => told.json as ReadonlyArray<Body>)
        .map((event) => event["id"])
    ).toEqual(["t:4", "t:5"])
    expect(await ids(second)).toEqual(named(1, 5))
  })
})

describe("a replica that was lost or put back, beside a database", () => {
  const upstream = (...list: ReadonlyArray<readonly [number, string]>) =>
    MemoryUpstream.layer(list.map(([n, v]) => ({ id: Ids.make("t", n), v })))
  const ready = (node: Node): Promise<unknown> =>
    until("it is ready", async () => (await node.get("/readyz")).status === 200)
  /**
   * A node with one SSP that has followed its changes; answers both, and what the folder was before them. Cut or not,
   * the log is so on a machine of any speed.
   */
  const lived = async (path: string, log: "cut" | "whole") => {
    const first = await start(
      path,
      { SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: log === "cut" ? "1" : "86400" },
      upstream([1, "a"], [2, "a"])
    )
    await ready(first)
    const before = crashed(path)
    const ssp = await (await fake("a")).join(first)
    await first.post("/view/register", registration("v", "SELECT * FROM t"))
    for (const v of ["b", "c"]) await first.post("/ingest", { ...create("t:1", { v }), op: "UPDATE" })
    await until("both have come", () => ssp.last === 2)
    if (log === "cut") await until("the log is cut", () => first.pool.state().log.first === 3)
    return { first, ssp, before }
  }
  /**
   * What the SSP has applied says nothing about a replica that was filled without events: it is not known, registers
   * and gets its views.
   */
  const comesBack = async (node: Node, ssp: FakeSsp): Promise<void> => {
    expect((await ssp.beat(node, { registration: ssp.registration })).status).toBe(404)
    ssp.health = "bootstrapping"
    const views = ssp.calls("/view/register").length
    const { registration: before } = ssp
    await ssp.register(node)
    ssp.health = "ready"
    await ssp.shown(node, "ready")
    expect(ssp.registration).not.toBe(before)
    await until("it has its view again", () => ssp.calls("/view/register").length > views)
    expect((await ssp.beat(node, { registration: ssp.registration })).status).toBe(200)
  }

  it.each(["cut", "whole"] as const)(
    "D5 D31 one that was removed is cloned anew, and every SSP bootstraps again: the log is %s",
    async (log) => {
      const path = folder()
      const { first, ssp } = await lived(path, log)
      await first.close()
      for (const name of readdirSync(join(path, "replica")))
        if (name.startsWith("replica.db")) rmSync(join(path, "replica", name))
      const second = await start(path, {}, upstream([1, "c"], [2, "changed while it was down"]))
      await ready(second)
      await comesBack(second, ssp)
      expect((await second.post("/proxy/query", { query: "SELECT VALUE v FROM t" })).json).toEqual([
        "c",
        "changed while it was down"
      ])
    }
  )
  it("D5 D31 a replica restored from before the first position of the log is cloned anew, and a crash during that changes nothing", async () => {
    const path = folder()
    const { before, first, ssp } = await lived(path, "cut")
    await first.close()
    for (const name of readdirSync(join(path, "replica")))
      if (name.startsWith("replica.db")) rmSync(join(path, "replica", name))
    for (const name of readdirSync(join(before, "replica")))
      if (name.startsWith("replica.db")) cpSync(join(before, "replica", name), join(path, "replica", name))
    const dies = await start(
      path,
      {},
      Layer.effect(
        Upstream,
        Effect.map(Upstream, (inner) => ({ ...inner, chunk: () => Effect.never }))
      ).pipe(Layer.provide(upstream([1, "x"])))
    )
    expect(dies.logs.join("\n")).toMatch(/cloned anew: every SSP bootstraps again/)
    expect(await shown(dies, "a")).toBeUndefined()
    await dies.close()
    const second = await start(path, {}, upstream([1, "c"], [2, "z"]))
    await ready(second)
    await comesBack(second, ssp)
    expect(ssp.snapshotSeq).toBe(2)
  })
  it("D26 D31 a replica restored from a position that the log still has is brought forward from the log: no SSP bootstraps", async () => {
    const path = folder()
    const { before, first, ssp } = await lived(path, "whole")
    await first.close()
    for (const name of readdirSync(join(before, "replica")))
      if (name.startsWith("replica.db")) cpSync(join(before, "replica", name), join(path, "replica", name))
    const second = await start(path, {}, upstream([1, "c"], [2, "a"]))
    await ready(second)
    await ssp.shown(second, "ready")
    expect((await ssp.beat(second, { registration: ssp.registration })).status).toBe(200)
  })
  it("D4 versions that were lost go on above the highest that clients have seen, for records that are created later too, behind a restart", async () => {
    const path = folder()
    const seen = Layer.effect(
      Upstream,
      Effect.map(Upstream, (inner) => ({ ...inner, highestVersion: Effect.succeed(9) }))
    ).pipe(Layer.provide(upstream([1, "a"])))
    const first = await start(path, {}, seen)
    await ready(first)
    const version = async (node: Node, id: string) =>
      ((await node.post("/proxy/query", { query: `SELECT _svc_rv, * FROM ${id}` })).json as ReadonlyArray<Body>)[0]?.[
        "_svc_rv"
      ]
    await first.post("/ingest", create("t:later", {}))
    await first.post("/ingest", { ...create("t:gone", {}), op: "DELETE" })
    await first.post("/ingest", create("t:gone", {}))
    await first.post("/ingest", create("t:given", { _svc_rv: 4 }))
    expect([
      await version(first, "t:1"),
      await version(first, "t:later"),
      await version(first, "t:gone"),
      await version(first, "t:given")
    ]).toEqual([10, 10, 10, 4])
    await first.close()
    const second = await start(
      path,
      {},
      MemoryUpstream.layer(["1", "later", "gone", "given"].map((key) => ({ id: Ids.make("t", key === "1" ? 1 : key) })))
    )
    await ready(second)
    await second.post("/ingest", create("t:later2", {}))
    expect(await version(second, "t:later2")).toBe(10)
  })
})

it("the log can be read by a person", async () => {
  const path = folder()
  const node = await start(path)
  await ingest(node, 1, 1)
  expect(readFileSync(join(path, "wal.log"), "utf8").split("\n")[1]).toMatch(
    /^[0-9a-f]{8} 1 \{"table":"t","op":"CREATE","id":"t:1","record":\{"n":1,"_svc_rv":1\}\}$/
  )
})
