/**
 * Deltas as a server could make them, by a way of its own: what stays in order is kept, the rest removed and inserted,
 * what changed inside is updated whole or patched, by chance.
 *
 * Independent of the client, so that a mistake in reading the contract shows.
 */

import type { Rng } from "../../kit/data/random.ts"
import type { Change, Delta, Path } from "../../src/client/delta.ts"

export type Json = null | boolean | number | bigint | string | ReadonlyArray<Json> | { readonly [field: string]: Json }

/** With fields sorted, so that equal values are equal texts. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "bigint"
      ? { bigint: String(inner) }
      : typeof inner === "object" && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner
  )

const isFields = (value: Json | undefined): value is { readonly [field: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Changes that make `after` of `before`. */
const changesOf = (random: Rng, path: Path, before: Json, after: Json): ReadonlyArray<Change> => {
  if (canonical(before) === canonical(after)) return []
  if (random.chance(0.2)) return [[path, after]]
  if (Array.isArray(before) && Array.isArray(after)) {
    let start = 0
    while (start < before.length && start < after.length && canonical(before[start]) === canonical(after[start]))
      start++
    let end = 0
    while (
      end < Math.min(before.length, after.length) - start &&
      canonical(before[before.length - 1 - end]) === canonical(after[after.length - 1 - end])
    )
      end++
    if (before.length === after.length && random.chance(0.5))
      return before.flatMap((item, n) => changesOf(random, [...path, n], item as Json, after[n] as Json))
    return [[path, start, before.length - start - end, after.slice(start, after.length - end)]]
  }
  if (isFields(before) && isFields(after))
    return [
      ...Object.keys(before)
        .filter((field) => !Object.hasOwn(after, field))
        .map((field): Change => [[...path, field]]),
      ...Object.keys(after).flatMap((field) =>
        Object.hasOwn(before, field)
          ? changesOf(random, [...path, field], before[field]!, after[field]!)
          : [[[...path, field], after[field]] as Change]
      )
    ]
  return [[path, after]]
}

const keyOf = (row: Json): string => (isFields(row) && typeof row["id"] === "string" ? row["id"] : canonical(row))

/** A delta from one list of rows to another. */
export const diff = (random: Rng, before: ReadonlyArray<Json>, after: ReadonlyArray<Json>): Delta => {
  const kept: Array<readonly [number, number]> = []
  let from = 0
  for (const [to, row] of after.entries()) {
    const at = before.findIndex((other, n) => n >= from && keyOf(other) === keyOf(row))
    // Sometimes a row that could stay goes and comes, and a far jump is left to others.
    if (at < 0 || random.chance(0.05) || (at - from > 5 && random.chance(0.7))) continue
    kept.push([at, to])
    from = at + 1
  }
  const stays = new Set(kept.map(([at]) => at))
  const there = new Set(kept.map(([, to]) => to))
  const remove = [...before.keys()].filter((at) => !stays.has(at)).reverse()
  const insert = [...after.entries()].filter(([to]) => !there.has(to))
  const update: Array<readonly [number, unknown]> = []
  const patch: Array<readonly [number, ReadonlyArray<Change>]> = []
  for (const [at, to] of kept) {
    if (canonical(before[at]) === canonical(after[to])) continue
    if (random.chance(0.3)) update.push([to, after[to]])
    else patch.push([to, changesOf(random, [], before[at]!, after[to]!)])
  }
  return {
    ...(remove.length > 0 ? { remove } : {}),
    ...(insert.length > 0 ? { insert } : {}),
    ...(update.length > 0 ? { update } : {}),
    ...(patch.length > 0 ? { patch } : {})
  }
}

const scalar = (random: Rng): Json =>
  random.pick<Json>([
    null,
    true,
    false,
    0,
    -0.5,
    1e21,
    "",
    "a",
    "zwölf\n\u2028: data",
    "🦊",
    random.below(100),
    2n ** 53n + BigInt(random.below(3))
  ])

const value = (random: Rng, depth: number): Json => {
  if (depth > 2 || random.chance(0.5)) return scalar(random)
  if (random.chance(0.5))
    return Array.from({ length: random.below(4) }, (_, n) =>
      random.chance(0.5) ? { id: `c:${n}`, text: scalar(random) } : value(random, depth + 1)
    )
  const fields: Array<readonly [string, Json]> = []
  for (const field of ["a", "b", "__proto__", "constructor"])
    if (random.chance(0.4)) fields.push([field, value(random, depth + 1)])
  return Object.fromEntries(fields)
}

export const row = (random: Rng, id: string): Json => ({
  id,
  ...Object.fromEntries(
    ["x", "y", "__proto__"].filter(() => random.chance(0.7)).map((field) => [field, value(random, 0)])
  )
})

const edited = (random: Rng, old: Json): Json => {
  if (!isFields(old)) return value(random, 1)
  const entries = Object.entries(old).filter(([field]) => field === "id" || random.chance(0.9))
  const at = random.below(entries.length + 1)
  const field = entries[at]?.[0] ?? "z"
  if (field === "id") return Object.fromEntries([...entries, ["z", value(random, 0)]])
  const before = old[field]
  const next =
    Array.isArray(before) && random.chance(0.7)
      ? [
          ...before.slice(0, random.below(before.length + 1)),
          value(random, 1),
          ...before.slice(random.below(before.length + 1))
        ]
      : value(random, 0)
  return Object.fromEntries([...entries.filter(([each]) => each !== field), [field, next]])
}

/** A step of a view's rows: some rows come, go, move and change. */
export const step = (random: Rng, rows: ReadonlyArray<Json>, ids: () => string): ReadonlyArray<Json> => {
  const list = [...rows]
  for (let n = random.below(4); n > 0; n--) {
    const kind = list.length === 0 ? 0 : random.below(list.length > 25 ? 6 : 5)
    const at = random.below(list.length)
    if (kind === 0)
      list.splice(random.below(list.length + 1), 0, random.chance(0.9) ? row(random, ids()) : scalar(random))
    else if (kind === 1 || kind === 5) list.splice(at, kind === 5 ? 8 : 1)
    else if (kind === 2) list.splice(random.below(list.length), 0, ...list.splice(at, 1))
    else list[at] = edited(random, list[at]!)
  }
  return list
}
