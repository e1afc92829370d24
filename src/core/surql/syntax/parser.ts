/**
 * The parser's state and small tools: the current token, expectations, and faults with their place.
 *
 * Why so: recursive descent over on-demand tokens is the simplest parser that can follow the language's context rules.
 * Inside it a fault is thrown as the private {@link Fault}; `parse.ts` catches it at the public boundary and makes it a
 * value.
 */

import type { Token } from "../values/lex.ts"
import * as Lex from "../values/lex.ts"
import type { Expr } from "./ast.ts"
import type { Inlining } from "./definitions.ts"

/** The state of a parser: its text, the current token and the rules in force. */
export interface Parser {
  readonly text: string
  /** The current token. */
  token: Token
  depth: number
  /** Whether a bare name means a field of the document or (in FROM) a table. */
  names: "field" | "table"
  /** A RETURN was parsed that no outer block catches yet. */
  returns: boolean
  /** Database-defined functions, if there are any. */
  inlining: Inlining | undefined
}

/** Thrown inside the parser only. */
export class Fault {
  constructor(
    readonly message: string,
    readonly at: number
  ) {}
}

const maxDepth = 64

/** A parser at the first token of the text. */
export const open = (text: string, inlining?: Inlining): Parser => ({
  text,
  token: Lex.next(text, 0),
  depth: 0,
  names: "field",
  returns: false,
  inlining
})

/** Throws a {@link Fault} at an offset. */
export const fail = (message: string, at: number): never => {
  throw new Fault(message, at)
}

export const notYet = (what: string, at: number): never => fail(`${what} is not supported yet`, at)

/** Moves to the next token; answers the current one. */
export const advance = (p: Parser): Token => {
  const t = p.token
  if (t.kind === "bad") fail(t.text, t.at)
  p.token = Lex.next(p.text, t.end)
  return t
}

/** Continues at `at` (after a piece with rules of its own). */
export const continueAt = (p: Parser, at: number): void => {
  p.token = Lex.next(p.text, at)
}

/** The token after the current one. */
export const peek = (p: Parser): Token => Lex.next(p.text, p.token.end)

export const isOp = (p: Parser, op: string): boolean => p.token.kind === "op" && p.token.text === op

/** Consumes the current token if it is this operator; answers whether it was. */
export const eatOp = (p: Parser, op: string): boolean => {
  if (!isOp(p, op)) return false
  advance(p)
  return true
}

/** True when the current token is this keyword (upper case), whatever letter case it is written in. */
export const isWord = (p: Parser, word: string): boolean =>
  p.token.kind === "ident" && p.token.text.length === word.length && p.token.text.toUpperCase() === word

/** Consumes the current token if it is this keyword; answers whether it was. */
export const eatWord = (p: Parser, word: string): boolean => {
  if (!isWord(p, word)) return false
  advance(p)
  return true
}

const shown = (t: Token): string =>
  t.kind === "end"
    ? "the end of the query"
    : t.kind === "string"
      ? "a string"
      : "`" + (t.kind === "param" ? "$" : "") + t.text + "`"

/** Refuses the current token. */
export const expected = (p: Parser, what: string): never =>
  fail(p.token.kind === "bad" ? p.token.text : `expected ${what}, found ${shown(p.token)}`, p.token.at)

/** Consumes this operator; refuses any other token. */
export const expectOp = (p: Parser, op: string): Token => (isOp(p, op) ? advance(p) : expected(p, "`" + op + "`"))

/** Consumes this keyword; refuses any other token. */
export const expectWord = (p: Parser, word: string): Token => (isWord(p, word) ? advance(p) : expected(p, word))

/** Words that are always numbers. */
const numbers: ReadonlySet<string> = new Set(["NaN", "Infinity"])

/** True for a bare word that can be a name. */
export const isName = (t: Token): boolean => t.kind === "ident" && !numbers.has(t.text)

/** A name: bare or quoted. */
export const name = (p: Parser, what = "a name"): string =>
  isName(p.token) || p.token.kind === "quoted" ? advance(p).text : expected(p, what)

/** Words that begin a statement wherever an expression may begin: a field or table of that name must be quoted. */
const reserved: ReadonlySet<string> = new Set([
  "ALTER",
  "BREAK",
  "CONTINUE",
  "CREATE",
  "DEFINE",
  "DELETE",
  "EXPLAIN",
  "FOR",
  "FUNCTION",
  "IF",
  "INFO",
  "INSERT",
  "LET",
  "REBUILD",
  "RELATE",
  "REMOVE",
  "RETURN",
  "SELECT",
  "SLEEP",
  "THROW",
  "UPDATE",
  "UPSERT"
])

/** Refuses the current token if it is a reserved word. */
export const notReserved = (p: Parser, what: string): void => {
  const t = p.token
  if (t.kind === "ident" && reserved.has(t.text.toUpperCase()))
    fail(`\`${t.text}\` begins a statement; ${what} of that name is written in back-ticks`, t.at)
}

/** Runs `body` one level deeper; refuses nesting that is too deep to evaluate safely. */
export const nested = <A>(p: Parser, body: () => A): A => {
  if (++p.depth > maxDepth) fail(`the query nests deeper than ${maxDepth} levels`, p.token.at)
  const out = body()
  p.depth--
  return out
}

/** Parses an expression that catches its own RETURN. */
export const catchingReturn = (p: Parser, body: () => Expr): Expr => {
  const before = p.returns
  p.returns = false
  const value = body()
  const found = p.returns
  p.returns = before
  return found
    ? { kind: "block", at: value.at, steps: [{ name: undefined, type: undefined, value }], catches: true }
    : value
}

/** Runs `body` with bare names read as fields or tables. */
export const withNames = <A>(p: Parser, names: "field" | "table", body: () => A): A => {
  const before = p.names
  p.names = names
  const out = body()
  p.names = before
  return out
}
