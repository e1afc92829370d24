/** The dashboard's columns against the language's own reading of a SELECT: the same names in the same order. */
import { readFileSync } from "node:fs"
import { Either } from "effect"
import { expect, it } from "vitest"
import { rng, runs, seed } from "../../kit/data/random.ts"
import type { Field } from "../../src/core/surql/syntax/ast.ts"
import { parseSelect } from "../../src/core/surql/syntax/parse.ts"

const page = new URL("../../src/dashboard/columns.js", import.meta.url)
const { columnsOf, inOrder } = (await import(page.pathname)) as {
  readonly columnsOf: (query: string) => ReadonlyArray<string>
  readonly inOrder: (names: ReadonlyArray<string>, columns: ReadonlyArray<string>) => ReadonlyArray<string>
}

/** The key of a row that a field is shown under; undefined where that is no plain name. */
const nameOf = (field: Field): string | undefined => {
  if (field.kind === "all") return "*"
  const first = (field.alias ?? (field.expr.kind === "idiom" ? field.expr : undefined))?.parts[0]
  return first?.kind === "field" ? first.name : undefined
}

const read = (query: string): ReadonlyArray<string | undefined> | undefined => {
  const parsed = parseSelect(query)
  return Either.isRight(parsed) && !parsed.right.value ? parsed.right.fields.map(nameOf) : undefined
}

const compared = (query: string): number => {
  const names = read(query)
  if (names === undefined) return 0
  const columns = columnsOf(query)
  expect(columns.length, query).toBe(names.length)
  for (const [i, name] of names.entries()) if (name !== undefined) expect(columns[i], query).toBe(name)
  return names.length
}

it("are those of every query of the everyday corpus", () => {
  const text = readFileSync(new URL("../corpus/everyday.surql", import.meta.url), "utf8")
  const queries = text.split("\n").filter((line) => /^SELECT\b/i.test(line))
  expect(queries.reduce((sum, query) => sum + compared(query.replace(/;$/, "")), 0)).toBeGreaterThan(50)
})

it("are those of drawn queries, with commas, quotes and words where they are none", () => {
  const random = rng(seed)
  const exprs = [
    "n",
    "a.b",
    "`odd name`",
    "⟨b,c⟩.d",
    "count()",
    "math::max([1, 2])",
    "'x, FROM y'",
    "(SELECT z FROM u)"
  ]
  const more = [
    '"\\" AS q"',
    "a[WHERE x = ',']",
    "{ k: 1, l: [2] }",
    "->likes->post",
    "IF a THEN 1 ELSE 2 END",
    "fromage"
  ]
  const aliases = ["", " AS x", " as `y, z`", " AS ⟨AS⟩", " AS o.p"]
  let seen = 0
  for (let i = 0; i < runs(500); i++) {
    const field = (): string =>
      random.chance(0.1) ? "*" : random.pick([...exprs, ...more]) + (random.chance(0.5) ? random.pick(aliases) : "")
    const fields = Array.from({ length: 1 + random.below(4) }, field)
    const gap = random.pick([" ", "\n  ", " /* , FROM */ ", " -- FROM a\n"])
    seen += compared(`${random.pick(["SELECT", "select"])}${gap}${fields.join(`,${gap}`)}${gap}FROM t WHERE a = 'FROM'`)
  }
  expect(seen).toBeGreaterThan(runs(100))
})

it("put the fields of a row in order, the id first and unnamed ones where * stands", () => {
  expect(inOrder(["a", "b", "id", "z"], columnsOf("SELECT z, *, a FROM t"))).toEqual(["z", "id", "b", "a"])
  expect(inOrder(["a", "id", "odd"], columnsOf("SELECT id, 1 + 1, a FROM t"))).toEqual(["id", "a", "odd"])
  expect(inOrder(["value"], columnsOf("SELECT VALUE a FROM t"))).toEqual(["value"])
})
