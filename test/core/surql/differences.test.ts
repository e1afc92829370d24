/**
 * The table of differences in docs/language.md, row by row: what we answer, and that the real database answers
 * otherwise.
 *
 * Why so: a difference nobody wrote down is a defect, and one that is gone should leave the table. Every row of the
 * table has its cases here and every case its row; so has every case of the corpus that is marked as differing.
 */
import { Either } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readCorpus } from "../../../kit/data/corpusFile.ts"
import type { Engines } from "../../../kit/processes/surreal/engines.ts"
import { start } from "../../../kit/processes/surreal/engines.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { rows } from "./differenceRows.ts"
import { ours, records } from "./engine.ts"

/**
 * Which of the database's evaluators answers otherwise. `refused`: both take it, we do not. `order`: cannot be shown by
 * one answer.
 */
type Unlike = "both" | "planner" | "older" | "refused" | "order"

type Case = readonly [query: string, unlike: Unlike, answer?: string]

const differences: { readonly [row: string]: ReadonlyArray<Case> } = {
  "text of a record id": [
    ["RETURN 'p:1' = p:1", "both", "[true]"],
    ["SELECT VALUE id FROM p WHERE id > 'p:2'", "both", "[[p:3]]"],
    ["RETURN p:1 < 'p:2'", "both", "[true]"],
    ["SELECT VALUE a FROM 'p:1'", "both", "[[1]]"],
    ["RETURN { a: 'p:1' }.a.a", "both", "[1]"]
  ],
  "`ONLY` without a row; a table that does not exist": [
    ["SELECT * FROM ONLY [p:9]", "both", "[NONE]"],
    ["SELECT * FROM nowhere", "both", "[[]]"]
  ],
  "computed decimals": [
    ["RETURN math::mean([1dec, 2dec])", "both", "[1.5dec]"],
    ["RETURN math::stddev([1dec, 2dec, 4dec])", "both"],
    ["RETURN 4dec ** 0.5dec", "both", "[2dec]"]
  ],
  "last digits of floats": [
    ["RETURN math::cot(7)", "both"],
    ["RETURN math::ln(3)", "both"]
  ],
  "a datetime in a text whose fraction rounds up to a whole second (`23:59:59.9999999999`)": [
    ["RETURN <datetime> '1999-12-31T23:59:59.9999999999Z'", "both"]
  ],
  "`string::is_datetime` with a format": [["RETURN string::is_datetime('2020', '%Y')", "both"]],
  NaN: [["RETURN array::sort([NaN, 1, Infinity])", "order", "[[1, Infinity, NaN]]"]],
  "rows behind a LIMIT": [
    ["SELECT VALUE a + 1 FROM p LIMIT 0", "older", "[[]]"],
    ["SELECT VALUE id FROM p WHERE a + 1 LIMIT 1", "planner", "[[p:1]]"]
  ],
  "order of rows without ORDER BY": [["SELECT VALUE id FROM p", "order", "[[p:1, p:2, p:3]]"]],
  "ids of arrays and objects that are equal as values (`k:[1]`, `k:[1f]`)": [
    ["RETURN k:[1] = k:[1f]", "both", "[false]"],
    ["RETURN array::distinct([k:[1], k:[1f]])", "both", "[[k:[1], k:[1f]]]"]
  ],
  "`id` behind another field in ORDER BY, where ids hold datetimes or numbers of several kinds": [
    ["SELECT id, g FROM k ORDER BY g, id", "both", "[[{ g: 1, id: k:[1, 2] }, { g: 1, id: k:[1f] }]]"]
  ],
  "fuzzy scores": [["RETURN string::similarity::fuzzy('aaaa', 'aaaa')", "order", "[91]"]],
  "a decimal beside a float that is equal but no binary fraction (`0.1dec`, `0.1f`)": [
    ["RETURN array::distinct([0.1dec, 0.1f])", "order", "[[0.1dec]]"],
    ["RETURN vector::similarity::jaccard([0.1dec], [0.1f])", "order", "[0f]"]
  ],
  "decimals of zero": [
    ["RETURN <decimal> -0f", "both", "[0dec]"],
    ["RETURN math::ceil(-0.4dec)", "both", "[0dec]"]
  ],
  "a range of records as a value (`p:1..3`): in FETCH; in front of graph steps; in order beside another": [
    ["SELECT VALUE x FROM {x: p:1..3} FETCH x", "both", "[[p:1..3]]"],
    ["RETURN (p:1..3)->e", "both", "[NONE]"],
    ["RETURN p:1..3 < p:1..3", "both", "[false]"]
  ],
  "text patches in `value::diff` and `value::patch`": [
    ["RETURN value::diff('hello', 'help')", "both"],
    [
      "RETURN value::patch('hello', [{ op: 'change', path: '', value: '@@ -1,5 +1,4 @@\\n hel\\n-lo\\n+p\\n' }])",
      "order"
    ],
    ["RETURN value::patch('ééééé1', value::diff('ééééé1', 'ééééé2'))", "both"]
  ],
  "`array::repeat`, `array::range`, `array::sequence`": [
    ["RETURN array::len(array::repeat(1, 43690))", "both", "[43690]"],
    ["RETURN array::len(array::sequence(100000))", "both", "[100000]"]
  ],
  "URLs the standard refuses (`foo://a:\\`)": [["RETURN parse::url::scheme('foo://a:\\\\')", "both", "[NONE]"]],
  "`[WHERE]` of what is no list, and steps from a list, in a subquery that a closure holds": [
    ["RETURN [1].map(|$v| (SELECT VALUE nope[WHERE true] FROM ONLY p:1))", "both", "[[[NONE]]]"]
  ],
  "scalars under `.*` and `[$]`": [
    ["RETURN { a: 5 }.a.*", "planner", "[NONE]"],
    ["RETURN { a: p:1 }.a[$].a", "planner", "[NONE]"],
    ["SELECT id, l[$] AS k FROM p:2, p:3 ORDER BY k", "planner", "[[{ id: p:2, k: NONE }, { id: p:3, k: NONE }]]"],
    ["SELECT l.*, l AS k FROM p:3", "planner", "[[{ k: 5, l: NONE }]]"],
    ["RETURN [5, p:9].*", "planner", "[[5, NONE]]"]
  ],
  "`+collect` and `+shortest` in closures that functions call": [
    ["RETURN [1].map(|$x| c:1.{..+collect}.r)", "both", "[[[c:2, c:1]]]"]
  ],
  "`@` over rows that are no records but have an `id`": [
    ["SELECT VALUE @.b FROM [{ b: 7, id: p:1 }]", "both", "[[7]]"]
  ],
  "a decimal with a fraction as `int` in a literal type (`<{ a: int }> { a: 1.5dec }`)": [
    ["RETURN <{ a: int }> { a: 1.5dec }", "both"]
  ],
  SPLIT: [["SELECT VALUE l FROM p SPLIT l", "both", "[[1, 2, 5]]"]],
  "`array::first`, `array::last` and constants in groups": [
    ["SELECT array::first(l) FROM p GROUP ALL", "planner"],
    ["SELECT 5 AS k FROM p GROUP ALL", "planner", "[[{ k: 5 }]]"]
  ],
  "keys, other fields and functions of lists beside aggregates (`k + <string> count()`, `[n, count()]`)": [
    ["SELECT g, [g, count()] AS k FROM p GROUP BY g", "planner", "[[{ g: 1, k: [1, 3] }]]"],
    ["SELECT g, array::len(l) + count() AS k FROM p GROUP BY g", "planner", "[[{ g: 1, k: 6 }]]"]
  ],
  "a field's values in a group (`n + 1`, `array::len(n)`) where the expression fails for a row": [
    ["SELECT g, array::len(a) AS k FROM p GROUP BY g", "older", "[[{ g: 1, k: [NONE, NONE, NONE] }]]"]
  ],
  "fields and aggregates in arguments of methods, in indexes and in closures, and graph steps, in what a grouped SELECT shows":
    [
      ["SELECT g, [1].append(count()) AS k FROM p GROUP BY g", "both", "[[{ g: 1, k: [1, 3] }]]"],
      ["SELECT g, array::group(g)[count() - 1] AS k FROM p GROUP BY g", "both", "[[{ g: 1, k: 1 }]]"],
      ["SELECT g, array::map([1], |$x| g) AS k FROM p GROUP BY g", "both", "[[{ g: 1, k: [[1], [1], [1]] }]]"],
      ["SELECT g, [count(), ->e] AS k FROM p GROUP BY g", "both"]
    ],
  "`time::max`, `time::min` in a group without a datetime": [
    ["SELECT time::max(a) AS k FROM p GROUP ALL", "both", "[[{ k: NONE }]]"]
  ],
  "LIMIT or START that is no whole number": [["SELECT VALUE id FROM p LIMIT 1.5f", "planner"]],
  "`SELECT $this` of values that are no records": [
    ["SELECT $this FROM [1, 2]", "planner", "[[{ this: 1 }, { this: 2 }]]"]
  ],
  "`$parent` in what a grouped SELECT shows": [
    ["SELECT VALUE (SELECT g, $parent.a AS a FROM p GROUP BY g) FROM p:1", "planner", "[[[{ a: 1, g: 1 }]]]"]
  ],
  "`$parent` in a subquery that a grouped SELECT shows": [
    [
      "SELECT g, (SELECT VALUE a FROM p:1 WHERE g = $parent.g) AS x FROM p GROUP BY g",
      "both",
      "[[{ g: 1, x: [[1], [1], [1]] }]]"
    ]
  ],
  "geometries beside others that touch themselves or their neighbours": [
    [
      "RETURN { type: 'MultiPolygon', coordinates: [[[[0,0],[2,0],[2,4],[0,4],[0,0]]],[[[2,0],[4,0],[4,4],[2,4],[2,0]]]] } CONTAINS { type: 'Polygon', coordinates: [[[0,0],[4,0],[4,4],[0,4],[0,0]]] }",
      "both",
      "[false]"
    ]
  ],
  "`type::field`, `type::fields` behind OMIT of values that are no records": [
    ["SELECT * OMIT type::fields(['a']) FROM { a: 1, b: 2 }", "planner", "[[{ b: 2 }]]"]
  ],
  "RETURN in a filter": [["SELECT VALUE id FROM p WHERE (RETURN false)", "planner", "[[]]"]],
  "FETCH in a nested RETURN": [
    ["SELECT VALUE (RETURN { x: r } FETCH x) FROM p:1", "planner", "[[{ x: { a: 'x', g: 1, id: p:2, l: [] } }]]"]
  ],
  "FETCH along several links (`author.team`) or `.*` of an object": [
    ["SELECT VALUE { k: p:1 } FROM ONLY p:1 FETCH k.r", "older"],
    ["SELECT VALUE { o: { k: p:3 } } FROM ONLY p:1 FETCH o.*", "older"]
  ],
  "FETCH of a method, `[WHERE]` or `.{}`": [
    ["SELECT VALUE { k: { r: p:2 } } FROM ONLY p:1 FETCH k.{ r }", "older", "[{ k: { r: p:2 } }]"]
  ],
  "FETCH of an index (`friends[0]`); of what `SELECT VALUE` shows": [
    ["SELECT VALUE { k: [p:3] } FROM ONLY p:1 FETCH k[0]", "planner", "[{ k: [{ a: NULL, g: 1, id: p:3, l: 5 }] }]"],
    ["SELECT VALUE [p:1] FROM ONLY p:1 FETCH r", "planner", "[[{ a: 1, g: 1, id: p:1, l: [1, 2], r: p:2 }]]"]
  ],
  "FETCH beside `*` and an alias of a field (`*, author AS by`)": [
    ["SELECT *, r AS k OMIT a, l, g FROM ONLY p:1 FETCH x", "planner", "[{ id: p:1, k: p:2, r: p:2 }]"]
  ],
  "fields in LIMIT and START of a subquery": [
    ["SELECT VALUE (SELECT VALUE id FROM p LIMIT a) FROM ONLY p:1", "both", "[[p:1]]"]
  ],
  "GROUP ALL over nothing": [["SELECT count() FROM p WHERE false GROUP ALL", "older", "[[{ count: 0 }]]"]],
  "aggregates of what is no number; `array::group` in a group": [
    ["SELECT math::sum(a) AS s FROM p GROUP ALL", "older", "[[{ s: 1 }]]"],
    ["SELECT array::group(g) AS g FROM p GROUP ALL", "older", "[[{ g: [1, 1, 1] }]]"]
  ],
  "`math::spread` in groups": [
    ["SELECT math::spread(g) AS s FROM p GROUP ALL", "planner", "[[{ s: 0 }]]"],
    ["SELECT math::spread(a) AS s FROM p GROUP ALL", "both", "[[{ s: 0 }]]"]
  ],
  "`math::sum` and `math::mean` in groups beyond 64 bits": [
    [
      "SELECT math::mean(n) AS k FROM [{ n: 9223372036854775807 }, { n: 2 }] GROUP ALL",
      "planner",
      "[[{ k: 4611686018427388000f }]]"
    ],
    ["SELECT math::sum(n) AS k FROM [{ n: 9223372036854775807 }, { n: 2 }] GROUP ALL", "older"],
    ["SELECT math::sum(n) + 1 AS k FROM [{ n: 9223372036854775807 }] GROUP ALL", "both"]
  ],
  "ORDER BY behind an alias; lookups in lists from graph steps": [
    ["SELECT VALUE k FROM (SELECT a AS k FROM p ORDER BY a DESC)", "older"]
  ],
  "AS in a graph step": [
    ["SELECT ->(e AS x)->p FROM p:1", "older", "[[{ x: [p:2] }]]"],
    ["SELECT ->(e AS x.y) FROM p:1", "planner", "[[{ x: { y: [e:1] } }]]"]
  ],
  "`array::every`, `array::some`, `array::includes`, `array::index_of`, `set::all`, `set::any`": [
    ["RETURN array::every([1, 2])", "planner", "[true]"],
    ["RETURN array::index_of([1, 2], 2)", "planner", "[1]"]
  ],
  "functions that are refused": [
    ["RETURN crypto::bcrypt::compare('a', 'b')", "refused"],
    ["RETURN http::get('http://x')", "refused"],
    ["RETURN string::html::sanitize('a')", "refused"],
    ["RETURN type::file('a', 'b')", "refused"]
  ],
  "ORDER BY a path through a link that is not shown (`SELECT * FROM p ORDER BY team.rank`), or what OMIT leaves out": [
    ["SELECT id, r FROM p ORDER BY r.a DESC", "both"],
    ["SELECT *, r.a AS k OMIT k FROM p ORDER BY k DESC, id DESC", "both"]
  ],
  "ORDER BY rand()": [["SELECT * FROM p ORDER BY rand()", "refused"]],
  "VERSION, EXPLAIN": [
    ["SELECT * FROM p VERSION d'2020-01-01T00:00:00Z'", "refused"],
    ["SELECT * FROM p EXPLAIN", "refused"]
  ],
  "regular expressions with the flags `x`, `R` or `-u`, a count beyond 1,000, more than 16 properties, a property named loosely, by age or by block, or more than 20,000 instructions":
    [
      ["RETURN string::matches('a', /(?x) a/)", "refused"],
      ["RETURN string::matches('a', /a{1001}/)", "refused"],
      ["RETURN string::matches('a', /\\p{greek}/)", "refused"],
      ["RETURN string::matches('a', /(?:a{1000}){20}/)", "refused"]
    ],
  "regular expressions of more than 10 MB in the database (`\\w{300}`)": [
    ["RETURN string::matches('a', /\\w{300}/)", "both", "[false]"]
  ],
  "WITH INDEX, WITH NOINDEX, TIMEOUT, TEMPFILES": [
    ["SELECT VALUE id FROM p WITH NOINDEX TIMEOUT 0ns", "both", "[[p:1, p:2, p:3]]"]
  ],
  "full-text and vector search (`@@`, `<\\|2\\|>`)": [
    ["SELECT * FROM p WHERE a @@ 'x'", "refused"],
    ["SELECT * FROM p WHERE l <|2|> [1, 2]", "refused"]
  ],
  "`<~` references": [["RETURN p:1<~p", "refused"]],
  "statements that write or control, LET outside a block; FOR, THROW, BREAK, CONTINUE": [
    ["RETURN { FOR $x IN [1] { $x }; 2 }", "refused"],
    ["RETURN { THROW 'x' }", "refused"],
    ["RETURN (CREATE p:9)", "refused"]
  ],
  "functions defined in a database (`fn::` without a database, `ml::`, `mod::`)": [["RETURN fn::mine()", "refused"]]
}

