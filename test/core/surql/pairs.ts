/**
 * Queries that combine every two choices of how a query can be built: projection, filter, order, window, grouping,
 * links, graph, subqueries, parameters.
 *
 * Why so: clauses are mostly wrong two at a time (a window under a filter, a group over links), and a covering array
 * has every two in some hundred queries where random choice needs thousands. What fills the choices is random. Left out
 * is what the database itself leaves open (ties) and what its two evaluators are known to answer differently; `of` says
 * so where it bends a choice.
 */
import { FastCheck as fc } from "effect"
import type { Rng } from "../../../kit/data/random.ts"
import type { Text } from "./generate.ts"
import { comparison, expression, fields, pick, plainCondition, value } from "./generate.ts"

export const axes = {
  projection: ["star", "fields", "expressions", "value", "star and alias", "omit", "destructured"],
  filter: ["none", "comparison", "combined", "list", "expression", "truth"],
  order: ["none", "ascending", "descending", "collate", "numeric"],
  window: ["none", "limit", "start", "both"],
  group: ["none", "key", "all"],
  links: ["none", "shown", "filtered", "fetched"],
  graph: ["none", "shown", "filtered"],
  subquery: ["none", "shown", "filtered", "source"],
  params: ["none", "value", "path", "source"]
} as const

export type Axis = keyof typeof axes
export type Choice = { readonly [A in Axis]: (typeof axes)[A][number] }

const names = Object.keys(axes) as ReadonlyArray<Axis>

const pairsOf = (choice: Choice): ReadonlyArray<string> =>
  names.flatMap((a, i) => names.slice(i + 1).map((b) => `${a} ${choice[a]} x ${b} ${choice[b]}`))

/** Every two choices of different axes. */
export const allPairs: ReadonlyArray<string> = names.flatMap((a, i) =>
  names.slice(i + 1).flatMap((b) => axes[a].flatMap((x) => axes[b].map((y) => `${a} ${x} x ${b} ${y}`)))
)

const anyChoice = (random: Rng): Choice =>
  Object.fromEntries(names.map((a) => [a, random.pick<string>(axes[a])])) as unknown as Choice

/** Choices in which every pair occurs: each the best of some random ones, and made to have a pair that is missing. */
export const covering = (random: Rng): ReadonlyArray<Choice> => {
  const missing = new Set(allPairs),
    out: Array<Choice> = []
  for (const pair of missing) {
    const [left, right] = pair.split(" x ") as [string, string]
    const fixed = Object.fromEntries(
      [left, right].map((part) => [part.slice(0, part.indexOf(" ")), part.slice(part.indexOf(" ") + 1)])
    )
    const candidates = Array.from({ length: 12 }, () => ({ ...anyChoice(random), ...fixed }) as Choice)
    const gain = (c: Choice): number => pairsOf(c).filter((p) => missing.has(p)).length
    const best = candidates.reduce((a, b) => (gain(b) > gain(a) ? b : a))
    for (const p of pairsOf(best)) missing.delete(p)
    out.push(best)
  }
  return out
}

/**
 * Values the parameters of a run have. No floats: the way to the database loses whether 1.0 is one. No missing records:
 * as sources the evaluators differ.
 */
export const params: fc.Arbitrary<{ readonly [name: string]: string }> = fc.record({
  v: pick("0", "1", "2", "'a'", "'abc'", "NULL", "true", "p:1", "p:2", "[1, 'a']", "1h", "d'2020-01-01T00:00:00Z'"),
  o: pick("{ x: 1, y: 'a' }", "{ x: p:1 }", "{ y: 2 }", "{ x: [1, 2], y: { z: 3 } }"),
  rec: pick("p:1", "p:2", "q:a"),
  list: pick("[p:1, p:2]", "[q:1, p:3, p:1]", "[]", "[q:a]")
})

const none: Text = fc.constant("")

