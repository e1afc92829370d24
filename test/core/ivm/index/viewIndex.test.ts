/**
 * Views found by their arguments: every kind of indexed conjunct against a plain run of the filter over all rows, with
 * values of all types, and the work of a change and of a registration counted.
 *
 * Why counted and not timed: an index that shows a change to everybody gives the right answers too, so results alone
 * cannot fail where law L4 is broken.
 */
import { Either } from "effect"
import { describe, expect, test } from "vitest"
import { type Rng, runs, seeded } from "../../../../kit/data/random.ts"
import { Engine } from "../../../../src/core/ivm/engine.ts"
import type { View } from "../../../../src/core/ivm/view/view.ts"
import { newWorkCounters } from "../../../../src/core/ivm/workCounters.ts"
import type { Change } from "../../../../src/core/record/change.ts"
import { compile, run } from "../../../../src/core/surql/evaluate/evaluate.ts"
import { fromRecords } from "../../../../src/core/surql/evaluate/memory.ts"
import { type Compiled, makeBudget, type Source } from "../../../../src/core/surql/evaluate/scope.ts"
import type { Select } from "../../../../src/core/surql/syntax/ast.ts"
import { parseSelect } from "../../../../src/core/surql/syntax/parse.ts"
import { WideDecimal } from "../../../../src/core/surql/values/number.ts"
import { isTruthy } from "../../../../src/core/surql/values/order.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import {
  Datetime,
  Decimal,
  Duration,
  Float,
  Geometry,
  type Obj,
  Range,
  type RecordId,
  RecordRange,
  Regex,
  SetValue,
  Uuid,
  type Value
} from "../../../../src/core/surql/values/value.ts"
import { Desk, type Watching } from "../desk.ts"

type Params = { readonly [name: string]: Value }

const idOf = (text: string): RecordId => Ids.parse(text)!

const put = (text: string, content: Obj | undefined): Change => {
  const id = idOf(text)
  return {
    op: content === undefined ? "DELETE" : "CREATE",
    id,
    doc: { ...content, id },
    version: undefined,
    position: undefined,
    jobAssignee: undefined
  }
}

/** An engine and a mirror of its records to run queries on afresh. */
class Bench {
  readonly counters = newWorkCounters()
  readonly engine = new Engine({ counters: this.counters })
  readonly mirror = new Map<string, Obj>()
  /** Rows the engine took from whole tables. */
  scanned = 0

  constructor() {
    const { store } = this.engine
    const rows = store.rows.bind(store)
    const count = (): void => void this.scanned++
    store.rows = function* (table) {
      for (const row of rows(table)) {
        count()
        yield row
      }
    }
  }

  send(change: Change): number {
    if (change.op === "DELETE") this.mirror.delete(change.id.text)
    else this.mirror.set(change.id.text, change.doc)
    const [write] = this.engine.plan([change])
    return write === undefined ? 0 : this.engine.apply(write).length
  }

  watch(query: string, params: Params): View {
    return Either.getOrThrowWith(
      this.engine.acquire(parsed(query), params),
      (refused) => new Error(`${refused.reason}: ${query}`)
    )
  }

  /** Ids of the rows a filter holds for, by running it on each. */
  fresh(filter: string, params: Params): ReadonlyArray<string> {
    const holds = naive(filter)
    const source = fromRecords([...this.mirror.values()])
    return [...this.mirror]
      .filter(([text, doc]) => text.startsWith("t:") && holds(doc, params, source))
      .map(([text]) => text)
      .sort()
  }
}

const queries = new Map<string, Select>()
const parsed = (query: string): Select => {
  const select = queries.get(query) ?? Either.getOrThrow(parseSelect(query))
  queries.set(query, select)
  return select
}

const compiled = new Map<string, Compiled>()
/** Whether a filter holds for a row; a row it fails on it does not hold for. */
const naive = (filter: string): ((doc: Obj, params: Params, source: Source) => boolean) => {
  const where = compiled.get(filter) ?? compile(parsed(queryOf(filter)).where!)
  compiled.set(filter, where)
  return (doc, params, source) => {
    const value = run(where, { doc, params, parent: undefined, source, budget: makeBudget(1e9, "none") })
    return Either.isRight(value) && isTruthy(value.right)
  }
}

const queryOf = (filter: string): string => `SELECT * FROM t WHERE ${filter}`

const keysOf = (instance: View): ReadonlyArray<string> =>
  instance
    .rows()
    .map((row) => row.key)
    .sort()

