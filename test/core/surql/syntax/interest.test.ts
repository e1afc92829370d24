/**
 * What a view may read (D61): by query, and held against the plain evaluator, which reads no table that was not named
 * or linked to.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { fromRecords } from "../../../../src/core/surql/evaluate/memory.ts"
import { queryBudget, type Source } from "../../../../src/core/surql/evaluate/scope.ts"
import { evaluate } from "../../../../src/core/surql/evaluate/select/select.ts"
import * as Interest from "../../../../src/core/surql/syntax/interest.ts"
import { parseSelect } from "../../../../src/core/surql/syntax/parse.ts"
import * as Json from "../../../../src/core/surql/values/json.ts"
import * as Ids from "../../../../src/core/surql/values/recordId.ts"
import { type Obj, setField, type Value } from "../../../../src/core/surql/values/value.ts"

const of = (surql: string, params: { readonly [name: string]: unknown } = {}) => {
  const typed: Record<string, Value> = {}
  for (const [name, value] of Object.entries(params)) setField(typed, name, Json.fromJson(value))
  const select = Either.getOrThrowWith(parseSelect(surql), ({ message }) => new Error(`${surql}: ${message}`))
  return { select, params: typed, interest: Interest.interestOf(select, typed) }
}

const shown = (surql: string, params?: { readonly [name: string]: unknown }) => {
  const { all, follows, tables } = of(surql, params).interest
  return [[...tables].sort().join(" "), follows, all]
}

describe("the interest of a query", () => {
  it("D61 names its tables, where it reads records as they are", () => {
    expect(shown("SELECT * FROM post WHERE author = user:1 ORDER BY n LIMIT 3")).toEqual(["post user", false, false])
    expect(shown("SELECT id, (SELECT VALUE n FROM other WHERE g = $parent.g) AS near FROM item")).toEqual([
      "item other",
      false,
      false
    ])
    expect(shown("SELECT ->wrote->post AS posts FROM user")).toEqual(["post user wrote", false, false])
    expect(shown("SELECT * FROM post:1..9")).toEqual(["post", false, false])
    expect(shown("SELECT * FROM $of", { of: "x" })[1]).toBe(false)
  })
  it("D61 follows links where a path goes on behind a field, and where links are fetched", () => {
    for (const surql of [
      "SELECT author.name FROM post",
      "SELECT * FROM post FETCH author",
      "SELECT author.{ name } FROM post",
      "SELECT tags[WHERE name = 1] FROM post",
      "SELECT * FROM post WHERE record::exists(author)",
      "SELECT (SELECT * FROM $parent.tags) AS tags FROM post"
    ])
      expect([surql, shown(surql)[1]]).toEqual([surql, true])
  })
  it("D61 is every table where an id may be of any", () => {
    for (const surql of [
      "SELECT ->? AS all FROM user",
      "SELECT type::record(kind, 1).name FROM post",
      "SELECT (<record> key).name FROM post",
      "SELECT ('user:' + key).name AS name FROM post",
      "SELECT type::table(kind) FROM post"
    ])
      expect([surql, shown(surql)[2]]).toEqual([surql, true])
    expect(shown("SELECT (<record<user>> key).name FROM post")).toEqual(["post user", true, false])
  })
})

const records: ReadonlyArray<Obj> = [
  { id: "user:1", name: "a", company: "company:1", friends: ["user:2"] },
  { id: "user:2", name: "b", company: "company:2" },
  { id: "company:1", city: "city:1", title: "c" },
  { id: "company:2", title: "d" },
  { id: "city:1", name: "e" },
  { id: "post:1", author: "user:1", n: 1, tags: ["tag:1"], meta: { by: "user:2" } },
  { id: "post:2", author: "user:2", n: 2, tags: [] },
  { id: "tag:1", name: "t", owner: "user:1" },
  { id: "likes:1", in: "user:1", out: "post:2", at: 1 },
  { id: "other:1", n: 5 }
].map((json) => {
  const doc = Json.fromJson(json) as Record<string, Value>
  doc["id"] = Ids.parseLenient(json.id)!
  for (const end of ["in", "out"] as const) if (end in json) doc[end] = Ids.parseLenient(String(json[end as never]))!
  return doc
})

/** Tables that the plain evaluator reads a record or a row of. */
const readBy = (surql: string): ReadonlySet<string> => {
  const { params, select } = of(surql)
  const inner = fromRecords(records)
  const read = new Set<string>()
  const source = new Proxy(inner, {
    get: (target, name) => {
      const value = target[name as keyof Source] as unknown
      if (typeof value !== "function") return value
      return (...args: ReadonlyArray<unknown>) => {
        const [first] = args as ReadonlyArray<{ readonly table?: string } | string>
        if (name === "record") read.add((first as { readonly table: string }).table)
        if (name === "rows" && typeof first === "string") read.add(first)
        return (value as (...args: ReadonlyArray<unknown>) => unknown).apply(target, [...args])
      }
    }
  })
  Either.getOrThrowWith(
    evaluate(select, { source, params, budget: queryBudget() }),
    (error) => new Error(`${surql}: ${JSON.stringify(error)}`)
  )
  return read
}

/** The tables that an SSP would hold for it. */
const heldFor = (surql: string): ReadonlySet<string> => {
  const { all, follows, tables } = of(surql).interest
  const held = new Set(all ? records.map((doc) => (doc["id"] as { readonly table: string } & Value).table) : tables)
  if (follows)
    for (const table of held)
      for (const doc of records)
        if ((doc["id"] as { readonly table: string } & Value).table === table)
          Interest.eachLink(doc, (to) => held.add(to))
  return held
}

describe("what the plain evaluator reads", () => {
  for (const surql of [
    "SELECT * FROM post",
    "SELECT author.name FROM post",
    "SELECT author.company.city.name AS city FROM post",
    "SELECT *, author.company.title AS title FROM post ORDER BY title",
    "SELECT * FROM post FETCH author, author.company, tags",
    "SELECT meta.by.name FROM post",
    "SELECT tags.name FROM post",
    "SELECT tags[0].owner.name AS owner FROM post",
    "SELECT ->likes->post.n AS liked FROM user",
    "SELECT ->likes->post.author.name AS authors FROM user",
    "SELECT <-likes<-user.company.title AS c FROM post",
    "SELECT (SELECT name FROM user WHERE id = $parent.author)[0].name AS name FROM post",
    "SELECT VALUE author.friends.name FROM post",
    "SELECT count(), author.name AS name FROM post GROUP BY name",
    "SELECT * FROM post WHERE author.company.city.name = 'e'",
    "SELECT author.{ name, company } FROM post",
    "SELECT (SELECT * FROM $parent.tags) AS tags FROM post",
    "SELECT * FROM user:1",
    "SELECT array::first(tags).name AS first FROM post",
    "SELECT { by: author }.by.name AS name FROM post",
    "SELECT author.* FROM post"
  ])
    it(`D61 ${surql}`, () => {
      const held = heldFor(surql)
      const read = readBy(surql)
      expect(read.size).toBeGreaterThan(0)
      expect([...read].filter((table) => !held.has(table))).toEqual([])
    })
})
