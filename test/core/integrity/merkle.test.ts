/**
 * The Merkle tree (D41) against one built from scratch by its formula alone, after random histories.
 *
 * The formula stands here a second time, as plainly as it can be said, so that what the incremental tree shares with it
 * is the formula and not the code.
 */
import { blake3 } from "@noble/hashes/blake3.js"
import { expect, test } from "vitest"
import { type Rng, runs, seeded } from "../../../kit/data/random.ts"
import * as Blake3 from "../../../src/core/integrity/blake3.ts"
import * as Merkle from "../../../src/core/integrity/merkle.ts"
import { StoreTrees } from "../../../src/core/integrity/storeTrees.ts"
import { Store } from "../../../src/core/ivm/store/store.ts"
import type { Change } from "../../../src/core/record/change.ts"
import { drain } from "../../../src/core/surql/evaluate/scope.ts"
import * as Datetimes from "../../../src/core/surql/values/datetime.ts"
import { encode } from "../../../src/core/surql/values/encode.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { Float, type Obj, type RecordKey, type Value } from "../../../src/core/surql/values/value.ts"

const hash = (text: string): string => Buffer.from(blake3(Buffer.from(text, "utf8"))).toString("hex")

/** Hash by level and index, of every node that holds something. */
const fromScratch = (records: ReadonlyArray<Obj>): ReadonlyMap<string, string> => {
  const level2 = new Map<number, Array<string>>()
  for (const { id, ...rest } of records) {
    const text = (id as { text: string }).text
    const [high = 0, low = 0] = blake3(Buffer.from(text, "utf8"))
    level2.set(high * 256 + low, [...(level2.get(high * 256 + low) ?? []), hash(`${text}\0${encode(rest)}`)])
  }
  const nodes = new Map<string, string>(
    [...level2].map(([index, leaves]) => [`2/${index}`, hash(leaves.sort().join(""))])
  )
  const children = (level: number, index: number) =>
    Array.from({ length: 256 }, (_, i) => nodes.get(`${level}/${index * 256 + i}`))
      .map((child, i) => (child === undefined ? "" : i.toString(16).padStart(2, "0") + child))
      .join("")
  for (const bucket of level2.keys()) nodes.set(`1/${bucket >> 8}`, hash(children(2, bucket >> 8)))
  if (level2.size > 0) nodes.set("0/0", hash(children(1, 0)))
  return nodes
}

const nodesOf = (tree: Merkle.MerkleTree): ReadonlyMap<string, string> => {
  const nodes = new Map<string, string>()
  if (tree.node(0, 0).count > 0) nodes.set("0/0", tree.node(0, 0).hash)
  for (const one of tree.children(0, 0)) {
    nodes.set(`1/${one.index}`, one.hash)
    for (const bucket of tree.children(1, one.index)) nodes.set(`2/${bucket.index}`, bucket.hash)
  }
  return nodes
}

const value = (random: Rng): Value =>
  random.pick<Value>([
    1,
    new Float(1),
    1.5,
    "1",
    null,
    true,
    [1, "x"],
    { $: ["f", "1"] },
    Datetimes.parse("2020-01-01T00:00:00Z"),
    Ids.make("item", 1),
    "item:1",
    "ä\u0000😀",
    random.below(1000)
  ])

const keys: ReadonlyArray<RecordKey> = [
  ...Array.from({ length: 60 }, (_, i) => i),
  "a",
  "'",
  "`; --",
  "ä😀",
  ["x", 1],
  { a: 1 },
  "1"
]

const change = (random: Rng, table: string): Change => {
  const id = Ids.make(table, random.pick(keys))
  const doc = { id, a: value(random), b: value(random) }
  return {
    op: random.chance(0.25) ? "DELETE" : "UPDATE",
    id,
    doc,
    version: undefined,
    position: undefined,
    jobAssignee: undefined
  }
}

const apply = (store: Store, changes: ReadonlyArray<Change>): void => {
  for (const write of store.plan(changes)) if (write !== undefined) store.apply(write)
}

const docs = (store: Store, table: string): ReadonlyArray<Obj> => [...store.rows(table)].map(({ doc }) => doc)