const lines = [
  "p:1 { a: 1, r: p:2, l: [1, 2], g: 1 }",
  "p:2 { a: 'x', l: [], g: 1 }",
  "p:3 { a: NULL, l: 5, g: 1 }",
  "e:1 { in: p:1, out: p:2 }",
  "e:2 { in: p:2, out: p:3 }",
  "k:[1f] { g: 1 }",
  "k:[1, 2] { g: 1 }",
  "c:1 { r: c:2 }",
  "c:2 { r: c:1 }"
]

/** Where the corpus' own words for a difference stand in the table. */
const rowOf: { readonly [words: string]: string } = {
  "text patches": "text patches in `value::diff` and `value::patch`",
  "the planner keeps empty arrays": "SPLIT",
  "the planner loses `name`": "SPLIT",
  "trailing zeros": "computed decimals",
  "decimal statistics": "computed decimals",
  "fractional powers": "computed decimals",
  "array::first": "`array::first`, `array::last` and constants in groups",
  "D2:": "`ONLY` without a row; a table that does not exist",
  "D1:": "text of a record id",
  "scalars under `.*`": "scalars under `.*` and `[$]`",
  "`+collect` and `+shortest`": "`+collect` and `+shortest` in closures that functions call",
  "`math::sum` and `math::mean`": "`math::sum` and `math::mean` in groups beyond 64 bits",
  "`@` over rows": "`@` over rows that are no records but have an `id`"
}

