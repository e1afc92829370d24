/**
 * What an evaluation reads: only rows that can be shown, by key where the filter compares ids, and no further than the
 * window.
 *
 * Why so: a table is pulled in chunks by `WHERE id > $last ORDER BY id LIMIT n`; if each chunk scanned the table, the
 * whole would be quadratic. Every narrowed query must answer what the scan answers, and fail where the scan fails.
 */
import { Either, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { makeBudget, queryBudget, type Source } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate, evaluateSliced, selectRows } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseSelect, parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { fromJson, toJson } from "../../../src/core/surql/values/json.ts"
import * as RecordIds from "../../../src/core/surql/values/recordId.ts"
import type { Obj, Value } from "../../../src/core/surql/values/value.ts"

const size = 1_000
const docs = Array.from(
  { length: size },
  (_, n): Obj => ({ id: RecordIds.make("t", n), n, half: n >> 1, text: n === 700 ? 7 : `x${n}` })
)
const memory = fromRecords([...docs, ...Array.from({ length: 10 }, (_, n): Obj => ({ id: RecordIds.make("u", n), n }))])

/** A source that counts the rows taken from it; `ranges` says whether it answers ranges of keys. */
const counting = (ranges: boolean): { readonly source: Source; taken: number } => {
  const self: { source: Source; taken: number } = { taken: 0, source: memory }
  function* counted(rows: Iterable<Obj>): Iterable<Obj> {
    for (const row of rows) {
      self.taken++
      yield row
    }
  }
  const { rowsBetween, ...rest } = memory
  self.source = {
    ...rest,
    rows: (table) => counted(memory.rows(table)),
    ...(ranges ? { rowsBetween: (table, range) => counted(rowsBetween!(table, range)) } : {})
  }
  return self
}

const run = (
  source: Source,
  text: string,
  params: { readonly [name: string]: Value } = {}
): Either.Either<unknown, unknown> =>
  Either.map(
    evaluate(Either.getOrThrowWith(parseStatements(text), (e) => new Error(`${text}: ${e.message}`))[0]!, {
      source,
      params,
      budget: makeBudget(1e6, "TEST_STEPS")
    }),
    toJson
  )

const reads = (text: string, params: { readonly [name: string]: Value } = {}): number => {
  const counter = counting(true)
  Either.getOrThrowWith(run(counter.source, text, params), (e) => new Error(JSON.stringify(e)))
  return counter.taken
}

const at = (n: number): Value => RecordIds.make("t", n)

