/**
 * Queries that are made to stop a process (D48): each ends with an answer or a declared error, within its budget.
 *
 * A table over the evaluator that `/proxy/query` and views share, from text to value: add a row for every query that somebody finds. What is checked is
 * counted: steps and bytes that were charged, and how much the process grew; how long it takes is only bounded by the test's end.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { parseStatements } from "../../src/core/surql/parse.ts"
import { drain, limits, queryBudget } from "../../src/core/surql/scope.ts"
import { evaluateSliced } from "../../src/core/surql/select.ts"
import { fromRecords } from "../../src/core/surql/memory.ts"
import * as RecordIds from "../../src/core/surql/recordId.ts"

const many = Array.from({ length: 200 }, (_, i) => ({ id: RecordIds.make("t", i), n: i, tags: Array.from({ length: 200 }, (__, k) => k) }))
const source = fromRecords(many)
const repeated = (n: number, text: string, by = ","): string => Array.from({ length: n }, () => text).join(by)

const declared = /SVC_QUERY_(ROW_STEPS|STEPS|BYTES|ROWS)|must not exceed|more than \d+ (parts|terms|operators)|nests deeper|recurses too deep|too long|longer than|Could not cast|Cannot perform/

const attacks: ReadonlyArray<readonly [what: string, query: string]> = [
  ["windows of half an array", "RETURN array::windows(array::range(0,100000),50000)"],
  ["windows in the projection of a view", "SELECT array::windows(array::range(0, 100000), 50000) AS w FROM t"],
  ["one long column", "RETURN array::transpose(array::range(0, 3000).map(|$v| array::range(0, 3000)))"],
  ["transposing one long column among many short", "RETURN array::transpose(array::append(array::range(0, 100000), array::range(0, 100000)))"],
  ["flattening one array a thousand times", "RETURN array::flatten(array::repeat(array::range(0, 100000), 10000))"],
  ["each with each", "RETURN array::combine(array::range(0, 1000), array::range(0, 1000))"],
  ["distinct of what is shared", "RETURN array::distinct(array::repeat(array::range(0, 100000), 100000))"],
  ["a list of what a list lacks", "RETURN array::add(array::range(0, 100000), array::range(100000, 200000))"],
  ["complement of two large arrays", "RETURN array::complement(array::range(0, 400000), array::range(400000, 800000))"],
  ["difference of two large arrays", "RETURN array::difference(array::range(0, 400000), array::range(400000, 800000))"],
  ["intersection of two large arrays", "RETURN array::intersect(array::range(0, 400000), array::range(400000, 800000))"],
  ["sorting what is shared", "RETURN array::sort(array::repeat(array::range(0, 1000), 100000))"],
  ["all of a large array in another", "RETURN array::range(0, 100000) CONTAINSALL array::range(0, 100000)"],
  ["none of a large array in another", "RETURN array::range(0, 100000) CONTAINSNONE array::range(100000, 200000)"],
  ["comparing what is shared", "RETURN array::repeat(array::range(0, 1000), 100000) = array::repeat(array::range(0, 1000), 100000)"],
  ["comparing large arrays many times", "{ RETURN 1 }; RETURN array::range(0, 100000).map(|$i| array::range(0, 1000) = array::range(0, 1000))"],
  ["text of what is shared", "RETURN <string> array::repeat(array::range(0, 1000), 100000)"],
  ["a message about what is shared", "RETURN 1 + array::repeat(array::range(0, 1000), 100000)"],
  ["base64 with equals signs inside", "RETURN encoding::base64::decode(string::repeat('=', 1000000) + 'x')"],
  ["a regular expression of many instructions", "RETURN string::matches(string::repeat('a', 100000), '((a{100}){100}){100}')"],
  ["a regular expression over a long text", "RETURN string::matches(string::repeat('a', 1000000), '(a|b|c|d|e|f|g)*z')"],
  ["the distance of long texts", "RETURN string::distance::osa(string::repeat('a', 100000), string::repeat('b', 100000))"],
  ["a text in a text", "RETURN string::contains(string::repeat('a', 1000000), 'b' + string::repeat('a', 500000))"],
  ["ORDER BY with very many terms", `SELECT * FROM t ORDER BY ${repeated(30_000, "n")}`],
  ["a type that nests", `RETURN <${"array<".repeat(5000)}int${">".repeat(5000)}> 1`],
  ["SPLIT by SPLIT", "SELECT tags AS a, tags AS b, tags AS c FROM t SPLIT a, b, c"],
  ["a closure with a long body", `RETURN array::range(0, 500000).map(|$v| [${repeated(2000, "$v")}])`],
  ["a list of one list", `RETURN { LET $a = array::range(0, 100000); RETURN array::len(array::flatten([${repeated(5000, "$a")}])) }`],
  ["a text that doubles", "RETURN array::fold(array::range(0, 60), 'ab', |$a, $b| $a + $a)"],
  ["a path of a path of a path", `RETURN type::field('${repeated(15_000, "a", ".")}')`]
]

const heap = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external

describe("queries", () => {
  it.each(attacks)("D48 %s ends with an answer or a declared error, within its budget", (_, query) => {
    const parsed = parseStatements(query)
    if (Either.isLeft(parsed)) return expect(parsed.left.message).not.toBe("")
    for (const statement of parsed.right) {
      const budget = queryBudget(), before = heap()
      const answer = drain(evaluateSliced(statement, { source, params: {}, budget, maxRows: limits.queryRows.value }))
      expect(heap() - before).toBeLessThan(512 * 1024 * 1024)
      if (Either.isLeft(answer)) expect(answer.left.reason).toMatch(declared), expect(answer.left.reason.length).toBeLessThan(20_000)
      else expect(budget.left).toBeGreaterThanOrEqual(0), expect(budget.bytes).toBeGreaterThanOrEqual(0)
    }
  })
})
