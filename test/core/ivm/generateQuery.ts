/**
 * Random live queries over the random data: the whole of what SELECT offers, by grammar.
 *
 * Why so: each production notes the feature it used, so that a test can assert that every feature occurred often
 * enough; the mask switches features off. What is refused in a live view is not generated. `unlike` is noted where the
 * database is known to answer otherwise, or where its answer is not determined, so that those are not compared with it.
 */
import type { Rng } from "../../../kit/data/random.ts"
import { aggregate } from "./generateAggregate.ts"
import { type Feature, type Json, keys, type Mask, recordText, scalar, tables } from "./generateData.ts"
import { siblings } from "./siblings.ts"

export type Tag =
  | Feature
  | "unlike"
  | "correlated"
  | "deep"
  | "graphIn"
  | "recursion"
  | "aggregate"
  | "beside"
  | "groupAll"
  | "collate"
  | "desc"
  | "start"
  | "range"
  | "several"
  | "computed"
  | "filterless"
  | "sharedShape"
  | "link"
  | "total"
  | "page"
  | "sharedFilter"

export interface Query {
  readonly text: string
  readonly params: Json
  readonly tags: ReadonlySet<Tag>
}

export interface G {
  readonly rng: Rng
  readonly mask: Mask
  readonly tags: Set<Tag>
  /** Subqueries around this place. */
  readonly depth: number
}

export const on = (g: G, feature: Feature, chance: number): boolean => g.mask.has(feature) && g.rng.chance(chance)

export const tag = (g: G, ...tags: ReadonlyArray<Tag>): void => tags.forEach((one) => g.tags.add(one))

const literal = (g: G): string => {
  if (on(g, "params", 0.25)) {
    tag(g, "params")
    return g.rng.pick(["$p", "$o.x", "$o.y.z"])
  }
  const plain = ["0", "1", "2", "3", "1.5", "-1", "'a'", "'b'", "'ab'", "''", "'10'", "true", "false"]
  // A text that names a record is equal to it here (D1).
  if (on(g, "mixed", 0.03)) {
    tag(g, "unlike")
    return "'person:1'"
  }
  return g.rng.pick(
    g.mask.has("mixed")
      ? [...plain, "NULL", "NONE", "[1]", "[1, 'a']", "{ x: 1 }", "1.0f", "2dec", "d'2020-01-02T03:04:05Z'", "person:1"]
      : plain
  )
}

/** A path that cannot fail. */
const path = (g: G): string => {
  const choices = ["n", "n", "m", "s", "g", "flag", "tags", "id", "missing"]
  if (g.mask.has("nested")) choices.push("sub.x", "sub.y.z", "sub", "sub.{x}")
  if (g.mask.has("links"))
    choices.push(
      "friend",
      "friend.n",
      "friend.s",
      "friend.friend.n",
      "author.s",
      "links.n",
      "links",
      "friend.author.n",
      "author.{s, n}",
      "links.author.s",
      "friend.sub.x"
    )
  const chosen = g.rng.pick(choices)
  if (/^(friend|author|links)\./.test(chosen)) tag(g, "links", "link")
  if (/friend|author|links/.test(chosen) && !g.mask.has("records")) tag(g, "unlike")
  return chosen
}

const graph = (g: G): string => {
  tag(g, "graph")
  const chosen = g.rng.pick([
    "->likes->post",
    "->likes->post.n",
    "->likes",
    "->likes.w",
    "<-knows<-person",
    "<-likes<-person.s",
    "<-likes",
    "->knows->person.n",
    "->(likes WHERE w > 1)->post",
    "->(likes, knows)->?",
    "->?->?.s",
    "<->knows",
    "->knows->person->likes->post.s",
    "->(SELECT w, id FROM likes ORDER BY w DESC, id LIMIT 2)",
    "id.{1..2+collect}(->knows->person)",
    "id.{..3}(->knows->person)",
    "@.{1..3}.author",
    "@.{2}.author",
    "@.{1..2+collect+inclusive}.author",
    "->likes[WHERE w > 1]",
    "->knows->person.friend.n"
  ])
  if (chosen.includes("<-")) tag(g, "graphIn")
  if (chosen.includes(".{")) tag(g, "recursion")
  if (!g.mask.has("records")) tag(g, "unlike")
  return chosen
}

