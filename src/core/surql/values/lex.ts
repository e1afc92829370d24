/**
 * Tokens of the query language, one at a time and on demand: `next(text, position)` gives the token there.
 *
 * Why so: the language is not regular (`/` starts a regex or divides, `1a` is a record key or an error), so the parser
 * asks for the kind of token that its place allows, and the lexer has no state. Faults are tokens of kind "bad" whose
 * `value` names the fault.
 */
import * as Datetimes from "./datetime.ts"
import * as Durations from "./duration.ts"
import { unescape } from "./names.ts"
import { parseDecimal } from "./number.ts"
import type { Value } from "./value.ts"
import { Bytes, float, int, Uuid } from "./value.ts"

type TokenKind = "ident" | "quoted" | "param" | "value" | "string" | "record" | "op" | "end" | "bad"

export interface Token {
  readonly kind: TokenKind
  /** Name, operator, string content or message; for "value" the text as written. */
  readonly text: string
  /** The constant of a "value" token (number, duration, datetime, uuid, bytes). */
  readonly value: Value
  readonly at: number
  readonly end: number
  /** End of the previous token: equal to `at` if nothing is between. */
  readonly after: number
}

const isDigit = (c: number): boolean => c >= 48 && c <= 57
const isIdentStart = (c: number): boolean => (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || c === 95
const isIdent = (c: number): boolean => isIdentStart(c) || isDigit(c)

/** The first position at or behind `at` that is neither white space nor comment; -1 in a comment that never ends. */
export const skipBlanks = (text: string, at: number): number => {
  for (;;) {
    const c = text.charCodeAt(at)
    if (c === 32 || (c >= 9 && c <= 13) || c === 0xa0 || c === 0xfeff || c === 0x2028 || c === 0x2029) at++
    else if (c === 35 || (c === 45 && text.charCodeAt(at + 1) === 45) || (c === 47 && text.charCodeAt(at + 1) === 47)) {
      while (at < text.length && text[at] !== "\n" && text[at] !== "\r") at++
    } else if (c === 47 && text.charCodeAt(at + 1) === 42) {
      const end = text.indexOf("*/", at + 2)
      if (end < 0) return -1
      at = end + 2
    } else return at
  }
}

const token = (kind: TokenKind, text: string, value: Value, at: number, end: number, after: number): Token => ({
  kind,
  text,
  value,
  at,
  end,
  after
})

const bad = (message: string, at: number, after: number): Token => token("bad", message, undefined, at, at + 1, after)

/** Position of the closing delimiter of a text that opens at `at`, -1 when there is none. */
const closing = (text: string, at: number, close: string): number => {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === "\\") i++
    else if (text[i] === close) return i
  }
  return -1
}

const identifierEnd = (text: string, at: number): number => {
  let end = at
  while (isIdent(text.charCodeAt(end))) end++
  return end
}

const quotedName = (kind: "quoted" | "param", text: string, open: number, at: number, after: number): Token => {
  const end = closing(text, open, text[open] === "`" ? "`" : "⟩")
  if (end < 0) return bad("this name is never closed", at, after)
  const name = unescape(text.slice(open + 1, end))
  return name === undefined
    ? bad("not a valid escape character", at, after)
    : token(kind, name, undefined, at, end + 1, after)
}

const string = (text: string, at: number, open: number, after: number): Token => {
  const close = closing(text, open, text[open]!)
  if (close < 0) return bad("this string is never closed", at, after)
  const content = unescape(text.slice(open + 1, close))
  if (content === undefined) return bad("not a valid escape character", at, after)
  return open === at
    ? token("string", content, content, at, close + 1, after)
    : prefixed(text[at]!, content, text.slice(at, close + 1), at, close + 1, after)
}

const uuidPattern = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/

const prefixed = (prefix: string, content: string, source: string, at: number, end: number, after: number): Token => {
  switch (prefix) {
    case "s":
      return token("string", content, content, at, end, after)
    case "r":
      return token("record", content, undefined, at, end, after)
    case "d": {
      const value = Datetimes.parseWritten(content)
      return value === undefined
        ? bad("this is not a datetime; expected d'2020-01-01T00:00:00Z'", at, after)
        : token("value", source, value, at, end, after)
    }
    case "u":
      return uuidPattern.test(content)
        ? token("value", source, new Uuid(content.toLowerCase()), at, end, after)
        : bad("this is not a uuid", at, after)
    case "b": {
      if (!/^([0-9a-fA-F]{2})*$/.test(content))
        return bad("bytes are written as pairs of hexadecimal digits", at, after)
      return token(
        "value",
        source,
        new Bytes(Uint8Array.from(content.match(/../g) ?? [], (h) => parseInt(h, 16))),
        at,
        end,
        after
      )
    }
    default:
      return bad("file literals are not supported", at, after)
  }
}

