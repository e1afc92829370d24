/**
 * What a table says its records take: beside the heap that they do take, and what is left when they go.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { heapUsed } from "../../../../kit/checks/heap.ts"
import { seeded } from "../../../../kit/data/random.ts"
import { recordBytes } from "../../../../src/core/ivm/store/recordBytes.ts"
import { Store } from "../../../../src/core/ivm/store/store.ts"
import { decodeChanges, type Op } from "../../../../src/core/record/change.ts"

type Sent = { readonly op: Op; readonly id: string; readonly record?: object }

/** As the changes come from the wire, so that texts are what a parser of JSON makes. */
const send = (store: Store, changes: ReadonlyArray<Sent>): void => {
  const text = JSON.stringify(changes.map((change) => ({ record: {}, ...change, table: change.id.split(":")[0] })))
  const decoded = Either.getOrThrowWith(decodeChanges(JSON.parse(text)), JSON.stringify)
  for (const write of store.plan(decoded)) if (write !== undefined) store.apply(write)
}

const each = (from: number, to: number, sent: (n: number) => Sent): ReadonlyArray<Sent> =>
  Array.from({ length: to - from }, (_, i) => sent(from + i))

const post = (n: number) => ({
  title: `post number ${n}`,
  author: `person:${n % 1000}`,
  body: `lorem ipsum dolor ${n} `.repeat(1 + (n % 9)),
  score: n + 0.5,
  tags: ["red", `green ${n}`]
})

/** Weighed one by one. */
const exact = (store: Store, table: string): number => {
  let bytes = 0
  for (const { doc } of store.rows(table)) bytes += recordBytes(doc)
  return bytes
}

describe("bytes of a table", () => {
  const shapes: ReadonlyArray<readonly [name: string, record: (n: number) => object]> = [
    ["one number", (n) => ({ n })],
    ["a post", post],
    ["long text", (n) => ({ body: `lorem ipsum ${n} `.repeat(60) })]
  ]
  it.each(shapes)("are near what its records take of the heap: %s", (_, record) => {
    const store = new Store()
    const all = 20_000
    const before = heapUsed()
    for (let n = 0; n < all; n += 500)
      send(
        store,
        each(n, n + 500, (i) => ({ op: "CREATE", id: `t:r${i}`, record: record(i) }))
      )
    const taken = heapUsed() - before
    expect(store.size("t")).toBe(all)
    expect(store.bytes("t") / taken).toBeGreaterThan(0.7)
    expect(store.bytes("t") / taken).toBeLessThan(1.35)
  })

  it("are exact for some records, a little off for many, and come and go with them", () => {
    const store = new Store()
    const create = (n: number): Sent => ({ op: "CREATE", id: `t:${n}`, record: post(n) })
    for (let n = 0; n < 256; n++) send(store, [create(n)])
    expect(store.bytes("t")).toBe(exact(store, "t"))
    send(store, each(256, 5000, create))
    expect(Math.abs(store.bytes("t") / exact(store, "t") - 1)).toBeLessThan(0.05)
    send(
      store,
      each(0, 5000, (n) => ({ op: "UPDATE", id: `t:${n}`, record: { ...post(n), more: "x".repeat(1000) } }))
    )
    expect(Math.abs(store.bytes("t") / exact(store, "t") - 1)).toBeLessThan(0.05)
    send(
      store,
      each(0, 5000, (n) => ({ op: "DELETE", id: `t:${n}` }))
    )
    expect([store.size("t"), store.bytes("t")]).toEqual([0, 0])
  })

  seeded(
    "are nothing when nothing is left, whatever came and in whatever order",
    "test/core/ivm/store/recordBytes.test.ts",
    (random) => {
      const store = new Store(50)
      const ids = new Set<string>()
      for (let n = 0; n < 2000; n++) {
        const id = random.chance(0.5) ? `t:${random.below(900)}` : `t:k${random.below(900)}`
        const op = random.pick<Op>(["CREATE", "UPDATE", "UPDATE", "DELETE"])
        ids.add(id)
        send(store, [{ op, id, ...(op === "DELETE" ? {} : { record: post(random.below(1000)) }) }])
      }
      expect(Math.abs(store.bytes("t") / exact(store, "t") - 1)).toBeLessThan(0.3)
      send(
        store,
        [...ids].map((id) => ({ op: "DELETE" as const, id }))
      )
      expect([store.size("t"), store.bytes("t")]).toEqual([0, 0])
    }
  )

  it("go with a table that is let go, and with a store that is cleared", () => {
    const store = new Store()
    send(
      store,
      each(0, 600, (n) => ({ op: "CREATE", id: `t:${n}`, record: post(n) }))
    )
    send(store, [{ op: "CREATE", id: "u:1", record: { n: 1 } }])
    for (const _ of store.forgetTable("t"));
    expect([store.bytes("t"), store.bytes("u") > 0]).toEqual([0, true])
    store.clear()
    expect(store.bytes("u")).toBe(0)
  })
})
