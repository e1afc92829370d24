/**
 * The beginnings of expressions: literals, params, names, calls, record ids, brackets, subqueries, closures, IF.
 *
 * Why so: constant composites (`[1, 2]`, `person:['a', 1]`) become one literal here, so that they are not evaluated
 * again.
 */

import * as Regexes from "../regex/regex.ts"
import * as Lex from "../values/lex.ts"
import { geometryOf, makeObject } from "../values/makeObject.ts"
import { isNumber } from "../values/number.ts"
import * as RecordIds from "../values/recordId.ts"
import type { Bound, RecordKey, Value } from "../values/value.ts"
import { Float, float, Geometry, Range, RecordRange, Regex, Special, Uuid } from "../values/value.ts"
import type { Expr, Idiom, Return } from "./ast.ts"
import { closest, isConstantName, isFunctionName, refusalOf } from "./functionNames.ts"
import { block, blockOf } from "./parseBlock.ts"
import { expression, expressionList, inherited } from "./parseExpression.ts"
import { inlinedCall } from "./parseFunction.ts"
import { graphStep, idiomRest, plainIdiom } from "./parseIdiom.ts"
import type { Parser } from "./parser.ts"
import {
  advance,
  catchingReturn,
  continueAt,
  eatOp,
  eatWord,
  expected,
  expectOp,
  expectWord,
  fail,
  isName,
  isOp,
  isWord,
  name,
  nested,
  notReserved,
  peek,
  withNames
} from "./parser.ts"
import { select } from "./parseSelect.ts"
import { castType, singleType, unionType } from "./parseType.ts"

const starters: ReadonlySet<string> = new Set([
  "(",
  "[",
  "{",
  "|",
  "||",
  "/",
  "->",
  "<-",
  "<->",
  "-",
  "+",
  "!",
  "<",
  "$",
  "@"
])

/** Whether the current token can start an expression (used after `..`). */
export const startsPrimary = (p: Parser): boolean => {
  const t = p.token
  return t.kind === "op" ? starters.has(t.text) : t.kind !== "end" && t.kind !== "bad"
}

const literal = (at: number, value: Value, text: string): Expr => ({ kind: "literal", at, value, text })

/** A value with its path: `a.b[0]`, `fn(x).y`, `person:1->likes`. */
export const primary = (p: Parser): Expr => idiomRest(p, start(p))

const start = (p: Parser): Expr => {
  const t = p.token
  switch (t.kind) {
    case "value":
      advance(p)
      return literal(t.at, t.value, t.text)
    case "string":
      advance(p)
      return literal(t.at, t.text, p.text.slice(t.at, t.end))
    case "record":
      advance(p)
      return recordString(t)
    case "param":
      advance(p)
      return invoked(p, { kind: "param", at: t.at, name: t.text })
    case "ident":
      return word(p)
    case "quoted":
      return startingWithName(p)
    case "op":
      return symbol(p)
    default:
      return expected(p, "an expression")
  }
}

/** `$f(1)`: a call, if parentheses follow directly. A path cannot follow it. */
const invoked = (p: Parser, fn: Expr): Expr => {
  if (!isOp(p, "(") || p.token.at !== p.token.after) return fn
  advance(p)
  const call: Expr = { kind: "invoke", at: fn.at, fn, args: withNames(p, "field", () => expressionList(p, ")")) }
  return isOp(p, ".") || isOp(p, "[") || isOp(p, "...") ? expected(p, "no path behind a call of a closure") : call
}

const recordString = (t: Lex.Token): Expr => {
  const id = RecordIds.parseWritten(t.text)
  return id === undefined ? fail("this is not a record id", t.at) : literal(t.at, id, id.text)
}

