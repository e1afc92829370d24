/**
 * Views found by their arguments: every kind of indexed conjunct against a plain run of the filter over all rows, with
 * values of all types, and the work of a change and of a registration counted.
 *
 * Why counted and not timed: an index that shows a change to everybody gives the right answers too, so results alone
 * cannot fail where law L4 is broken.
 */
import { Either } from "effect"
import { describe, expect, test } from "vitest"
import type { Change } from "../../../src/core/change.ts"
import { Engine } from "../../../src/core/ivm/engine.ts"
import type { Instance } from "../../../src/core/ivm/instance.ts"
import { newSpy } from "../../../src/core/ivm/spy.ts"
import { fromRecords } from "../../../src/core/surql/memory.ts"
import { parseSelect } from "../../../src/core/surql/parse.ts"
import * as Ids from "../../../src/core/surql/recordId.ts"
import { budget } from "../../../src/core/surql/scope.ts"
import { selectRows } from "../../../src/core/surql/select.ts"
import { D } from "../../../src/core/surql/number.ts"
import {
  Datetime, Decimal, Duration, Float, Geometry, Range, RecordRange, Regex, SetValue, Uuid, type Obj, type RecordId, type Value
} from "../../../src/core/surql/value.ts"
import { runs, seeded, type Rng } from "../../kit/random.ts"

type Params = { readonly [name: string]: Value }

const idOf = (text: string): RecordId => Ids.parse(text)!

const put = (text: string, content: Obj | undefined): Change => {
  const id = idOf(text)
  return { op: content === undefined ? "DELETE" : "CREATE", id, doc: { ...content, id }, version: undefined, position: undefined, jobAssignee: undefined }
}

/** An engine and a mirror of its records to run queries on afresh. */
class Bench {
  readonly spy = newSpy()
  readonly engine = new Engine({ spy: this.spy })
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

  watch(query: string, params: Params): Instance {
    return Either.getOrThrowWith(this.engine.acquire(Either.getOrThrow(parseSelect(query)), params), (refused) => new Error(`${refused.reason}: ${query}`))
  }

  fresh(query: string, params: Params, rows: Iterable<Obj> = this.mirror.values()): ReadonlyArray<string> {
    const answer = selectRows(Either.getOrThrow(parseSelect(query)), { source: fromRecords([...rows]), params, budget: budget(1e9, "none"), onFailure: "leaveOut" })
    return Either.getOrThrowWith(answer, (failed) => new Error(`${JSON.stringify(failed)}: ${query}`)).rows.map((row) => row.record!.text)
  }
}

const keysOf = (instance: Instance): ReadonlyArray<string> => instance.rows().map((row) => row.key)

const datetime = new Datetime(1_700_000_000, 5)
const point = new Geometry({ type: "Point", coordinates: [1, 2] })
/** Small pools, so that rows and arguments meet; equal values in several types. */
const scalars: ReadonlyArray<Value> = [
  undefined, null, true, false, 0, 1, 2, 3, new Float(1), new Float(-0), new Float(1.5), new Float(NaN), new Decimal(new D("1.0")), new Decimal(new D("2.5")), 9007199254740993n, "", "x", "xy", "2", "u:1", "\u0000",
  idOf("u:1"), idOf("u:2"), datetime, new Duration(1, 0), new Uuid("018e0f5c-0000-7000-8000-000000000000")
]
const odd: ReadonlyArray<Value> = [new Regex("x"), new Range({ value: 1, inclusive: true }, { value: 3, inclusive: false }), point, new RecordRange("u", new Range(undefined, undefined)), { k: new Regex("x") }, [new Regex("2")]]
const shallow = (random: Rng): Value => (random.chance(0.06) ? random.pick(odd) : random.pick(scalars))
const items = (random: Rng): ReadonlyArray<Value> => Array.from({ length: random.below(4) }, () => shallow(random))
const any = (random: Rng): Value => {
  const dice = random.below(20)
  if (dice > 3) return shallow(random)
  return dice === 0 ? items(random) : dice === 1 ? new SetValue(items(random).filter((item) => item !== undefined)) : dice === 2 ? { x: shallow(random) } : [items(random)]
}
const listOf = (random: Rng): Value => (random.chance(0.8) ? (random.chance(0.8) ? items(random) : new SetValue(items(random))) : any(random))
const bound = (random: Rng): { readonly value: Value; readonly inclusive: boolean } | undefined => (random.chance(0.2) ? undefined : { value: any(random), inclusive: random.chance(0.5) })
const rangeOf = (random: Rng): Value => (random.chance(0.8) ? new Range(bound(random), bound(random)) : listOf(random))
const recordsOf = (random: Rng): Value => (random.chance(0.8) ? Array.from({ length: random.below(4) }, () => recordOf(random)) : any(random))
const recordOf = (random: Rng): Value => (random.chance(0.7) ? (random.chance(0.7) ? idOf(`t:${random.below(8)}`) : `t:${random.below(8)}`) : random.chance(0.3) ? idOf("u:1") : any(random))

