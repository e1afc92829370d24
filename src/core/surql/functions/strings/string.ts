/**
 * `string::*`: cutting, joining, changing case, searching.
 *
 * Why so: lengths and positions count code points, as the database does, never UTF-16 units.
 */
import { ownText, raise } from "../../evaluate/failure.ts"
import type { Scope } from "../../evaluate/scope.ts"
import { spendBytes, spendSteps } from "../../evaluate/scope.ts"
import * as Regexes from "../../regex/regex.ts"
import { rawText, toText } from "../../values/text.ts"
import { slug } from "../../values/transliterate.ts"
import type { Value } from "../../values/value.ts"
import { Regex } from "../../values/value.ts"
import { rangeWithin } from "../array.ts"
import type { Fn, Table } from "../define.ts"
import { define } from "../define.ts"

const text = (body: (s: string) => Value): Fn => define<[string]>(["string"], ([s]) => body(s))

const two = (body: (a: string, b: string) => Value): Fn =>
  define<[string, string]>(["string", "string"], ([a, b]) => body(a, b))

const capitalize = (s: string): string =>
  s.replace(/(^|\s)(\p{Ll})/gu, (_, before: string, c: string) => before + c.toUpperCase())

/** Code points of a text. */
const countOf = (s: string): number => {
  let n = s.length
  for (let i = 0; i + 1 < s.length; i++)
    if (
      s.charCodeAt(i) >= 0xd800 &&
      s.charCodeAt(i) < 0xdc00 &&
      s.charCodeAt(i + 1) >= 0xdc00 &&
      s.charCodeAt(i + 1) < 0xe000
    )
      n--, i++
  return n
}

const slice = (s: string, given: ReadonlyArray<Value>): string => {
  const chars = Array.from(s)
  const [start, end] = rangeWithin("array::slice", chars.length, given)
  return end <= start ? "" : chars.slice(start, end).join("")
}

/** Splits as the database does: an empty separator also gives the empty ends. */
const split = (s: string, by: string): ReadonlyArray<string> => (by === "" ? ["", ...Array.from(s), ""] : s.split(by))

/** Most bytes of a text that a function builds. */
const maxBytes = 1_048_576

/** The length of a text in UTF-8. */
const bytesOf = (s: string): number => {
  let bytes = s.length
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i)
    // Each half of a surrogate pair counts as two of its four bytes.
    if (c > 0x7f) bytes += c > 0x7ff && (c < 0xd800 || c > 0xdfff) ? 2 : 1
  }
  return bytes
}

/** Fails if a text would have more bytes than the database makes; pays for the others. */
const limitedText = (scope: Scope, name: string, bytes: number): void => {
  if (!(bytes >= 0 && bytes <= maxBytes))
    raise`Incorrect arguments for function ${ownText(name)}(). Output must not exceed ${ownText(maxBytes)} bytes.`
  spendSteps(scope.budget, bytes >> 6)
  spendBytes(scope.budget, bytes)
}

const join = (scope: Scope, name: string, parts: ReadonlyArray<string>, by: string): string => {
  limitedText(
    scope,
    name,
    parts.reduce((sum, part) => sum + bytesOf(part), Math.max(0, parts.length - 1) * bytesOf(by))
  )
  return parts.join(by)
}

/**
 * Replaces one text by another. An empty one is found before, after and between all characters. As in the database,
 * only a result that may grow is measured.
 */
const replaceText = (s: string, search: string, by: string, scope: Scope): string => {
  const parts = search === "" ? ["", ...Array.from(s), ""] : s.split(search)
  const growth = bytesOf(by) - bytesOf(search)
  if (growth > 0) limitedText(scope, "string::replace", bytesOf(s) + (parts.length - 1) * growth)
  return parts.join(by)
}

const replace = (s: string, search: Value, by: string, scope: Scope): string => {
  if (typeof search === "string") return replaceText(s, search, by, scope)
  if (!(search instanceof Regex))
    return raise`Incorrect arguments for function string::replace(). Argument 2 was the wrong type. Expected a string but found ${toText(search)}`
  const compiled = Regexes.compile(search.source)
  if (compiled === undefined) return s
  const added = bytesOf(by)
  let out = "",
    last = 0,
    bytes = 0
  for (const [from, to] of compiled.spans(s)) {
    const kept = s.slice(last, from)
    bytes += bytesOf(kept) + added
    if (bytes > maxBytes) break
    out += kept + by
    last = to
  }
  const rest = s.slice(last)
  limitedText(scope, "string::replace", bytes + bytesOf(rest))
  return out + rest
}

const matches = (s: string, pattern: Value): boolean => {
  const source = pattern instanceof Regex ? pattern.source : pattern
  if (typeof source !== "string" || Regexes.compile(source) === undefined)
    return raise`Could not cast into \`regex\` using input \`${toText(pattern)}\``
  return Regexes.matches(source, s)
}

export const string: Table = {
  "string::capitalize": text(capitalize),
  "string::concat": define<ReadonlyArray<Value>>(["...any"], (all, scope, name) =>
    join(scope, name, all.map(rawText), "")
  ),
  "string::contains": two((a, b) => a.includes(b)),
  "string::ends_with": two((a, b) => a.endsWith(b)),
  "string::join": define<ReadonlyArray<Value>>(["any", "...any"], ([by, ...all], scope, name) =>
    join(scope, name, all.map(rawText), rawText(by))
  ),
  "string::len": text(countOf),
  "string::lowercase": text((s) => s.toLowerCase()),
  "string::matches": define<[string, Value]>(["string", "any"], ([s, pattern]) => matches(s, pattern)),
  "string::repeat": define<[string, number]>(["string", "int"], ([s, n], scope, name) => {
    limitedText(scope, name, s === "" ? 0 : n < 0 ? Infinity : bytesOf(s) * n)
    return s === "" ? s : s.repeat(n)
  }),
  "string::replace": define<[string, Value, string]>(["string", "any", "string"], ([s, search, by], scope) =>
    replace(s, search, by, scope)
  ),
  "string::reverse": text((s) => Array.from(s).reverse().join("")),
  "string::slice": define<[string, ...ReadonlyArray<Value>]>(["string", "?any", "?int"], ([s, ...given]) =>
    slice(s, given)
  ),
  "string::slug": text(slug),
  "string::split": two(split),
  "string::starts_with": two((a, b) => a.startsWith(b)),
  "string::trim": text((s) => s.trim()),
  "string::uppercase": text((s) => s.toUpperCase()),
  "string::words": text((s) => s.split(/\s+/).filter((w) => w !== "")),
  "string::html::encode": text((s) => s.replace(/[&<>"'`/= \t\n\r\f\0]/g, (c) => htmlEscapes[c] ?? c))
}

const htmlEscapes: { readonly [char: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
  "`": "&grave;",
  "/": "&#47;",
  "=": "&#61;",
  " ": "&#32;",
  "\t": "&#9;",
  "\n": "&#10;",
  "\r": "&#13;",
  "\f": "&#12;",
  "\0": "&#65533;"
}
