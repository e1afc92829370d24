/**
 * Names as the database writes them in a record id, bare or between back-ticks, and how escapes are written and read.
 *
 * Why apart: record ids need only this to convert between text and key, and this file depends on no other value.
 */
const escapes: { readonly [char: string]: string } = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\\": "\\\\",
  "\f": "\\f",
  "\b": "\\u{8}",
  "\0": "\\0"
}

/** Characters to escape beside the quote itself; in brackets `\b` is the backspace. */
const awkward: { readonly [quote: string]: RegExp } = {
  "'": /[\n\r\t\\\f\b\0']/g,
  '"': /[\n\r\t\\\f\b\0"]/g,
  "`": /[\n\r\t\\\f\b\0`]/g
}

/** By one `replace`: a text built character by character takes thirty times its size. */
export const escapeWith = (text: string, quote: string): string =>
  text.replace(awkward[quote]!, (char) => (char === quote ? `\\${quote}` : escapes[char]!))

const simpleEscapes: { readonly [char: string]: string } = {
  n: "\n",
  r: "\r",
  t: "\t",
  f: "\f",
  b: "\b",
  "0": "\0",
  "\\": "\\",
  "/": "/",
  "`": "`",
  "'": "'",
  '"': '"'
}

/** Text with its escapes resolved; `undefined` when one is wrong. */
export const unescape = (text: string): string | undefined => {
  if (!text.includes("\\")) return text
  let wrong = false
  const out = text.replace(
    /\\(u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|[\s\S]?)/g,
    (_, all: string, braced: string | undefined, four: string | undefined) => {
      const code = braced ?? four
      if (code !== undefined && parseInt(code, 16) <= 0x10ffff) return String.fromCodePoint(parseInt(code, 16))
      const found = Object.hasOwn(simpleEscapes, all) ? simpleEscapes[all] : undefined
      if (found === undefined) wrong = true
      return found ?? ""
    }
  )
  return wrong ? undefined : out
}

const bare = /^[A-Za-z0-9_]*[A-Za-z][A-Za-z0-9_]*$/

/** A table name, or a key that is text, inside a record id: bare, or in back-ticks. */
export const nameText = (name: string): string =>
  bare.test(name) && name !== "NaN" && name !== "Infinity" ? name : "`" + escapeWith(name, "`") + "`"

/** Most tables whose prefix is cached: a client that sends random names must not fill the memory. */
const maxTables = 1_000
const prefixes = new Map<string, string>()
/** Prefix of the table last asked for. */
let table = "",
  prefix = "``:"

/** The beginning of every id text of a table. */
export const idPrefix = (of: string): string => {
  if (table === of) return prefix
  let known = prefixes.get(of)
  if (known === undefined) {
    known = nameText(of) + ":"
    if (prefixes.size < maxTables) prefixes.set(of, known)
  }
  table = of
  return (prefix = known)
}

/** The text key of an id, from the id's text. */
export const keyIn = (text: string, prefix: string): string => {
  const key = text.slice(prefix.length)
  return key.startsWith("`") ? unescape(key.slice(1, -1))! : key
}