const datetime = new Datetime(1_700_000_000, 5)
const point = new Geometry({ type: "Point", coordinates: [1, 2] })
/** Equal values in several types. */
const scalars: ReadonlyArray<Value> = [
  undefined,
  null,
  true,
  false,
  0,
  1,
  2,
  3,
  new Float(1),
  new Float(-0),
  new Float(1.5),
  new Float(NaN),
  new Decimal(new WideDecimal("1.0")),
  new Decimal(new WideDecimal("2.5")),
  9007199254740993n,
  "",
  "x",
  "xy",
  "2",
  "u:1",
  "\u0000",
  idOf("u:1"),
  idOf("u:2"),
  datetime,
  new Duration(1, 0),
  new Uuid("018e0f5c-0000-7000-8000-000000000000")
]
const odd: ReadonlyArray<Value> = [
  new Regex("x"),
  new Range({ value: 1, inclusive: true }, { value: 3, inclusive: false }),
  point,
  new RecordRange("u", new Range(undefined, undefined)),
  { k: new Regex("x") },
  [new Regex("2")]
]

/** Values for one history, mostly from a few, so that rows and arguments meet. */
class Values {
  private readonly random: Rng
  private readonly few: ReadonlyArray<Value>

  constructor(random: Rng) {
    this.random = random
    this.few = [1, new Float(1), ...Array.from({ length: 4 }, () => random.pick(scalars))]
  }

  one(): Value {
    const { random } = this
    return random.chance(0.85) ? random.pick(this.few) : random.chance(0.2) ? random.pick(odd) : random.pick(scalars)
  }

  some(): ReadonlyArray<Value> {
    return Array.from({ length: this.random.below(4) }, () => this.one())
  }

  any(): Value {
    const dice = this.random.below(24)
    if (dice > 3) return this.one()
    return dice === 0
      ? this.some()
      : dice === 1
        ? new SetValue(this.some())
        : dice === 2
          ? { x: this.one() }
          : [this.some()]
  }

  list(): Value {
    const { random } = this
    return random.chance(0.8) ? (random.chance(0.8) ? this.some() : new SetValue(this.some())) : this.any()
  }

  range(): Value {
    const bound = () =>
      this.random.chance(0.2) ? undefined : { value: this.any(), inclusive: this.random.chance(0.5) }
    return this.random.chance(0.8) ? new Range(bound(), bound()) : this.list()
  }

  record(): Value {
    const { random } = this
    return random.chance(0.8)
      ? random.chance(0.7)
        ? idOf(`t:${random.below(8)}`)
        : `t:${random.below(8)}`
      : random.chance(0.3)
        ? idOf("u:1")
        : this.any()
  }

  records(): Value {
    return this.random.chance(0.8) ? Array.from({ length: this.random.below(4) }, () => this.record()) : this.any()
  }

  params(): Params {
    return {
      x: this.any(),
      y: this.any(),
      z: this.any(),
      l: this.list(),
      m: this.list(),
      r: this.range(),
      i: this.record(),
      j: this.records()
    }
  }

  doc(): Obj {
    const { random } = this
    const link = random.chance(0.6)
      ? random.pick([idOf("u:1"), idOf("u:2"), "u:1"])
      : random.chance(0.5)
        ? { a: this.any() }
        : this.any()
    return {
      a: this.any(),
      b: random.chance(0.5) ? this.few[0] : this.any(),
      t: this.list(),
      n: random.chance(0.85) ? { k: random.chance(0.7) ? this.any() : this.list() } : this.any(),
      l: link
    }
  }
}

const filters: ReadonlyArray<string> = [
  "a = $x",
  "$x = a",
  "a = $x AND b = $y",
  "n.k = $x",
  "a = $x AND a = $y",
  "a = $x AND n.k = $y",
  "a > $x",
  "$x > a",
  "a >= $x AND a < $y",
  "$x <= a",
  "a > $x AND a > $y",
  "b = $x AND a <= $y",
  "a > $x AND b < $y AND b > $z",
  "n.k >= $x",
  "id > $i",
  "a IN $r",
  "b = $x AND a IN $r",
  "a IN $l",
  "$l CONTAINS a",
  "b = $x AND a INSIDE $l",
  "a = $x OR a = $y OR a IN $l",
  "a IN $l AND b > $x",
  "a = $x OR b = $y",
  "a IN $r AND b > $x",
  "a IN $l AND b IN $m",
  "a = $x OR a IN $r",
  "t CONTAINS $x",
  "$x IN t",
  "t CONTAINSANY $l",
  "$l ANYINSIDE t",
  "t ?= $x",
  "b = $x AND t CONTAINS $y AND a > $z",
  "t CONTAINS $x AND a IN $l",
  "t CONTAINSANY $l AND a <= $x",
  "n.k CONTAINS $x",
  "a CONTAINSALL $l",
  "$x ?= t",
  "id = $i",
  "id IN $j",
  "id = $i OR id = $x",
  "id = $i AND a = $x",
  "a IN $l AND id IN $j",
  "l.a = $x",
  "l.a = $x AND b = $y",
  "l.a > $x",
  "l.t CONTAINS $x",
  "l.a IN $l",
  "a = $x AND b + 1 > 0",
  "b + 1 > 0 AND a > $x",
  "a != $x AND t CONTAINS $y",
  "a NOT IN $l AND b = $x"
]

