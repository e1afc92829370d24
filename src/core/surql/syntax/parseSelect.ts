/**
 * SELECT and its clauses, in the order the database takes them.
 *
 * Why so: an unknown clause is refused at its place and never skipped, because a view that ignores part of its query
 * shows wrong data without a sign.
 */
import type { Expr, Field, Idiom, OrderTerm, Select } from "./ast.ts"
import { nameOf } from "./names.ts"
import { expression, inherited } from "./parseExpression.ts"
import { basicIdiom, plainIdiom } from "./parseIdiom.ts"
import type { Parser } from "./parser.ts"
import {
  advance,
  catchingReturn,
  eatOp,
  eatWord,
  expectWord,
  fail,
  isWord,
  nested,
  notReserved,
  open,
  peek,
  withNames
} from "./parser.ts"
import { print } from "./print.ts"

/** A whole SELECT; the current token is the word. */
export const select = (p: Parser): Select => selectTail(p, sources)

/** SELECT with its own parser of the sources after FROM (graph steps take edge tables only). */
export const selectTail = (p: Parser, readSources: (p: Parser) => Array<Expr>): Select =>
  nested(p, () =>
    withNames(p, "field", () => {
      const at = expectWord(p, "SELECT").at
      const value = eatWord(p, "VALUE")
      const list = value ? [single(p, basicIdiom)] : fields(p)
      const omit = eatWord(p, "OMIT") ? omitted(p) : []
      expectWord(p, "FROM")
      const only = readSources === sources && eatWord(p, "ONLY")
      const from = readSources(p)
      if (eatWord(p, "WITH")) indexHint(p)
      const where = whereClause(p)
      const split = eatWord(p, "SPLIT") ? (eatWord(p, "ON"), idioms(p, basicIdiom)) : []
      requireSelected(list, split, "SPLIT")
      if (split.length > 0 && isWord(p, "GROUP")) fail("SPLIT and GROUP cannot be used together", p.token.at)
      const group = groups(p)
      if (group !== undefined) requireSelected(list, group, "GROUP BY")
      const order = orders(p)
      requireSelected(
        list,
        order.map((o) => o.idiom),
        "ORDER BY"
      )
      const { limit, start } = limitAndStart(p)
      const fetch = eatWord(p, "FETCH") ? idioms(p, plainIdiom) : []
      trailing(p)
      return {
        kind: "select",
        at,
        value,
        fields: list,
        omit,
        only,
        from,
        where,
        split,
        group,
        order,
        limit,
        start,
        fetch
      }
    })
  )

const fields = (p: Parser): Array<Field> => {
  const out: Array<Field> = []
  do {
    const at = p.token.at
    if (eatOp(p, "*")) out.push({ kind: "all", at })
    else out.push(single(p))
  } while (eatOp(p, ","))
  return out
}

const single = (p: Parser, alias: (p: Parser) => Idiom = plainIdiom): Field => {
  const at = p.token.at
  const expr = catchingReturn(p, () => expression(p))
  return { kind: "expr", at, expr, alias: eatWord(p, "AS") ? alias(p) : undefined }
}

const idioms = (p: Parser, read: (p: Parser) => Idiom): Array<Idiom> => {
  const out: Array<Idiom> = []
  do out.push(read(p))
  while (eatOp(p, ","))
  return out
}

/** The path that a text contains. */
const pathOf = (text: unknown, at: number): Idiom => {
  const inner = open(typeof text === "string" ? text : fail("behind OMIT a function names its fields as text", at))
  const idiom = plainIdiom(inner)
  return inner.token.kind === "end" ? idiom : fail(`\`${inner.text}\` is no field`, at)
}

const constantOf = (e: Expr | undefined): unknown =>
  e?.kind === "array" ? e.items.map(constantOf) : e?.kind === "literal" ? e.value : undefined

/** `type::field('a')` and `type::fields(['a', 'b.c'])` after OMIT. */
const namedFields = (p: Parser): ReadonlyArray<Idiom> => {
  const call = expression(p)
  if (call.kind === "call" && call.args.length === 1) {
    const named = constantOf(call.args[0])
    if (call.name === "type::field") return [pathOf(named, call.at)]
    if (call.name === "type::fields" && Array.isArray(named)) return named.map((text) => pathOf(text, call.at))
  }
  return fail("behind OMIT stand fields, `type::field` and `type::fields`", call.at)
}