const symbol = (p: Parser): Expr => {
  const t = p.token
  switch (t.text) {
    case "[":
      return array(p)
    case "{":
      return braces(p)
    case "(":
      return parenthesis(p)
    case "|":
    case "||":
      return closure(p)
    case "/": {
      const regex = Lex.regex(p.text, t.at)
      if (regex.kind === "bad") return fail(regex.text, regex.at)
      const fault = Regexes.faultOf(regex.text)
      if (fault !== undefined) fail(`this is not a valid regular expression: ${fault}`, regex.at)
      continueAt(p, regex.end)
      return literal(t.at, new Regex(regex.text), p.text.slice(t.at, regex.end))
    }
    case "->":
    case "<-":
    case "<->":
    case "<~":
      return { kind: "idiom", at: t.at, start: undefined, parts: [graphStep(p)] }
    case "@":
      advance(p)
      if (p.token.kind !== "op" || !/^(\.|\.\.\.|\[|->|<-|<->)$/.test(p.token.text)) expected(p, "a path behind `@`")
      return { kind: "param", at: t.at, name: "@" }
    default:
      return expected(p, "an expression")
  }
}

const constants: { readonly [word: string]: Value } = { NONE: undefined, NULL: null, TRUE: true, FALSE: false }

/** Words that begin a statement if another word follows. */
const statements: ReadonlySet<string> = new Set([
  "ALTER",
  "CREATE",
  "DEFINE",
  "DELETE",
  "EXPLAIN",
  "FOR",
  "INSERT",
  "KILL",
  "LET",
  "LIVE",
  "REBUILD",
  "RELATE",
  "REMOVE",
  "SLEEP",
  "THROW",
  "UPDATE",
  "UPSERT"
])

const word = (p: Parser): Expr => {
  const t = p.token
  const upper = t.text.toUpperCase()
  const after = peek(p)
  const calls = after.kind === "op" && (after.text === "(" || after.text === "::" || after.text === ":")
  if (Object.hasOwn(constants, upper) && !(after.kind === "op" && (after.text === "::" || after.text === ":"))) {
    advance(p)
    return literal(t.at, constants[upper], t.text)
  }
  if ((t.text === "NaN" || t.text === "Infinity") && !calls) {
    advance(p)
    return literal(t.at, t.text === "NaN" ? NaN : Infinity, t.text)
  }
  if (upper === "IF") return branch(p)
  if (upper === "SELECT" && !calls) return { kind: "subquery", at: t.at, query: select(p) }
  if (upper === "SELECT" && after.text === "(") return { kind: "subquery", at: t.at, query: select(p) }
  if (upper === "RETURN" && !calls) {
    const query = returnStatement(p, () => inherited(p))
    p.returns = true
    return { kind: "subquery", at: t.at, query }
  }
  if (
    statements.has(upper) &&
    (after.kind === "ident" || after.kind === "param" || after.kind === "quoted") &&
    !isClause(after.text)
  )
    return fail(`${upper} is not allowed here; only SELECT and RETURN are`, t.at)
  if (after.text !== "(" || refusalOf(t.text.toLowerCase()) === undefined) notReserved(p, "a field or table")
  return startingWithName(p)
}

/** Words that can follow a field whose name is a statement's word. */
const isClause = (text: string): boolean =>
  /^(from|as|and|or|is|in|not|where|order|limit|start|group|split|fetch|asc|desc|contains\w*|inside|collate|numeric|then|else|end|omit|timeout|version)$/i.test(
    text
  )

/** `RETURN e FETCH a, b`. */
export const returnStatement = (p: Parser, read: () => Expr): Return => {
  const at = expectWord(p, "RETURN").at
  const value = read()
  const fetch: Array<Idiom> = []
  if (eatWord(p, "FETCH"))
    do fetch.push(plainIdiom(p))
    while (eatOp(p, ","))
  return { kind: "return", at, value, fetch }
}

/** An expression that starts with a name: a call, a constant of a module, a record id, a field or a table. */
const startingWithName = (p: Parser): Expr => {
  const t = advance(p)
  if (isOp(p, "::") || (isOp(p, "(") && t.kind === "ident" && p.token.at === t.end)) return call(p, t)
  if (isOp(p, ":") && p.token.at === t.end) {
    if (t.kind === "ident" && (Object.hasOwn(constants, t.text.toUpperCase()) || !isName(t)))
      fail(`\`${t.text}\` is a value; a table of that name is written in back-ticks`, t.at)
    return recordId(p, t)
  }
  if (isOp(p, "(") && t.kind === "ident") return call(p, t)
  return p.names === "table"
    ? { kind: "table", at: t.at, name: t.text }
    : { kind: "idiom", at: t.at, start: undefined, parts: [{ kind: "field", name: t.text }] }
}

const call = (p: Parser, first: Lex.Token): Expr => {
  let path = first.text.toLowerCase(),
    written = ""
  while (eatOp(p, "::")) {
    const part = name(p, "a function name")
    path += "::" + part.toLowerCase()
    written += (written === "" ? "" : "::") + part
  }
  const end = p.token.after
  if (!isOp(p, "(")) {
    if (isConstantName(path)) return { kind: "call", at: first.at, name: path, args: [] }
    return fail(
      isFunctionName(path) ? `expected \`(\` after the function \`${path}\`` : unknown("constant", path),
      first.at
    )
  }
  if (path.startsWith("fn::")) {
    advance(p)
    return inlinedCall(
      p,
      written,
      withNames(p, "field", () => expressionList(p, ")")),
      first.at
    )
  }
  if (first.text === "fn" || path.startsWith("ml::") || path.startsWith("mod::"))
    fail("functions defined in a database are not supported", first.at)
  const refusal = refusalOf(path)
  if (refusal !== undefined) fail(`the function \`${path}\` is not supported: ${refusal}`, first.at)
  if (!isFunctionName(path)) fail(unknown("function", path), first.at)
  if (end === first.at) expected(p, "`(`")
  advance(p)
  return { kind: "call", at: first.at, name: path, args: withNames(p, "field", () => expressionList(p, ")")) }
}

const unknown = (what: string, path: string): string => {
  const near = closest(path)
  return (
    `unknown ${what} \`${path}\`` +
    (near.length === 0 ? "" : `; did you mean ${near.map((n) => "`" + n + "`").join(" or ")}?`)
  )
}

/** A record id or record range; the table is consumed, the current token is the colon. */
const recordId = (p: Parser, table: Lex.Token): Expr => {
  const begin = p.token.end
  if (p.text.startsWith("..", begin)) return recordRange(p, table, undefined, begin)
  const key = recordKey(p, table)
  const after = p.token
  if (
    after.kind === "op" &&
    after.at === after.after &&
    (after.text === ".." || after.text === "..=" || (after.text === ">" && p.text.startsWith("..", after.end)))
  )
    return recordRange(p, table, key, after.at)
  if (after.kind === "op" && after.at === after.after && after.text === ">")
    expected(p, "`..` behind `>` directly behind a record id")
  if (key.kind !== "literal") return { kind: "record", at: table.at, table: table.text, key }
  const id = RecordIds.make(table.text, key.value as RecordKey)
  return literal(table.at, id, id.text)
}

/** The ids of an edge table after its name (`likes:1..9`): always a range; the current token is the colon. */
export const edgeRange = (p: Parser, table: Lex.Token): Expr => {
  const begin = p.token.end
  if (p.text.startsWith("..", begin)) return recordRange(p, table, undefined, begin)
  const key = recordKey(p, table)
  const after = p.token
  const adjacent = after.kind === "op" && after.at === after.after
  return adjacent &&
    (after.text.startsWith("..") || (after.text === ">" && p.text.startsWith("..", after.end))) &&
    after.text !== "..."
    ? recordRange(p, table, key, after.at)
    : expected(p, "`..` directly behind the key")
}

const recordRange = (p: Parser, table: Lex.Token, from: Expr | undefined, at: number): Expr => {
  const exclusive = p.text[at] === ">"
  const dots = exclusive ? at + 1 : at
  const inclusive = p.text[dots + 2] === "="
  const end = dots + (inclusive ? 3 : 2)
  const next = Lex.next(p.text, end)
  const bare = Lex.bareKey(p.text, end)
  const hasEnd =
    next.at === end &&
    (bare.text !== "" ||
      next.kind === "quoted" ||
      next.kind === "param" ||
      (next.kind === "op" && (next.text === "[" || next.text === "{")))
  if (!hasEnd) continueAt(p, end)
  if (!hasEnd && inclusive) expected(p, "a record key directly behind `..=`")
  if (!hasEnd && (isOp(p, "-") || isOp(p, "+")) && p.token.at === end)
    expected(p, "a record key or a space behind `..`")
  const to = hasEnd ? keyAt(p, end) : undefined
  if ((from !== undefined && from.kind !== "literal") || (to !== undefined && to.kind !== "literal")) {
    return {
      kind: "recordRange",
      at: table.at,
      table: table.text,
      from,
      fromInclusive: !exclusive,
      to,
      toInclusive: inclusive
    }
  }
  const bound = (e: { readonly value: Value } | undefined, included: boolean): Bound | undefined =>
    e && { value: e.value, inclusive: included }
  const range = new RecordRange(table.text, new Range(bound(from, !exclusive), bound(to, inclusive)))
  return literal(table.at, range, p.text.slice(table.at, p.token.after))
}

const recordKey = (p: Parser, table: Lex.Token): Expr => {
  const word = /^(rand|ulid|uuid)\(\)/.exec(p.text.slice(p.token.end, p.token.end + 6))
  if (word !== null) fail(`\`${table.text}:${word[0]}\` is not deterministic`, table.at)
  return keyAt(p, p.token.end)
}

/** The key that starts exactly at `at`. */
const keyAt = (p: Parser, at: number): Expr => {
  const bare = Lex.bareKey(p.text, at)
  const quote = p.text[bare.end]
  if (bare.text === "u" && (quote === "'" || quote === '"')) {
    continueAt(p, at)
    const uuid = advance(p)
    return uuid.value instanceof Uuid ? literal(at, uuid.value, uuid.text) : fail("this is not a uuid", at)
  }
  if (bare.text !== "") {
    if (bare.text === "NaN" || bare.text === "Infinity")
      fail(`\`${bare.text}\` is a number; a key of that name is written in back-ticks`, at)
    continueAt(p, bare.end)
    return literal(at, /^[+-]?\d+$/.test(bare.text) ? RecordIds.intKey(bare.text) : bare.text, bare.text)
  }
  continueAt(p, at)
  const t = p.token
  if (t.at !== at) return expected(p, "a record key directly behind the colon")
  if (t.kind === "quoted") {
    advance(p)
    return literal(at, t.text, t.text)
  }
  if (t.kind === "op" && t.text === "[") return array(p)
  if (t.kind === "op" && t.text === "{") return withNames(p, "field", () => object(p))
  return expected(p, "a record key")
}

const array = (p: Parser): Expr => {
  const at = expectOp(p, "[").at
  const items = nested(p, () => expressionList(p, "]"))
  if (!items.every(isLiteral)) return { kind: "array", at, items }
  return literal(
    at,
    items.map((i) => (i.kind === "literal" ? i.value : undefined)),
    p.text.slice(at, p.token.after)
  )
}

const isLiteral = (e: Expr): boolean => e.kind === "literal" && !(e.value instanceof RecordRange)

const startsLet = (first: Lex.Token, second: Lex.Token): boolean =>
  first.kind === "ident" && first.text.toUpperCase() === "LET" && second.kind === "param"

/** A key of an object other than a name: quoted, or a number as written. */
const isKey = (t: Lex.Token): boolean =>
  t.kind === "string" || t.kind === "quoted" || (t.kind === "value" && isNumber(t.value))

/** `{ a: 1 }`, `{,}`, `{ 1, 2 }`, `{ expression }` or a block of several steps. */
const braces = (p: Parser): Expr => {
  const first = peek(p)
  if (first.kind === "op" && first.text === "}") return object(p)
  const second = Lex.next(p.text, first.end)
  const keyed = second.kind === "op" && second.text === ":" && (first.kind === "ident" || isKey(first))
  if (keyed) return object(p)
  const at = p.token.at
  if ((first.kind === "op" && first.text === ";") || startsLet(first, second)) return block(p)
  advance(p)
  if (eatOp(p, ",")) {
    expectOp(p, "}")
    return { kind: "set", at, items: [] }
  }
  const head = nested(p, () => inherited(p))
  if (eatOp(p, ",")) return { kind: "set", at, items: [head, ...nested(p, () => expressionList(p, "}"))] }
  // `{ $a = 1 }` was once a LET: the database refuses it, and parses `{ $a = 1, 2 }` as a set.
  if (first.kind === "param" && second.kind === "op" && second.text === "=")
    fail("a parameter is set with LET", first.at)
  return blockOf(p, at, [{ name: undefined, type: undefined, value: head }])
}

const object = (p: Parser): Expr =>
  nested(p, () => {
    const at = expectOp(p, "{").at
    const entries: Array<readonly [string, Expr]> = []
    while (!eatOp(p, "}")) {
      const t = p.token
      if (!isName(t) && !isKey(t)) expected(p, "a key or `}`")
      advance(p)
      expectOp(p, ":")
      entries.push([t.text, inherited(p)])
      if (!eatOp(p, ",") && !isOp(p, "}")) expected(p, "`,` or `}`")
    }
    if (!entries.every(([, e]) => isLiteral(e))) return { kind: "object", at, entries }
    const made = makeObject(entries.map(([key, e]) => [key, e.kind === "literal" ? e.value : undefined]))
    const value = entries.length === 2 && !hasPoints(entries) ? (geometryOf(made) ?? made) : made
    return value instanceof Special || entries.length > 0
      ? literal(at, value, p.text.slice(at, p.token.after))
      : literal(at, value, "{  }")
  })

const point = /^\(\s*[+-]?[\d_]+(\.[\d_]+)?([eE][+-]?\d+)?f?\s*,/
const points = new RegExp(point.source.slice(1))

/** Whether some geometry of a collection is written as `(1, 2)`: then the collection is an ordinary object. */
const hasPoints = (entries: ReadonlyArray<readonly [string, Expr]>): boolean =>
  entries.some(([key, e]) => key === "geometries" && e.kind === "literal" && points.test(e.text))

const parenthesis = (p: Parser): Expr => {
  const at = p.token.at
  if (point.test(p.text.slice(at, at + 80))) return coordinate(p)
  advance(p)
  const inner = nested(p, () => inherited(p))
  expectOp(p, ")")
  // A path after parentheses is a new one: `(a.b).c` differs from `a.b.c` if arrays are mapped.
  if (
    inner.kind === "idiom" &&
    (isOp(p, ".") || isOp(p, "[") || isOp(p, "...") || isOp(p, "->") || isOp(p, "<-") || isOp(p, "<->"))
  )
    return { kind: "idiom", at, start: inner, parts: [] }
  if (inner.kind === "closure") return invoked(p, inner)
  return inner.kind === "binary" || inner.kind === "range" || inner.kind === "unary" || inner.kind === "cast"
    ? { ...inner }
    : inner
}

const coordinate = (p: Parser): Expr => {
  const at = advance(p).at
  const x = inherited(p)
  expectOp(p, ",")
  const y = inherited(p)
  expectOp(p, ")")
  const numbers = [x, y].map((e) =>
    e.kind === "literal" && (typeof e.value === "number" || typeof e.value === "bigint")
      ? float(e.text.startsWith("-") ? -Math.abs(Number(e.value)) : Number(e.value))
      : e.kind === "literal" && e.value instanceof Float
        ? e.value
        : undefined
  )
  if (numbers.includes(undefined)) return fail("expected two numbers", at)
  return literal(at, new Geometry({ type: "Point", coordinates: numbers }), p.text.slice(at, p.token.after))
}

const closure = (p: Parser): Expr => {
  const at = p.token.at
  const params: Array<string> = [],
    types: Array<string | undefined> = []
  if (!eatOp(p, "||")) {
    expectOp(p, "|")
    while (!eatOp(p, "|")) {
      const t = p.token
      if (t.kind !== "param") expected(p, "a parameter such as `$value`, or `|`")
      advance(p)
      params.push(t.text)
      types.push(!eatOp(p, ":") ? undefined : (castType(p) ?? singleType(p)))
      if (!eatOp(p, ",") && !isOp(p, "|")) expected(p, "`,` or `|`")
    }
  }
  const result = eatOp(p, "->") ? unionType(p) : undefined
  const body = catchingReturn(p, () => (result === undefined ? expression(p) : withNames(p, "field", () => block(p))))
  return { kind: "closure", at, params, types, result, body }
}

/** `IF c { a } ELSE IF d { b } ELSE { c }` or `IF c THEN a ELSE b END`. */
const branch = (p: Parser): Expr =>
  nested(p, () => {
    const at = advance(p).at
    const branches: Array<readonly [Expr, Expr]> = []
    let condition = inherited(p)
    const worded = isWord(p, "THEN")
    const body = (): Expr => {
      if (worded) return inherited(p)
      if (!isOp(p, "{")) expected(p, "`{` or THEN")
      return block(p)
    }
    for (;;) {
      if (worded) expectWord(p, "THEN")
      branches.push([condition, body()])
      const otherwise = eatWord(p, "ELSE")
      if (otherwise && eatWord(p, "IF")) {
        condition = inherited(p)
        continue
      }
      const last = otherwise ? body() : undefined
      if (worded) expectWord(p, "END")
      return { kind: "if", at, branches, otherwise: last, ...(worded ? { worded: true as const } : {}) }
    }
  })