const filters: { readonly [name in Choice["filter"]]: Text } = {
  none,
  comparison: fc.tuple(pick(...fields, "o.x", "nope"), comparison, value).map(([a, op, b]) => `${a} ${op} ${b}`),
  combined: fc
    .tuple(
      pick(...fields, "id"),
      pick("=", ">", "!="),
      value,
      pick("AND", "OR", "??"),
      pick(...fields),
      pick("<=", "IN", "CONTAINS"),
      value
    )
    .map(([a, op, b, c, d, op2, e]) => `((${a} ${op} ${b}) ${c} (${d} ${op2} ${e}))`),
  list: fc
    .tuple(pick(...fields), fc.array(value, { minLength: 1, maxLength: 3 }))
    .map(([a, items]) => `${a} IN [${items.join(", ")}]`),
  expression: plainCondition.map((c) => `(${c})`),
  truth: pick("a", "!b", "l", "o.x", "!!c")
}

const linked = pick("r.a", "r.b", "r.o.x", "r.r.a", "l.a", "r.id", "r.nope")
const walked = pick(
  "->e",
  "->e->p",
  "<-e",
  "->e.w",
  "->e->?",
  "->e->p.a",
  "->(e WHERE w > 1)",
  "->e[WHERE w]->?",
  "<-e<-p.b"
)
const nested = pick(
  "(SELECT VALUE id FROM q WHERE a = $parent.a)",
  "(SELECT a, b FROM q)",
  "(SELECT VALUE a FROM p WHERE r = $parent.id)",
  "(SELECT * FROM q WHERE id = $parent.r)",
  "count((SELECT * FROM p WHERE a = $parent.b))",
  "(SELECT VALUE id FROM p LIMIT 2)",
  "(SELECT count() AS n FROM p GROUP ALL)[0].n"
)

const conditions = (c: Choice): ReadonlyArray<Text> => [
  ...(c.filter === "none" ? [] : [filters[c.filter]]),
  ...(c.links === "filtered"
    ? [fc.tuple(linked, pick("=", "!=", ">", "IN"), value).map(([p, op, v]) => `${p} ${op} ${v}`)]
    : []),
  ...(c.graph === "filtered"
    ? [pick("->e", "count(->e->?) > 0", "->e[WHERE w > 1]", "!(->e->p)", "<-e->p CONTAINS p:1")]
    : []),
  ...(c.subquery === "filtered"
    ? [
        pick(
          "id IN (SELECT VALUE r FROM q)",
          "a IN (SELECT VALUE a FROM q)",
          "(SELECT VALUE id FROM q WHERE a = $parent.a)",
          "count((SELECT * FROM p WHERE a = $parent.a)) > 1"
        )
      ]
    : []),
  ...(c.params === "value"
    ? [pick("a = $v", "a != $v", "$v IN l", "b < $v", "$v")]
    : c.params === "path"
      ? [pick("a = $o.x", "$o.y ?? a", "o.x = $o.x", "$o.y.z != b", "$o.nope = nope")]
      : [])
]

/** What is shown besides the projection itself. */
const extras = (c: Choice): ReadonlyArray<Text> => [
  ...(c.links === "shown" ? [linked] : []),
  ...(c.graph === "shown" ? [walked] : []),
  ...(c.subquery === "shown" ? [nested] : []),
  ...(c.params === "path" ? [pick("$o.x", "$o.y", "$o")] : [])
]

const joined = (texts: ReadonlyArray<Text>, by: string): Text =>
  texts.length === 0 ? none : fc.tuple(...texts).map((all) => all.join(by))

const direction: { readonly [name in Choice["order"]]: string } = {
  none: "",
  ascending: "",
  descending: " DESC",
  collate: " COLLATE",
  numeric: " NUMERIC DESC"
}

const windows: { readonly [name in Choice["window"]]: Text } = {
  none,
  limit: pick(" LIMIT 2", " LIMIT 1", " LIMIT 4"),
  start: pick(" START 1", " START 9"),
  both: pick(" LIMIT 2 START 1", " START 1 LIMIT 3")
}