const callable = (g: G): string => {
  tag(g, "functions")
  const p = path(g)
  return g.rng.pick([
    `type::of(${p})`,
    `count(tags)`,
    `(${p} ?? 0)`,
    `[${p}, ${path(g)}]`,
    `{ a: ${p}, b: ${path(g)} }`,
    `(IF ${p} { ${path(g)} } ELSE { 'no' })`,
    `type::is_number(${p})`,
    `(${p} = ${literal(g)})`,
    `(${p} AND ${path(g)})`,
    `id.tb()`,
    `<string> ${p}`
  ])
}

const failingExpr = (g: G): string => {
  tag(g, "failing")
  return g.rng.pick([
    `n + 1`,
    `string::len(s)`,
    `(n * m)`,
    `string::uppercase(s)`,
    `math::sum(tags)`,
    `(s + 'x')`,
    `array::len(tags)`,
    `(1 / n)`
  ])
}

/** A subquery as it stands, or inside an expression. */
const around = (g: G, inner: string): string => {
  if (g.rng.chance(0.8)) return inner
  tag(g, "functions")
  return g.rng.pick([
    `count(${inner})`,
    `${inner}[0]`,
    `${inner}.n`,
    `[${inner}, n]`,
    `{ inner: ${inner} }`,
    `(IF flag { ${inner} } ELSE { [] })`,
    `array::first(${inner} ?? [])`,
    `${inner}[WHERE n > 0]`
  ])
}

/** An expression for a projection. */
const expr = (g: G): string => {
  if (on(g, "subquery", 0.3) && g.depth < 3) return around(g, subquery(g))
  if (on(g, "graph", 0.3)) return graph(g)
  if (on(g, "failing", 0.12)) return failingExpr(g)
  if (on(g, "functions", 0.25)) return callable(g)
  return path(g)
}

const compared = (g: G): string => {
  if (on(g, "functions", 0.12)) return g.rng.pick(["type::of(n)", "(n ?? 0)", "count(tags)", "string::len(<string> s)"])
  return path(g)
}

const negations = ["CONTAINSNOT", "CONTAINS", "CONTAINSANY", "CONTAINSNONE", "CONTAINSALL"]

const comparison = (g: G): string => {
  const { rng } = g
  const roll = rng.next()
  if (roll < 0.1) return `${path(g)} IN [${literal(g)}, ${literal(g)}, ${literal(g)}]`
  if (roll < 0.18)
    return `tags ${rng.pick(negations)} ${rng.chance(0.5) ? literal(g) : `[${literal(g)}, ${literal(g)}]`}`
  if (roll < 0.24) return `${rng.pick(["n", "m", "s"])} IN ${rng.pick(["1..3", "0..=2", "'a'..'b'", "..2"])}`
  if (roll < 0.3) return path(g)
  if (roll < 0.33)
    return `${path(g)} ${rng.pick(["INSIDE", "NOT IN", "?=", "*=", "=="])} ${rng.chance(0.5) ? "tags" : literal(g)}`
  if (roll < 0.38) return `id ${rng.pick(["=", "!=", "<", ">="])} ${rng.pick(tables)}:${rng.pick(keys)}`
  if (roll < 0.43) return `${rng.pick(["n", "m"])} >= ${rng.below(2)} AND ${rng.pick(["n", "m"])} < ${1 + rng.below(3)}`
  const op = rng.chance(0.5) ? "=" : rng.pick(["!=", "<", "<=", ">", ">="])
  return rng.chance(0.15)
    ? `${literal(g)} ${op} ${compared(g)}`
    : `${compared(g)} ${op} ${rng.chance(0.12) ? path(g) : literal(g)}`
}

