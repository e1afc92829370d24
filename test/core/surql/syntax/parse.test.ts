/**
 * The parser: what it refuses, where, and with which words; and that printing is canonical.
 *
 * Why so: meaning is checked against the real engine elsewhere; places and messages only we can state.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { parseSelect, parseStatements } from "../../../../src/core/surql/syntax/parse.ts"
import { print } from "../../../../src/core/surql/syntax/print.ts"

const fault = (text: string): string => {
  const parsed = parseSelect(text)
  return Either.isLeft(parsed)
    ? `${parsed.left.line}:${parsed.left.column} ${parsed.left.message}`
    : `accepted as ${print(parsed.right)}`
}

const printed = (text: string): string =>
  Either.match(parseSelect(text), { onLeft: (e) => `refused: ${e.message}`, onRight: print })

describe("refusals name the place", () => {
  it.each([
    ["", "1:1 expected SELECT, found the end of the query"],
    ["SELECT * FROM a WHER x = 1", "1:17 expected the end of the query, found `WHER`"],
    ["SELECT *\nFROM a\n  WHERE x ==", "3:13 expected an expression, found the end of the query"],
    ["SELECT * FROM a WHERE x = 1 = 2", "1:29 comparisons do not chain; use parentheses"],
    ["SELECT nope::x() FROM a", "1:8 unknown function `nope::x`"],
    ["SELECT coun() FROM a", "1:8 unknown function `coun`; did you mean `count`?"],
    ["SELECT a FROM t ORDER BY b", "1:26 `b` in ORDER BY is not selected: select it, or name an expression so"],
    ["SELECT 'x FROM a", "1:8 this string is never closed"],
    ["SELECT * FROM a /* x", "1:16 this comment is never closed"],
    ["SELECT * FROM a LIMIT 1 LIMIT 2", "1:25 expected the end of the query, found `LIMIT`"],
    ["SELECT * FROM a; SELECT * FROM b", "1:18 expected the end of the query, found `SELECT`"],
    ["SELECT * FROM a WHERE x = d'2020'", "1:27 this is not a datetime; expected d'2020-01-01T00:00:00Z'"],
    ["SELECT 1e FROM a", "1:8 `1e` is not a number"],
    ["SELECT * FROM (DELETE a)", "1:16 DELETE is not allowed here; only SELECT and RETURN are"],
    ["SELECT é FROM a", "1:8 unexpected character `é`"],
    [
      "SELECT { LET $a = 1; FOR $x IN [1] { 1 }; 2 } FROM a",
      "1:22 FOR is not supported in a block; LET, RETURN, IF and expressions are"
    ],
    ["SELECT { LET $this = 1; 2 } FROM a", "1:14 `$this` cannot be set"],
    ["SELECT { $a = 1; 2 } FROM a", "1:10 a parameter is set with LET"],
    ["SELECT * FROM a LIMIT (RETURN 1)", "1:1 RETURN is not supported in this clause"],
    ["SELECT <~b FROM a", "1:8 record references (`<~`) need a schema with REFERENCE fields, and there is none here"],
    ["SELECT ->likes:1 FROM a", "1:18 expected `..` directly behind the key, found `FROM`"],
    ["SELECT update FROM a", "1:8 `update` begins a statement; a field or table of that name is written in back-ticks"],
    ["SELECT * FROM NONE:1", "1:15 `NONE` is a value; a table of that name is written in back-ticks"],
    ["SELECT * FROM a ORDER BY rand()", "1:26 ORDER BY rand() is not deterministic and not supported"],
    ["SELECT * FROM a EXPLAIN", "1:17 EXPLAIN is not supported"],
    ["SELECT * FROM a VERSION d'2020-01-01T00:00:00Z'", "1:17 VERSION is not supported: only the current data is kept"],
    [
      "SELECT string::html::sanitize(b) FROM a",
      "1:8 the function `string::html::sanitize` is not supported: it needs a reader of HTML"
    ]
  ])("%s", (text, message) => {
    expect(fault(text)).toBe(message)
  })
  it("a query that nests too deep or is too long is refused, not run into the ground", () => {
    expect(fault(`SELECT ${"(".repeat(500)}1${")".repeat(500)} FROM a`)).toContain("nests deeper than 64 levels")
    expect(fault(`SELECT * FROM a WHERE x = '${"x".repeat(70000)}'`)).toContain("longer than 65536")
  })
  it("statements that write are refused", () => {
    for (const text of [
      "CREATE a",
      "DELETE a",
      "UPDATE a SET x = 1",
      "LET $a = 1",
      "DEFINE TABLE a",
      "USE NS a",
      "LIVE SELECT * FROM a"
    ])
      expect(Either.isLeft(parseStatements(text)), text).toBe(true)
  })
})

describe("printing", () => {
  it.each([
    ["select * from a where b=1 and c==2;", "SELECT * FROM a WHERE (b = 1) AND (c == 2)"],
    [
      "SELECT a . b , c AS d FROM x ORDER a.b ASC LIMIT 1 START 2 -- note",
      "SELECT a.b, c AS d FROM x ORDER BY a.b LIMIT 1 START 2"
    ],
    ["SELECT VALUE (((a))) FROM ONLY x:1", "SELECT VALUE a FROM ONLY x:1"],
    ["SELECT * FROM a WHERE x ∈ [1] || !(y IS NOT 'q')", "SELECT * FROM a WHERE (x IN [1]) OR (!(y != 'q'))"],
    ["SELECT ->likes->(person WHERE age>1).name FROM a", "SELECT ->likes->(person WHERE age > 1).name FROM a"],
    ["SELECT a - (b - c), (a - b) - c FROM x", "SELECT a - (b - c), (a - b) - c FROM x"],
    ["SELECT { let $a = b;; $a } FROM x", "SELECT { LET $a = b; $a; } FROM x"],
    [
      "SELECT IF a { LET $b: int|string = 1; RETURN $b } ELSE { 2 } AS c FROM x",
      "SELECT IF a { LET $b: int | string = 1; (RETURN $b); } ELSE { 2 } AS c FROM x"
    ],
    [
      "SELECT VALUE [1].map(|$a: <int|string>, $b| -> int { $a }) FROM x",
      "SELECT VALUE [1].map(|$a: <int | string>, $b| -> int { $a }) FROM x"
    ],
    [
      "SELECT ->(likes:1..=9 FIELD out, b WHERE c as d), <-(e:..) FROM x",
      "SELECT ->(likes:1..=9 FIELD out, b WHERE c AS d), <-(e:..) FROM x"
    ],
    ["SELECT VALUE { LET $f = |$a| $a; $f(b) } FROM x", "SELECT VALUE { LET $f = |$a| $a; $f(b); } FROM x"],
    ["SELECT VALUE (|$a| $a)(1) FROM x", "SELECT VALUE (|$a| $a)(1) FROM x"]
  ])("%s", (text, out) => {
    expect(printed(text)).toBe(out)
    expect(printed(out)).toBe(out)
  })
})