test("D41 a hash is that of the text's UTF-8, of any length, also where the text is no Unicode", () => {
  const lengths = [0, 1, 63, 64, 65, 1023, 1024, 1025, 16_383, 16_384, 16_385, 70_000]
  for (const character of ["a", "é", "\u2028", "😀", "\ud800"])
    for (const length of lengths) {
      const text = character.repeat(length)
      expect(Blake3.blake3(text), `${length} times ${JSON.stringify(character)}`).toBe(hash(text))
    }
})

seeded(
  "D41 after every step of a history the tree is the one built from scratch, node by node",
  "test/core/integrity/merkle.test.ts",
  (random) => {
    let compared = 0
    for (let history = 0; history < runs(2); history++) {
      const store = new Store()
      const trees = new StoreTrees(store)
      // Every other history is looked at from its first record on, the rest later.
      const from = (history % 2) * random.below(20)
      for (let step = 0; step < 30; step++) {
        apply(
          store,
          Array.from({ length: 1 + random.below(8) }, () => change(random, random.pick(["item", "odd `name"])))
        )
        if (random.chance(0.03)) store.clear()
        // A refresh that is left half-way must not be mistaken for one that ended.
        if (random.chance(0.3)) trees.refresh("item").next()
        if (step < from) continue
        for (const table of ["item", "odd `name", "none"]) {
          expect(nodesOf(trees.settle(table))).toEqual(fromScratch(docs(store, table)))
          expect(trees.of(table).left).toBe(0)
          compared++
        }
      }
    }
    expect(compared).toBeGreaterThan(100)
  }
)

test("D41 ids of records that come and go are not kept for a tree that is no longer asked for, and the tree is right when it is asked for again", () => {
  const store = new Store()
  const trees = new StoreTrees(store)
  const put = (op: "CREATE" | "DELETE", n: number) =>
    apply(store, [
      {
        op,
        id: Ids.make("item", n),
        doc: { id: Ids.make("item", n), n },
        version: undefined,
        position: undefined,
        jobAssignee: undefined
      }
    ])
  for (let n = 0; n < 100; n++) put("CREATE", n)
  trees.settle("item")
  let most = 0
  for (let n = 100; n < 30_000; n++) {
    put("CREATE", n)
    put("DELETE", n - 100)
    most = Math.max(most, trees.waiting)
  }
  expect(most).toBeGreaterThan(100)
  expect(most).toBeLessThanOrEqual(10_000)
  expect(nodesOf(trees.settle("item"))).toEqual(fromScratch(docs(store, "item")))
  expect(trees.settle("item").node(0, 0).count).toBe(100)
})

seeded(
  "D41 equal records in another order, by another history, have equal roots; any difference in content or type has not",
  "test/core/integrity/merkle.test.ts",
  (random) => {
    for (let round = 0; round < runs(3); round++) {
      const one = new Store(),
        other = new Store()
      apply(
        one,
        Array.from({ length: 80 }, () => change(random, "item"))
      )
      const records = [...docs(one, "item")].sort(() => random.next() - 0.5)
      apply(
        other,
        Array.from({ length: 30 }, () => change(random, "item"))
      )
      for (const doc of docs(other, "item"))
        if (!records.some(({ id }) => (id as { text: string }).text === (doc["id"] as { text: string }).text))
          apply(other, [
            {
              op: "DELETE",
              id: doc["id"] as Change["id"],
              doc: {},
              version: undefined,
              position: undefined,
              jobAssignee: undefined
            }
          ])
      for (const doc of records)
        apply(other, [
          {
            op: "UPDATE",
            id: doc["id"] as Change["id"],
            doc: Object.fromEntries(Object.entries(doc).reverse()),
            version: undefined,
            position: undefined,
            jobAssignee: undefined
          }
        ])
      const root = (store: Store) => new StoreTrees(store).settle("item").node(0, 0)
      expect(root(other)).toEqual(root(one))
      expect(root(one).count).toBe(records.length)
    }
    const content = (doc: Obj): string => Merkle.leafOf("item:1", Merkle.contentOf(doc))
    const alike: ReadonlyArray<Value> = [
      1,
      new Float(1),
      "1",
      1n + 2n ** 60n,
      null,
      [1],
      { 0: 1 },
      Ids.make("item", 1),
      "item:1",
      undefined
    ]
    expect(new Set(alike.map((a) => content({ a }))).size).toBe(alike.length)
  }
)