const numberAt = /\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d[\d_]*)?/y
const durationAt = new RegExp(`${Durations.durationPattern}(?![A-Za-z0-9_])`, "y")

/** A number or duration that starts at `at` (a digit, or a sign directly before one). */
export const number = (text: string, at: number, after: number): Token => {
  const signed = !isDigit(text.charCodeAt(at))
  const first = signed ? at + 1 : at
  if (!signed) {
    durationAt.lastIndex = first
    const found = durationAt.exec(text)
    if (found !== null) {
      const value = Durations.parse(found[0])
      return value === undefined
        ? bad("this duration is too long", at, after)
        : token("value", found[0], value, at, durationAt.lastIndex, after)
    }
  }
  numberAt.lastIndex = first
  const body = numberAt.exec(text)![0]
  const end = first + body.length
  const suffixEnd = identifierEnd(text, end)
  const suffix = text.slice(end, suffixEnd)
  const source = text.slice(at, suffixEnd)
  const value = numberValue(text.slice(at, end).replaceAll("_", ""), suffix)
  return value === undefined
    ? bad(suffix === "" ? "this number does not fit" : `\`${source}\` is not a number`, at, after)
    : token("value", source, value, at, suffixEnd, after)
}

const identifierDigits = (text: string, at: number): number => {
  while (isDigit(text.charCodeAt(at))) at++
  return at
}

const numberValue = (digits: string, suffix: string): Value => {
  if (suffix === "f") return float(Number(digits))
  if (suffix === "dec") return parseDecimal(digits)
  if (suffix !== "") return undefined
  if (/[.eE]/.test(digits)) return float(Number(digits))
  const value = BigInt(digits.startsWith("+") ? digits.slice(1) : digits)
  return value >= -9223372036854775808n && value <= 9223372036854775807n ? int(value) : undefined
}

const operators3 = new Set(["<->", "...", "..="])
const operators2 = new Set([
  "->",
  "<-",
  "<~",
  "..",
  "**",
  "*=",
  "?=",
  "?:",
  "??",
  "==",
  "!=",
  "<=",
  ">=",
  "&&",
  "||",
  "::",
  "+=",
  "-="
])
const operators1 = new Set(Array.from("+-*/%<>=!()[]{},;:.|?@$&~×÷∈∉∋∌⊇⊃⊆⊂⊅⊄⊉⊈∅⊍"))

/** The token at or behind `from`. */
export const next = (text: string, from: number): Token => {
  const at = skipBlanks(text, from)
  if (at < 0) return bad("this comment is never closed", from, from)
  if (at >= text.length) return token("end", "", undefined, at, at, from)
  const c = text.charCodeAt(at)
  if (isIdentStart(c)) {
    const end = identifierEnd(text, at)
    if (end === at + 1) {
      const quote = text.charCodeAt(end)
      if ((quote === 39 || quote === 34) && "srdubf".includes(text[at]!)) return string(text, at, end, from)
    }
    return token("ident", text.slice(at, end), undefined, at, end, from)
  }
  if (isDigit(c)) return number(text, at, from)
  if (c === 39 || c === 34) return string(text, at, at, from)
  if (c === 36) return param(text, at, from)
  if (text[at] === "`" || text[at] === "⟨") return quotedName("quoted", text, at, at, from)
  for (let length = 3; length > 0; length--) {
    const op = text.slice(at, at + length)
    if ((length === 3 ? operators3 : length === 2 ? operators2 : operators1).has(op))
      return token("op", op, undefined, at, at + length, from)
  }
  return bad(`unexpected character \`${String.fromCodePoint(text.codePointAt(at)!)}\``, at, from)
}

const param = (text: string, at: number, after: number): Token => {
  const first = text.charCodeAt(at + 1)
  if (text[at + 1] === "`" || text[at + 1] === "⟨") return quotedName("param", text, at + 1, at, after)
  if (!isIdentStart(first)) return token("op", "$", undefined, at, at + 1, after)
  const end = identifierEnd(text, at + 1)
  return token("param", text.slice(at + 1, end), undefined, at, end, after)
}

/** A regular expression whose opening slash is at `at`; its source in `text`. */
export const regex = (text: string, at: number): Token => {
  const close = closing(text, at, "/")
  return close < 0
    ? bad("this regular expression is never closed", at, at)
    : token("value", text.slice(at + 1, close).replaceAll("\\/", "/"), undefined, at, close + 1, at)
}

/**
 * The bare text after the colon of a record id: letters, digits, `_`, or a signed number. Empty `text` if there is
 * none.
 */
export const bareKey = (text: string, at: number): Token => {
  const sign = text[at] === "-" || text[at] === "+" ? 1 : 0
  const end = sign === 1 ? identifierDigits(text, at + 1) : identifierEnd(text, at)
  return token("ident", end === at + sign ? "" : text.slice(at, end), undefined, at, end === at + sign ? at : end, at)
}
