/**
 * The Merkle trees of records in a heap that has no room for them: refused before they are made, and while they are.
 */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { expect } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import type { Memory } from "../../../src/core/record/memory.ts"
import * as RecordIds from "../../../src/core/surql/values/recordId.ts"
import { Slicer } from "../../../src/node/work/Slicer.ts"
import type { Committer } from "../../../src/ssp/views/committer.ts"
import { RecordTrees } from "../../../src/ssp/views/recordTrees.ts"

const records = 2000

/** Trees beside a heap that is looked at with `memory`. */
const treesIn = (memory: () => Memory) => {
  const engine = new Engine()
  const load = (from: number, to: number): void => {
    for (let n = from; n < to; n++) {
      const id = RecordIds.make("t", n)
      engine.load(id, 1, { id, n })
    }
  }
  load(0, records)
  const committer = { alone: <A>(work: Effect.Effect<A>) => work, position: { seq: 7 } }
  const trees = new RecordTrees({
    engine,
    heap: { memory, measured: memory, released: () => {} },
    committer: committer as unknown as Committer,
    slicer: new Slicer({ next: (then) => void setImmediate(then) }, () => 0)
  })
  return Object.assign(trees, { load })
}

const mebi = 2 ** 20
const roomy: Memory = { usedBytes: 50 * mebi, limitBytes: 100 * mebi, isFull: false }
const full: Memory = { usedBytes: 97 * mebi, limitBytes: 100 * mebi, isFull: true }
const nearly: Memory = { ...full, usedBytes: 84.9 * mebi, isFull: false }

const roots = (trees: RecordTrees) => trees.read(["t"], (all, seq) => [seq, all.settle("t").node(0, 0).count])
const isRefused = { _tag: "Overloaded", message: expect.stringContaining("SVC_MAX_MEMORY") }

it.effect("D43 are made where there is room", () =>
  Effect.gen(function* () {
    expect(yield* roots(treesIn(() => roomy))).toEqual([7, records])
  })
)

it.effect("D43 are refused where there is none, and where they would leave none", () =>
  Effect.gen(function* () {
    for (const memory of [full, nearly])
      expect(yield* Effect.flip(roots(treesIn(() => memory)))).toMatchObject(isRefused)
  })
)

it.effect("D43 are let go where the heap fills while they are made, and are made anew when it has room", () =>
  Effect.gen(function* () {
    let looks = 0
    const trees = treesIn(() => (++looks === 3 ? full : roomy))
    expect(yield* Effect.flip(roots(trees))).toMatchObject(isRefused)
    expect(yield* roots(trees)).toEqual([7, records])
  })
)

it.effect("D43 are refused where records that came since would leave no room", () =>
  Effect.gen(function* () {
    let memory = roomy
    const trees = treesIn(() => memory)
    yield* roots(trees)
    // The heap fills with the same records that the tree has yet to take in.
    trees.load(records, 2 * records)
    memory = full
    expect(yield* Effect.flip(roots(trees))).toMatchObject(isRefused)
    memory = roomy
    expect(yield* roots(trees)).toEqual([7, 2 * records])
  })
)

it.effect("D43 that are there are read in a full heap too", () =>
  Effect.gen(function* () {
    let memory = roomy
    const trees = treesIn(() => memory)
    yield* roots(trees)
    memory = full
    expect(yield* roots(trees)).toEqual([7, records])
  })
)
