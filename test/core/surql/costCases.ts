/**
 * What functions and operators are called with to see what they charge: arguments of every kind that grow with a
 * number.
 *
 * Why so: `costs.test.ts` counts what is charged, `prices.campaign.test.ts` holds the same calls against a clock and
 * the heap.
 */
import { Either } from "effect"
import { functions } from "../../../src/core/surql/evaluate/functions.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { isFunctionName } from "../../../src/core/surql/syntax/functionNames.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import type { Value } from "../../../src/core/surql/values/value.ts"

export interface Charged {
  readonly steps: number
  readonly bytes: number
  readonly outcome: Either.Either<Value, string>
}

export const charged = (text: string, params: { readonly [name: string]: Value } = {}): Charged => {
  const b = makeBudget(1e12, "TEST", Infinity, 1e12)
  const [statement] = Either.getOrThrowWith(parseStatements(text), (e) => new Error(`${text}: ${e.message}`))
  const answer = evaluate(statement!, { source: fromRecords([]), params, budget: b })
  return {
    steps: b.limit - b.left,
    bytes: b.byteLimit - b.bytes,
    outcome: Either.mapLeft(answer, ({ reason }) => reason)
  }
}

/** So many points, written out: what is computed makes no geometry. */
export const points = (n: number, point: (v: number) => string): string =>
  Array.from({ length: n }, (_, v) => point(v)).join(", ")

/** A text of a size for each kind of argument; `%` stands where a function needs another form. */
export const kinds: { readonly [kind: string]: (n: number) => string } = {
  numbers: (n) => `array::range(0, ${n})`,
  strings: (n) => `array::range(0, ${n}).map(|$v| <string> $v)`,
  text: (n) => `string::repeat('ab ', ${n})`,
  set: (n) => `<set> array::range(0, ${n})`,
  object: (n) => `object::from_entries(array::range(0, ${n}).map(|$v| [<string> $v, $v]))`,
  entries: (n) => `array::range(0, ${n}).map(|$v| [<string> $v, $v])`,
  lists: (n) => `array::range(0, ${n}).map(|$v| [$v, $v])`,
  dates: (n) => `array::range(0, ${n}).map(|$v| time::from_secs($v))`,
  bytes: (n) => `<bytes> string::repeat('ab ', ${n})`,
  line: (n) => `{ type: 'LineString', coordinates: [${points(n, (v) => `[${v / 10_000}, 1]`)}] }`
}

