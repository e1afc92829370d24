/**
 * Random data and random queries, by grammar, with shrinking.
 *
 * Why so: hand-written cases show what somebody thought of; this tries the combinations. Data is schema-free with mixed
 * types, NONE and NULL everywhere. What the two evaluators of the real engine are known to answer differently, and what
 * is not deterministic (ties in ORDER BY; which rows are read and may fail behind LIMIT 0), is not generated.
 */
import { FastCheck as fc } from "effect"

export type Text = fc.Arbitrary<string>

export const pick = (...texts: ReadonlyArray<string>): Text => fc.constantFrom(...texts)

const scalar: Text = fc.oneof(
  { weight: 6, arbitrary: pick("0", "1", "2", "3", "-1", "10") },
  {
    weight: 2,
    arbitrary: pick(
      "1.0f",
      "1.5f",
      "2dec",
      "3dec",
      "-2.5f",
      "9007199254740992",
      "9007199254740993",
      "9223372036854775807",
      "1e300f"
    )
  },
  {
    weight: 5,
    arbitrary: pick("'a'", "'b'", "'B'", "'abc'", "''", "'10'", "'9'", "'é'", "'a b'", "'李雷'", "'Nancy'", "'09'")
  },
  { weight: 2, arbitrary: pick("true", "false", "NULL", "NONE") },
  {
    weight: 2,
    arbitrary: pick(
      "d'2020-01-01T00:00:00Z'",
      "d'2021-06-01T12:30:00.5Z'",
      "1h",
      "90m",
      "0ns",
      "u'018a6680-bef9-701b-9025-e1754f296a0f'"
    )
  },
  { weight: 3, arbitrary: pick("p:1", "p:2", "p:3", "q:a", "q:zz", "p:9") }
)

export const value: Text = fc.oneof(
  { weight: 6, arbitrary: scalar },
  { weight: 2, arbitrary: fc.array(scalar, { maxLength: 3 }).map((items) => `[${items.join(", ")}]`) },
  { weight: 1, arbitrary: fc.tuple(scalar, scalar).map(([a, b]) => `{ x: ${a}, y: ${b} }`) },
  {
    weight: 1,
    arbitrary: fc
      .array(
        fc.tuple(scalar, scalar).map(([a, b]) => `{ x: ${a}, z: ${b} }`),
        { maxLength: 2 }
      )
      .map((items) => `[${items.join(", ")}]`)
  },
  {
    weight: 1,
    arbitrary: fc.array(pick("p:1", "p:2", "p:9", "q:a"), { maxLength: 3 }).map((items) => `[${items.join(", ")}]`)
  }
)

export const fields = ["a", "b", "c", "l", "o", "r"]

const body: Text = fc
  .tuple(fc.subarray(fields), fc.array(value, { minLength: 6, maxLength: 6 }))
  .map(([names, values]) => `{ ${names.map((n, i) => `${n}: ${values[i]!}`).join(", ")} }`)

const keys = ["p:1", "p:2", "p:3", "p:`x y`", "p:[1, 'a']", "q:1", "q:a"]

/** Records as lines `table:key { .. }`. */
export const data: fc.Arbitrary<ReadonlyArray<string>> = fc
  .tuple(
    fc.array(body, { minLength: keys.length, maxLength: keys.length }),
    fc.array(fc.tuple(pick("p:1", "p:2", "p:3", "q:a"), pick("p:1", "p:2", "q:a", "q:1"), scalar), {
      minLength: 1,
      maxLength: 4
    })
  )
  .map(([bodies, edges]) => [
    ...keys.map((k, i) => `${k} ${bodies[i]!}`),
    ...edges.map(([from, to, w], i) => `e:${i + 1} { in: ${from}, out: ${to}, w: ${w} }`)
  ])

export const tables: ReadonlyArray<string> = ["p", "q", "e"]

const path: Text = fc.oneof(
  { weight: 8, arbitrary: pick(...fields, "id", "nope") },
  {
    weight: 4,
    arbitrary: pick(
      "o.x",
      "o.y",
      "r.a",
      "r.b",
      "l.x",
      "l[0]",
      "l[$]",
      "l[1].x",
      "r.r.a",
      "o.nope",
      "a.x",
      "r.o.x",
      "l.a",
      "r.id",
      "l.*",
      "o.{x}",
      "r.{a, b}",
      "l.{x}",
      "l[0..1]"
    )
  },
  {
    weight: 1,
    arbitrary: pick(
      "->e",
      "->e->p",
      "->e.w",
      "<-e",
      "->e->?",
      "<-e<-p.a",
      "->(e WHERE w > 1)",
      "->e->p.a",
      "<->e",
      "->(SELECT w FROM e ORDER BY w, id)",
      "->e[WHERE w]->?",
      "r->e",
      "r<-e.w",
      "->e.{w, out}",
      "->(e LIMIT 1)",
      "->e.out.a",
      "->?->?",
      "id.{1}(->e->?)",
      "id.{2}(->e->?)",
      "id.{1..2+collect}(->e->?)",
      "<-e.in.r"
    )
  }
)

