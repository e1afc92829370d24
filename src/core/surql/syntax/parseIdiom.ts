/**
 * Paths: `.field`, `[index]`, `[WHERE ..]`, `.*`, `...`, `.{a, b}`, `.method()`, `->edge->table`, `{1..3}(..)`.
 *
 * Why so: full paths stand in expressions; ORDER BY, SPLIT and GROUP BY take basic ones only, so both readers live
 * here.
 */

import { RecordId, RecordRange } from "../values/value.ts"
import type { Destructured, Expr, Idiom, Part, Select } from "./ast.ts"
import { expression, expressionList, inherited } from "./parseExpression.ts"
import { edgeRange, primary } from "./parsePrimary.ts"
import type { Parser } from "./parser.ts"
import {
  advance,
  eatOp,
  eatWord,
  expected,
  expectOp,
  fail,
  isOp,
  isWord,
  name,
  nested,
  notYet,
  peek,
  withNames
} from "./parser.ts"
import { limitAndStart, selectTail, whereClause } from "./parseSelect.ts"

const continues = (p: Parser): boolean => {
  const t = p.token
  if (t.kind !== "op") return false
  return (
    t.text === "." ||
    t.text === "[" ||
    t.text === "..." ||
    t.text === "->" ||
    t.text === "<-" ||
    t.text === "<->" ||
    t.text === "<~"
  )
}

/** The path after a value, if there is one. */
export const idiomRest = (p: Parser, start: Expr): Expr => {
  if (!continues(p)) return start
  const parts: Array<Part> = []
  while (continues(p)) parts.push(bounded(p, parts))
  if (start.kind === "idiom" && start.start === undefined)
    return { kind: "idiom", at: start.at, start: undefined, parts: [...start.parts, ...parts] }
  if (start.kind === "idiom" && start.parts.length === 0)
    return { kind: "idiom", at: start.at, start: start.start, parts }
  if (start.kind === "table")
    return { kind: "idiom", at: start.at, start: undefined, parts: [{ kind: "field", name: start.name }, ...parts] }
  return { kind: "idiom", at: start.at, start, parts }
}

const maxParts = 128

/** The next part of a path; refuses a path that is too long to evaluate. */
const bounded = (p: Parser, parts: ReadonlyArray<Part>): Part =>
  parts.length >= maxParts ? fail(`a path of more than ${maxParts} parts`, p.token.at) : part(p)

const part = (p: Parser): Part => {
  const t = p.token
  switch (t.text) {
    case "...":
      advance(p)
      return { kind: "flatten" }
    case "[":
      return withNames(p, "field", () => bracket(p))
    case ".":
      advance(p)
      return dot(p)
    default:
      return graphStep(p)
  }
}

const bracket = (p: Parser): Part => {
  advance(p)
  let out: Part
  if (eatOp(p, "*")) out = { kind: "all" }
  else if (eatOp(p, "$")) out = { kind: "last" }
  else if (eatOp(p, "?") || eatWord(p, "WHERE")) out = { kind: "where", where: expression(p) }
  else out = { kind: "index", index: inherited(p) }
  expectOp(p, "]")
  return out
}

const dot = (p: Parser): Part => {
  const t = p.token
  if (eatOp(p, "*")) return { kind: "all" }
  if (eatOp(p, "?")) return { kind: "optional" }
  if (eatOp(p, "@")) return { kind: "repeat", at: t.at }
  if (isOp(p, "{")) return curly(p)
  const field = name(p, "a field name")
  if (isOp(p, "(") && p.token.at === t.end) {
    advance(p)
    return { kind: "method", name: field.toLowerCase(), args: withNames(p, "field", () => expressionList(p, ")")) }
  }
  return { kind: "field", name: field }
}

const curly = (p: Parser): Part => {
  const at = expectOp(p, "{").at
  const t = p.token
  if (t.kind === "value" || (t.kind === "op" && (t.text === ".." || t.text === "*"))) return recursion(p, at)
  return nested(p, () => ({ kind: "destructure", entries: destructured(p) }))
}

/** Entries up to the `}`, which is consumed. */
const destructured = (p: Parser): Array<Destructured> => {
  const entries: Array<Destructured> = []
  while (!eatOp(p, "}")) {
    const at = p.token.at
    const field = name(p, "a field name")
    const parts: Array<Part> = [{ kind: "field", name: field }]
    if (eatOp(p, ":")) entries.push({ name: field, aliased: true, expr: expression(p) })
    else {
      if (eatOp(p, ".")) {
        if (eatOp(p, "*")) parts.push({ kind: "all" })
        else if (eatOp(p, "{")) parts.push({ kind: "destructure", entries: nested(p, () => destructured(p)) })
        else expected(p, "`*` or `{`")
      }
      entries.push({ name: field, aliased: false, expr: { kind: "idiom", at, start: undefined, parts } })
    }
    if (!eatOp(p, ",") && !isOp(p, "}")) expected(p, "`,` or `}`")
  }
  return entries
}

const depthNumber = (p: Parser): number => {
  const t = p.token
  if (t.kind !== "value" || typeof t.value !== "number" || !Number.isInteger(t.value) || t.value < 0 || t.value > 256)
    return fail("expected a depth from 0 to 256", t.at)
  advance(p)
  return t.value
}

