/**
 * Type names in casts and closure parameters: `<array<int, 5>>`, `|$x: string|`.
 *
 * Why so: types are canonical text; casts are looked up by it.
 */

import * as Lex from "../values/lex.ts"
import { isNumber } from "../values/number.ts"
import { objectKey, render } from "../values/text.ts"
import type { Parser } from "./parser.ts"
import { advance, continueAt, eatOp, expected, fail, isOp, isWord, name, nested } from "./parser.ts"

const known: ReadonlySet<string> = new Set([
  "any",
  "array",
  "bool",
  "bytes",
  "datetime",
  "decimal",
  "duration",
  "float",
  "geometry",
  "int",
  "none",
  "null",
  "number",
  "object",
  "point",
  "range",
  "record",
  "regex",
  "set",
  "string",
  "uuid",
  "function",
  "table",
  "file"
])

const generic: ReadonlySet<string> = new Set(["array", "set", "record", "geometry", "table"])

/** Consumes the `<` before a type; `<-1>` begins with one too, where no graph step is possible. */
const eatOpening = (p: Parser): boolean => {
  if (!isOp(p, "<-") || !/\d/.test(p.text[p.token.end] ?? "")) return eatOp(p, "<")
  continueAt(p, p.token.at + 1)
  return true
}

/** A type between `<` and `>`, both consumed; undefined without a `<`. */
export const castType = (p: Parser): string | undefined => {
  if (!eatOpening(p)) return undefined
  const type = unionType(p)
  if (!eatOp(p, ">")) expected(p, "`>`")
  return type
}

/** Types separated by `|`, each once; `any` absorbs the others, and `option` comes first. */
export const unionType = (p: Parser): string => {
  const first = firstOf(p)
  return first[0] === "any" ? "any" : joined([...first, ...others(p)])
}

const joined = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ")

/** The beginning of a type: `option<int | string>` is NONE or one of two types. */
const firstOf = (p: Parser): ReadonlyArray<string> => {
  if (!isWord(p, "OPTION")) return [one(p)]
  advance(p)
  if (!eatOpening(p)) expected(p, "`<`")
  const types = nested(p, () => ["none", alternative(p), ...others(p)])
  if (!eatOp(p, ">")) expected(p, "`>`")
  return types
}

const others = (p: Parser): ReadonlyArray<string> => {
  const parts: Array<string> = []
  while (eatOp(p, "|")) parts.push(alternative(p))
  return parts
}

/** One alternative of a union. */
const alternative = (p: Parser): string =>
  isWord(p, "ANY") || isWord(p, "OPTION") ? expected(p, "a type that may be one of several") : one(p)

/** A type in brackets, or a constant as a type. */
const literal = (p: Parser): string | undefined => {
  if (p.token.kind === "value") return render(advance(p).value)
  if (isOp(p, "-") || isOp(p, "+")) return signed(p)
  if (p.token.kind === "ident" && (p.token.text === "NaN" || p.token.text === "Infinity")) return advance(p).text
  if (p.token.kind === "string") return render(advance(p).text)
  if (isWord(p, "TRUE") || isWord(p, "FALSE")) return advance(p).text.toLowerCase()
  if (eatOp(p, "[")) return `[${listUpTo(p, "]", unionType).join(", ")}]`
  return eatOp(p, "{") ? `{ ${listUpTo(p, "}", entry).join(", ")} }` : undefined
}

const signed = (p: Parser): string => {
  const number = /\d/.test(p.text[p.token.end] ?? "") ? Lex.number(p.text, p.token.at, p.token.after) : undefined
  if (number?.kind !== "value" || !isNumber(number.value)) return expected(p, "a type")
  continueAt(p, number.end)
  return render(number.value)
}

const entry = (p: Parser): string => {
  const key = p.token.kind === "string" ? advance(p).text : name(p, "a field")
  if (!eatOp(p, ":")) expected(p, "`:`")
  return `${objectKey(key)}: ${unionType(p)}`
}

const listUpTo = (p: Parser, end: string, read: (p: Parser) => string): ReadonlyArray<string> =>
  nested(p, () => {
    const out: Array<string> = []
    while (!eatOp(p, end)) {
      out.push(read(p))
      if (!isOp(p, end) && !eatOp(p, ",")) expected(p, `\`,\` or \`${end}\``)
    }
    return out
  })

/** One type without a union. */
export const singleType = (p: Parser): string => joined(firstOf(p))

/** One type other than `option`. */
const one = (p: Parser): string => {
  const constant = literal(p)
  if (constant !== undefined) return constant
  const at = p.token.at
  const base = name(p, "a type").toLowerCase()
  if (!known.has(base)) fail(`unknown type \`${base}\``, at)
  const { at: opening } = p.token
  if (!eatOpening(p)) return base
  if (!generic.has(base)) fail(`the type \`${base}\` takes no parameters`, opening)
  const args = [
    base === "geometry" ? kinds(p) : base === "record" || base === "table" ? names(p) : nested(p, () => unionType(p))
  ]
  while (eatOp(p, ",")) args.push(size(p))
  if (!eatOp(p, ">")) expected(p, "`>`")
  return `${base}<${args.join(", ")}>`
}

/** The number of elements, as in `array<int, 5>`. */
const size = (p: Parser): string => {
  const t = advance(p)
  return t.kind === "value" && /^\d+$/.test(t.text) ? t.text : fail("expected a number of elements", t.at)
}

const geometries: ReadonlySet<string> = new Set([
  "collection",
  "line",
  "multiline",
  "multipoint",
  "multipolygon",
  "point",
  "polygon"
])

/** Kinds of geometry inside `geometry<point | line>`. */
const kinds = (p: Parser): string => {
  const parts: Array<string> = []
  do {
    const { at } = p.token
    const kind = name(p, "a kind of geometry").toLowerCase()
    parts.push(geometries.has(kind) ? kind : fail(`unknown kind of geometry \`${kind}\``, at))
  } while (eatOp(p, "|"))
  return parts.join(" | ")
}

/** Table names inside `record<a | b>`. */
const names = (p: Parser): string => {
  const parts = [name(p, "a table")]
  while (eatOp(p, "|")) parts.push(name(p, "a table"))
  return parts.join(" | ")
}
