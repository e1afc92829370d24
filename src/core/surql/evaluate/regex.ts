/**
 * Regular expressions, compiled once by a linear-time engine.
 *
 * Why so: patterns come from query text and data; a back-tracking engine could be made to hang the process. re2js has
 * the dialect of the database's own engine and runs in time linear in the text.
 */
import { RE2JS } from "re2js"

const cache = new Map<string, RE2JS | undefined>()
const cacheSize = 500

/**
 * Instructions of the largest program that is run: `(a{1000}){1000}` would take a while for each character, and
 * megabytes.
 */
const maxProgram = 20_000

/** A brace that is no repetition, or `(?)`: taken here, an error in the database's engine. */
const isForeign = (source: string): boolean => {
  const bare = source.replace(/\\[pPxuU]\{[^}]*\}|\\[\s\S]/g, "x").replace(/\[\^?\]?[^\]]*\]/g, "x")
  return /\(\?\)|(?:^|[(|])\{|\{(?!\d+(?:,\d*)?\})/.test(bare)
}

const letters = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}",
  spaces = "\\x{9}-\\x{d}\\x{85}\\p{Z}"

/** The classes of the database's engine are Unicode's, re2's are of ASCII: `\w` has é, `\d` has ٣. */
const classes: { readonly [escape: string]: readonly [alone: string, inClass: string | undefined] } = {
  "\\d": ["\\p{Nd}", "\\p{Nd}"],
  "\\D": ["\\P{Nd}", "\\P{Nd}"],
  "\\s": [`[${spaces}]`, spaces],
  "\\S": [`[^${spaces}]`, undefined],
  "\\w": [`[${letters}]`, letters],
  "\\W": [`[^${letters}]`, undefined]
}

const widened = (source: string): string => {
  if (!/\\[dDsSwW]/.test(source)) return source
  let depth = 0
  return source.replace(/\\[\s\S]|[[\]]/g, (piece) => {
    if (piece === "[") depth = 1
    else if (piece === "]") depth = 0
    const found = Object.hasOwn(classes, piece) ? classes[piece] : undefined
    return found === undefined ? piece : ((depth > 0 ? found[1] : found[0]) ?? piece)
  })
}

/** The compiled pattern, `undefined` when it is no valid one. */
export const compile = (source: string): RE2JS | undefined => {
  if (cache.has(source)) return cache.get(source)
  if (cache.size >= cacheSize) cache.clear()
  let compiled: RE2JS | undefined
  try {
    compiled = isForeign(source) ? undefined : RE2JS.compile(widened(source))
    if (compiled !== undefined && compiled.programSize() > maxProgram) compiled = undefined
  } catch {
    compiled = undefined
  }
  cache.set(source, compiled)
  return compiled
}

/** How much work one character of a text is: instructions of the program; of no valid pattern, none. */
export const sizeOf = (source: string): number => compile(source)?.programSize() ?? 0

/** True when the pattern matches anywhere in the text; false for an invalid pattern. */
export const matches = (source: string, text: string): boolean => compile(source)?.matcher(text).find() ?? false