const uncorrelated = (g: G): string => {
  tag(g, "uncorrelated", ...(g.mask.has("records") ? [] : ["unlike" as const]))
  const { rng } = g
  const inner = { ...g, depth: g.depth + 1 }
  const where = rng.chance(0.6) ? ` WHERE ${comparison(inner)}` : ""
  return rng.pick([
    `s IN (SELECT VALUE s FROM ${rng.pick(tables)}${where})`,
    `n NOT IN (SELECT VALUE n FROM ${rng.pick(tables)}${where})`,
    `id IN (SELECT VALUE author FROM ${rng.pick(tables)}${where})`,
    `n > (SELECT VALUE n FROM ONLY person:1)`,
    `count((SELECT id FROM ${rng.pick(tables)}${where})) > ${rng.below(4)}`,
    `n = (SELECT VALUE n FROM ONLY ${rng.pick(tables)}${where} LIMIT 1)`
  ])
}

const condition = (g: G, nesting: number): string => {
  if (nesting > 0 && g.rng.chance(0.45)) {
    const joined = `${condition(g, nesting - 1)} ${g.rng.pick(["AND", "OR", "&&", "||", "AND"])} ${condition(g, nesting - 1)}`
    return g.rng.chance(0.2) ? `!(${joined})` : `(${joined})`
  }
  if (on(g, "uncorrelated", 0.2) && g.depth < 3) return uncorrelated(g)
  if (on(g, "subquery", 0.08) && g.depth < 3) return `count(${subquery(g)}) ${g.rng.pick([">", "="])} ${g.rng.below(3)}`
  if (on(g, "graph", 0.2))
    return g.rng.pick([
      `${graph(g)} CONTAINS ${g.rng.pick(["post:1", "person:1", "1", "'a'"])}`,
      `count(${graph(g)}) > ${g.rng.below(3)}`,
      graph(g)
    ])
  if (on(g, "failing", 0.1)) return `${failingExpr(g)} > ${literal(g)}`
  return comparison(g)
}

const where = (g: G, chance = 0.7): string => {
  if (g.rng.chance(chance)) return ` WHERE ${condition(g, g.rng.chance(0.3) ? 2 : g.rng.chance(0.5) ? 1 : 0)}`
  tag(g, "filterless")
  return ""
}

/** ` LIMIT n START m`, each or none. */
const window = (g: G, chance = 0.5): string => {
  if (!on(g, "windows", chance)) return ""
  tag(g, "windows")
  const start = g.rng.chance(0.35) ? ` START ${g.rng.below(5)}` : ""
  if (start !== "") tag(g, "start")
  if (on(g, "params", 0.2)) {
    tag(g, "params")
    return ` LIMIT $k${start}`
  }
  return start !== "" && g.rng.chance(0.15) ? start : ` LIMIT ${g.rng.below(7)}${start}`
}

/** ` ORDER BY ..` over what is selected; `paths` are names that may stand in it. */
const order = (g: G, paths: ReadonlyArray<string>, chance: number, last: string | undefined): string => {
  if (!on(g, "order", chance) || paths.length === 0) return ""
  tag(g, "order")
  const terms = Array.from({ length: g.rng.chance(0.6) ? 1 : 2 }, () => {
    const option = g.rng.pick(["", "", "", " COLLATE", " NUMERIC", " COLLATE NUMERIC"])
    const direction = g.rng.pick(["", "", " DESC", " ASC"])
    if (option !== "") tag(g, "collate")
    if (direction === " DESC") tag(g, "desc")
    return `${g.rng.pick(paths)}${option}${direction}`
  })
  if (last !== undefined && g.rng.chance(0.6)) terms.push(last)
  else tag(g, "unlike")
  return ` ORDER BY ${terms.join(", ")}`
}

