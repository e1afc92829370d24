/**
 * `set::*` without closures.
 *
 * Why so: sets are kept sorted, so positions follow the total order and every result that is a set is normalised again.
 */
import { contains } from "../evaluate/containment.ts"
import { makeSet } from "../values/makeSet.ts"
import { rawText } from "../values/text.ts"
import type { Value } from "../values/value.ts"
import { SetValue } from "../values/value.ts"
import { complement, rangeWithin } from "./array.ts"
import type { Table } from "./define.ts"
import { define } from "./define.ts"

const itemsOf = (v: Value): ReadonlyArray<Value> =>
  Array.isArray(v) ? (v as ReadonlyArray<Value>) : v instanceof SetValue ? v.items : [v]

const without = (a: SetValue, b: ReadonlyArray<Value>): SetValue => new SetValue(complement(a.items, b) as Array<Value>)

const slice = (a: SetValue, given: ReadonlyArray<Value>): SetValue => {
  const [start, end] = rangeWithin("set::slice", a.items.length, given)
  return new SetValue(end <= start ? [] : a.items.slice(start, end))
}

export const set: Table = {
  "set::add": define<[SetValue, Value]>(["set", "any"], ([a, v]) => makeSet([...a.items, ...itemsOf(v)])),
  "set::at": define<[SetValue, number]>(["set", "int"], ([a, i]) => a.items[i < 0 ? a.items.length + i : i]),
  "set::complement": define<[SetValue, SetValue]>(["set", "set"], ([a, b]) => without(a, b.items)),
  "set::contains": define<[SetValue, Value]>(["set", "any"], ([a, v]) => contains(a, v)),
  "set::difference": define<[SetValue, SetValue]>(["set", "set"], ([a, b]) =>
    makeSet([...without(a, b.items).items, ...without(b, a.items).items])
  ),
  "set::first": define<[SetValue]>(["set"], ([a]) => a.items[0]),
  "set::flatten": define<[SetValue]>(["set"], ([a]) => makeSet(a.items.flatMap(itemsOf), "last")),
  "set::intersect": define<[SetValue, SetValue]>(["set", "set"], ([a, b]) => without(a, without(a, b.items).items)),
  "set::is_empty": define<[SetValue]>(["set"], ([a]) => a.items.length === 0),
  "set::join": define<[SetValue, string]>(["set", "string"], ([a, by]) => a.items.map(rawText).join(by)),
  "set::last": define<[SetValue]>(["set"], ([a]) => a.items[a.items.length - 1]),
  "set::len": define<[SetValue]>(["set"], ([a]) => a.items.length),
  "set::max": define<[SetValue]>(["set"], ([a]) => a.items[a.items.length - 1]),
  "set::min": define<[SetValue]>(["set"], ([a]) => a.items[0]),
  "set::remove": define<[SetValue, Value]>(["set", "any"], ([a, v]) => without(a, itemsOf(v))),
  "set::slice": define<[SetValue, ...ReadonlyArray<Value>]>(["set", "?any", "?int"], ([a, ...given]) =>
    slice(a, given)
  ),
  "set::union": define<[SetValue, SetValue]>(["set", "set"], ([a, b]) => makeSet([...a.items, ...b.items]))
}
