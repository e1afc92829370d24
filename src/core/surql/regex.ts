/**
 * Regular expressions, compiled once by a linear-time engine.
 *
 * Why so: patterns come from query text and data; a back-tracking engine could be made to hang the process. re2js has the
 * dialect of the database's own engine and runs in time linear in the text.
 */
import { RE2JS } from "re2js"

const cache = new Map<string, RE2JS | undefined>()
const cacheSize = 500

/** A brace that is no repetition: a literal here, an error in the database's engine. */
const strayBrace = (source: string): boolean => {
  const bare = source.replace(/\\[pPxuU]\{[^}]*\}|\\[\s\S]/g, "").replace(/\[\^?\]?[^\]]*\]/g, "x")
  return /(?:^|[(|])\{|\{(?!\d+(?:,\d*)?\})/.test(bare)
}

/** The compiled pattern, `undefined` when it is no valid one. */
export const compile = (source: string): RE2JS | undefined => {
  if (cache.has(source)) return cache.get(source)
  if (cache.size >= cacheSize) cache.clear()
  let compiled: RE2JS | undefined
  try {
    compiled = strayBrace(source) ? undefined : RE2JS.compile(source)
  } catch {
    compiled = undefined
  }
  cache.set(source, compiled)
  return compiled
}

/** True when the pattern matches anywhere in the text; false for an invalid pattern. */
export const matches = (source: string, text: string): boolean => compile(source)?.matcher(text).find() ?? false