const subquery = (g: G): string => {
  tag(g, "subquery")
  if (g.depth >= 1) tag(g, "deep")
  const { rng } = g
  const inner: G = { ...g, depth: g.depth + 1 }
  const given = on(g, "sources", 0.1) ? rng.pick(["$parent.links", "$parent.friend", "$parent.author"]) : undefined
  if (given !== undefined) tag(g, "sources", "computed", "unlike")
  const table = given ?? rng.pick(tables)
  const links = rng.pick([
    "author = $parent.id",
    "author = $parent.id",
    "author = $parent.author",
    "s = $parent.s",
    "g = $parent.g",
    "id = $parent.friend",
    "n > $parent.n",
    "id IN $parent.links",
    "$parent.tags CONTAINS n",
    "friend.n = $parent.n",
    "friend = $parent.id",
    "$parent.id IN links",
    "[s, $parent.s] CONTAINS 'a'"
  ])
  const correlated = rng.chance(0.85)
  if (correlated) tag(g, "correlated")
  if (/author|friend|links/.test(links) && !g.mask.has("records")) tag(g, "unlike")
  const filters = [...(correlated ? [links] : []), ...(rng.chance(0.35) ? [condition(inner, 1)] : [])]
  const filter = filters.length === 0 ? "" : ` WHERE ${filters.join(" AND ")}`
  if (on(g, "group", 0.2)) {
    tag(g, "group", "aggregate")
    const counted = rng.chance(0.5)
    // The planner forgets the VALUE where it only counts a table; what the older evaluator says may differ for another
    // reason.
    if (counted && filter === "") tag(g, "unlike")
    return counted
      ? `(SELECT VALUE count() FROM ${table}${filter} GROUP ALL)`
      : `(SELECT g, count() AS c, math::sum(n) AS total FROM ${table}${filter} GROUP BY g${rng.chance(0.4) ? " ORDER BY c DESC, g LIMIT 2" : ""})`
  }
  const [shown, sortable] = rng.pick<readonly [string, ReadonlyArray<string>]>([
    ["*", ["n", "s", "id"]],
    ["VALUE id", []],
    ["VALUE n", []],
    ["id, n, s", ["n", "s", "id"]],
    [`id, n, ${expr(inner)} AS x`, ["n", "id"]],
    [`id, n, ${expr(inner)} AS x`, ["n", "x"]]
  ])
  const sorting = order(inner, sortable, 0.6, shown === "*" || shown.startsWith("id") ? "id" : undefined)
  if (on(g, "only", 0.1)) {
    tag(g, "only", "unlike")
    return `(SELECT ${shown} FROM ONLY ${table}${filter}${sorting} LIMIT 1)`
  }
  return `(SELECT ${shown} FROM ${table}${filter}${sorting}${window(inner, 0.5)})`
}

const source = (g: G): string => {
  const { rng } = g
  if (!on(g, "sources", 0.35)) return rng.pick(tables)
  tag(g, "sources")
  const table = rng.pick(tables)
  const chosen = rng.pick<readonly [Tag, string]>([
    ["several", `${table}, ${rng.pick(tables.filter((other) => other !== table))}`],
    ["several", tables.join(", ")],
    ["several", `${table}:1, ${rng.pick(tables.filter((other) => other !== table))}`],
    ["range", `${table}:1..a`],
    ["range", `${table}:..=10`],
    ["range", `${table}:a..`],
    ["range", `${table}:2..`],
    ["sources", `[${table}:1, post:2, person:a, ${table}:Z]`],
    ["sources", `${table}:${rng.pick(keys)}`],
    ["params", "$ids"],
    ["computed", `type::table('${table}')`],
    ["computed", `(SELECT * FROM ${table}${rng.chance(0.5) ? " WHERE n > 0" : ""})`],
    ["several", `${table}, ${table}:1`]
  ])
  tag(g, chosen[0])
  return chosen[1]
}

const aliases = ["a1", "a2", "a3"]