let engines: Engines
beforeAll(async () => {
  engines = await start()
  await engines.load(lines, ["p", "e", "k", "c"])
})
afterAll(async () => {
  await engines.close()
})

const source = fromRecords(records(lines))

describe("the table of differences in docs/language.md", () => {
  it("has the rows that are tested here, and no others", () => {
    expect(rows).toEqual(Object.keys(differences))
  })

  it("has a row for every case of the corpus that differs", () => {
    const reasons = readCorpus().flatMap((f) => f.cases.flatMap((c) => (c.differs === undefined ? [] : [c.differs])))
    const row = (reason: string): string =>
      Object.entries(rowOf).find(([words]) => reason.includes(words))?.[1] ?? `no row: ${reason}`
    expect(reasons.map(row).filter((r) => !rows.includes(r))).toEqual([])
    expect(reasons.length).toBeGreaterThan(10)
  })

  it.each(
    Object.entries(differences).flatMap(([row, cases]) =>
      cases.map(([query, unlike, answer]): [string, string, Unlike, string | undefined] => [row, query, unlike, answer])
    )
  )("%s: %s", async (_, query, unlike, answer) => {
    const [planner, older] = await engines.ask(query)
    const mine = ours(source, query)
    if (answer !== undefined) expect(mine).toBe(answer)
    if (unlike === "refused") {
      const parsed = parseStatements(query)
      expect(Either.isLeft(parsed) ? parsed.left.message.length > 0 : mine).toBe(true)
      expect([planner, older].filter((text) => text.startsWith("PARSE"))).toEqual([])
    }
    if (unlike === "both" || unlike === "planner") expect(mine).not.toBe(planner)
    if (unlike === "both" || unlike === "older") expect(mine).not.toBe(older)
    if (unlike === "planner") expect(mine).toBe(older)
    if (unlike === "older") expect(mine).toBe(planner)
  })
})