describe("rows that are read", () => {
  it("a table pulled in chunks by key is read once", () => {
    const counter = counting(true)
    const seen: Array<unknown> = []
    for (let last: Value = at(-1), rows = 50; rows === 50; ) {
      const chunk = Either.getOrThrow(
        run(counter.source, "SELECT * FROM t WHERE id > $last ORDER BY id LIMIT 50", { last })
      ) as ReadonlyArray<{ readonly n: number }>
      seen.push(...chunk.map((row) => row.n))
      rows = chunk.length
      last = at(Number(seen.at(-1)))
    }
    expect(seen).toEqual(docs.map((doc) => doc["n"]))
    expect(counter.taken).toBe(size)
  })
  it.each([
    ["SELECT * FROM t:100..120", 20],
    ["SELECT * FROM t:100..=120 LIMIT 3", 3],
    ["SELECT VALUE n FROM t WHERE id >= t:10 AND id < t:15 AND n > 0", 5],
    ["SELECT VALUE n FROM t WHERE t:995 <= id", 5],
    ["SELECT VALUE n FROM t WHERE n > 3 AND id < t:10 AND string::len(text) > 1", 10],
    ["SELECT VALUE n FROM t WHERE id > t:5 AND id > t:990 AND id >= t:990 AND id < t:999", 8],
    ["SELECT VALUE n FROM t WHERE id < t:50 AND t:4 >= id AND id < t:5", 5],
    ["SELECT * FROM t LIMIT 5", 5],
    ["SELECT * FROM t WHERE n > 9 LIMIT 5 START 2", 17],
    ["SELECT id, text + 'x' AS y FROM t ORDER BY id LIMIT 4", 4],
    ["SELECT * FROM t LIMIT 0", 0],
    ["SELECT * FROM u, t LIMIT 12", 12],
    ["SELECT VALUE (SELECT VALUE id FROM t WHERE id > $parent.id LIMIT 1)[0] FROM t:10..12", 4],
    ["SELECT * FROM (SELECT * FROM t LIMIT 30) LIMIT 2", 30],
    ["SELECT * FROM t WHERE id = t:5", 0],
    ["SELECT * FROM t WHERE n < 500 AND id = t:5", 0],
    // Nothing to gain: everything is read.
    ["SELECT * FROM t ORDER BY n LIMIT 5", size],
    ["SELECT id FROM t ORDER BY id DESC LIMIT 5", size],
    ["SELECT n AS id FROM t ORDER BY id LIMIT 5", size],
    ["SELECT count() FROM t GROUP ALL LIMIT 1", size],
    ["SELECT * FROM t WHERE id > 'u:5' LIMIT 2000", size],
    ["SELECT VALUE n FROM t WHERE n = 3 OR id < t:2", size],
    ["SELECT VALUE n FROM t WHERE id < t:5 OR id > t:990", size]
  ])("%s reads %i rows of tables", (text, expected) => {
    expect(reads(text)).toBe(expected)
  })
  it("a condition that can fail before the ids are compared is evaluated on every row, as the database does", () => {
    expect(run(memory, "SELECT * FROM t WHERE n + text > 0 AND id < t:2")).toMatchObject({
      left: { reason: "Cannot perform addition with '0' and 'x0'" }
    })
    expect(run(memory, "SELECT VALUE n FROM t WHERE id < t:2 AND string::len(text) = 2")).toEqual(Either.right([0, 1]))
    expect(run(memory, "SELECT VALUE n FROM t WHERE string::len(text) = 2 AND id < t:2")).toMatchObject({
      _tag: "Left"
    })
  })
  it("D2a rows behind the window that fail are still named where failing rows are left out", () => {
    const select = (text: string) => Either.getOrThrowWith(parseSelect(text), (e) => new Error(e.message))
    const left = (text: string) =>
      Either.getOrThrow(
        selectRows(select(text), {
          source: memory,
          params: {},
          budget: makeBudget(1e6, "TEST_STEPS"),
          onFailure: "leaveOut"
        })
      ).left.map((l) => l.record?.text)
    expect(left("SELECT id FROM t WHERE string::len(text) > 1 LIMIT 5")).toEqual(["t:700"])
    expect(left("SELECT string::len(text) AS l FROM t LIMIT 5")).toEqual(["t:700"])
    expect(left("SELECT id FROM t LIMIT 5")).toEqual([])
    const counter = counting(true)
    Either.getOrThrow(
      selectRows(select("SELECT id FROM t WHERE n > 1 LIMIT 5"), {
        source: counter.source,
        params: {},
        budget: makeBudget(1e6, "TEST_STEPS"),
        onFailure: "leaveOut"
      })
    )
    expect(counter.taken).toBe(7)
  })
  it("narrowed or not, a query answers the same (random ids, bounds and windows)", () => {
    const key = fc.oneof(
      fc.integer({ min: -2, max: 12 }).map(String),
      fc.constantFrom("a", "b", "`x y`", "[1, 'a']", "{ a: 1 }", "u'018a6680-bef9-701b-9025-e1754f296a0f'")
    )
    const operand = fc.oneof(
      { weight: 8, arbitrary: key.map((k) => `p:${k}`) },
      { weight: 1, arbitrary: fc.constantFrom("q:1", "5", "NONE", "'p:3'", "$x", "$y.a") }
    )
    const term = fc
      .tuple(fc.constantFrom("<", "<=", ">", ">=", "="), operand, fc.boolean())
      .map(([op, v, turned]) => (turned ? `${v} ${op} id` : `id ${op} ${v}`))
    const where = fc
      .array(
        fc.oneof({ weight: 4, arbitrary: term }, { weight: 1, arbitrary: fc.constantFrom("n > 3", "n + 1 > 4") }),
        { minLength: 1, maxLength: 4 }
      )
      .map((parts) => parts.join(" AND "))
    const query = fc
      .tuple(
        where,
        fc.constantFrom("p", "p", "p:2..", "p:..=9", "p:a..b"),
        fc.constantFrom("", " ORDER BY id", " ORDER BY n"),
        fc.constantFrom("", " LIMIT 2", " LIMIT 3 START 1")
      )
      .map(([w, from, order, window]) => `SELECT id, n FROM ${from} WHERE ${w}${order}${window}`)
    const rows = (keys: ReadonlyArray<string>) =>
      fromRecords(keys.map((k, n): Obj => ({ id: RecordIds.parse(`p:${k}`)!, n: n === 5 ? "five" : n })))
    let answered = 0,
      failed = 0
    fc.assert(
      fc.property(fc.uniqueArray(key, { minLength: 6, maxLength: 14 }), query, (keys, text) => {
        const source = rows(keys),
          { rowsBetween: _, ...plain } = source
        const params = { x: RecordIds.parse("p:4")!, y: { a: RecordIds.parse("p:b")! } }
        const fast = run(source, text, params)
        // The same filter where nothing can be narrowed: behind an OR.
        const slow = run(plain, text.replace(/WHERE (.*?)( ORDER| LIMIT|$)/, "WHERE (false OR ($1))$2"), params)
        if (Either.isRight(fast) && (fast.right as ReadonlyArray<unknown>).length > 0) answered++
        if (Either.isLeft(fast)) failed++
        expect(fast).toEqual(slow)
        expect(run(plain, text, params)).toEqual(slow)
      }),
      { seed: Number(process.env["SVC_SEED"] ?? 7), numRuns: 1_000 * Number(process.env["SVC_RUNS"] ?? 1) }
    )
    expect(answered).toBeGreaterThan(100)
    expect(failed).toBeGreaterThan(10)
  })
})