export const comparison: Text = pick(
  "=",
  "!=",
  "<",
  "<=",
  ">",
  ">=",
  "IN",
  "NOT IN",
  "CONTAINS",
  "CONTAINSNOT",
  "==",
  "?=",
  "*=",
  "CONTAINSALL",
  "CONTAINSANY",
  "CONTAINSNONE",
  "ALLINSIDE",
  "ANYINSIDE",
  "NONEINSIDE"
)

const unary: Text = pick(
  "array::len",
  "string::len",
  "count",
  "type::of",
  "string::uppercase",
  "math::abs",
  "array::distinct",
  "array::first",
  "not",
  "type::is_none",
  "type::is_number",
  "object::keys",
  "array::sort",
  "math::sum",
  "string::concat",
  "array::flatten",
  "type::is_array",
  "type::is_record",
  "array::max",
  "array::min",
  "array::reverse"
)

const binaryCall: Text = pick(
  "array::union",
  "array::difference",
  "array::intersect",
  "array::complement",
  "array::concat",
  "array::append",
  "array::add",
  "string::concat",
  "string::contains",
  "string::starts_with",
  "string::split",
  "array::at",
  "array::matches",
  "array::any",
  "array::all",
  "array::join",
  "math::pow",
  "object::extend",
  "array::clump",
  "array::slice",
  "string::repeat",
  "string::slice",
  "array::windows",
  "array::remove",
  "array::prepend"
)

const method: Text = pick(
  "len()",
  "is_none()",
  "is_array()",
  "first()",
  "uppercase()",
  "keys()",
  "distinct()",
  "sort()",
  "chain(|$v| [$v])",
  "chain(|$v| [a, $this.b])",
  "map(|$v| [$v, a])",
  "append(b)",
  "map(|$v| $v)",
  "filter(|$v| $v > 1)",
  "any(|$v| $v = 'a')",
  "type_of()",
  "abs()",
  "id()",
  "tb()",
  "reverse()",
  "is_string()"
)

export const { expression } = fc.letrec((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3, depthIdentifier: "e" },
    { weight: 4, arbitrary: path },
    { weight: 4, arbitrary: value },
    {
      weight: 4,
      arbitrary: fc
        .tuple(tie("expression"), comparison, tie("expression"))
        .map(([a, op, b]) => `(${a as string} ${op} ${b as string})`)
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(tie("expression"), pick("AND", "OR", "??", "?:"), tie("expression"))
        .map(([a, op, b]) => `(${a as string} ${op} ${b as string})`)
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(tie("expression"), pick("+", "-", "*", "/", "%"), tie("expression"))
        .map(([a, op, b]) => `(${a as string} ${op} ${b as string})`)
    },
    { weight: 1, arbitrary: (tie("expression") as Text).map((a) => `(!${a})`) },
    { weight: 2, arbitrary: fc.tuple(unary, tie("expression")).map(([f, a]) => `${f}(${a as string})`) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(binaryCall, tie("expression"), tie("expression"))
        .map(([f, a, b]) => `${f}(${a as string}, ${b as string})`)
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          path.filter((p) => !p.includes("->") && !p.includes("<-")),
          method
        )
        .map(([a, m]) => `${a}.${m}`)
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          pick("array::map", "array::filter", "array::find"),
          tie("expression"),
          pick("$v", "$v + 1", "$v > 1", "[$v, $i]", "$v.x", "$v = 'a'", "type::of($v)")
        )
        .map(([f, a, c]) => `${f}(${a as string}, |$v${c.includes("$i") ? ", $i" : ""}| ${c})`)
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          pick(
            "string",
            "int",
            "float",
            "array",
            "bool",
            "decimal",
            "number",
            "set",
            "option<int>",
            "record",
            "datetime",
            "duration"
          ),
          tie("expression")
        )
        .map(([t, a]) => `(<${t}> ${a as string})`)
    },
    {
      weight: 1,
      arbitrary: fc.array(tie("expression") as Text, { maxLength: 2 }).map((items) => `[${items.join(", ")}]`)
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(tie("expression"), tie("expression"), tie("expression"))
        .map(([a, b, c]) => `(IF ${a as string} { ${b as string} } ELSE { ${c as string} })`)
    }
  )
})) as { readonly expression: Text }

