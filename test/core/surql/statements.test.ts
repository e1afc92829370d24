/**
 * Whole statements as `/proxy/query` will take them (D28): SELECT, RETURN with FETCH, INFO, several in one text.
 *
 * Why so: the corpus asks for values inside a query of its own; here the text goes to the database as it is, and
 * answers are compared as JSON, statement by statement. The endpoint itself comes with the scheduler.
 */
import { Either } from "effect"
import { RecordId as SdkRecordId } from "surrealdb"
import { describe, expect, it } from "vitest"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../src/core/surql/evaluate/select/select.ts"
import { parseStatements } from "../../../src/core/surql/syntax/parse.ts"
import { toJson } from "../../../src/core/surql/values/json.ts"
import { embedded } from "./embedded.ts"
import { records } from "./engine.ts"

const lines = ["p:1 { name: 'a', best: p:2, friends: [p:2, p:9] }", "p:2 { name: 'b', best: p:1 }", "q:1 { n: 1 }"]

const db = embedded(
  "CREATE p:1 CONTENT { name: 'a', best: p:2, friends: [p:2, p:9] }; CREATE p:2 CONTENT { name: 'b', best: p:1 }; CREATE q:1 CONTENT { n: 1 }"
)

/** As it would leave over JSON; NONE becomes null in an array, and nothing in an object. */
const plain = (v: unknown): unknown =>
  JSON.parse(JSON.stringify(v, (_, inner: unknown) => (inner instanceof SdkRecordId ? String(inner) : inner)) ?? "null")

const theirs = async (text: string): Promise<ReadonlyArray<unknown>> =>
  (await db.query(text).responses()).map((r) => (r.success ? plain(r.result) : { failed: true }))

const source = fromRecords(records(lines))

const answers = (text: string): ReadonlyArray<unknown> =>
  Either.getOrThrowWith(parseStatements(text), (e) => new Error(e.message)).map((statement) => {
    const answer = evaluate(statement, { source, params: {}, budget: makeBudget(1e6, "TEST") })
    return Either.isRight(answer) ? plain(toJson(answer.right)) : { failed: true }
  })

describe("D28 statements", () => {
  it.each([
    "RETURN 1 + 1",
    "RETURN p:1.name",
    "RETURN p:1.* FETCH best",
    "RETURN p:1.* FETCH best, friends",
    "RETURN (SELECT * FROM p) FETCH best",
    "RETURN { a: p:1 } FETCH a",
    "RETURN { a: p:1 } FETCH a.best",
    "RETURN p:1 FETCH best",
    "RETURN [p:1, { a: p:2 }] FETCH a",
    "RETURN 5 FETCH a",
    "RETURN { a: 5 } FETCH a, b",
    "RETURN { RETURN 5; 6 }",
    "RETURN [(RETURN 5), 6]",
    "RETURN { LET $a = 1; RETURN $a + 1; 7 }",
    "RETURN { LET $a = 1; IF $a = 1 { RETURN 'in' }; 'out' }",
    "RETURN IF true { LET $b = 2; RETURN $b; 5 } ELSE { 3 }",
    "SELECT * FROM ONLY p:1",
    "SELECT VALUE name FROM p",
    "SELECT * FROM p FETCH best"
  ])("D28 %s answers as the database", async (text) => {
    expect(answers(text)).toEqual(await theirs(text))
  })

  it.each([
    "RETURN 1; SELECT VALUE id FROM p; RETURN p:2.name",
    "SELECT VALUE name FROM p;; RETURN 2;",
    "RETURN 1; RETURN 'a' + 1; RETURN 3"
  ])("D28 several statements in one text answer as an array: %s", async (text) => {
    const ours = answers(text)
    expect(ours).toEqual(await theirs(text))
    expect(ours.length).toBeGreaterThan(1)
  })

  it("D28 INFO FOR DB names the tables as the database does", async () => {
    const [info] = await theirs("INFO FOR DB")
    const [own] = answers("INFO FOR DB")
    expect(own).toEqual({ tables: (info as { tables: unknown }).tables })
  })

  it("D28 INFO FOR TABLE has the database's parts, without what only storage has", async () => {
    const [info] = await theirs("INFO FOR TABLE p")
    expect(answers("INFO FOR TABLE p")).toEqual([info])
    expect(answers("INFO FOR TABLE nope")).toEqual([info])
  })

  it("D28 a missing table answers an empty array, where the database answers an error", async () => {
    expect(answers("SELECT * FROM nope")).toEqual([[]])
    expect(await theirs("SELECT * FROM nope")).toEqual([{ failed: true }])
  })

  it.each([
    "CREATE p:3",
    "UPDATE p SET a = 1",
    "DELETE p",
    "LET $a = 1; RETURN $a",
    "BEGIN; RETURN 1; COMMIT",
    "DEFINE TABLE x",
    "REMOVE TABLE p",
    "INFO FOR ROOT",
    "INFO FOR DB STRUCTURE",
    "USE NS a",
    "LIVE SELECT * FROM p",
    "SHOW CHANGES FOR TABLE p SINCE 1",
    "EXPLAIN SELECT * FROM p"
  ])("D28 %s is refused with its place", (text) => {
    const parsed = parseStatements(text)
    expect(
      Either.isLeft(parsed) ? [parsed.left.line, parsed.left.column > 0, parsed.left.message !== ""] : "accepted"
    ).toEqual([1, true, true])
  })
})
