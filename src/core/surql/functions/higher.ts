/**
 * `array::*` and `set::*` functions that take a closure or a value to look for.
 *
 * Why so: both families share one body over a list of elements; the set forms make a set again. Closures get the
 * element, and its position only in `array::map`, `array::fold` and `array::reduce`.
 */
import { makeSet } from "../values/makeSet.ts"
import { equal, equalWithoutPatterns, isTruthy } from "../values/order.ts"
import type { Value } from "../values/value.ts"
import { Closure, Regex, type SetValue } from "../values/value.ts"
import type { Fn, Table } from "./define.ts"
import { define } from "./define.ts"

type Items = ReadonlyArray<Value>

/** A test of an element, by a closure or for equality with a value; a regex is a value here, and matches no text. */
const test = (check: Value): ((v: Value) => boolean) =>
  check instanceof Closure
    ? (v) => isTruthy(check.call([v]))
    : (v) => (check instanceof Regex || v instanceof Regex ? equalWithoutPatterns(v, check) : equal(v, check))

/** As {@link test}; without an argument, by truth. */
const optional = (given: Items): ((v: Value) => boolean) => (given.length === 0 ? isTruthy : test(given[0]))

const both = (
  name: string,
  params: ReadonlyArray<string>,
  body: (items: Items, args: ReadonlyArray<Value>, again: (items: Items) => Value, place: (i: number) => Items) => Value
): Table => ({
  [`array::${name}`]: define<ReadonlyArray<Value>>(["array", ...params], ([a, ...rest]) =>
    body(
      a as Items,
      rest,
      (items) => items,
      (i) => [i]
    )
  ),
  [`set::${name}`]: define<ReadonlyArray<Value>>(["set", ...params], ([a, ...rest]) =>
    body((a as SetValue).items, rest, makeSet, () => [])
  )
})

const indexOf = (items: Items, [check]: Items): Value => {
  const at = items.findIndex(test(check))
  return at < 0 ? undefined : at
}

const indicesOf = (items: Items, passes: (v: Value) => boolean): Items =>
  items.flatMap((v, i) => (passes(v) ? [i] : []))

const arrayOnly = (params: ReadonlyArray<string>, body: (items: Items, given: Items) => Value): Fn =>
  define<ReadonlyArray<Value>>(["array", ...params], ([a, ...given]) => body(a as Items, given))

export const higher: Table = {
  ...both("all", ["?any"], (items, given) => items.every(optional(given))),
  ...both("any", ["?any"], (items, given) => items.some(optional(given))),
  ...both("filter", ["any"], (items, [check], again) => again(items.filter(test(check)))),
  ...both("find", ["any"], (items, [check]) => items.find(test(check))),
  ...both("fold", ["any", "function"], (items, [first, f], _, place) =>
    items.reduce<Value>((acc, v, i) => (f as Closure).call([acc, v, ...place(i)]), first)
  ),
  ...both("map", ["function"], (items, [f], again, place) =>
    again(items.map((v, i) => (f as Closure).call([v, ...place(i)])))
  ),
  ...both("reduce", ["function"], (items, [f], _, place) =>
    items.length < 2
      ? items[0]
      : items.slice(1).reduce<Value>((acc, v, i) => (f as Closure).call([acc, v, ...place(i)]), items[0])
  ),
  "array::every": arrayOnly(["?any"], (items, given) => items.every(optional(given))),
  "array::some": arrayOnly(["?any"], (items, given) => items.some(optional(given))),
  "array::includes": arrayOnly(["?any"], (items, given) => items.some(optional(given))),
  "array::filter_index": arrayOnly(["any"], (items, [check]) => indicesOf(items, test(check))),
  "array::find_index": arrayOnly(["any"], indexOf),
  "array::index_of": arrayOnly(["any"], indexOf)
}