seeded(
  "L1 views found by their arguments hold what a run of their filter over all rows gives, for arguments and rows of all types",
  "test/core/ivm/index/viewIndex.test.ts",
  (random) => {
    const scarce: Array<string> = []
    for (const filter of filters) {
      const total = { rows: 0, left: 0, entered: 0 }
      for (let n = 0; n < runs(1); n++) {
        const bench = new Bench(),
          values = new Values(random)
        const views: Array<{ params: Params; instance: View; keys: ReadonlyArray<string> }> = []
        for (let step = 0; step < 75; step++) {
          const text = random.chance(0.1) ? `u:${1 + random.below(2)}` : `t:${random.below(8)}`
          const known = bench.mirror.get(text)
          const [name] = random.pick(Object.entries(values.doc()))
          bench.send(
            put(
              text,
              random.chance(0.15)
                ? undefined
                : known === undefined || random.chance(0.3)
                  ? values.doc()
                  : { ...known, [name]: values.doc()[name] }
            )
          )
          for (const view of views) {
            const keys = keysOf(view.instance)
            const expected = bench.fresh(filter, view.params)
            if (keys.join() !== expected.join())
              expect({ filter, params: view.params, changed: bench.mirror.get(text), keys }).toEqual({
                filter,
                params: view.params,
                changed: bench.mirror.get(text),
                keys: expected
              })
            total.rows += expected.length
            total.entered += keys.filter((key) => !view.keys.includes(key)).length
            total.left += view.keys.filter((key) => !keys.includes(key)).length
            view.keys = keys
          }
          if (random.chance(0.3)) {
            const params = values.params()
            const instance = bench.watch(queryOf(filter), params)
            expect(keysOf(instance), `first fill of ${filter}`).toEqual(bench.fresh(filter, params))
            views.push({ params, instance, keys: keysOf(instance) })
          }
          if (views.length > 14 || (views.length > 0 && random.chance(0.08)))
            bench.engine.release(views.splice(random.below(views.length), 1)[0]!.instance)
        }
      }
      if (total.rows < 12 * runs(1) || Math.min(total.entered, total.left) < runs(1))
        scarce.push(`${filter} ${JSON.stringify(total)}`)
    }
    expect(scarce, "filters that were not tried enough").toEqual([])
  }
)

/** A filter with 3,000 different arguments, and contents of rows to change. */
interface Kind {
  readonly filter: string
  readonly params: (i: number) => Params
  readonly row: (i: number) => Obj
}

const views = 3_000
const rows = 20
const numbered = (i: number): Params => ({
  x: i,
  l: [i, -i - 1, `n${i}`],
  r: new Range({ value: i, inclusive: true }, { value: i + 3, inclusive: false }),
  i: idOf(`t:${i}`),
  j: [idOf(`t:${i}`), `t:${i + 1}`]
})

