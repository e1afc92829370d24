/**
 * What functions and operators charge (D48): in proportion to what they walk and make, counted, never by a clock.
 *
 * A table over every function there is: each is called with arguments that double in size. One that is not named here as looking
 * at one place must charge about twice the steps; all must charge no fewer bytes than the answer takes. A function that somebody
 * adds is tested as soon as it is in the table of functions.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { partsOf } from "../../../src/core/surql/charge.ts"
import { isFunctionName } from "../../../src/core/surql/functionNames.ts"
import { functions } from "../../../src/core/surql/functions.ts"
import { named } from "../../../src/core/surql/functions/costs.ts"
import { fromRecords } from "../../../src/core/surql/memory.ts"
import { parseStatements } from "../../../src/core/surql/parse.ts"
import { budget, queryBudget } from "../../../src/core/surql/scope.ts"
import { evaluate } from "../../../src/core/surql/select.ts"
import type { Value } from "../../../src/core/surql/value.ts"

interface Charged {
  readonly steps: number
  readonly bytes: number
  readonly outcome: Either.Either<Value, string>
}

const charged = (text: string, params: { readonly [name: string]: Value } = {}): Charged => {
  const b = budget(1e12, "TEST", Infinity, 1e12)
  const [statement] = Either.getOrThrowWith(parseStatements(text), (e) => new Error(`${text}: ${e.message}`))
  const answer = evaluate(statement!, { source: fromRecords([]), params, budget: b })
  return { steps: b.limit - b.left, bytes: b.byteLimit - b.bytes, outcome: Either.mapLeft(answer, ({ reason }) => reason) }
}

/** A text of a size for each kind of argument; `%` stands where a function needs another form. */
const kinds: { readonly [kind: string]: (n: number) => string } = {
  numbers: (n) => `array::range(0, ${n})`,
  strings: (n) => `array::range(0, ${n}).map(|$v| <string> $v)`,
  text: (n) => `string::repeat('ab ', ${n})`,
  set: (n) => `<set> array::range(0, ${n})`,
  object: (n) => `object::from_entries(array::range(0, ${n}).map(|$v| [<string> $v, $v]))`,
  entries: (n) => `array::range(0, ${n}).map(|$v| [<string> $v, $v])`,
  lists: (n) => `array::range(0, ${n}).map(|$v| [$v, $v])`,
  dates: (n) => `array::range(0, ${n}).map(|$v| time::from_secs($v))`,
  bytes: (n) => `<bytes> string::repeat('ab ', ${n})`,
  line: (n) => `<geometry> { type: 'LineString', coordinates: array::range(0, ${n}).map(|$v| [$v / 10000, 1]) }`
}

