/**
 * The public parser: query text to statements, or one error with its place.
 *
 * Why so: no caller needs to catch: the parser's private exception becomes a value here. The length of the text is
 * checked first.
 */
import { Either } from "effect"
import type { Select, Statement } from "./ast.ts"
import type { Inlining } from "./definitions.ts"
import { inherited } from "./parseExpression.ts"
import { returnStatement } from "./parsePrimary.ts"
import type { Parser } from "./parser.ts"
import {
  advance,
  catchingReturn,
  eatOp,
  eatWord,
  expected,
  expectWord,
  Fault,
  fail,
  isOp,
  isWord,
  name,
  notReserved,
  open
} from "./parser.ts"
import { select } from "./parseSelect.ts"

/** A fault and its place: `at` counts UTF-16 units from 0, `line` and `column` (code points) count from 1. */
export interface ParseError {
  readonly message: string
  readonly at: number
  readonly line: number
  readonly column: number
}

/** Longest query text, in UTF-16 units. */
const maxLength = 65536

/** Turns a place in the text into line and column, both from 1. */
export const lineAndColumn = (text: string, at: number): { readonly line: number; readonly column: number } => {
  const before = text.slice(0, at)
  const newline = before.lastIndexOf("\n")
  return { line: before.split("\n").length, column: Array.from(before.slice(newline + 1)).length + 1 }
}

const attempt = <A>(text: string, body: (p: Parser) => A, inlining?: Inlining): Either.Either<A, ParseError> => {
  try {
    if (text.length > maxLength) fail(`the query is longer than ${maxLength} characters`, 0)
    return Either.right(body(open(text, inlining)))
  } catch (error) {
    if (error instanceof Fault)
      return Either.left({ message: error.message, at: error.at, ...lineAndColumn(text, error.at) })
    throw error
  }
}

const atEnd = (p: Parser): boolean => p.token.kind === "end"

/** A RETURN inside ends the statement; where no statement can be ended it is refused. */
const statement = (p: Parser): Statement => {
  const { at } = p.token
  const out = isWord(p, "RETURN") ? returnStatement(p, () => catchingReturn(p, () => inherited(p))) : other(p)
  return p.returns ? fail("RETURN is not supported in this clause", at) : out
}

const other = (p: Parser): Statement => {
  if (isWord(p, "SELECT")) return select(p)
  if (isWord(p, "INFO")) return info(p)
  return expected(p, "SELECT, RETURN or INFO")
}

const info = (p: Parser): Statement => {
  const at = expectWord(p, "INFO").at
  expectWord(p, "FOR")
  if (eatWord(p, "TABLE") || eatWord(p, "TB")) {
    notReserved(p, "a table")
    return { kind: "infoTable", at, table: name(p, "a table") }
  }
  if (eatWord(p, "DB") || eatWord(p, "DATABASE")) return { kind: "infoDb", at }
  return expected(p, "DB or TABLE")
}

/** All statements of a text, separated by `;`. Error: {@link ParseError}. */
export const parseStatements = (text: string): Either.Either<ReadonlyArray<Statement>, ParseError> =>
  attempt(text, (p) => {
    const out: Array<Statement> = []
    while (!atEnd(p)) {
      if (eatOp(p, ";")) continue
      out.push(statement(p))
      if (!atEnd(p) && !isOp(p, ";")) expected(p, "the end of the statement")
    }
    if (out.length === 0) fail("expected a statement, found nothing", 0)
    return out
  })

/**
 * Exactly one SELECT, with or without a final `;`. `inlining`: the database-defined functions that it may call. Left:
 * {@link ParseError}.
 */
export const parseSelect = (text: string, inlining?: Inlining): Either.Either<Select, ParseError> =>
  attempt(
    text,
    (p) => {
      if (!isWord(p, "SELECT")) expected(p, "SELECT")
      const { at } = p.token
      const out = select(p)
      if (p.returns) fail("RETURN is not supported in this clause", at)
      while (isOp(p, ";")) advance(p)
      if (!atEnd(p)) expected(p, "the end of the query")
      return out
    },
    inlining
  )
