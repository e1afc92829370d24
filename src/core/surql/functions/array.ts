/**
 * `array::*` without closures: building, picking, combining, sorting.
 *
 * Why so: elements compare by the language's equality; positions may count from the end; what would make a huge array
 * is refused before it is made.
 */
import { chunksOf } from "../../chunksOf.ts"
import { ownText, raise } from "../evaluate/failure.ts"
import type { Scope } from "../evaluate/scope.ts"
import { spendBytes, spendSteps } from "../evaluate/scope.ts"
import { compareTerm } from "../evaluate/select/sorting.ts"
import { indexKey } from "../values/key.ts"
import { intsFrom } from "../values/number.ts"
import { compare, equalWithoutPatterns, isTruthy, sortValues } from "../values/order.ts"
import { rawText, render, shown } from "../values/text.ts"
import type { Value } from "../values/value.ts"
import { isInt, Range } from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { asInt, define } from "./define.ts"

type Items = ReadonlyArray<Value>

/** Elements without later equal ones. */
const distinct = (items: Items): Array<Value> => {
  const seen = new Set<unknown>()
  return items.filter((v) => !seen.has(indexKey(v)) && seen.add(indexKey(v)) !== undefined)
}

/** Appends the elements that a list does not have yet. */
const add = (items: Items, more: Items): Items => {
  const seen = new Set(items.map(indexKey))
  const out = items.slice()
  for (const v of more) {
    const key = indexKey(v)
    if (!seen.has(key)) out.push(v)
    seen.add(key)
  }
  return out
}

export const complement = (a: Items, b: Items): Items => {
  const excluded = new Set(b.map(indexKey))
  return a.filter((v) => !excluded.has(indexKey(v)))
}

const maxItems = 1_000_000

/** Fails if a result would have too many elements; pays for the others. */
const limited = (scope: Scope, name: string, n: number): void => {
  if (n > maxItems)
    raise`Incorrect arguments for function ${ownText(name)}(). Output must not exceed ${ownText(maxItems)} elements.`
  spendSteps(scope.budget, n)
  spendBytes(scope.budget, 8 * Math.max(0, n))
}

/** First and last (exclusive) position of `(range)`, `(start)` or `(start, end)`, negative ones from the end. */
export const rangeWithin = (name: string, length: number, given: Items): readonly [number, number] => {
  const [from, to] = given
  const at = (given: Value): number => {
    const v = asInt(given)
    return isInt(v)
      ? v < 0
        ? Math.max(0, length + Number(v))
        : Number(v)
      : raise`Incorrect arguments for function ${ownText(name)}(). Argument 1 was the wrong type. Expected \`int\` but found \`${render(v)}\``
  }
  if (given.length === 0) return [0, length]
  if (to === undefined && from instanceof Range) {
    const start = from.from === undefined ? 0 : at(from.from.value) + (from.from.inclusive ? 0 : 1)
    const end = from.to === undefined ? length : at(from.to.value) + (from.to.inclusive ? 1 : 0)
    return [start, Math.min(end, length)]
  }
  return [at(from), to === undefined ? length : Math.min(at(to), length)]
}

const part = (items: Items, given: Items): Items => {
  const [start, end] = rangeWithin("array::range", items.length, given)
  return end <= start ? [] : items.slice(start, end)
}

/**
 * For each element of `a`, whether an equal one of `b` is paired with it; and how many of each key in `b` are paired.
 */
const paired = (a: Items, b: Items): { readonly met: ReadonlyArray<boolean>; readonly taken: Map<unknown, number> } => {
  const left = new Map<unknown, number>(),
    taken = new Map<unknown, number>()
  for (const key of b.map(indexKey)) left.set(key, (left.get(key) ?? 0) + 1)
  const met = a.map((v) => {
    const key = indexKey(v),
      n = left.get(key) ?? 0
    if (n === 0) return false
    left.set(key, n - 1)
    taken.set(key, (taken.get(key) ?? 0) + 1)
    return true
  })
  return { met, taken }
}

const difference = (a: Items, b: Items): Items => {
  const { met, taken } = paired(a, b)
  const rest = b.filter((v) => {
    const key = indexKey(v),
      n = taken.get(key) ?? 0
    if (n > 0) taken.set(key, n - 1)
    return n === 0
  })
  return [...a.filter((_, i) => !met[i]), ...rest]
}

const intersect = (a: Items, b: Items): Items => {
  const { met } = paired(a, b)
  return a.filter((_, i) => met[i])
}

const chunks = (name: string, items: Items, size: number): Items => {
  if (size < 1)
    return raise`Incorrect arguments for function ${ownText(name)}(). The second argument must be an integer greater than 0`
  return chunksOf(items, size)
}

const windows = (name: string, items: Items, size: number): Items => {
  if (size < 1)
    return raise`Incorrect arguments for function ${ownText(name)}(). The second argument must be an integer greater than 0`
  return Array.from({ length: Math.max(0, items.length - size + 1) }, (_, i) => items.slice(i, i + size))
}