const kinds: { readonly [what: string]: Kind } = {
  equality: { filter: "a = $x", params: numbered, row: (i) => ({ a: i * 3 }) },
  equalities: { filter: "a = $x AND b = 'y'", params: numbered, row: (i) => ({ a: i, b: i % 3 === 0 ? "z" : "y" }) },
  "a lower bound": { filter: "a >= $x", params: (i) => ({ x: i * 10 }), row: (i) => ({ a: i * 20 }) },
  "an upper bound": { filter: "a < $x", params: (i) => ({ x: -i * 10 }), row: (i) => ({ a: i * -20 }) },
  "a range": { filter: "a > $x AND a <= $y", params: (i) => ({ x: i, y: i + 5 }), row: (i) => ({ a: i * 7 }) },
  "nested ranges": {
    filter: "a > $x AND a <= $y",
    params: (i) => ({ x: 2 * views - i, y: 2 * views + i }),
    row: (i) => ({ a: i % 2 === 0 ? views + 1 + i : 3 * views - 10 - i })
  },
  "a range as a value": { filter: "a IN $r", params: numbered, row: (i) => ({ a: i * 5 }) },
  "a range within an equality": {
    filter: "b = $x AND a > $y",
    params: (i) => ({ x: i % 100, y: Math.floor(i / 100) }),
    row: (i) => ({ b: i, a: i % 7 })
  },
  "an equality behind a link and one in the row": {
    filter: "l.a = 1 AND b = $x",
    params: numbered,
    row: (i) => ({ l: idOf("u:1"), b: i * 2 })
  },
  "a range behind a link and an equality in the row": {
    filter: "l.a > 0 AND b = $x AND a != 7",
    params: numbered,
    row: (i) => ({ l: idOf("u:1"), b: i * 2, a: 1 })
  },
  IN: { filter: "a IN $l", params: numbered, row: (i) => ({ a: i < 12 ? i : `n${i - 12}` }) },
  OR: {
    filter: "a = $x OR a = $y",
    params: (i) => ({ x: i, y: `y${i}` }),
    row: (i) => ({ a: i % 2 === 0 ? i : `y${i * 2}` })
  },
  CONTAINS: { filter: "t CONTAINS $x", params: numbered, row: (i) => ({ t: [i, i + 1, i] }) },
  CONTAINSANY: { filter: "t CONTAINSANY $l", params: numbered, row: (i) => ({ t: [i, `n${i}`, `n${i + 1}`] }) },
  "CONTAINS and a range within an equality": {
    filter: "b = 1 AND t CONTAINS $x AND a > $y",
    params: (i) => ({ x: i % 500, y: i / 500 }),
    row: (i) => ({ b: 1, t: [i, i + 1], a: i % 9 })
  },
  "a record": { filter: "id = $i", params: numbered, row: (i) => ({ a: i }) },
  records: { filter: "id IN $j", params: numbered, row: (i) => ({ a: i }) }
}

describe("L4 a change is shown to the views it concerns and to no other, of 3,000 views of", () => {
  test.each(Object.entries(kinds))("%s", (_, { filter, params, row }) => {
    const bench = new Bench()
    for (let i = 0; i < rows; i++) bench.send(put(`t:${i}`, row(i)))
    const link = put("u:1", { a: 1 })
    bench.engine.load(link.id, 1, link.doc)
    const holds = naive(filter),
      source = fromRecords([link.doc])
    const holding = (doc: Obj | undefined): ReadonlyArray<number> =>
      doc === undefined ? [] : given.flatMap((one, i) => (holds(doc, one, source) ? [i] : []))
    const given = Array.from({ length: views }, (_, i) => params(i))
    const instances = given.map((one) => bench.watch(queryOf(filter), one))
    const matches = [...bench.mirror.values()].reduce((sum, doc) => sum + holding(doc).length, 0)
    expect(bench.counters, "registration looks at the rows under the key").toMatchObject({
      views: matches,
      rows: matches
    })
    expect(bench.scanned, "the table is read once for the first view and once for each index").toBeLessThanOrEqual(
      (filter.startsWith("l.") ? 3 : 2) * rows
    )
    expect(instances.reduce((sum, instance) => sum + instance.size, 0)).toBe(matches)
    let concerned = 0
    for (let i = 0; i < 12; i++) {
      const text = `t:${i % 4 === 3 ? 100 + i : i}`
      const before = bench.mirror.get(text)
      const change = put(text, i % 4 === 2 ? undefined : i % 4 === 1 ? { ...before, unseen: i } : row(i + 12))
      const then = holding(before),
        now = holding(change.op === "DELETE" ? undefined : change.doc)
      const shown = bench.counters.views,
        evaluated = bench.counters.rows
      const touched = bench.send(change)
      const either = new Set([...then, ...now])
      expect([bench.counters.views - shown, bench.counters.rows - evaluated, touched], `change ${i}`).toEqual([
        either.size,
        now.length,
        either.size
      ])
      concerned += either.size
    }
    expect(concerned).toBeGreaterThan(5)
    for (const i of [0, 1, 49, 99, 1_500, 2_999]) expect(keysOf(instances[i]!)).toEqual(bench.fresh(filter, params(i)))
    for (const instance of instances) bench.engine.release(instance)
    expect(bench.engine.shapes()).toEqual([])
    bench.scanned = 0
    bench.watch(queryOf(filter), params(0))
    expect(bench.scanned > 0, "indexes go with the last view").toBe(!filter.startsWith("id"))
  })
})

