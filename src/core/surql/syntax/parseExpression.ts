/**
 * Expressions: operators by binding power.
 *
 * Why so: the table below is the database's own precedence: OR < AND < equality < relation < sum < product < power <
 * `??` < prefix and cast < range < call and path. All associate left; comparisons do not chain and are refused when
 * they do.
 */

import * as Lex from "../values/lex.ts"
import type { BinaryOp, Expr } from "./ast.ts"
import { idiomRest } from "./parseIdiom.ts"
import { primary, startsPrimary } from "./parsePrimary.ts"
import type { Parser } from "./parser.ts"
import { advance, eatOp, expected, expectWord, fail, isOp, isWord, nested, notYet, peek, withNames } from "./parser.ts"
import { castType } from "./parseType.ts"

const power = {
  base: 0,
  or: 1,
  and: 2,
  equality: 3,
  relation: 4,
  sum: 5,
  product: 6,
  power: 7,
  nullish: 8,
  prefix: 9,
  range: 10
}

type Infix = readonly [op: BinaryOp, power: number]

const symbols: { readonly [symbol: string]: Infix } = {
  "||": ["OR", power.or],
  "&&": ["AND", power.and],
  "=": ["=", power.equality],
  "==": ["=", power.equality],
  "!=": ["!=", power.equality],
  "*=": ["*=", power.equality],
  "?=": ["?=", power.equality],
  "<": ["<", power.relation],
  "<=": ["<=", power.relation],
  ">": [">", power.relation],
  ">=": [">=", power.relation],
  "∋": ["CONTAINS", power.relation],
  "∌": ["CONTAINSNOT", power.relation],
  "∈": ["IN", power.relation],
  "∉": ["NOT IN", power.relation],
  "⊇": ["CONTAINSALL", power.relation],
  "⊃": ["CONTAINSANY", power.relation],
  "⊅": ["CONTAINSNONE", power.relation],
  "⊆": ["ALLINSIDE", power.relation],
  "⊂": ["ANYINSIDE", power.relation],
  "⊄": ["NONEINSIDE", power.relation],
  "+": ["+", power.sum],
  "-": ["-", power.sum],
  "*": ["*", power.product],
  "×": ["*", power.product],
  "/": ["/", power.product],
  "÷": ["/", power.product],
  "%": ["%", power.product],
  "**": ["**", power.power],
  "??": ["??", power.nullish],
  "?:": ["?:", power.nullish]
}

const words: { readonly [word: string]: Infix } = {
  OR: ["OR", power.or],
  AND: ["AND", power.and],
  IS: ["=", power.equality],
  IN: ["IN", power.relation],
  INSIDE: ["IN", power.relation],
  NOT: ["NOT IN", power.relation],
  NOTINSIDE: ["NOT IN", power.relation],
  CONTAINS: ["CONTAINS", power.relation],
  CONTAINSNOT: ["CONTAINSNOT", power.relation],
  CONTAINSALL: ["CONTAINSALL", power.relation],
  CONTAINSANY: ["CONTAINSANY", power.relation],
  CONTAINSNONE: ["CONTAINSNONE", power.relation],
  ALLINSIDE: ["ALLINSIDE", power.relation],
  ANYINSIDE: ["ANYINSIDE", power.relation],
  NONEINSIDE: ["NONEINSIDE", power.relation],
  OUTSIDE: ["OUTSIDE", power.relation],
  INTERSECTS: ["INTERSECTS", power.relation]
}

/** An expression in which bare names are fields of the document. */
export const expression = (p: Parser): Expr => withNames(p, "field", () => inherited(p))

/** An expression in which bare names mean the same as in the outer one. */
export const inherited = (p: Parser): Expr => nested(p, () => climb(p, power.base))

/** Most operators in a row on one level: their tree is as deep as the row is long. */
const maxChain = 1000

const infix = (p: Parser): Infix | undefined => {
  const t = p.token
  if (t.kind === "op") {
    if (t.text === "@" || t.text === "<|") notYet("full-text and vector search", t.at)
    return Object.hasOwn(symbols, t.text) ? symbols[t.text] : undefined
  }
  if (t.kind !== "ident") return undefined
  const word = t.text.toUpperCase()
  return Object.hasOwn(words, word) ? words[word] : undefined
}

/** `..`, `..=`, `>..` or `>..=` directly after the left end: its length, and which ends are included. */
const rangeOp = (
  p: Parser
): { readonly end: number; readonly fromInclusive: boolean; readonly toInclusive: boolean } | undefined => {
  const t = p.token
  if (t.kind !== "op") return undefined
  if (t.text === ".." || t.text === "..=") return { end: t.end, fromInclusive: true, toInclusive: t.text === "..=" }
  if (t.text !== ">" || !p.text.startsWith("..", t.end)) return undefined
  const inclusive = p.text[t.end + 2] === "="
  return { end: t.end + (inclusive ? 3 : 2), fromInclusive: false, toInclusive: inclusive }
}