/** A column that is no list has one element. No list is made of it: those would be more memory than the answer. */
const transpose = (items: Items): Items => {
  const height = items.reduce((most: number, v) => Math.max(most, Array.isArray(v) ? v.length : 1), 0)
  const at = (v: Value, row: number): Value => (Array.isArray(v) ? (v as Items)[row] : row === 0 ? v : undefined)
  return Array.from({ length: height }, (_, row) => items.map((v) => at(v, row)))
}

const sortWith = (collate: boolean, numeric: boolean): Fn => {
  const ascending = compareTerm({ descending: false, collate, numeric })
  return define<[Items, Value?]>(["array", "?any"], ([a, order]) =>
    sortValues(a, order === "desc" || order === false ? (x, y) => ascending(y, x) : ascending)
  )
}

const insert = (a: Items, v: Value, at: number): Items => {
  const i = at < 0 ? at + a.length : at
  return i < 0 || i > a.length ? a : [...a.slice(0, i), v, ...a.slice(i)]
}

const swap = (a: Items, from: number, to: number): Items => {
  const place = (n: number, which: number): number =>
    n < -a.length || n >= a.length
      ? raise`Incorrect arguments for function array::swap(). Argument ${ownText(which)} is out of range. Expected a number between ${-a.length} and ${a.length}`
      : n < 0
        ? n + a.length
        : n
  const out = a.slice(),
    i = place(from, 1),
    j = place(to, 2)
  ;[out[i], out[j]] = [out[j], out[i]]
  return out
}

const fill = (a: Items, v: Value, given: Items): Items => {
  const [start, end] = rangeWithin("array::fill", a.length, given)
  return a.map((item, i) => (i >= start && i < end ? v : item))
}

const sequence = (scope: Scope, name: string, from: number | bigint, count: number): Items => {
  limited(scope, name, count)
  return intsFrom(from, count)
}

/** The first number too large for an int: the end of a range without an end. */
const pastInts = 1n << 63n

const range = (scope: Scope, given: Value, to: Value): Items => {
  const from = asInt(given)
  const r = from instanceof Range && to === undefined ? from : undefined
  if (r === undefined && (!isInt(from) || !(to === undefined || isInt(to))))
    return raise`Incorrect arguments for function array::range(). Argument 1 was the wrong type. Expected \`int\` but found \`${shown(from)}\``
  if (r !== undefined && (r.from === undefined || r.to === undefined || !isInt(r.from.value) || !isInt(r.to.value)))
    return raise`Incorrect arguments for function array::range(). Argument 1 was the wrong type. Expected \`range<int>\``
  const start =
    r === undefined ? BigInt(from as number) : BigInt(r.from!.value as number) + (r.from!.inclusive ? 0n : 1n)
  const end =
    r === undefined
      ? to === undefined
        ? pastInts
        : BigInt(to as number)
      : BigInt(r.to!.value as number) + (r.to!.inclusive ? 1n : 0n)
  return sequence(scope, "array::range", start, Math.max(0, Number(end - start)))
}

/** Element-wise boolean operation; missing elements count as NONE. */
const boolean = (f: (a: boolean, b: boolean) => boolean): Fn =>
  define<[Items, Items]>(["array", "array"], ([a, b]) =>
    Array.from({ length: Math.max(a.length, b.length) }, (_, i) => f(isTruthy(a[i]), isTruthy(b[i])))
  )

/** Element-wise operation on operands rather than booleans, as the database's `logical_*`. */
const logical = (f: (a: Value, b: Value) => Value): Fn =>
  define<[Items, Items]>(["array", "array"], ([a, b]) =>
    Array.from({ length: Math.max(a.length, b.length) }, (_, i) =>
      f(i < a.length ? a[i] : null, i < b.length ? b[i] : null)
    )
  )

const xor = (a: Value, b: Value): Value => {
  const v = isTruthy(a) !== isTruthy(b)
  return isTruthy(a) === v ? a : isTruthy(b) === v ? b : v
}