const recursion = (p: Parser, at: number): Part => {
  const min = p.token.kind === "value" ? depthNumber(p) : 1
  let max: number | undefined = min
  if (isOp(p, "*")) notYet("recursion with `*`", p.token.at)
  if (eatOp(p, "..")) max = p.token.kind === "value" ? depthNumber(p) : undefined
  let mode: "plain" | "path" | "collect" | "shortest" = "plain"
  let target: Expr | undefined
  let inclusive = false
  while (eatOp(p, "+")) {
    const word = name(p, "path, collect, shortest or inclusive").toLowerCase()
    if (word === "inclusive" && mode !== "plain") inclusive = true
    else if ((word === "path" || word === "collect" || word === "shortest") && mode === "plain") mode = word
    else fail("expected path, collect, shortest or inclusive", p.token.at)
    if (word === "shortest") {
      expectOp(p, "=")
      const goal = nested(p, () => primary(p))
      target =
        goal.kind === "param" || goal.kind === "record" || (goal.kind === "literal" && goal.value instanceof RecordId)
          ? goal
          : fail("expected a param or a record id", goal.at)
    }
  }
  expectOp(p, "}")
  const body: Array<Part> = []
  if (eatOp(p, "(")) {
    while (continues(p)) body.push(bounded(p, body))
    expectOp(p, ")")
  }
  return { kind: "recurse", at, min, max, mode, inclusive, target, body }
}

/** A graph step; the current token is the arrow. */
export const graphStep = (p: Parser): Part => {
  const arrow = advance(p)
  if (arrow.text === "<~")
    return fail("record references (`<~`) need a schema with REFERENCE fields, and there is none here", arrow.at)
  const direction = arrow.text === "->" ? "out" : arrow.text === "<-" ? "in" : "both"
  const base = {
    kind: "graph" as const,
    at: arrow.at,
    direction: direction as "out" | "in" | "both",
    where: undefined,
    limit: undefined,
    start: undefined,
    query: undefined,
    alias: undefined
  }
  if (eatOp(p, "?")) return { ...base, ...subjects([]) }
  if (!isOp(p, "(")) return { ...base, ...subjects([edgeTable(p)]) }
  advance(p)
  const fields: Array<string | undefined> = []
  if (isWord(p, "SELECT")) {
    const query: Select = selectTail(p, (inner) => {
      if (isWord(inner, "ONLY") && peek(inner).kind === "ident")
        fail("ONLY is not allowed in a graph step, which is a list: take its first with `[0]`", inner.token.at)
      return edgeTables(inner, fields)
    })
    return { ...base, ...subjects(query.from, fields), query, alias: closeLookup(p) }
  }
  const tables = edgeTables(p, fields)
  const where = whereClause(p)
  const { limit, start } = limitAndStart(p)
  return { ...base, ...subjects(tables, fields), where, limit, start, alias: closeLookup(p) }
}

/** `AS name`, which names the column, and the closing parenthesis. */
const closeLookup = (p: Parser): Idiom | undefined => {
  const alias = eatWord(p, "AS") ? plainIdiom(p) : undefined
  expectOp(p, ")")
  return alias
}

/** Tables of a step by name, with their id ranges and FIELDs. Empty for `?`. */
const subjects = (tables: ReadonlyArray<Expr>, fields: ReadonlyArray<string | undefined> = []) => {
  const named = tables.filter((t) => t.kind !== "table" || t.name !== "")
  return {
    tables: named.map((t) =>
      t.kind === "table"
        ? t.name
        : t.kind === "recordRange"
          ? t.table
          : t.kind === "literal" && t.value instanceof RecordRange
            ? t.value.table
            : ""
    ),
    ranges: named.map((t) => (t.kind === "table" ? undefined : t)),
    fields: named.map((_, i) => fields[i])
  }
}

const edgeTable = (p: Parser): Expr => {
  const { token } = p
  const table = name(p, "`?`, `(` or a table")
  return isOp(p, ":") && p.token.at === p.token.after
    ? edgeRange(p, token)
    : { kind: "table", at: token.at, name: table }
}

/** `?` (a table without a name) or the tables of a step; their FIELDs are added to `fields`. */
const edgeTables = (p: Parser, fields: Array<string | undefined>): Array<Expr> => {
  const at = p.token.at
  if (eatOp(p, "?")) return [{ kind: "table", at, name: "" }]
  const out: Array<Expr> = []
  do {
    out.push(edgeTable(p))
    fields.push(eatWord(p, "FIELD") ? name(p, "a field") : undefined)
  } while (eatOp(p, ","))
  return out
}

/** A path that starts with a name or a graph step: aliases, FETCH, OMIT. */
export const plainIdiom = (p: Parser): Idiom => {
  const at = p.token.at
  const first: Part =
    isOp(p, "->") || isOp(p, "<-") || isOp(p, "<->") ? graphStep(p) : { kind: "field", name: name(p, "a field") }
  const parts: Array<Part> = [first]
  while (continues(p)) parts.push(bounded(p, parts))
  return { kind: "idiom", at, start: undefined, parts }
}

/** A path of names, `*`, `[*]`, `[$]` and constant indexes: ORDER BY, SPLIT, GROUP BY. */
export const basicIdiom = (p: Parser): Idiom => {
  const at = p.token.at
  const parts: Array<Part> = [{ kind: "field", name: name(p, "a field") }]
  for (;;) {
    if (eatOp(p, ".")) parts.push(eatOp(p, "*") ? { kind: "all" } : { kind: "field", name: name(p, "a field name") })
    else if (eatOp(p, "[")) {
      if (eatOp(p, "*")) parts.push({ kind: "all" })
      else if (eatOp(p, "$")) parts.push({ kind: "last" })
      else {
        const t = p.token
        if (t.kind !== "value" || typeof t.value !== "number") expected(p, "`*`, `$` or a number")
        advance(p)
        parts.push({ kind: "index", index: { kind: "literal", at: t.at, value: t.value, text: t.text } })
      }
      expectOp(p, "]")
    } else return { kind: "idiom", at, start: undefined, parts }
  }
}