const plainQuery = (g: G): string => {
  const { rng } = g
  const from = source(g)
  const last = from.startsWith("(") ? undefined : "id"
  if (on(g, "value", 0.2)) {
    tag(g, "value")
    const shown = expr(g)
    return `SELECT VALUE ${shown} FROM ${from}${where(g)}${/^[a-z.]+$/.test(shown) ? order(g, [shown], 0.4, undefined) : ""}${window(g)}`
  }
  const all = rng.chance(0.5)
  const own = all
    ? ["*"]
    : [
        "id",
        ...["n", "s", "g", "sub.x"].filter((name) => rng.chance(0.5) && (name !== "sub.x" || g.mask.has("nested")))
      ]
  const more = aliases
    .slice(0, rng.below(all ? 2 : 3) + (g.depth === 0 && rng.chance(0.3) ? 1 : 0))
    .map((alias) => `${expr(g)} AS ${on(g, "shadow", 0.1) ? (tag(g, "shadow"), rng.pick(["n", "s"])) : alias}`)
  const names = new Set(more.map((item) => item.slice(item.lastIndexOf(" ") + 1)))
  const fields = [...own, ...more]
  if (names.size < more.length) tag(g, "unlike")
  const sortable = [
    ...(all
      ? [
          "n",
          "s",
          "m",
          "flag",
          ...(g.mask.has("nested") ? ["sub.x"] : []),
          ...(g.mask.has("links") ? ["friend.n", "author.s"] : [])
        ]
      : own.filter((name) => name !== "id")),
    ...names
  ]
  const omit = on(g, "omit", 0.15)
    ? (tag(g, "omit"), ` OMIT ${rng.pick(["n", "s, tags", "sub.x", "sub", "missing"])}`)
    : ""
  const sorting = order(g, sortable, 0.6, last)
  if (/friend|author/.test(sorting)) tag(g, "link", "unlike")
  const fetch = on(g, "fetch", 0.2)
    ? (tag(g, "fetch"),
      ` FETCH ${rng.pick(all ? ["friend", "links", "friend, author", "author", "friend.friend"] : [...names, "n"])}`)
    : ""
  // Text that names a record is followed here (D1), and not by the database.
  if (fetch !== "" && (!g.mask.has("records") || fields.some((shown) => shown.includes("<string>")))) tag(g, "unlike")
  if (from.includes("*") && !g.mask.has("records")) tag(g, "unlike")
  // Where its table is computed, the database sorts by what OMIT has taken out of an object, but only when there is a
  // LIMIT.
  if (omit !== "" && from.startsWith("type::table")) tag(g, "unlike")
  // The database's planner forgets a stored field that is also shown under an alias where rows are sorted, and
  // sometimes elsewhere.
  if (all && more.some((item) => /^[\w.]+ AS/.test(item))) tag(g, "unlike")
  return `SELECT ${fields.join(", ")}${omit} FROM ${from}${where(g)}${sorting}${window(g)}${fetch}`
}

const groupQuery = (g: G): string => {
  const { rng } = g
  tag(g, "group")
  const from = source(g)
  const aggregates = aliases.slice(0, 1 + rng.below(3)).map((alias) => `${aggregate(g)} AS ${alias}`)
  if (rng.chance(0.25)) {
    tag(g, "groupAll")
    return on(g, "value", 0.2)
      ? (tag(g, "value", "unlike"), `SELECT VALUE ${aggregate(g)} FROM ${from}${where(g, 0.5)} GROUP ALL`)
      : `SELECT ${rng.chance(0.2) ? "count()" : aggregates.join(", ")} FROM ${from}${where(g, 0.5)} GROUP ALL`
  }
  const keyed = rng.pick<readonly [string, string]>([
    ["g", "g"],
    ["g", "g"],
    ["s", "s"],
    ["flag", "flag"],
    ["type::of(n) AS t", "t"],
    ["g, flag", "g, flag"],
    ["g AS key", "key"],
    ...(g.mask.has("nested") ? [["sub.x AS x", "x"] as const] : []),
    ...(g.mask.has("links") ? [["author.s AS a", "a"] as const, ["friend", "friend"] as const] : [])
  ])
  if (/author|friend/.test(keyed[0]) && !g.mask.has("records")) tag(g, "unlike")
  if (keyed[0].includes("author")) tag(g, "link")
  if (rng.chance(0.1))
    return `SELECT ${keyed[0]}${rng.pick(["", ", count()", ", count(), math::sum(n)", ", math::max(m)"])} FROM ${from}${where(g, 0.5)} GROUP BY ${keyed[1]}${window(g)}`
  if (on(g, "value", 0.08)) {
    tag(g, "value", "unlike")
    return `SELECT VALUE s FROM ${from}${where(g, 0.5)} GROUP BY s`
  }
  const sorting = order(g, [keyed[1].split(",")[0]!, "a1"], 0.5, keyed[1].split(", ").at(-1))
  return `SELECT ${keyed[0]}, ${aggregates.join(", ")} FROM ${from}${where(g, 0.5)} GROUP BY ${keyed[1]}${sorting}${window(g)}`
}

