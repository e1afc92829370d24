/**
 * `string::*`: cutting, joining, changing case, searching.
 *
 * Why so: lengths and positions count code points, as the database does, never UTF-16 units.
 */
import { raise } from "../failure.ts"
import * as Regexes from "../regex.ts"
import { rawText, toText } from "../text.ts"
import { Regex } from "../value.ts"
import type { Value } from "../value.ts"
import { limited, span } from "./array.ts"
import { define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

const text = (body: (s: string) => Value): Fn => define<[string]>(["string"], ([s]) => body(s))

const two = (body: (a: string, b: string) => Value): Fn => define<[string, string]>(["string", "string"], ([a, b]) => body(a, b))

const capitalize = (s: string): string => s.replace(/(^|\s)(\p{Ll})/gu, (_, before: string, c: string) => before + c.toUpperCase())

const slice = (s: string, given: ReadonlyArray<Value>): string => {
  const chars = Array.from(s)
  const [start, end] = span("array::slice", chars.length, given)
  return end <= start ? "" : chars.slice(start, end).join("")
}

/** Splits as the database does: an empty separator also gives the empty ends. */
const split = (s: string, by: string): ReadonlyArray<string> => (by === "" ? ["", ...Array.from(s), ""] : s.split(by))

const replace = (s: string, search: Value, by: string): string => {
  if (typeof search === "string") return s.split(search).join(by)
  if (!(search instanceof Regex)) return raise(`Incorrect arguments for function string::replace(). Argument 2 was the wrong type. Expected a string but found ${toText(search)}`)
  const compiled = Regexes.compile(search.source)
  if (compiled === undefined) return s
  const matcher = compiled.matcher(s)
  let out = "", last = 0
  while (matcher.find()) {
    out += s.slice(last, matcher.start()) + by
    last = matcher.end()
  }
  return out + s.slice(last)
}

const slug = (s: string): string =>
  s.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "")

const matches = (s: string, pattern: Value): boolean => {
  const source = pattern instanceof Regex ? pattern.source : toText(pattern)
  if (Regexes.compile(source) === undefined) return raise(`Could not cast into \`regex\` using input \`${toText(pattern)}\``)
  return Regexes.matches(source, s)
}

export const string: Table = {
  "string::capitalize": text(capitalize),
  "string::concat": define<ReadonlyArray<Value>>(["...any"], (all) => all.map(rawText).join("")),
  "string::contains": two((a, b) => a.includes(b)),
  "string::ends_with": two((a, b) => a.endsWith(b)),
  "string::join": define<ReadonlyArray<Value>>(["any", "...any"], ([by, ...all]) => all.map(rawText).join(rawText(by))),
  "string::len": text((s) => Array.from(s).length),
  "string::lowercase": text((s) => s.toLowerCase()),
  "string::matches": define<[string, Value]>(["string", "any"], ([s, pattern]) => matches(s, pattern)),
  "string::repeat": define<[string, number]>(["string", "int"], ([s, n], scope, name) => { limited(scope, name, n < 0 ? Infinity : s.length * n); return s.repeat(n) }),
  "string::replace": define<[string, Value, string]>(["string", "any", "string"], ([s, search, by]) => replace(s, search, by)),
  "string::reverse": text((s) => Array.from(s).reverse().join("")),
  "string::slice": define<[string, ...ReadonlyArray<Value>]>(["string", "?any", "?int"], ([s, ...given]) => slice(s, given)),
  "string::slug": text(slug),
  "string::split": two(split),
  "string::starts_with": two((a, b) => a.startsWith(b)),
  "string::trim": text((s) => s.trim()),
  "string::uppercase": text((s) => s.toUpperCase()),
  "string::words": text((s) => s.split(/\s+/).filter((w) => w !== "")),
  "string::html::encode": text((s) => s.replace(/[&<>"'`/= \t\n\r\f\0]/g, (c) => htmlEscapes[c] ?? c))
}

const htmlEscapes: { readonly [char: string]: string } = {
  "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "`": "&#96;", "/": "&#47;", "=": "&#61;", " ": "&#32;", "\t": "&#9;",
  "\n": "&#10;", "\r": "&#13;", "\f": "&#12;", "\0": "&#65533;"
}
