/**
 * What the scheduler keeps for the hashes of a table that nobody asks for any more (D41).
 *
 * Seen from outside by how the table is read when somebody asks again: whole, or only where it has changed.
 */
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { change } from "../../../kit/data/registration.ts"
import { closing } from "../../../kit/processes/closing.ts"
import * as MemoryPool from "../../../src/drivers/memoryPool.ts"
import * as MemoryReplica from "../../../src/drivers/memoryReplica.ts"
import { Heap } from "../../../src/ports/ProcessFigures.ts"
import { Replica } from "../../../src/ports/Replica.ts"
import { Upstream } from "../../../src/ports/Upstream.ts"
import { Wal } from "../../../src/ports/Wal.ts"
import { Node } from "../node.ts"

const afterwards = closing()

describe("D41 the scheduler's trees", () => {
  it("D41 ids of records that come and go are not kept until somebody asks: beyond the records of a table it is read anew, and right", async () => {
    let walks = 0
    const counted = Layer.effect(
      Replica,
      Effect.map(Replica, (inner) => ({
        ...inner,
        records: (...asked: Parameters<typeof inner.records>) =>
          Effect.suspend(() => (asked[1] === undefined && asked[0] === "item" && walks++, inner.records(...asked)))
      }))
    ).pipe(Layer.provide(MemoryReplica.layer))
    const node = await Node.start({
      stores: Layer.mergeAll(counted, MemoryPool.layer, Wal.layerMemory("log"), Upstream.layerNone),
      env: {}
    })
    afterwards(node.close)
    const root = async () =>
      (await node.get("/integrity?table=item")).json as { readonly count: number; readonly hash: string }
    /** Creates so many under new ids, and deletes as many that were there before. */
    let next = 0
    const turnOver = async (count: number) => {
      for (const until = next + count; next < until; next += 250) {
        const answer = await node.post(
          "/ingest",
          Array.from({ length: 250 }, (_, i) => [
            change("CREATE", `item:${next + i}`, { n: next + i }),
            change("DELETE", `item:${next + i - 500}`)
          ]).flat()
        )
        expect(answer.status).toBe(200)
      }
    }
    await turnOver(500)
    expect([(await root()).count, walks]).toEqual([500, 1])
    await turnOver(1_000)
    expect([(await root()).count, walks]).toEqual([500, 1])
    await turnOver(12_000)
    const { count, hash } = await root()
    expect([count, walks]).toEqual([500, 2])
    // The same records by a short history have the same root.
    const other = await Node.start({
      stores: Layer.mergeAll(MemoryReplica.layer, MemoryPool.layer, Wal.layerMemory("other"), Upstream.layerNone),
      env: {}
    })
    afterwards(other.close)
    await other.post(
      "/ingest",
      Array.from({ length: 500 }, (_, i) => change("CREATE", `item:${next - 500 + i}`, { n: next - 500 + i }))
    )
    expect(((await other.get("/integrity?table=item")).json as { readonly hash: string }).hash).toBe(hash)
  })

  it("D43 neither hashes nor queries read the replica while the heap has no room for it, and both do once it has", async () => {
    const mebibytes = 2 ** 20
    let usedBytes = 960 * mebibytes
    const memory = () => ({ usedBytes, limitBytes: 1_024 * mebibytes, isFull: usedBytes > 870 * mebibytes })
    const heap = Layer.succeed(Heap, { memory, measured: memory, released: () => {} })
    const node = await Node.start({
      stores: Layer.mergeAll(MemoryReplica.layer, MemoryPool.layer, Wal.layerMemory("log"), Upstream.layerNone, heap),
      env: {}
    })
    afterwards(node.close)
    const asked = async () => {
      const answers = [await node.get("/integrity"), await node.post("/proxy/query", { query: "SELECT * FROM item" })]
      return answers.map(({ json, status }) => [status, (json as { readonly message?: string }).message])
    }
    usedBytes = 100 * mebibytes
    expect((await node.post("/ingest", [change("CREATE", "item:1", { n: 1 })])).status).toBe(200)
    usedBytes = 960 * mebibytes
    expect(await asked()).toEqual([
      [503, expect.stringMatching(/^960 MiB of memory are in use, records are hashed below \d+ MiB .*SVC_MAX_MEMORY/)],
      [503, expect.stringMatching(/^960 MiB of memory are in use, queries are answered below \d+ MiB/)]
    ])
    usedBytes = 900 * mebibytes
    expect(
      (await asked()).map(([status]) => status),
      "a full one may have room to read"
    ).toEqual([200, 200])
  })
})
