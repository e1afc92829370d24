/**
 * Known function and constant names, and the closest ones to a wrong name.
 *
 * Why so: a typo in a query should be answered with the name that was meant.
 */
import { levenshtein } from "../levenshtein.ts"
import { functions } from "./functions.ts"

/** Reached as a method only. */
const methodOnly = "value::chain"

export const isFunctionName = (name: string): boolean => functions.has(name) && functions.get(name)?.constant === undefined && name !== methodOnly

const unsupportedNames: ReadonlySet<string> = new Set([
  "value::expect", "sleep", 
  "string::html::sanitize", "sequence::nextval", "type::file", "type::try_file", "object::matches",
  "crypto::argon2::compare", "crypto::bcrypt::compare", "crypto::pbkdf2::compare", "crypto::scrypt::compare"
])

/** True for functions the database has and this evaluator knowingly has not. */
export const isUnsupported = (name: string): boolean => unsupportedNames.has(name) || /^(search|http|file|api|schema|eval)::/.test(name)

export const isConstantName = (name: string): boolean => functions.get(name)?.constant !== undefined

/** Up to two known names nearest to an unknown one, if any is near. */
export const closest = (name: string): ReadonlyArray<string> => {
  if (name.length > 60) return []
  const far = Math.max(2, name.length / 3)
  // The distance is at least the difference in length, which costs nothing to know.
  const near = [...functions.keys()].filter((known) => Math.abs(known.length - name.length) <= far)
  return near.map((known) => [levenshtein(name, known), known] as const).filter(([d]) => d <= far).sort((a, b) => a[0] - b[0]).slice(0, 2).map(([, known]) => known)
}