/** Arguments of a function by its name, with \`@kind\` for what grows. The first that fits holds. */
const shapes: ReadonlyArray<readonly [RegExp, string]> = [
  [/^array::(clump|windows)$/, "@numbers, 5"], [/^array::combine$/, "@numbers, [1, 2, 3]"], [/^array::(transpose|flatten|group)$/, "@lists"],
  [/^array::(repeat|sequence)$/, "1, #"], [/^array::range$/, "0, #"], [/^array::join$/, "@strings, ','"], [/^array::insert$/, "@numbers, 1, 0"],
  [/^array::swap$/, "@numbers, 0, 1"], [/^array::(remove|at)$/, "@numbers, 0"], [/^array::fill$/, "@numbers, 1"],
  [/^(array|set)::(fold)$/, "@1, 0, |$a, $b| $b"], [/^(array|set)::(reduce)$/, "@1, |$a, $b| $b"], [/^(array|set)::(map)$/, "@1, |$v| $v"],
  [/^(array|set)::(all|any|every|some|filter|find|find_index|filter_index|includes|index_of)$/, "@1, |$v| $v = -1"],
  [/^array::(add|append|push|prepend|matches)$/, "@numbers, 7"], [/^array::(concat|union|complement|difference|intersect|boolean_and|boolean_or|boolean_xor|logical_and|logical_or|logical_xor)$/, "@numbers, @numbers"],
  [/^array::/, "@numbers"],
  [/^set::(add|contains|remove)$/, "@set, 7"], [/^set::at$/, "@set, 0"], [/^set::join$/, "@set, ','"], [/^set::(complement|difference|intersect|union)$/, "@set, @set"], [/^set::/, "@set"],
  [/^object::from_entries$/, "@entries"], [/^object::extend$/, "@object, @object"], [/^object::remove$/, "@object, ['a']"], [/^object::/, "@object"],
  [/^string::(contains|ends_with|starts_with|split)$/, "@text, 'ab'"], [/^string::matches$/, "@text, /b a$/"], [/^string::replace$/, "@text, 'a', 'xy'"],
  [/^string::(distance|similarity)::/, "@text, @text"], [/^string::repeat$/, "'abcdefgh', #"], [/^string::join$/, "',', @text, @text"], [/^string::semver::(compare)$/, "'1.0.0+' + string::repeat('ab', #), '1.0.0'"],
  [/^string::semver::set/, "'1.0.0+' + string::repeat('ab', #), 1"], [/^string::semver::/, "'1.0.0+' + string::repeat('ab', #)"], [/^string::slice$/, "@text, 1"], [/^string::/, "@text"],
  [/^parse::url/, "'http://a.b/' + string::repeat('a', #) + '?' + string::repeat('a', #)"], [/^parse::/, "@text"],
  [/^crypto::/, "@text"], [/^bytes::len$/, "@bytes"], [/^encoding::base64::encode$/, "@bytes"], [/^encoding::base64::decode$/, "string::repeat('abcd', #)"],
  [/^encoding::cbor::decode$/, "encoding::cbor::encode(@numbers)"], [/^encoding::cbor::encode$/, "@numbers"],
  [/^time::(max|min)$/, "@dates"], [/^time::format$/, "time::from_secs(1), string::repeat('%Y ', #)"],
  [/^math::(bottom|top|nearestrank|percentile)$/, "@numbers, 5"], [/^math::(interquartile|max|mean|median|midhinge|min|mode|product|spread|stddev|sum|trimean|variance)$/, "@numbers.map(|$v| 1)"],
  [/^vector::scale$/, "@numbers, 2"], [/^vector::distance::minkowski$/, "@numbers, @numbers, 2"], [/^vector::(magnitude|normalize)$/, "@numbers"], [/^vector::/, "@numbers, @numbers"],
  [/^geo::(area|centroid|is_valid)$/, "@line"], [/^geo::hash::decode$/, "@text"],
  [/^type::(string|string_lossy|array|set)$/, "@numbers"], [/^type::bytes$/, "@text"], [/^type::fields$/, "@strings"], [/^type::field$/, "string::repeat('a.', #) + 'b'"],
  [/^value::diff$/, "@numbers, array::reverse(@numbers)"], [/^value::patch$/, "{ a: @numbers }, [{ op: 'add', path: '/b', value: 1 }]"],
  [/^count$/, "@numbers"]
]

/** Functions of values that have no size, or that look at one place of them. */
const onePlace = /^(array::(at|first|last|len|is_empty|pop)|set::(at|first|last|len|is_empty|max|min)|bytes::len|value::chain|not|record::.*|meta::.*|duration::.*|rand.*|session.*|type::(is_.*|of|table|record|bool|datetime|decimal|duration|float|geometry|int|number|point|range|uuid)|time::(?!max$|min$|format$).*|math::(?!bottom|top|nearestrank|percentile|interquartile|max|mean|median|midhinge|min|mode|product|spread|stddev|sum|trimean|variance).*|geo::(bearing|distance|hash::encode)|vector::cross)$/

const names = [...functions.keys()].filter((name) => isFunctionName(name) && functions.get(name)!.pure)

const grown = (args: string, name: string, n: number): string =>
  args.replaceAll("@1", () => kinds[name.startsWith("set::") ? "set" : "numbers"]!(n)).replace(/@(\w+)/g, (_, kind: string) => kinds[kind]!(n)).replaceAll("#", String(n))

/** What a call charges besides the making of its arguments. */
const call = (name: string, args: string, n: number): Charged => {
  const values = splitArguments(grown(args, name, n))
  const given: Record<string, Value> = {}
  values.forEach((value, i) => { if (!value.startsWith("|")) given[`p${i}`] = Either.getOrThrowWith(charged(`RETURN ${value}`).outcome, (why) => new Error(`${name}: ${value}: ${why}`)) })
  return charged(`RETURN ${name}(${values.map((value, i) => (value.startsWith("|") ? value : `$p${i}`)).join(", ")})`, given)
}

/** Arguments at the commas outside brackets and closures. */
const splitArguments = (text: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  let depth = 0, start = 0, inBars = false, quoted = false
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (c === "'") quoted = !quoted
    if (quoted) continue
    if (c === "|") inBars = !inBars
    else if ("([{".includes(c)) depth++
    else if (")]}".includes(c)) depth--
    else if (c === "," && depth === 0 && !inBars) {
      out.push(text.slice(start, i).trim())
      start = i + 1
    }
  }
  return [...out, text.slice(start).trim()]
}

