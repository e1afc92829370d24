/**
 * The queue of edges against a model that forgets nothing: whatever is taken, given back or dropped, what arrives in
 * the end is the last word on every edge.
 *
 * Why random: the mistakes are in the order of few operations, and there are many orders.
 */
import { expect, test } from "vitest"
import { runs, seeded } from "../../../kit/data/random.ts"
import { EdgeQueue } from "../../../src/core/edges/edgeQueue.ts"
import { type EdgeOp, nameOf } from "../../../src/core/edges/viewEdges.ts"

const op = (out: string, version: number | undefined): EdgeOp => ({ path: "", parent: "", out, version })

test("D21 views take turns, and one edge is written once", () => {
  const queue = new EdgeQueue()
  for (let i = 0; i < 5; i++) queue.add("big", op(`a:${i}`, 1))
  queue.add("small", op("a:1", 1))
  queue.add("big", op("a:0", 2))
  expect(queue.size).toBe(6)
  expect(queue.take(3)).toEqual({ views: [{ key: "big", ops: [op("a:0", 2), op("a:1", 1), op("a:2", 1)] }], size: 3 })
  queue.landed()
  expect(queue.take(3).views.map(({ key, ops }) => [key, ops.length])).toEqual([
    ["small", 1],
    ["big", 2]
  ])
})

test("D21 what comes back waits in front, unless something newer waits", () => {
  const queue = new EdgeQueue()
  queue.add("v", op("a:1", 1))
  queue.add("v", op("a:2", 1))
  queue.take(10)
  queue.add("v", op("a:3", 1))
  queue.add("v", op("a:2", undefined))
  expect([queue.size, queue.waiting]).toEqual([4, 2])
  queue.back()
  expect([queue.size, queue.waiting]).toEqual([3, 3])
  expect(queue.take(10).views).toEqual([{ key: "v", ops: [op("a:1", 1), op("a:2", undefined), op("a:3", 1)] }])
  queue.drop("v")
  queue.back()
  expect(queue.size).toBe(0)
})

seeded(
  "D21 the last word on every edge arrives, through any order of batches, failures and dropped views",
  "test/core/edges/edgeQueue.test.ts",
  (random) => {
    let failures = 0
    for (let round = 0; round < runs(80); round++) {
      const queue = new EdgeQueue()
      const wanted = new Map<string, number | undefined>(),
        written = new Map<string, number | undefined>()
      let flying = queue.take(0)
      const land = (): void => {
        for (const { key, ops } of flying.views)
          for (const one of ops)
            if (wanted.has(`${key} ${nameOf(one)}`)) written.set(`${key} ${nameOf(one)}`, one.version)
        queue.landed()
      }
      const key = (): string => `v${random.below(3)}`
      for (let step = 0; step < 60; step++) {
        const what = random.below(10)
        if (what < 6) {
          const [view, out, version] = [key(), `a:${random.below(5)}`, random.chance(0.3) ? undefined : step]
          queue.add(view, op(out, version))
          wanted.set(`${view} ${out}`, version)
        } else if (what < 9) {
          if (random.chance(0.5)) land()
          else {
            failures++
            queue.back()
          }
          flying = queue.take(1 + random.below(4))
        } else {
          const view = key()
          queue.drop(view)
          for (const name of [...wanted.keys()]) if (name.startsWith(`${view} `)) wanted.delete(name)
          for (const name of [...written.keys()]) if (name.startsWith(`${view} `)) written.delete(name)
          flying = { ...flying, views: flying.views.filter((one) => one.key !== view) }
        }
        expect(queue.size).toBeGreaterThanOrEqual(queue.waiting)
      }
      for (land(); queue.size > 0; land()) flying = queue.take(3)
      expect(queue.size).toBe(0)
      expect([...written].sort(), `round ${round}`).toEqual([...wanted].sort())
    }
    expect(failures).toBeGreaterThan(100)
  }
)
