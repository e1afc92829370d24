/**
 * Random aggregates of a grouped query, alone and inside expressions with other operands.
 */
import { tables } from "./generateData.ts"
import { type G, on, tag } from "./generateQuery.ts"

/** An operand beside an aggregate: of no row, of another table, or a key or another field of the group. */
const beside = (g: G): string => {
  const { rng } = g
  if (on(g, "uncorrelated", 0.5) && g.mask.has("subquery")) {
    tag(g, "subquery")
    return rng.pick([
      `(SELECT VALUE n FROM ${rng.pick(tables)} ORDER BY n DESC LIMIT 1)[0]`,
      `array::len((SELECT VALUE id FROM ${rng.pick(tables)} WHERE ${rng.pick(["n", "m"])} > ${rng.below(3)}))`,
      "person:1.n"
    ])
  }
  return rng.pick(["(1 + 2)", "string::len('abc')", "[1, 2][0]", "$o.x", "[$p, 1]", "g", "s", "flag", "n", "tags[0]"])
}

const besides = (g: G, simple: string): string => {
  tag(g, "beside")
  const { rng } = g,
    other = beside(g)
  // Keys and other fields stand otherwise in each of the database's evaluators, and what fails in a group fails in each.
  if (!/^\(|^string|^\[1|^array/.test(other)) tag(g, "unlike")
  return rng.pick([
    `${simple} = ${other}`,
    `${simple} IN [${other}, 1]`,
    `[${other}, ${simple}]`,
    `{ a: ${simple}, b: ${other} }`,
    `(IF ${other} = 'a' { ${simple} } ELSE { ${other} })`,
    `string::concat(${other}, ${simple})`,
    `{ LET $a = ${simple}; [$a, ${other}] }`,
    ...(g.mask.has("failing") ? [`count() + ${other}`, `${other} + count()`, `array::len(${other})`] : [])
  ])
}

export const aggregate = (g: G): string => {
  tag(g, "aggregate")
  const { rng } = g
  const of = rng.pick(["n", "m", "n", "s", "flag", ...(g.mask.has("links") ? ["friend.n"] : [])])
  if (of === "friend.n") tag(g, "link", ...(g.mask.has("records") ? [] : ["unlike" as const]))
  const simple = rng.pick([
    "count()",
    "count()",
    `count(${of} > 1)`,
    `count(${of})`,
    `math::sum(${of})`,
    `math::mean(${of})`,
    `math::min(${of})`,
    `math::max(${of})`,
    `math::spread(${of})`,
    `array::group(${of})`,
    `array::distinct(${of})`,
    of,
    `math::median(${of})`,
    `math::variance(${of})`,
    `math::stddev(${of})`,
    `array::len(array::group(${of}))`,
    "time::max(d)"
  ])
  if (/median|variance|stddev|spread|time/.test(simple)) tag(g, "unlike")
  if (rng.chance(0.25)) return besides(g, simple)
  const form = rng.pick([
    simple,
    simple,
    simple,
    `${/count|sum/.test(simple) ? simple : "count()"} * 2 + 1`,
    `[count(), ${simple}]`,
    `{ c: ${simple} }`,
    `(IF count() > 2 { ${simple} } ELSE { 'few' })`,
    ...(g.mask.has("failing") ? [`math::sum(n) / count()`, `math::sum(n + 1)`] : [])
  ])
  // What is no number or string of its own stands otherwise inside an expression in each of the database's evaluators.
  if (form !== simple && !/count|sum/.test(simple)) tag(g, "unlike")
  return form
}
