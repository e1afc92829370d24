/**
 * Type names in casts and closure parameters: `<array<int, 5>>`, `|$x: string|`.
 *
 * Why so: types are kept as canonical text; the few casts that exist are looked up by it.
 */
import { advance, eatOp, expected, fail, isOp, name } from "./parser.ts"
import type { Parser } from "./parser.ts"

const known: ReadonlySet<string> = new Set([
  "any", "array", "bool", "bytes", "datetime", "decimal", "duration", "float", "geometry", "int", "none", "null", "number", "object", "option",
  "point", "range", "record", "regex", "set", "string", "uuid", "function", "table", "file"
])

const generic: ReadonlySet<string> = new Set(["array", "set", "option", "record", "geometry", "table"])

/** A type up to the `>` that ends it, which is taken. The `<` has been taken. */
export const castType = (p: Parser): string => {
  const type = union(p)
  if (!eatOp(p, ">")) expected(p, "`>`")
  return type
}

/** Types separated by `|`. */
export const union = (p: Parser): string => {
  const parts = [single(p)]
  while (eatOp(p, "|")) parts.push(single(p))
  return parts.join(" | ")
}

/** One type, without `|`. */
export const single = (p: Parser): string => {
  const at = p.token.at
  const base = name(p, "a type").toLowerCase()
  if (!known.has(base)) fail(`unknown type \`${base}\``, at)
  if (!isOp(p, "<")) return base === "option" ? expected(p, "`<`") : base
  if (!generic.has(base)) fail(`the type \`${base}\` takes no parameters`, p.token.at)
  advance(p)
  const args = [base === "geometry" ? kinds(p) : base === "record" || base === "table" ? names(p) : union(p)]
  while (eatOp(p, ",")) args.push(size(p))
  if (!eatOp(p, ">")) expected(p, "`>`")
  return `${base}<${args.join(", ")}>`
}

/** The number of elements in `array<int, 5>`. */
const size = (p: Parser): string => {
  const t = advance(p)
  return t.kind === "value" && /^\d+$/.test(t.text) ? t.text : fail("expected a number of elements", t.at)
}

const geometries: ReadonlySet<string> = new Set(["collection", "line", "multiline", "multipoint", "multipolygon", "point", "polygon"])

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