/** A filter that mostly does not fail: comparisons of paths, combined. */
const condition: Text = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(path, comparison, fc.oneof(value, path)).map(([a, op, b]) => `${a} ${op} ${b}`) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(path, comparison, value, pick("AND", "OR"), path, comparison, value)
      .map(([a, op, b, c, d, op2, e]) => `(${a} ${op} ${b}) ${c} (${d} ${op2} ${e})`)
  },
  { weight: 1, arbitrary: path },
  { weight: 1, arbitrary: expression }
)

/** Without the paths on which the two evaluators differ: in a filter they would hide which one we follow. */
export const plainCondition: Text = condition.filter((c) => !/\.\*|\[\$\]|r<-|r->/.test(c))

const where: Text = fc.oneof(
  fc.constant(""),
  plainCondition.map((c) => ` WHERE ${c}`),
  plainCondition.map((c) => ` WHERE ${c}`)
)

const source: Text = fc.oneof(
  { weight: 6, arbitrary: pick("p", "q") },
  { weight: 1, arbitrary: pick("p, q", "p:1", "p:1..3", "p:1, q:a", "p:2..=3", "e", "p:..", "q:nope") }
)

const window: Text = fc.oneof(
  { weight: 3, arbitrary: fc.constant("") },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 2 }))
      .map(([l, s]) => ` LIMIT ${l}${s > 0 ? ` START ${s}` : ""}`)
  }
)

const order: Text = fc.oneof(
  fc.constant(""),
  fc.tuple(pick(...fields), pick("", " DESC")).map(([f, d]) => ` ORDER BY ${f}${d}, id`)
)

const subquery: Text = fc
  .tuple(
    pick(
      "*",
      "VALUE id",
      "VALUE a",
      "a, b",
      "VALUE (SELECT VALUE id FROM q WHERE a = $parent.a)",
      "VALUE [a, $parent.a]"
    ),
    pick("p", "q"),
    pick(
      "",
      " WHERE a = $parent.a",
      " WHERE id = $parent.r",
      " WHERE r = $parent.id",
      " WHERE a > 1",
      " WHERE a IN $parent.l",
      " WHERE $parent.a ?? true",
      " WHERE [$this.id, $parent.id] CONTAINS r"
    ),
    pick("", " LIMIT 2")
  )
  .map(([f, t, w, l]) => `(SELECT ${f} FROM ${t}${w}${l})`)

export const aggregate: Text = pick(
  "count()",
  "count(a)",
  "math::sum(a)",
  "math::max(a)",
  "math::mean(a)",
  "array::group(b)",
  "array::distinct(b)",
  "count(a > 1)",
  "b",
  "array::len(array::group(b))",
  "count() + 1",
  "math::min(a)"
)

/** Operands beside an aggregate: of no row, and of the group, its key among others. */
const single = pick(
  "(1 + 2)",
  "string::len('abc')",
  "[20, 2][0]",
  "[1, 2].len()",
  "(SELECT VALUE id FROM q LIMIT 1)[0]",
  "(SELECT VALUE a FROM q)",
  "array::len((SELECT VALUE id FROM p))",
  "{ x: [1 + 1] }"
)
const ofGroup = pick("a", "b", "c", "g", "o.x", "l[0]", "r.a", "[b, 1]", "type::of(a)", "array::len(b)")

/** An aggregate beside something else; keys and other paths beside counts alone, which both evaluators answer alike. */
export const besideAggregate: Text = fc
  .tuple(
    fc.oneof(fc.tuple(aggregate, single), fc.tuple(pick("count()", "count(a)", "count(b > 1)"), ofGroup)),
    pick("+", "*", "=", "IN", "AND", "OR", "??", "<"),
    fc.constantFrom(
      (x: string, y: string, op: string) => `${x} ${op} ${y}`,
      (x: string, y: string, op: string) => `${y} ${op} ${x}`,
      (x: string, y: string) => `[${x}, ${y}]`,
      (x: string, y: string) => `{ u: ${x}, v: ${y} }`,
      (x: string, y: string) => `(IF ${y} = ${x} { ${x} } ELSE { ${y} })`,
      (x: string, y: string) => `string::concat(${y}, ${x})`,
      (x: string, y: string) => `array::append([${x}], ${y})`,
      (x: string, y: string) => `{ LET $x = ${x}; [$x, ${y}] }`
    )
  )
  .map(([[x, y], op, form]) => form(x, y, op))

/** What is fetched: values by themselves, and in rows. */
const shown: Text = fc
  .tuple(
    fc.oneof(path, value),
    fc.constantFrom(
      (e: string) => `VALUE ${e}`,
      (e: string) => `VALUE [${e}, { k: ${e} }]`,
      (e: string) => `${e} AS k`,
      (e: string) => `id, ${e} AS k`,
      (e: string) => `{ u: ${e} } AS k`
    )
  )
  .map(([e, show]) => show(e))