/** The records in which two trees differ, found as two nodes would: by asking for children only. */
const descend = (
  one: StoreTrees,
  other: StoreTrees
): { readonly ids: ReadonlyArray<string>; readonly asked: number } => {
  const [a, b] = [one.settle("item"), other.settle("item")]
  let asked = 1
  const ids = Merkle.differing(a.children(0, 0), b.children(0, 0)).flatMap((high) => {
    asked++
    return Merkle.differing(a.children(1, high), b.children(1, high)).flatMap((bucket) => {
      asked++
      return Merkle.differingLeaves(one.leaves("item", bucket), other.leaves("item", bucket))
    })
  })
  return { ids: [...ids].sort(), asked }
}

seeded(
  "D41 the records that differ are found by descending, and nothing else is looked at",
  "test/core/integrity/merkle.test.ts",
  (random) => {
    for (let round = 0; round < runs(3); round++) {
      const one = new Store(),
        other = new Store()
      const all: ReadonlyArray<Change> = Array.from({ length: 2_000 }, (_, i) => ({
        ...change(random, "item"),
        op: "UPDATE",
        id: Ids.make("item", i),
        doc: { id: Ids.make("item", i), n: i }
      }))
      apply(one, all)
      apply(other, all)
      const [mine, theirs] = [new StoreTrees(one), new StoreTrees(other)]
      expect(descend(mine, theirs)).toEqual({ ids: [], asked: 1 })
      const odd = new Set<string>()
      for (let n = 0; n < 1 + random.below(3); n++) {
        const id = Ids.make("item", random.below(2_200))
        odd.add(id.text)
        const differs: Change = {
          op: random.chance(0.3) && Number(id.key) < 2_000 ? "DELETE" : "UPDATE",
          id,
          doc: { id, n: -1 },
          version: undefined,
          position: undefined,
          jobAssignee: undefined
        }
        apply(random.chance(0.5) ? one : other, [differs])
      }
      const found = descend(mine, theirs)
      expect(found.ids).toEqual([...odd].sort())
      expect(found.asked).toBeLessThanOrEqual(1 + 2 * odd.size)
    }
  }
)

test("D41 a refresh pauses every few dozen records, takes in what changes meanwhile, and begins again when everything is cleared", () => {
  const store = new Store()
  const put = (from: number, to: number): void =>
    apply(
      store,
      Array.from({ length: to - from }, (_, i) => ({
        op: "UPDATE",
        id: Ids.make("item", from + i),
        doc: { id: Ids.make("item", from + i) },
        version: undefined,
        position: undefined,
        jobAssignee: undefined
      }))
    )
  put(0, 3_000)
  const trees = new StoreTrees(store)
  const refresh = trees.refresh("item")
  let pauses = 0
  for (let step = refresh.next(); step.done !== true; step = refresh.next()) {
    pauses++
    if (pauses === 10) put(3_000, 3_100)
    if (pauses === 60) {
      store.clear()
      put(0, 500)
    }
  }
  expect(pauses).toBeGreaterThan(60)
  expect(trees.of("item").left).toBe(0)
  expect(nodesOf(trees.settle("item"))).toEqual(fromScratch(docs(store, "item")))
})

test("D41 marking costs no hash: a tree that is not asked for holds nothing", () => {
  const store = new Store()
  const trees = new StoreTrees(store)
  apply(store, [change({ next: () => 0.9, below: () => 1, chance: () => false, pick: (items) => items[0]! }, "item")])
  expect(trees.of("item").left).toBeGreaterThan(0)
  const tree = new Merkle.MerkleTree()
  tree.mark(7)
  tree.mark(7)
  expect([tree.stale, tree.take(), tree.take(), tree.node(0, 0)]).toEqual([
    1,
    7,
    undefined,
    { hash: Merkle.empty, count: 0 }
  ])
  drain(trees.refresh("item"))
  expect(trees.of("item").left).toBe(0)
})
