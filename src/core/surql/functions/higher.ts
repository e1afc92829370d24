/**
 * `array::*` and `set::*` functions that take a closure or a value to look for.
 *
 * Why so: both families share one body over a list of elements; the set forms make a set again. Closures get the element and
 * its position.
 */
import { makeSet } from "../makeSet.ts"
import { equal, isTruthy } from "../order.ts"
import { Closure, SetValue } from "../value.ts"
import type { Value } from "../value.ts"
import { define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

type Items = ReadonlyArray<Value>

/** Tests an element with a closure or against a value (NONE is one). */
const test = (check: Value): ((v: Value, i: number) => boolean) =>
  check instanceof Closure ? (v, i) => isTruthy(check.call([v, i])) : (v) => equal(v, check)

/** As {@link test}; where nothing is given, by truth. */
const optional = (given: Items): ((v: Value, i: number) => boolean) => (given.length === 0 ? isTruthy : test(given[0]))

const both = (name: string, params: ReadonlyArray<string>, body: (items: Items, args: ReadonlyArray<Value>, again: (items: Items) => Value) => Value): Table => ({
  [`array::${name}`]: define<ReadonlyArray<Value>>(["array", ...params], ([a, ...rest]) => body(a as Items, rest, (items) => items)),
  [`set::${name}`]: define<ReadonlyArray<Value>>(["set", ...params], ([a, ...rest]) => body((a as SetValue).items, rest, makeSet))
})

const fold = (items: Items, first: Value, f: Closure): Value => items.reduce<Value>((acc, v, i) => f.call([acc, v, i]), first)

const indexOf = (items: Items, [check]: Items): Value => {
  const at = items.findIndex(test(check))
  return at < 0 ? undefined : at
}

const arrayOnly = (params: ReadonlyArray<string>, body: (items: Items, given: Items) => Value): Fn =>
  define<ReadonlyArray<Value>>(["array", ...params], ([a, ...given]) => body(a as Items, given))

export const higher: Table = {
  ...both("all", ["?any"], (items, given) => items.every(optional(given))),
  ...both("any", ["?any"], (items, given) => items.some(optional(given))),
  ...both("filter", ["any"], (items, [check], again) => again(items.filter(test(check)))),
  ...both("find", ["any"], (items, [check]) => items.find(test(check))),
  ...both("fold", ["any", "function"], (items, [first, f]) => fold(items, first, f as Closure)),
  ...both("map", ["function"], (items, [f], again) => again(items.map((v, i) => (f as Closure).call([v, i])))),
  ...both("reduce", ["function"], (items, [f]) => (items.length < 2 ? items[0] : items.slice(1).reduce<Value>((acc, v, i) => (f as Closure).call([acc, v, i]), items[0]))),
  "array::every": arrayOnly(["?any"], (items, given) => items.every(optional(given))),
  "array::some": arrayOnly(["?any"], (items, given) => items.some(optional(given))),
  "array::includes": arrayOnly(["?any"], (items, given) => items.some(optional(given))),
  "array::filter_index": arrayOnly(["any"], (items, [check]) => items.flatMap((v, i) => (test(check)(v, i) ? [i] : []))),
  "array::find_index": arrayOnly(["any"], indexOf),
  "array::index_of": arrayOnly(["any"], indexOf)
}