const sizeable = names.filter((name) => !onePlace.test(name))

describe("functions", () => {
  it("D48 each that takes something of any size is tested with something that grows", () => {
    expect(sizeable.length).toBeGreaterThan(130)
    expect(sizeable.filter((name) => !shapes.some(([pattern]) => pattern.test(name)))).toEqual([])
    expect(named.filter((name) => !functions.has(name))).toEqual([])
  })

  it.each(sizeable)("D48 %s charges twice as much for twice the size", (name) => {
    const args = shapes.find(([pattern]) => pattern.test(name))![1]
    // Large enough that what every call charges does not count, small enough for what takes the square.
    const size = /::(distance|similarity)::/.test(name) ? 60 : 400
    const [small, large] = [call(name, args, size), call(name, args, 2 * size)]
    expect(large.steps / small.steps).toBeGreaterThan(1.7)
    expect(large.steps / small.steps).toBeLessThan(5)
    for (const { bytes, outcome } of [small, large]) {
      if (Either.isRight(outcome)) {
        const answer = outcome.right
        const least = Array.isArray(answer) ? 8 * answer.length : typeof answer === "string" ? answer.length / 2 : 0
        expect(bytes).toBeGreaterThanOrEqual(least)
      }
    }
  })

  it("D48 what makes more than it takes is charged for all of it, before it is made", () => {
    const bytes = (text: string): number => charged(text).bytes
    expect(bytes("RETURN array::windows(array::range(0, 2000), 1000)")).toBeGreaterThan(8 * 1000 * 1000)
    expect(bytes("RETURN array::transpose([array::range(0, 5000), array::range(0, 5000), [1]])")).toBeGreaterThan(8 * 3 * 5000)
    expect(bytes("RETURN array::combine(array::range(0, 1000), array::range(0, 1000)).len()")).toBeGreaterThan(8 * 2 * 1_000_000)
    expect(bytes("RETURN array::flatten(array::repeat(array::range(0, 1000), 1000)).len()")).toBeGreaterThan(8 * 1_000_000)
    expect(bytes("RETURN string::repeat('x', 1000000)")).toBeGreaterThanOrEqual(1_000_000)
  })
})

/** Two values of a size on both sides of an operator. */
const sides: ReadonlyArray<readonly [string, string]> = [
  ...["=", "!=", "<", "<=", ">", ">=", "+", "*=", "?=", "IN", "NOT IN", "CONTAINS", "CONTAINSNOT"].flatMap((op) => [[op, "numbers"], [op, "lists"]] as const),
  ...["CONTAINSALL", "CONTAINSANY", "CONTAINSNONE", "ALLINSIDE", "ANYINSIDE", "NONEINSIDE"].flatMap((op) => [[op, "numbers"], [op, "set"], [op, "strings"]] as const),
  ...["=", "+", "IN", "CONTAINS"].map((op) => [op, "text"] as const), ...["=", "<", "+"].map((op) => [op, "object"] as const)
]

describe("operators", () => {
  it.each(sides)("D48 %s of two %s charges at least twice as much for twice the size", (op, kind) => {
    const value = (n: number): Value => Either.getOrThrowWith(charged(`RETURN ${kinds[kind]!(n)}`).outcome, (why) => new Error(why))
    const steps = (n: number): number => charged(`RETURN $a ${op} $b`, { a: value(n), b: value(n) }).steps
    expect(steps(2000)).toBeGreaterThan(1.7 * steps(1000))
  })

  it("D48 primitives are free: plain fields and comparisons of small values charge nothing", () => {
    for (const text of ["$a = $b", "$a < 5", "$a + 1", "$s = 'abc'", "$s IN 'abcdef'", "$s + 'abc'", "$a AND $b", "$o.x = 1"]) {
      expect(charged(`RETURN ${text}`, { a: 1, b: 2, s: "abc", o: { x: 1 } })).toMatchObject({ steps: 0, bytes: 0 })
    }
  })
})

describe("limits", () => {
  const reason = (text: string): string => {
    const [statement] = Either.getOrThrowWith(parseStatements(text), (e) => new Error(e.message))
    return Either.match(evaluate(statement!, { source: fromRecords([]), params: {}, budget: queryBudget(undefined, undefined, 1_000_000) }), { onLeft: (why) => why.reason, onRight: (v) => `answered ${partsOf(v, 1e9)} parts` })
  }
  it("D48 bytes: the error names limit and setting", () => {
    expect(reason("RETURN array::windows(array::range(0, 1000), 500)")).toBe(`The query makes more than 1000000 bytes; raise SVC_QUERY_BYTES to allow it`)
  })
})