describe("limits", () => {
  const limited = (
    text: string,
    options: { readonly steps?: number; readonly row?: number; readonly rows?: number }
  ): unknown => {
    const [statement] = Either.getOrThrowWith(parseStatements(text), (e) => new Error(e.message))
    const maxRows = options.rows === undefined ? {} : { maxRows: options.rows }
    return Either.match(
      evaluate(statement!, { source: memory, params: {}, budget: queryBudget(options.steps, options.row), ...maxRows }),
      { onLeft: (e) => e.reason, onRight: (v) => (v as ReadonlyArray<unknown>).length }
    )
  }
  it("D17 steps per query: the error names limit and setting", () => {
    expect(limited("SELECT * FROM t", { steps: 999 })).toBe(
      "The query needs more than 999 steps; raise SVC_QUERY_STEPS to allow it"
    )
    expect(limited("SELECT * FROM t", { steps: 1_000 })).toBe(size)
  })
  it("D17 steps per row: many cheap rows pass, one costly row does not, the error names limit and setting", () => {
    expect(limited("SELECT * FROM t WHERE [n, n, n].map(|$v| $v).len() = 3", { row: 100 })).toBe(size)
    expect(limited("SELECT (SELECT * FROM t) AS all FROM u", { row: 1_500 })).toBe(10)
    expect(limited("SELECT (SELECT * FROM t) AS all FROM u", { row: 900 })).toBe(
      "A row needs more than 900 steps; raise SVC_QUERY_ROW_STEPS to allow it"
    )
    expect(limited("RETURN array::len((SELECT * FROM t))", { row: 900 })).toBe(
      "A row needs more than 900 steps; raise SVC_QUERY_ROW_STEPS to allow it"
    )
    expect(limited("RETURN (SELECT * FROM t)", { row: 900 })).toBe(size)
    expect(limited("SELECT * FROM (SELECT * FROM t) WHERE n > 0", { row: 900 })).toBe(size - 1)
  })
  it("D17 a row over its limit is left out and named where that is asked for, the others stay", () => {
    const select = Either.getOrThrow(
      parseSelect(
        "SELECT id FROM t:0..3 WHERE n = 1 OR array::range(0, half * 1000).map(|$v| $v).len() < 10 OR (SELECT VALUE id FROM t WHERE n < $parent.n).len() > 5"
      )
    )
    const selected = Either.getOrThrow(
      selectRows(select, { source: memory, params: {}, budget: queryBudget(1e6, 900), onFailure: "leaveOut" })
    )
    expect(selected.rows.map((row) => row.record?.text)).toEqual(["t:0", "t:1"])
    expect(selected.left).toMatchObject([
      { failure: { reason: expect.stringMatching(/900 steps.*SVC_QUERY_ROW_STEPS/) } }
    ])
  })
  it("D17 result rows: the error names limit and setting", () => {
    expect(limited("SELECT * FROM t", { rows: 999 })).toBe(
      "The query gives more than 999 rows; raise SVC_QUERY_ROWS to allow it"
    )
    expect(limited("SELECT * FROM t LIMIT 999", { rows: 999 })).toBe(999)
    expect(limited("RETURN (SELECT * FROM t)", { rows: 999 })).toContain("SVC_QUERY_ROWS")
  })
  it("D17 splitting rows into ever more rows ends at the limit of steps", () => {
    const lists = fromRecords([
      {
        id: RecordIds.make("l", 1),
        ...Object.fromEntries(
          ["a", "b", "c", "d"].map((name) => [name, fromJson(Array.from({ length: 100 }, (_, n) => n))])
        )
      } as Obj
    ])
    const [statement] = Either.getOrThrow(parseStatements("SELECT a, b, c, d FROM l SPLIT a, b, c, d"))
    expect(evaluate(statement!, { source: lists, params: {}, budget: queryBudget(50_000) })).toMatchObject({
      left: { reason: "The query needs more than 50000 steps; raise SVC_QUERY_STEPS to allow it" }
    })
  })
  it("D17 query text is bounded by 64 KiB and nesting by 64, and the error says so", () => {
    const refused = (text: string) =>
      Either.match(parseStatements(text), { onLeft: (e) => e.message, onRight: () => "taken" })
    const long = (length: number): string => `RETURN '${"x".repeat(length - 9)}'`
    expect(refused(long(65_536))).toBe("taken")
    expect(refused(long(65_537))).toMatch(/65536|64 KiB/)
    const deep = (levels: number): string => `RETURN ${"[".repeat(levels)}${"]".repeat(levels)}`
    expect(refused(deep(30))).toBe("taken")
    expect(refused(deep(65))).toMatch(/64/)
  })
})