export const array: Table = {
  "array::add": define<[Items, Value]>(["array", "any"], ([a, v]) => add(a, Array.isArray(v) ? (v as Items) : [v])),
  "array::append": define<[Items, Value]>(["array", "any"], ([a, v]) => [...a, v]),
  "array::at": define<[Items, number]>(["array", "int"], ([a, i]) => a[i < 0 ? a.length + i : i]),
  "array::boolean_and": boolean((a, b) => a && b),
  "array::boolean_not": define<[Items]>(["array"], ([a]) => a.map((v) => !isTruthy(v))),
  "array::boolean_or": boolean((a, b) => a || b),
  "array::boolean_xor": boolean((a, b) => a !== b),
  "array::clump": define<[Items, number]>(["array", "int"], ([a, n], _, name) => chunks(name, a, n)),
  "array::combine": define<[Items, Items]>(["array", "array"], ([a, b], s, name) => {
    limited(s, name, a.length * b.length)
    return a.flatMap((x) => b.map((y) => [x, y]))
  }),
  "array::complement": define<[Items, Items]>(["array", "array"], ([a, b]) => complement(a, b)),
  "array::concat": define<ReadonlyArray<Items>>(["...array"], (all) => all.flat()),
  "array::difference": define<[Items, Items]>(["array", "array"], ([a, b]) => difference(a, b)),
  "array::distinct": define<[Items]>(["array"], ([a]) => distinct(a)),
  "array::fill": define<[Items, Value, ...ReadonlyArray<Value>]>(["array", "any", "?any", "?int"], ([a, v, ...given]) =>
    fill(a, v, given)
  ),
  "array::first": define<[Items]>(["array"], ([a]) => a[0]),
  "array::flatten": define<[Items]>(["array"], ([a]) => a.flatMap((v) => (Array.isArray(v) ? (v as Items) : [v]))),
  "array::group": define<[Items]>(["array"], ([a]) =>
    distinct(a.flatMap((v) => (Array.isArray(v) ? (v as Items) : [v])))
  ),
  "array::insert": define<[Items, Value, number?]>(["array", "any", "?int"], ([a, v, i]) =>
    i === undefined ? [...a, v] : insert(a, v, i)
  ),
  "array::intersect": define<[Items, Items]>(["array", "array"], ([a, b]) => intersect(a, b)),
  "array::is_empty": define<[Items]>(["array"], ([a]) => a.length === 0),
  "array::join": define<[Items, string]>(["array", "string"], ([a, by]) => a.map(rawText).join(by)),
  "array::last": define<[Items]>(["array"], ([a]) => a[a.length - 1]),
  "array::len": define<[Items]>(["array"], ([a]) => a.length),
  "array::logical_and": logical((a, b) => (isTruthy(a) ? b : a)),
  "array::logical_or": logical((a, b) => (isTruthy(a) ? a : b)),
  "array::logical_xor": logical(xor),
  "array::matches": define<[Items, Value]>(["array", "any"], ([a, v]) =>
    a.map((item) => equalWithoutPatterns(item, v))
  ),
  "array::max": define<[Items]>(["array"], ([a]) => a.reduce((x, y) => (compare(y, x) >= 0 ? y : x), a[0])),
  "array::min": define<[Items]>(["array"], ([a]) => a.reduce((x, y) => (compare(y, x) < 0 ? y : x), a[0])),
  "array::pop": define<[Items]>(["array"], ([a]) => a[a.length - 1]),
  "array::prepend": define<[Items, Value]>(["array", "any"], ([a, v]) => [v, ...a]),
  "array::push": define<[Items, Value]>(["array", "any"], ([a, v]) => [...a, v]),
  "array::range": define<[Value, Value?]>(["any", "?int"], ([from, to], s) => range(s, from, to), { wideInts: true }),
  "array::remove": define<[Items, number]>(["array", "int"], ([a, i]) => {
    const at = i < 0 ? a.length + i : i
    return a.filter((_, n) => n !== at)
  }),
  "array::repeat": define<[Value, number]>(["any", "int"], ([v, n], s, name) => {
    if (n < 0)
      return raise`Incorrect arguments for function ${ownText(name)}(). Expected argument 2 to be a positive number`
    limited(s, name, n)
    return Array.from({ length: n }, () => v)
  }),
  "array::reverse": define<[Items]>(["array"], ([a]) => a.slice().reverse()),
  "array::sequence": define<[number | bigint, (number | bigint)?]>(
    ["int", "?int"],
    ([a, b], s, name) => (b === undefined ? sequence(s, name, 0, Number(a)) : sequence(s, name, a, Number(b))),
    { wideInts: true }
  ),
  "array::slice": define<[Items, ...ReadonlyArray<Value>]>(["array", "?any", "?int"], ([a, ...given]) =>
    part(a, given)
  ),
  "array::sort": sortWith(false, false),
  "array::sort::asc": define<[Items]>(["array"], ([a]) => sortValues(a, compare)),
  "array::sort::desc": define<[Items]>(["array"], ([a]) => sortValues(a, (x, y) => compare(y, x))),
  "array::sort_lexical": sortWith(true, false),
  "array::sort_natural": sortWith(false, true),
  "array::sort_natural_lexical": sortWith(true, true),
  "array::swap": define<[Items, number, number]>(["array", "int", "int"], ([a, i, j]) => swap(a, i, j)),
  "array::transpose": define<[Items]>(["array"], ([a]) => transpose(a)),
  "array::union": define<[Items, Items]>(["array", "array"], ([a, b]) => distinct([...a, ...b])),
  "array::windows": define<[Items, number]>(["array", "int"], ([a, n], _, name) => windows(name, a, n))
}
