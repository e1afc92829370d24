/**
 * Changes of one row by path, for followers that have the old row (D50).
 *
 * Rule: objects field by field; lists item by item, where items are identified by `id` if they have one, else by
 * content; everything else is set whole. Applied in order to the old row, the changes give the new one. Cost:
 * O(size of the row), and O(n log n) for the moved items of a list.
 */
import * as JsonText from "../jsonText.ts"
import { longestRun } from "../longestRun.ts"

export type Json = null | boolean | number | bigint | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Names of fields and positions of items; empty: the row itself. */
type RowPath = ReadonlyArray<string | number>

/**
 * `[path, value]` sets, `[path]` removes a field, `[path, at, count, items]` replaces `count` items of a list by
 * `items`.
 */
type RowChange =
  | readonly [path: RowPath, value: Json]
  | readonly [path: RowPath]
  | readonly [path: RowPath, at: number, count: number, items: ReadonlyArray<Json>]

const isList = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value)

const isObject = (value: Json): value is { readonly [name: string]: Json } =>
  typeof value === "object" && value !== null && !isList(value)

/** The changes from `before` to `now`; none if they are equal. */
export const changesOf = (before: Json, now: Json): ReadonlyArray<RowChange> => {
  const out: Array<RowChange> = []
  compare([], before, now, out)
  return out
}

const compare = (path: RowPath, before: Json, now: Json, out: Array<RowChange>): void => {
  if (before === now) return
  if (isList(before) && isList(now)) compareLists(path, before, now, out)
  else if (isObject(before) && isObject(now)) {
    for (const name of Object.keys(before)) if (!Object.hasOwn(now, name)) out.push([[...path, name]])
    for (const name of Object.keys(now)) {
      if (Object.hasOwn(before, name)) compare([...path, name], before[name]!, now[name]!, out)
      else out.push([[...path, name], now[name]!])
    }
  } else out.push([path, now])
}

/** Names that identify items, with a number for equal ones. */
const namesOf = (items: ReadonlyArray<Json>): ReadonlyArray<string> => {
  const seen = new Map<string, number>()
  return items.map((item) => {
    const name = isObject(item) && typeof item["id"] === "string" ? `#${item["id"]}` : JsonText.write(item)
    const count = seen.get(name) ?? 0
    seen.set(name, count + 1)
    return `${count} ${name}`
  })
}

const compareLists = (
  path: RowPath,
  before: ReadonlyArray<Json>,
  now: ReadonlyArray<Json>,
  out: Array<RowChange>
): void => {
  const pairs = keptPairs(namesOf(before), namesOf(now))
  // Backwards, so that positions in the old list stay valid.
  let [oldEnd, nowEnd] = [before.length, now.length]
  for (let i = pairs.length - 1; i >= -1; i--) {
    const [old, is] = pairs[i] ?? [-1, -1]
    if (oldEnd - old > 1 || nowEnd - is > 1) out.push([path, old + 1, oldEnd - old - 1, now.slice(is + 1, nowEnd)])
    ;[oldEnd, nowEnd] = [old, is]
  }
  for (const [old, is] of pairs) compare([...path, is], before[old]!, now[is]!, out)
}

/** Positions in both lists of the kept items, in order. */
const keptPairs = (
  before: ReadonlyArray<string>,
  now: ReadonlyArray<string>
): ReadonlyArray<readonly [before: number, now: number]> => {
  const places = new Map(before.map((name, place) => [name, place]))
  const common = now.flatMap((name, is) => {
    const old = places.get(name)
    return old === undefined ? [] : [[old, is] as const]
  })
  return longestRun(common.map(([old]) => old)).map((i) => common[i]!)
}
