/**
 * What comes together is decided and written together (D31): a flush to disk is paid for a crowd of registrations, not
 * for each.
 *
 * Counted at the store and not timed, because how long a flush takes is the disk's business.
 */
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { poolOver as storeOver } from "../../src/drivers/memoryPool.ts"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import { PoolStore, type PoolWrite } from "../../src/ports/PoolStore.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { Wal } from "../../src/ports/Wal.ts"
import { FakeSsp } from "./FakeSsp.ts"
import { Node } from "./node.ts"

const writes: Array<ReadonlyArray<PoolWrite>> = []

const counting = Layer.sync(PoolStore, () => {
  const store = storeOver(new Map())
  return {
    ...store,
    write: (rows) =>
      Effect.zipRight(
        Effect.sync(() => void writes.push(rows)),
        store.write(rows)
      )
  }
})

let node: Node
let ssp: FakeSsp
beforeAll(async () => {
  node = await Node.start({
    stores: Layer.mergeAll(MemoryReplica.layer, counting, Wal.layerMemory("log-of-the-test"), Upstream.layerNone)
  })
  ssp = await (await FakeSsp.start("a")).join(node)
})
afterAll(async () => {
  await node.close()
  await ssp.close()
})

/** As requests are read off their connections: one after the other, with whatever each of them starts in between. */
const oneByOne = async <A>(count: number, start: (n: number) => Promise<A>): Promise<ReadonlyArray<A>> => {
  const begun: Array<Promise<A>> = []
  for (let n = 0; n < count; n++) {
    begun.push(start(n))
    for (let i = 0; i < 50; i++) await Promise.resolve()
  }
  return Promise.all(begun)
}

it("D31 registrations that are read in one turn of the event loop are assigned by one write", async () => {
  writes.length = 0
  const replies = await oneByOne(20, (n) =>
    Effect.runPromise(
      node.pool.ask((ref) => ({
        tag: "RegisterView",
        ref,
        view: `v${n}`,
        spec: { body: { id: `v${n}` }, ttlMs: 1e6, lastActiveAt: Date.now() }
      }))
    )
  )
  expect(replies.map(({ kind }) => kind)).toEqual(Array.from({ length: 20 }, () => "assigned"))
  expect(writes[0]?.filter(({ tag }) => tag === "PersistView")).toHaveLength(20)
})