const omitted = (p: Parser): Array<Idiom> => {
  const out: Array<Idiom> = []
  do {
    const after = peek(p)
    if (isWord(p, "TYPE") && after.kind === "op" && after.text === "::") out.push(...namedFields(p))
    else {
      notReserved(p, "a field")
      out.push(plainIdiom(p))
    }
  } while (eatOp(p, ","))
  return out
}

const sources = (p: Parser): Array<Expr> => {
  const out: Array<Expr> = []
  do out.push(withNames(p, "table", () => inherited(p)))
  while (eatOp(p, ","))
  return out
}

const indexHint = (p: Parser): void => {
  if (eatWord(p, "NOINDEX") || eatWord(p, "NO")) {
    eatWord(p, "INDEX")
    return
  }
  expectWord(p, "INDEX")
  do basicIdiom(p)
  while (eatOp(p, ","))
}

/** WHERE, if it comes next. */
export const whereClause = (p: Parser): Expr | undefined =>
  eatWord(p, "WHERE") ? catchingReturn(p, () => expression(p)) : undefined

const groups = (p: Parser): Array<Idiom> | undefined => {
  if (!eatWord(p, "GROUP")) return undefined
  if (eatWord(p, "ALL")) return []
  eatWord(p, "BY")
  return idioms(p, basicIdiom)
}

/** Most terms of ORDER BY: two rows may be compared by all of them. */
const maxTerms = 100

const orders = (p: Parser): Array<OrderTerm> => {
  if (!eatWord(p, "ORDER")) return []
  eatWord(p, "BY")
  if (isWord(p, "RAND")) fail("ORDER BY rand() is not deterministic and not supported", p.token.at)
  const out: Array<OrderTerm> = []
  do {
    const idiom = basicIdiom(p)
    const collate = eatWord(p, "COLLATE")
    const numeric = eatWord(p, "NUMERIC")
    const descending = eatWord(p, "DESC") || eatWord(p, "DESCENDING")
    if (!descending && !eatWord(p, "ASC")) eatWord(p, "ASCENDING")
    if (out.length >= maxTerms) fail(`more than ${maxTerms} terms in ORDER BY`, idiom.at)
    out.push({ idiom, descending, collate, numeric })
  } while (eatOp(p, ","))
  return out
}

/** LIMIT and START, in either order. */
export const limitAndStart = (p: Parser): { readonly limit: Expr | undefined; readonly start: Expr | undefined } => {
  let limit: Expr | undefined, start: Expr | undefined
  for (let i = 0; i < 2; i++) {
    if (limit === undefined && eatWord(p, "LIMIT")) {
      eatWord(p, "BY")
      limit = expression(p)
    } else if (start === undefined && eatWord(p, "START")) {
      eatWord(p, "AT")
      start = expression(p)
    }
  }
  return { limit, start }
}

/** Consumes clauses without effect here; refuses those that would have one. */
const trailing = (p: Parser): void => {
  if (isWord(p, "VERSION")) fail("VERSION is not supported: only the current data is kept", p.token.at)
  if (eatWord(p, "TIMEOUT")) expression(p)
  eatWord(p, "TEMPFILES")
  if (isWord(p, "EXPLAIN")) fail("EXPLAIN is not supported", p.token.at)
  if (isWord(p, "PARALLEL")) {
    advance(p)
    fail("PARALLEL does not exist any more", p.token.at)
  }
}

/** Expressions to sort, split or group by must be selected, by alias or with the same text. */
const requireSelected = (list: ReadonlyArray<Field>, idioms: ReadonlyArray<Idiom>, clause: string): void => {
  if (idioms.length === 0 || list.some((f) => f.kind === "all")) return
  const known = new Set<string>()
  for (const f of list) {
    if (f.kind === "all") continue
    if (f.alias !== undefined) known.add(print(f.alias))
    known.add(print(f.expr))
    if (f.expr.kind !== "idiom") known.add(print(nameOf(f.expr)))
  }
  for (const idiom of idioms)
    if (!known.has(print(idiom)))
      fail(`\`${print(idiom)}\` in ${clause} is not selected: select it, or name an expression so`, idiom.at)
}