describe("what an index must not change", () => {
  test("L1 a row that changes its key while a view is being filled is not in it", () => {
    const bench = new Bench()
    for (let i = 0; i < 1_000; i++) bench.send(put(`t:${i}`, { a: 1, b: i }))
    for (const [filter, given, other] of [
      ["a = $x", 1, 5],
      ["a > $x", 0, 6],
      ["a IN $x", [1, 3], [7]],
      ["b >= 0 AND a IN $x", new Range({ value: 1, inclusive: true }, undefined), [8]]
    ] as const) {
      const params = { x: given as Value }
      const others = [1, 2].map((n) => bench.watch(queryOf(filter), { x: n === 1 ? (other as Value) : [[n]] }))
      const slices = bench.engine.acquireSliced(parsed(queryOf(filter)), params)
      expect(slices.next().done).toBe(false)
      for (let i = 0; i < 1_000; i += 7) bench.send(put(`t:${i}`, i % 2 === 0 ? { a: 0, b: i } : undefined))
      let step = slices.next()
      while (step.done !== true) step = slices.next()
      const instance = Either.getOrThrow(step.value)
      expect(keysOf(instance)).toEqual(bench.fresh(filter, params))
      expect(instance.size).toBeGreaterThan(800)
      for (let i = 0; i < 1_000; i += 7) bench.send(put(`t:${i}`, { a: 1, b: i }))
      for (const one of [...others, instance]) bench.engine.release(one)
    }
  })

  test("L1 a subquery fails with a row on which what stands before the indexed conjunct fails, wherever that row is filed", () => {
    const bench = new Bench()
    const query = "SELECT id, (SELECT VALUE id FROM t WHERE b + 1 > 0 AND a = $parent.a) AS found FROM u"
    const view = bench.watch(query, {})
    bench.send(put("u:1", { a: 1 }))
    bench.send(put("t:1", { a: 1, b: 1 }))
    expect(keysOf(view)).toEqual(["u:1"])
    bench.send(put("t:2", { a: 2, b: true }))
    expect([keysOf(view), view.errors().length]).toEqual([[], 1])
    bench.send(put("t:2", { a: 2, b: 2 }))
    expect([keysOf(view), view.errors().length]).toEqual([["u:1"], 0])
  })

  test("L5 which rows a view names as failing does not depend on where they were before", () => {
    const bench = new Bench()
    const view = bench.watch(queryOf("b + 1 > 0 AND l.a = 1"), {})
    bench.send(put("t:1", { b: true, l: idOf("u:1") }))
    bench.send(put("t:1", { b: true, l: { a: 2 } }))
    const later = bench.watch(`${queryOf("b + 1 > 0 AND l.a = 1")} START 0`, {})
    expect([view.errors(), later.errors()]).toEqual([[], []])
    bench.send(put("t:1", { b: true, l: { a: 1 } }))
    expect([view.errors().length, later.errors().length]).toEqual([1, 1])
  })
})

test.each([
  ["of one shape", []],
  ["of two shapes", ["SELECT * FROM t WHERE a = 1", "SELECT * FROM t WHERE a = 2"]]
])("L1 where a view stands for the rows of a key, others of that key are told of them too: %s", (_, plain) => {
  const on = new Desk()
  const splitting = (more: number, a: number): Watching =>
    on.watch("SELECT tags, $more AS more FROM t WHERE a = $a SPLIT tags", { more, a })
  const others = plain.map((query) => on.watch(query))
  const views = [splitting(1, 1), splitting(1, 2), splitting(2, 1)]
  const sizes = (): ReadonlyArray<number> => views.map((view) => view.rows().length)
  const otherSizes = (): ReadonlyArray<number> => others.map((view) => view.rows().length)
  on.put("t:1", { a: 1, tags: ["x", "y"] })
  expect([sizes(), otherSizes()]).toEqual([[2, 0, 2], [1, 0].slice(0, plain.length)])
  on.put("t:1", { a: 2, tags: ["x", "y"] }, "UPDATE")
  expect([sizes(), otherSizes()]).toEqual([[0, 2, 0], [0, 1].slice(0, plain.length)])
  on.put("t:1", { a: 1, tags: ["x"] }, "UPDATE")
  expect([sizes(), otherSizes()]).toEqual([[1, 0, 1], [1, 0].slice(0, plain.length)])
  on.engine.release(views.pop()!.view)
  on.remove("t:1")
  expect([sizes(), otherSizes()]).toEqual([[0, 0], [0, 0].slice(0, plain.length)])
})