/** Arguments of a function by its name, with \`@kind\` for what grows. The first that fits holds. */
export const shapes: ReadonlyArray<readonly [RegExp, string]> = [
  [/^array::(clump|windows)$/, "@numbers, 5"],
  [/^array::combine$/, "@numbers, [1, 2, 3]"],
  [/^array::(transpose|flatten|group)$/, "@lists"],
  [/^array::(repeat|sequence)$/, "1, #"],
  [/^array::range$/, "0, #"],
  [/^array::join$/, "@strings, ','"],
  [/^array::insert$/, "@numbers, 1, 0"],
  [/^array::swap$/, "@numbers, 0, 1"],
  [/^array::(remove|at)$/, "@numbers, 0"],
  [/^array::fill$/, "@numbers, 1"],
  [/^(array|set)::(fold)$/, "@1, 0, |$a, $b| $b"],
  [/^(array|set)::(reduce)$/, "@1, |$a, $b| $b"],
  [/^(array|set)::(map)$/, "@1, |$v| $v"],
  [/^(array|set)::(all|any|every|some|filter|find|find_index|filter_index|includes|index_of)$/, "@1, |$v| $v = -1"],
  [/^array::(add|append|push|prepend|matches)$/, "@numbers, 7"],
  [
    /^array::(concat|union|complement|difference|intersect|boolean_and|boolean_or|boolean_xor|logical_and|logical_or|logical_xor)$/,
    "@numbers, @numbers"
  ],
  [/^array::/, "@numbers"],
  [/^set::(add|contains|remove)$/, "@set, 7"],
  [/^set::at$/, "@set, 0"],
  [/^set::join$/, "@set, ','"],
  [/^set::(complement|difference|intersect|union)$/, "@set, @set"],
  [/^set::/, "@set"],
  [/^object::from_entries$/, "@entries"],
  [/^object::extend$/, "@object, @object"],
  [/^object::remove$/, "@object, ['a']"],
  [/^object::/, "@object"],
  [/^string::(contains|ends_with|starts_with|split)$/, "@text, 'ab'"],
  [/^string::matches$/, "@text, /b a$/"],
  [/^string::replace$/, "@text, 'a', 'xy'"],
  [/^string::(distance|similarity)::/, "@text, @text"],
  [/^string::repeat$/, "'abcdefgh', #"],
  [/^string::join$/, "',', @text, @text"],
  [/^string::semver::(compare)$/, "'1.0.0+' + string::repeat('ab', #), '1.0.0'"],
  [/^string::semver::set/, "'1.0.0+' + string::repeat('ab', #), 1"],
  [/^string::semver::/, "'1.0.0+' + string::repeat('ab', #)"],
  [/^string::slice$/, "@text, 1"],
  [/^string::/, "@text"],
  [/^parse::url/, "'http://a.b/' + string::repeat('a', #) + '?' + string::repeat('a', #)"],
  [/^parse::/, "@text"],
  [/^crypto::/, "@text"],
  [/^bytes::len$/, "@bytes"],
  [/^encoding::base64::encode$/, "@bytes"],
  [/^encoding::base64::decode$/, "string::repeat('abcd', #)"],
  [/^encoding::cbor::decode$/, "encoding::cbor::encode(@numbers)"],
  [/^encoding::cbor::encode$/, "@numbers"],
  [/^time::(max|min)$/, "@dates"],
  [/^time::format$/, "time::from_secs(1), string::repeat('%Y ', #)"],
  [/^math::(bottom|top|nearestrank|percentile)$/, "@numbers, 5"],
  [
    /^math::(interquartile|max|mean|median|midhinge|min|mode|product|spread|stddev|sum|trimean|variance)$/,
    "@numbers.map(|$v| 1)"
  ],
  [/^vector::scale$/, "@numbers, 2"],
  [/^vector::distance::minkowski$/, "@numbers, @numbers, 2"],
  [/^vector::(magnitude|normalize)$/, "@numbers"],
  [/^vector::/, "@numbers, @numbers"],
  [/^geo::(area|centroid|is_valid)$/, "@line"],
  [/^geo::hash::decode$/, "@text"],
  [/^type::(string|string_lossy|array|set)$/, "@numbers"],
  [/^type::bytes$/, "@text"],
  [/^type::fields$/, "@strings"],
  [/^type::field$/, "string::repeat('a.', #) + 'b'"],
  [/^value::diff$/, "@numbers, array::reverse(@numbers)"],
  [/^value::patch$/, "{ a: @numbers }, [{ op: 'add', path: '/b', value: 1 }]"],
  [/^count$/, "@numbers"]
]

/** Functions of values that have no size, or that look at one place of them. */
const onePlace =
  /^(array::(at|first|last|len|is_empty|pop)|set::(at|first|last|len|is_empty|max|min)|bytes::len|value::chain|not|record::.*|meta::.*|duration::.*|rand.*|session.*|type::(is_.*|of|table|record|bool|datetime|decimal|duration|float|geometry|int|number|point|range|uuid)|time::(?!max$|min$|format$).*|math::(?!bottom|top|nearestrank|percentile|interquartile|max|mean|median|midhinge|min|mode|product|spread|stddev|sum|trimean|variance).*|geo::(bearing|distance|hash::encode)|vector::cross)$/

const names = [...functions.keys()].filter((name) => isFunctionName(name) && functions.get(name)!.pure)

const grown = (args: string, name: string, n: number): string =>
  args
    .replaceAll("@1", () => kinds[name.startsWith("set::") ? "set" : "numbers"]!(n))
    .replace(/@(\w+)/g, (_, kind: string) => kinds[kind]!(n))
    .replaceAll("#", String(n))

/** What a call charges besides the making of its arguments. */
export const call = (name: string, args: string, n: number): Charged => {
  const values = splitArguments(grown(args, name, n))
  const given: Record<string, Value> = {}
  values.forEach((value, i) => {
    if (!value.startsWith("|"))
      given[`p${i}`] = Either.getOrThrowWith(
        charged(`RETURN ${value}`).outcome,
        (why) => new Error(`${name}: ${value}: ${why}`)
      )
  })
  return charged(
    `RETURN ${name}(${values.map((value, i) => (value.startsWith("|") ? value : `$p${i}`)).join(", ")})`,
    given
  )
}

/** Arguments at the commas outside brackets and closures. */
export const splitArguments = (text: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  let depth = 0,
    start = 0,
    inBars = false,
    quoted = false
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

export const sizeable = names.filter((name) => !onePlace.test(name))
