/**
 * Queries that have their FROM and WHERE from another query, and all the rest of their own: views that may share rows.
 *
 * Why from the text: the filter is any that the grammar makes, and the sibling asks for the same in other words.
 */
import type { Rng } from "../../../kit/data/random.ts"
import type { Mask } from "./generateData.ts"
import type { Query, Tag } from "./generateQuery.ts"

const closing: ReadonlySet<string> = new Set([")", "]", "}"])
const opening: ReadonlySet<string> = new Set(["(", "[", "{"])
const clauses = [" SPLIT ", " GROUP ", " ORDER BY ", " LIMIT ", " START ", " FETCH "]

/** FROM and WHERE of a query as they stand in its text; undefined for one row. */
export const filterOf = (text: string): string | undefined => {
  let depth = 0,
    from = -1,
    quote = ""
  for (let at = 0; at <= text.length; at++) {
    const letter = text[at] ?? ""
    if (quote !== "") quote = letter === quote ? "" : quote
    else if (letter === "'" || letter === "`") quote = letter
    else if (opening.has(letter)) depth++
    else if (closing.has(letter)) depth--
    else if (depth === 0 && from < 0 && text.startsWith(" FROM ", at)) from = at
    else if (from >= 0 && depth === 0 && (letter === "" || clauses.some((clause) => text.startsWith(clause, at)))) {
      const filter = text.slice(from, at)
      return filter.startsWith(" FROM ONLY ") ? undefined : filter
    }
  }
  return undefined
}

/** What says nothing about a filter. */
const ofTheRest: ReadonlySet<Tag> = new Set<Tag>([
  ..."windows start order desc collate group groupAll aggregate split fetch only value omit page sharedShape".split(" ")
] as ReadonlyArray<Tag>)

/** What is shown, and by what it may be ordered. */
const rows: ReadonlyArray<readonly [shown: string, sortable: ReadonlyArray<string>]> = [
  ["*", ["n", "s", "m"]],
  ["id, n", ["n"]],
  ["VALUE id", []],
  ["s, n, id", ["n", "s"]],
  ["*, (n ?? 0) AS b1", ["n", "s"]],
  ["id, n + 1 AS b1", []],
  ["*, (s + 'x') AS b1", ["n", "s"]],
  ["*, $p AS b1", ["n", "s"]]
]
const keys = ["g", "s", "string::len(s) AS t", "flag", "g, flag", "type::of(n) AS t", "friend"]
const aggregates = ["count()", "count(n > 1)", "math::sum(n)", "math::mean(m)", "math::max(n)", "math::min(m)"]
/** Those that are computed over all rows of a group. */
const folded = ["array::distinct(s)", "n"]

/** Two or three queries with the filter of this one; none where it is of one row. */
export const siblings = (rng: Rng, mask: Mask, query: Query): ReadonlyArray<Query> => {
  const filter = filterOf(query.text)
  return filter === undefined ? [] : Array.from({ length: 2 + rng.below(2) }, () => sibling(rng, mask, query, filter))
}

const sibling = (rng: Rng, mask: Mask, { params, tags }: Query, filter: string): Query => {
  const own = new Set<Tag>([...tags].filter((tag) => !ofTheRest.has(tag)))
  own.add("sharedFilter")
  const window = mask.has("windows") && rng.chance(0.4) ? ` LIMIT ${rng.below(6)}${rng.pick(["", " START 1"])}` : ""
  if (window !== "") own.add("windows")
  const made = (query: string): Query => ({ text: query, params, tags: own })
  if (mask.has("group") && rng.chance(0.5)) {
    own.add("group").add("aggregate")
    const calls = rng.chance(0.85) ? aggregates : [...aggregates, ...folded]
    const shown = [0, 1, 2].slice(rng.below(3)).map((i) => `${rng.pick(calls)} AS b${i}`)
    if (rng.chance(0.2)) return made(`SELECT ${shown.join(", ")}${filter} GROUP ALL`)
    const key = rng.pick(keys)
    const by = key.endsWith(" AS t") ? "t" : key
    if (key.startsWith("string")) own.delete("total")
    if (key === "friend" && !mask.has("records")) own.add("unlike")
    const order =
      mask.has("order") && rng.chance(0.5) ? ` ORDER BY b2${rng.pick(["", " DESC"])}, ${by.split(", ").at(-1)}` : ""
    if (order !== "" || window !== "") own.add("unlike")
    return made(`SELECT ${key}, ${shown.join(", ")}${filter} GROUP BY ${by}${order}${window}`)
  }
  const [shown, sortable] = rng.pick(rows)
  if (shown.includes("+")) own.delete("total")
  if (/\$p|\+/.test(shown)) own.add("unlike")
  const order =
    mask.has("order") && sortable.length > 0 && rng.chance(0.7)
      ? ` ORDER BY ${rng.pick(sortable)}${rng.pick(["", " DESC", " COLLATE"])}, id`
      : ""
  return made(`SELECT ${shown}${filter}${order}${window}`)
}