/** One query. */
export const query: Text = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(source, where, order, window).map(([s, w, o, l]) => `SELECT * FROM ${s}${w}${o}${l}`)
  },
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.array(expression, { minLength: 1, maxLength: 3 }), source, where, window)
      .map(([e, s, w, l]) => `SELECT ${e.map((x, i) => `${x} AS k${i}`).join(", ")} FROM ${s}${w}${l}`)
  },
  {
    weight: 4,
    arbitrary: fc.tuple(expression, source, where, window).map(([e, s, w, l]) => `SELECT VALUE ${e} FROM ${s}${w}${l}`)
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.subarray(["a", "b", "o.x", "r.a", "l", "id", "nope.x"], { minLength: 1 }), source, where)
      .map(([f, s, w]) => `SELECT ${f.join(", ")} FROM ${s}${w}`)
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(path, source, where, pick("", " DESC", " COLLATE", " NUMERIC", " COLLATE NUMERIC DESC"))
      .map(([p, s, w, d]) => `SELECT id, ${p} AS k FROM ${s}${w} ORDER BY k${d}, id`)
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.array(aggregate, { minLength: 1, maxLength: 2 }),
        pick("p", "q"),
        pick("a", "b", "c", "o.x AS g", "type::of(a) AS g")
      )
      .map(
        ([as, t, g]) =>
          `SELECT ${g}, ${as.map((a, i) => `${a} AS k${i}`).join(", ")} FROM ${t} GROUP BY ${g.replace(/.* AS /, "")}`
      )
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(besideAggregate, pick("p", "q"), pick("a", "b", "o.x AS g", "type::of(a) AS g", "l[0] AS g", "b AS a"))
      .map(([e, t, g]) => `SELECT ${g}, ${e} AS k FROM ${t} GROUP BY ${g.replace(/.* AS /, "")}`)
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(aggregate, pick("p", "q"), pick("a, b", "type::of(a) AS g, c", "r.a AS g, b"), window)
      .map(([a, t, g, w]) => {
        const by = g.replace(/[^,]* AS /g, "")
        return `SELECT ${g}, ${a} AS k FROM ${t} GROUP BY ${by} ORDER BY ${by}${w}`
      })
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(pick("VALUE a", "VALUE [a, count()]", "VALUE count()", "VALUE { n: count(), a: a }"), pick("p", "q"))
      .map(([f, t]) => `SELECT ${f} FROM ${t} GROUP BY a`)
      .filter((q) => !q.includes("count()") || true)
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(expression, source)
      .map(([e, s]) => `SELECT VALUE k FROM (SELECT ${e} AS k, id FROM ${s}) WHERE k`)
  },
  {
    weight: 1,
    arbitrary: fc.tuple(path, path, source, where).map(([a, b, s, w]) => `SELECT ${a}, ${b} AS z, id FROM ${s}${w}`)
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.array(value, { maxLength: 4 }), pick("*", "VALUE $this", "VALUE a", "x"))
      .map(([vs, f]) => `SELECT ${f} FROM [${vs.join(", ")}]`)
  },
  {
    weight: 1,
    arbitrary: fc.tuple(aggregate, pick("p", "q"), where).map(([a, t, w]) => `SELECT ${a} AS k FROM ${t}${w} GROUP ALL`)
  },
  { weight: 2, arbitrary: fc.tuple(subquery, source).map(([q, s]) => `SELECT id, ${q} AS k FROM ${s}`) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(pick("r", "l", "a", "r, l", "r.r"), source, where)
      .map(([f, s, w]) => `SELECT * FROM ${s}${w} FETCH ${f}`)
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(shown, pick("k", "k.r", "nope", "k.u", "k.u.r, id", "k[$]", "k.*"), source, where)
      .map(([e, f, s, w]) => `SELECT ${e} FROM ${s}${w} FETCH ${f}`)
  },
  // How a datetime alone names a result depends on the source in the planner.
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        expression.filter((e) => !e.startsWith("d'")),
        source
      )
      .map(([e, s]) => `SELECT ${e} FROM ${s}`)
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(pick("a", "o.x", "l", "a, b", "nope", "id"), source)
      .map(([f, s]) => `SELECT * OMIT ${f} FROM ${s}`)
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(pick("a", "b", "o.x"), source, where)
      .map(([f, s, w]) => `SELECT id, ${f} FROM ${s}${w} SPLIT ${f}`)
  },
  {
    weight: 2,
    arbitrary: expression
      .filter((e) => !/\b(a|b|c|l|o|r|id|nope)\b(?!:)|->|<-/.test(e.replace(/'[^']*'|\w+::\w+|[pqe]:\S+/g, "")))
      .map((e) => `RETURN ${e}`)
  }
)