const climb = (p: Parser, min: number): Expr => {
  // The left operand is a range without parentheses.
  let ranged = isOp(p, "..") || isOp(p, "..=")
  let left = prefix(p)
  let covered = true
  for (let count = 0; ; count++) {
    if (count > maxChain) fail(`more than ${maxChain} operators in a row`, p.token.at)
    const range = min < power.range ? rangeOp(p) : undefined
    if (range !== undefined) {
      const { at } = p.token
      const next = rangeRest(p, left, range)
      if (ranged && next.kind === "range" && next.to === undefined)
        fail("an open range behind a range needs parentheses", at)
      left = next
      ranged = true
      covered = false
      continue
    }
    const op = infix(p)
    if (op === undefined || op[1] <= min) return left
    const { at, text } = p.token
    const [name, bp] = operator(p, op)
    const right = nested(p, () => climb(p, bp))
    const chains = bp === power.equality || bp === power.relation
    if (chains && !covered && left.kind === "binary" && symbolsPower(left.op) === bp)
      fail("comparisons do not chain; use parentheses", at)
    left = { kind: "binary", at: left.at, op: name, left, right, ...(text === "==" ? { double: true as const } : {}) }
    covered = false
  }
}

const symbolsPower = (op: BinaryOp): number => (words[op] ?? symbols[op] ?? words["IN"]!)[1]

/** Consumes the operator's tokens. */
const operator = (p: Parser, op: Infix): Infix => {
  const word = p.token.kind === "ident" ? p.token.text.toUpperCase() : ""
  advance(p)
  if (word === "IS" && isWord(p, "NOT")) {
    advance(p)
    return ["!=", op[1]]
  }
  if (word === "NOT") expectWord(p, "IN")
  return op
}

const rangeRest = (
  p: Parser,
  from: Expr | undefined,
  op: { readonly end: number; readonly fromInclusive: boolean; readonly toInclusive: boolean },
  at = from?.at ?? p.token.at
): Expr => {
  p.token = Lex.next(p.text, op.end)
  if (p.token.at === op.end && isWord(p, "INFINITY") && p.token.text === "Infinity")
    expected(p, "the end of the range in parentheses")
  const adjacent = p.token.at === op.end && startsPrimary(p)
  if (!adjacent && op.toInclusive) expected(p, "the end of the range")
  const to = adjacent ? nested(p, () => climb(p, power.range)) : undefined
  return { kind: "range", at, from, fromInclusive: op.fromInclusive, to, toInclusive: op.toInclusive }
}

const prefix = (p: Parser): Expr => {
  const t = p.token
  if (t.kind !== "op") return primary(p)
  switch (t.text) {
    case "-":
    case "+":
      if (/\d/.test(p.text[t.end] ?? "")) return signedNumber(p, t.text)
      advance(p)
      return { kind: "unary", at: t.at, op: t.text, operand: nested(p, () => climb(p, power.prefix)) }
    case "!":
      advance(p)
      return { kind: "unary", at: t.at, op: "!", operand: nested(p, () => climb(p, power.prefix)) }
    case "..":
    case "..=":
      return rangeRest(p, undefined, { end: t.end, fromInclusive: true, toInclusive: t.text === "..=" }, t.at)
    case "<":
    case "<-": {
      const type = castType(p)
      if (type === undefined) return primary(p)
      return { kind: "cast", at: t.at, type, operand: nested(p, () => climb(p, power.prefix)) }
    }
    default:
      return primary(p)
  }
}

/** `-1` is one number (so `-1.abs()` is 1), unless it is a duration. */
const signedNumber = (p: Parser, sign: "-" | "+"): Expr => {
  const at = p.token.at
  const unsigned = peek(p)
  if (unsigned.kind === "value" && /[a-zµμ]$/.test(unsigned.text) && !/(f|dec)$/.test(unsigned.text)) {
    advance(p)
    return { kind: "unary", at, op: sign, operand: nested(p, () => climb(p, power.prefix)) }
  }
  const number = Lex.number(p.text, at, p.token.after)
  if (number.kind !== "value") return fail(number.text, number.at)
  p.token = number
  advance(p)
  return idiomRest(p, { kind: "literal", at, value: number.value, text: number.text.replace(/^\+/, "") })
}

/** A list of expressions up to `close`, which is consumed. */
export const expressionList = (p: Parser, close: string): Array<Expr> => {
  const items: Array<Expr> = []
  while (!eatOp(p, close)) {
    items.push(inherited(p))
    if (!eatOp(p, ",") && !isOp(p, close)) expected(p, "`,` or `" + close + "`")
  }
  return items
}