const filters: ReadonlyArray<string> = [
  "a = $x", "$x = a", "a = $x AND b = $y", "n.k = $x", "a = $x AND a = $y", "a = $x AND n.k = $y",
  "a > $x", "$x > a", "a >= $x AND a < $y", "$x <= a", "a > $x AND a > $y", "b = $x AND a <= $y", "a > $x AND b < $y AND b > $z", "n.k >= $x", "id > $i", "a IN $r", "b = $x AND a IN $r",
  "a IN $l", "$l CONTAINS a", "b = $x AND a INSIDE $l", "a = $x OR a = $y OR a IN $l", "a IN $l AND b > $x", "a = $x OR b = $y", "a IN $r AND b > $x", "a IN $l AND b IN $m", "a = $x OR a IN $r",
  "t CONTAINS $x", "$x IN t", "t CONTAINSANY $l", "$l ANYINSIDE t", "t ?= $x", "b = $x AND t CONTAINS $y AND a > $z", "t CONTAINS $x AND a IN $l", "t CONTAINSANY $l AND a <= $x", "n.k CONTAINS $x", "a CONTAINSALL $l", "$x ?= t",
  "id = $i", "id IN $j", "id = $i OR id = $x", "id = $i AND a = $x", "a IN $l AND id IN $j",
  "l.a = $x", "l.a = $x AND b = $y", "l.a > $x", "l.t CONTAINS $x", "l.a IN $l",
  "a = $x AND string::len(b) > 0", "string::len(b) > 0 AND a > $x", "a != $x AND t CONTAINS $y", "a NOT IN $l AND b = $x"
]

const paramsOf = (random: Rng): Params => ({ x: any(random), y: any(random), z: any(random), l: listOf(random), m: listOf(random), r: rangeOf(random), i: recordOf(random), j: recordsOf(random) })

const docOf = (random: Rng): Obj => ({
  a: any(random), b: random.chance(0.7) ? random.pick([1, 2, "x"]) : any(random), t: listOf(random),
  n: random.chance(0.8) ? { k: listOf(random) } : any(random), l: random.chance(0.5) ? random.pick([idOf("u:1"), idOf("u:2"), "u:1"]) : random.chance(0.5) ? { a: any(random) } : any(random)
})

seeded("L1 views found by their arguments hold what a run of their filter over all rows gives, for arguments and rows of all types", "test/core/ivm/argumentIndex.test.ts", (random) => {
  const total = { rows: 0, left: 0, entered: 0 }
  for (const filter of filters) {
    const query = `SELECT * FROM t WHERE ${filter}`
    for (let run = 0; run < runs(3); run++) {
      const bench = new Bench()
      const views: Array<{ params: Params; instance: Instance; keys: ReadonlyArray<string> }> = []
      for (let step = 0; step < 60; step++) {
        const text = random.chance(0.1) ? `u:${1 + random.below(2)}` : `t:${random.below(8)}`
        const known = bench.mirror.get(text)
        const [name] = random.pick(Object.entries(docOf(random)))
        bench.send(put(text, random.chance(0.15) ? undefined : known === undefined || random.chance(0.3) ? docOf(random) : { ...known, [name]: docOf(random)[name] }))
        for (const view of views) {
          const keys = keysOf(view.instance)
          const expected = bench.fresh(query, view.params)
          if (keys.join() !== expected.join()) expect({ filter, params: view.params, changed: bench.mirror.get(text), keys }).toEqual({ filter, params: view.params, changed: bench.mirror.get(text), keys: expected })
          total.rows += expected.length
          total.entered += keys.filter((key) => !view.keys.includes(key)).length
          total.left += view.keys.filter((key) => !keys.includes(key)).length
          view.keys = keys
        }
        if (random.chance(0.3)) {
          const params = paramsOf(random)
          const instance = bench.watch(query, params)
          expect(keysOf(instance), `first fill of ${filter}`).toEqual(bench.fresh(query, params))
          views.push({ params, instance, keys: keysOf(instance) })
        }
        if (views.length > 14 || (views.length > 0 && random.chance(0.08))) bench.engine.release(views.splice(random.below(views.length), 1)[0]!.instance)
      }
    }
  }
  expect(total.rows).toBeGreaterThan(50_000)
  expect(Math.min(total.entered, total.left)).toBeGreaterThan(5_000)
})
