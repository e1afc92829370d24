/**
 * Values written as text in slices (D48): the same text as in one go, and no turn that does more than a few thousand
 * parts, whatever the value's form.
 *
 * What a turn does is counted and not timed: reads of parts, by accessors that count, and characters written.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import * as Hostile from "../../../../kit/data/hostile.ts"
import { runs, seeded } from "../../../../kit/data/random.ts"
import { fromRecords } from "../../../../src/core/surql/evaluate/memory.ts"
import { drain, queryBudget } from "../../../../src/core/surql/evaluate/scope.ts"
import { evaluateSliced } from "../../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../../src/core/surql/syntax/parse.ts"
import { encode } from "../../../../src/core/surql/values/encode.ts"
import { stringify } from "../../../../src/core/surql/values/json.ts"
import { Geometry, type Obj, SetValue, type Value } from "../../../../src/core/surql/values/value.ts"
import {
  exactNotation,
  type Notation,
  plainNotation,
  smallParts,
  writerOf
} from "../../../../src/core/surql/written/sliced.ts"
import * as Values from "../scalarValues.ts"

const notations: ReadonlyArray<readonly [Notation, (v: Value) => string]> = [
  [exactNotation, encode],
  [plainNotation, stringify]
]

/** The text, and how many characters each turn wrote. */
const inSlices = (notation: Notation, v: Value) => {
  let text = "",
    before = 0
  const turns: Array<number> = []
  const slices = writerOf(notation, (more) => void (text += more))(v)
  for (let done = false; !done; ) {
    done = slices.next().done === true
    turns.push(text.length - before)
    before = text.length
  }
  return { text, turns }
}

const same = (v: Value): void => {
  for (const [notation, whole] of notations)
    expect(inSlices(notation, v).text === whole(v), whole(v).slice(0, 200)).toBe(true)
}

const objectOf = (size: number, valueOf: (i: number) => Value, names: ReadonlyArray<string> = ["key"]): Obj =>
  Object.fromEntries(
    Array.from({ length: size }, (_, i) => [`${names[i % names.length]!} ${(i * 7919) % size}`, valueOf(i)])
  )

const valueOf = (text: string): Value => {
  const [statement] = Either.getOrThrow(parseStatements(`RETURN ${text}`))
  const options = { source: fromRecords([]), params: {}, budget: queryBudget(), maxRows: 1 }
  return Either.getOrElse(drain(evaluateSliced(statement!, options)), () => null)
}

const many = 20_000

/** One of each form that can be large, each beyond what is written in one go. */
const large: ReadonlyArray<readonly [what: string, value: Value]> = [
  ["a list of numbers", Array.from({ length: many }, (_, i) => i)],
  ["one object", objectOf(many, (i) => i)],
  ["an object with NONE and a tag's name", { ...objectOf(many, (i) => (i % 2 === 0 ? undefined : i)), $: 1 }],
  ["an object in an object", { a: { b: { c: objectOf(many, (i) => [i]) } } }],
  ["a set", new SetValue(Array.from({ length: many }, (_, i) => [i]))],
  ["a geometry", new Geometry({ type: "LineString", coordinates: Array.from({ length: many }, (_, i) => [i, 1]) })],
  ["one text", "text\n".repeat(400_000)],
  ["one text of pairs, cut at any place", `x${"😀\ud800é".repeat(400_000)}`],
  ["keys beyond the basic plane", objectOf(many, () => 1, ["\u{10000}", "\uffff", "\ud800", "é"])],
  ["a long key", { ["k".repeat(2_000_000)]: 1, "\u{10000}": 2, "\uffff": 3 }],
  ["shared parts", Array.from({ length: 20 }, () => objectOf(3_000, () => "shared"))]
]

describe("writing in slices", () => {
  it.each(large)("gives the text that writing in one go gives: %s", (_, value) => same(value))

  seeded("gives the same text for any values, side by side", "test/core/surql/written/sliced.test.ts", (random) => {
    for (let n = 0; n < runs(12); n++) {
      const parts = Array.from({ length: 20 }, () =>
        random.chance(0.5) ? valueOf(Values.any(random)) : Hostile.content(random)
      )
      same(
        random.chance(0.5)
          ? Array.from({ length: 2 * smallParts }, (_, i) => parts[i % 20])
          : objectOf(smallParts, (i) => parts[i % 20])
      )
    }
  })

  it.each(large)("D48 pauses within a few thousand parts: %s", (_, value) => {
    for (const [notation] of notations) {
      const { turns } = inSlices(notation, value)
      expect(turns.length).toBeGreaterThan(2)
      // A part of these is at most some forty characters; of a text 64 are one, and one that is escaped is written as six.
      expect(Math.max(...turns)).toBeLessThan(6 * 64 * 6 * smallParts)
    }
  })

  it("D48 looks at no more than a few thousand parts in a turn: one object of 1,000,000", () => {
    let looks = 0
    const part: Obj = {
      get a() {
        looks++
        return 1
      }
    }
    const object = objectOf(1_000, () => Array.from({ length: 1_000 }, () => part))
    const turns: Array<number> = []
    for (const slices = writerOf(plainNotation, () => {})(object); slices.next().done !== true; looks = 0)
      turns.push(looks)
    expect(turns.length).toBeGreaterThan(100)
    expect(Math.max(...turns)).toBeLessThan(8 * smallParts)
  })
})