const source = (c: Choice): Text =>
  c.subquery === "source"
    ? pick("(SELECT * FROM p)", "(SELECT *, r.a AS c FROM p, q)", "(SELECT * FROM q WHERE a)")
    : c.params === "source"
      ? pick("$rec", "$list", "$rec, $list")
      : pick("p", "p", "q", "p, q", "p:1..=3")

/** A grouped query: projection chooses what is aggregated. */
const grouped = (c: Choice): Text => {
  const aggregates: { readonly [name in Choice["projection"]]: Text } = {
    star: pick("count() AS k"),
    fields: pick("b"),
    expressions: pick("math::sum(a) + 1 AS k", "count(a > 1) AS k"),
    value: pick("array::distinct(b) AS k"),
    "star and alias": pick("math::max(a) AS k, count() AS n"),
    omit: pick("array::len(array::group(b)) AS k"),
    destructured: pick("{ n: count(), m: math::min(a) } AS k")
  }
  const more = [
    ...(c.links === "shown" ? [pick("count(r.a) AS lk", "math::sum(r.a) AS lk")] : []),
    ...(c.graph === "shown" ? [pick("count(->e) AS gk", "count(->e->p) AS gk")] : [])
  ]
  return fc
    .tuple(
      pick("c", "o.x AS g", "type::of(a) AS g", "a"),
      joined([aggregates[c.projection], ...more], ", "),
      source(c),
      joined(conditions(c), " AND "),
      windows[c.window]
    )
    .map(([key, shown, from, where, window]) => {
      const by = key.replace(/.* AS /, ""),
        all = c.group === "all"
      const order = c.order === "none" || all ? "" : ` ORDER BY ${by}${direction[c.order]}`
      return `SELECT ${all ? "" : `${key}, `}${shown} FROM ${from}${where === "" ? "" : ` WHERE ${where}`} GROUP ${all ? "ALL" : `BY ${by}`}${order}${window}`
    })
}

/** A query of a choice. VALUE is not sorted (an evaluator does not), and what is fetched is not sorted by. */
export const of = (c: Choice): Text => {
  if (c.group !== "none") return grouped(c)
  const shown = extras(c)
  const aliased = shown.map((t, i) => t.map((e) => `${e} AS x${i}`))
  const list: { readonly [name in Choice["projection"]]: Text } = {
    star: joined([fc.constant("*"), ...aliased], ", "),
    fields: joined([fc.constant("id, a, b, r, l"), pick("c", "o.x", "nope", "o"), ...aliased], ", "),
    expressions: joined([fc.constant("id, a, b, r, l"), expression.map((e) => `${e} AS k`), ...aliased], ", "),
    value:
      shown.length === 0 ? expression.map((e) => `VALUE ${e}`) : joined(shown, ", ").map((all) => `VALUE [${all}]`),
    "star and alias": joined([fc.constant("*"), expression.map((e) => `${e} AS k`), ...aliased], ", "),
    omit: joined([fc.constant("*"), ...aliased], ", ").map((all) => `${all} OMIT o.x, nope, c`),
    destructured: joined(
      [
        fc.constant("id, a, b, r, l"),
        pick("o.{x, y} AS k", "r.{a, b} AS k", "o.{x, z: y} AS k", "r.{id, r.{a}} AS k"),
        ...aliased
      ],
      ", "
    )
  }
  return fc
    .tuple(
      list[c.projection],
      source(c),
      joined(conditions(c), " AND "),
      pick("a", "b"),
      windows[c.window],
      pick("r", "l", "r, l")
    )
    .map(
      ([what, from, where, by, window, fetched]) =>
        `SELECT ${what} FROM ${from}${where === "" ? "" : ` WHERE ${where}`}${c.order === "none" || c.projection === "value" ? "" : ` ORDER BY ${by}${direction[c.order]}, id`}${window}${c.links === "fetched" && c.projection !== "value" ? ` FETCH ${fetched}` : ""}`
    )
}
