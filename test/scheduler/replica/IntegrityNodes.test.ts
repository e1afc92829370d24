/**
 * The writer of `_svc_integrity` in a cluster (D41) is the scheduler, from the tree of its replica, into the database
 * that it clones.
 *
 * A whole node over a database in memory: what stands there must be what `GET /integrity` of the same node says.
 */
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { create } from "../../../kit/data/registration.ts"
import { closing } from "../../../kit/processes/closing.ts"
import { until } from "../../../kit/processes/Door.ts"
import { empty } from "../../../src/core/integrity/merkle.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import * as MemoryPool from "../../../src/drivers/memoryPool.ts"
import * as MemoryReplica from "../../../src/drivers/memoryReplica.ts"
import * as Memory from "../../../src/drivers/memoryUpstream.ts"
import { type IntegrityNode, Upstream, UpstreamError, type UpstreamShape } from "../../../src/ports/Upstream.ts"
import { Wal } from "../../../src/ports/Wal.ts"
import { Node } from "../node.ts"

const afterwards = closing()

interface Wire {
  readonly hash: string
  readonly count: number
  readonly seq: number
  readonly children: ReadonlyArray<{ readonly index: number; readonly hash: string; readonly count: number }>
}

const start = async (
  over: (inner: UpstreamShape) => Partial<UpstreamShape>,
  env: { readonly [name: string]: string } = {}
) => {
  const inner = Memory.make([1, 2, 3].map((n) => ({ id: Ids.make("t", n), n })))
  const prepared = { times: 0 }
  const upstream: UpstreamShape = { ...inner, prepare: Effect.sync(() => void prepared.times++), ...over(inner) }
  const stores = Layer.mergeAll(
    MemoryReplica.layer,
    MemoryPool.layer,
    Wal.layerMemory("log"),
    Layer.succeed(Upstream, upstream)
  )
  const node = await Node.start({ stores, env: { SVC_INTEGRITY_QUIET_SECS: "1", ...env } })
  afterwards(node.close)
  await until("it is ready", async () => (await node.get("/readyz")).status === 200)
  const kept = (): ReadonlyArray<IntegrityNode> => Effect.runSync(inner.nodes("t"))
  const places = (nodes: ReadonlyArray<Pick<IntegrityNode, "level" | "index" | "hash" | "count">>) =>
    nodes
      .map(({ count, hash, index, level }) => [level, index, hash, count])
      .sort((a, b) => Number(a[0]) - Number(b[0]) || Number(a[1]) - Number(b[1]))
  const said = async () => {
    const root = (await node.get("/integrity?table=t")).json as Wire
    return places([{ level: 0, index: 0, ...root }, ...root.children.map((child) => ({ level: 1, ...child }))])
  }
  /** What holds something is there as the node says it, and nothing else does. */
  const agrees = async () =>
    JSON.stringify(places(kept().filter(({ hash, level }) => level === 0 || hash !== empty))) ===
    JSON.stringify(await said())
  return { node, kept, agrees, prepared }
}

describe("D41 in a cluster", () => {
  it("D41 the scheduler writes root and first level of each cloned table once it is quiet, then what has changed, at their position", async () => {
    const { agrees, kept, node, prepared } = await start(() => ({}))
    await until("the cloned records are there", () => kept().length > 1)
    expect([await agrees(), kept()[0]]).toEqual([
      true,
      expect.objectContaining({ table: "t", level: 0, index: 0, count: 3 })
    ])
    await node.post("/ingest", create("t:4", { n: 4 }))
    await node.post("/ingest", { ...create("t:1"), op: "DELETE" })
    await node.post("/ingest", { ...create("t:2"), op: "DELETE" })
    await until("the changes are there", () => kept()[0]?.count === 2)
    expect([await agrees(), kept()[0]?.seq, prepared.times]).toEqual([true, 3, 1])
    for (const key of [3, 4]) await node.post("/ingest", { ...create(`t:${key}`), op: "DELETE" })
    await until("a table that is empty has empty nodes", () =>
      kept().every(({ count, hash }) => count === 0 && hash === empty)
    )
  })
  it("D41 a database that does not take them is asked again", async () => {
    let away = true
    const { agrees, kept, node } = await start((inner) => ({
      putNodes: (nodes) =>
        Effect.suspend(() =>
          away ? Effect.fail(new UpstreamError({ reason: "unreachable", message: "no answer" })) : inner.putNodes(nodes)
        )
    }))
    const complaints = () =>
      node.logs.filter((line) => line.startsWith("the hashes of t cannot be written: no answer")).length
    await until("it was tried twice", () => complaints() >= 2)
    away = false
    await until("they are there", () => kept().length > 1)
    expect(await agrees()).toBe(true)
  })
  it("D41 nothing is written where that is turned off", async () => {
    let asked = 0
    const { node } = await start(
      () => ({ putNodes: () => Effect.sync(() => void asked++), nodes: () => Effect.sync(() => (asked++, [])) }),
      { SVC_INTEGRITY_QUIET_SECS: "0" }
    )
    await node.post("/ingest", create("t:9", {}))
    await new Promise((done) => setTimeout(done, 300))
    expect(asked).toBe(0)
  })
})