const splitQuery = (g: G): string => {
  tag(g, "split")
  const { rng } = g
  const split = rng.pick(["tags", "tags", "links", ...(g.mask.has("nested") ? ["sub.x"] : [])])
  const shown = rng.chance(0.5) ? "*" : `id, ${split}, n`
  if (g.mask.has("mixed")) tag(g, "unlike")
  const cut = window(g, 0.3)
  if (cut !== "") tag(g, "unlike")
  return `SELECT ${shown} FROM ${source(g)}${where(g, 0.5)} SPLIT ${split}${order(g, ["n", split], 0.4, "id")}${cut}`
}

const onlyQuery = (g: G): string => {
  tag(g, "only")
  const { rng } = g
  const table = rng.pick(tables)
  if (rng.chance(0.5))
    return `SELECT *${rng.chance(0.5) ? `, ${expr(g)} AS a1` : ""} FROM ONLY ${table}:${rng.pick(keys)}${where(g, 0.3)}`
  return `SELECT * FROM ONLY ${table}${where(g)}${order(g, ["n", "s"], 0.5, "id")}${rng.chance(0.8) ? " LIMIT 1" : ""}`
}

export const params = (rng: Rng, mask: Mask): Json => ({
  p: scalar(rng, mask),
  o: { x: scalar(rng, mask), y: { z: scalar(rng, mask) } },
  k: rng.below(5),
  ids: Array.from({ length: 3 }, () => recordText(rng))
})

/** Behind a row, by a value and its id, which may be a text. */
const keysetCondition = (g: G, field: string): string => {
  const { rng } = g
  const value = literal(g),
    op = rng.pick(["<", ">"]),
    id = `${rng.pick(tables)}:${rng.pick(keys)}`
  if (rng.chance(0.7)) return `(${field} ${op} ${value} OR ${field} = ${value} AND id ${op} ${id})`
  tag(g, "unlike")
  return `(id ${op} "${id}" OR ${field} = ${value})`
}