describe("slices", () => {
  const pauses = (text: string): { readonly pauses: number; readonly most: number } => {
    const counter = counting(false)
    const [statement] = Either.getOrThrow(parseStatements(text))
    const steps = makeBudget(1e7, "TEST_STEPS")
    const slices = evaluateSliced(statement!, { source: counter.source, params: {}, budget: steps })
    let count = 0,
      most = 0
    for (let before = steps.left, step = slices.next(); ; step = slices.next()) {
      most = Math.max(most, before - steps.left)
      before = steps.left
      if (step.done === true) return { pauses: count, most }
      count++
    }
  }
  it("no slice reads the table whole: not before the filter, nor in sources, splits, sorts, groups and fetches", () => {
    for (const text of [
      "SELECT * FROM t",
      "SELECT * FROM t WHERE n > 10 ORDER BY half DESC, n",
      "SELECT half, count() AS c FROM t GROUP BY half",
      "SELECT * FROM (SELECT * FROM t WHERE n >= 0)",
      "SELECT id FROM t FETCH id",
      "RETURN (SELECT * FROM t)"
    ]) {
      const { most, pauses: count } = pauses(text)
      expect(count, text).toBeGreaterThanOrEqual(3)
      expect(most, text).toBeLessThan(4_500)
    }
  })
  it("rows that are much work are fewer between two pauses", () => {
    const { most, pauses: count } = pauses("SELECT (SELECT VALUE n FROM t) AS all FROM t LIMIT 100")
    expect(count).toBeGreaterThan(15)
    expect(most).toBeLessThan(3 * 4_096)
  })
  it("an abandoned run stops reading", () => {
    const counter = counting(false)
    const slices = evaluateSliced(Either.getOrThrow(parseStatements("SELECT * FROM t"))[0]!, {
      source: counter.source,
      params: {},
      budget: queryBudget()
    })
    slices.next()
    slices.return(Either.right(undefined))
    expect(counter.taken).toBeLessThan(300)
    expect(slices.next().done).toBe(true)
  })
})