/** A window that an index decides: equal fields, IN, a range of what is ordered by first, and fields to order by. */
const pageQuery = (g: G): string => {
  tag(g, "windows", "order", "page")
  const { rng } = g
  const field = rng.pick(["n", "n", "s", "m", "id"])
  const conditions = [
    ...(rng.chance(0.5) ? [`${rng.pick(["g", "flag", "s"])} = ${literal(g)}`] : []),
    ...(rng.chance(0.25) ? [`${rng.pick(["m", "g"])} IN [${literal(g)}, ${literal(g)}, ${literal(g)}]`] : []),
    ...(rng.chance(0.4) ? [`${field} ${rng.pick(["<", "<=", ">", ">="])} ${literal(g)}`] : []),
    ...(rng.chance(0.15) ? [`${field} ${rng.pick(["<", ">="])} ${literal(g)}`] : []),
    ...(rng.chance(0.2) ? [keysetCondition(g, field)] : []),
    ...(rng.chance(0.35) ? [`${path(g)} ${rng.pick(["!=", "==", "CONTAINSNOT"])} ${literal(g)}`] : [])
  ]
  const filter = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`
  const option = rng.chance(0.15) ? ` ${rng.pick(["COLLATE", "NUMERIC"])}` : ""
  const direction = rng.pick(["", " DESC", " ASC"])
  if (direction === " DESC") tag(g, "desc")
  if (option !== "") tag(g, "collate")
  const terms = [`${field}${option}${direction}`, ...rng.pick([[], ["id"], ["s DESC", "id"], ["m"], ["id DESC"]])]
  const sorted = rng.chance(0.9) ? ` ORDER BY ${[...new Set(terms)].join(", ")}` : ""
  const start = rng.chance(0.5) ? ` START ${rng.below(5)}` : ""
  if (start !== "") tag(g, "start")
  const table = rng.pick(tables)
  const child = `(SELECT id, n FROM ${rng.pick(tables)} WHERE author = $parent.id ORDER BY n DESC LIMIT ${1 + rng.below(2)})`
  const shown = rng.pick([
    "*",
    "id, n, s, m",
    `*, ${on(g, "subquery", 0.8) ? child : "n"} AS a1`,
    `*, ${expr(g)} AS a1`
  ])
  if (shown.includes(child)) tag(g, "subquery", "correlated", ...(g.mask.has("records") ? [] : ["unlike" as const]))
  // Not all evaluators of the database order by a field that is also shown under an alias.
  if (/^\*, [\w.]+ AS/.test(shown)) tag(g, "unlike")
  return `SELECT ${shown} FROM ${table}${filter}${sorted} LIMIT ${1 + rng.below(5)}${start}`
}

export const query = (rng: Rng, mask: Mask): Query => {
  const g: G = { rng, mask, tags: new Set(), depth: 0 }
  const roll = rng.next()
  const text =
    mask.has("group") && roll < 0.25
      ? groupQuery(g)
      : mask.has("split") && roll < 0.32
        ? splitQuery(g)
        : mask.has("only") && roll < 0.38
          ? onlyQuery(g)
          : mask.has("windows") && roll < 0.55
            ? pageQuery(g)
            : plainQuery(g)
  if (text.includes("$ids") && !mask.has("records")) g.tags.add("unlike")
  if (text.includes("$ids")) g.tags.add("unlike")
  if (!g.tags.has("failing")) g.tags.add("total")
  return { text, params: params(rng, mask), tags: g.tags }
}

/** Queries for one run; some share their shape or their filter with an earlier one, or are the same. */
export const queries = (rng: Rng, mask: Mask, count: number): ReadonlyArray<Query> => {
  const out: Array<Query> = []
  while (out.length < count) {
    const earlier = out.length > 0 && mask.has("twins") && rng.chance(0.35) ? rng.pick(out) : undefined
    const like = earlier !== undefined && rng.chance(0.5) ? siblings(rng, mask, earlier) : []
    if (like.length > 0) out.push(...like.slice(0, count - out.length))
    else if (earlier === undefined) out.push(query(rng, mask))
    else
      out.push({
        text: earlier.text.replace(/(?<= [<>=]{1,2} )(-?[0-3]|'(?:a|b|ab)')(?=[ )]|$)/g, () =>
          rng.pick(["0", "1", "2", "'a'", "'b'"])
        ),
        params: rng.chance(0.5) ? earlier.params : params(rng, mask),
        tags: new Set([...earlier.tags, "sharedShape"])
      })
  }
  return out
}

/** Filters alone. */
export const comparisons = (
  rng: Rng,
  mask: Mask,
  count: number
): ReadonlyArray<{ readonly text: string; readonly params: Json }> =>
  Array.from({ length: count }, () => ({
    text: condition({ rng, mask, tags: new Set(), depth: 0 }, rng.below(3)),
    params: params(rng, mask)
  }))
