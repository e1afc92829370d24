/**
 * Known function and constant names, and the closest ones to a wrong name.
 *
 * Why so: the error for a typo should suggest the name that was meant.
 */
import { levenshtein } from "../../levenshtein.ts"
import { functions } from "../evaluate/functions.ts"

/** Available only as a method. */
const methodOnly = "value::chain"

export const isFunctionName = (name: string): boolean =>
  functions.has(name) && functions.get(name)?.constant === undefined && name !== methodOnly

/** Functions that the database has and this evaluator deliberately lacks, by reason. A name may end in `*`. */
export const refusals: ReadonlyArray<{ readonly reason: string; readonly names: ReadonlyArray<string> }> = [
  { reason: "it reaches out of the database", names: ["http::*"] },
  { reason: "it needs a full-text or vector index", names: ["search::*", "vector::distance::knn"] },
  { reason: "it needs files, and none are kept", names: ["file::*", "type::file", "type::try_file"] },
  { reason: "it needs what a database defines", names: ["api::*", "schema::*", "sequence::*", "eval::*"] },
  { reason: "it only takes time", names: ["sleep"] },
  {
    reason: "checking a password is slow by design",
    names: ["crypto::argon2::compare", "crypto::bcrypt::compare", "crypto::pbkdf2::compare", "crypto::scrypt::compare"]
  },
  { reason: "it needs a reader of HTML", names: ["string::html::sanitize"] },
  {
    reason: "the database parses it and cannot run it",
    names: ["duration::set_*", "object::matches", "vector::distance::mahalanobis", "vector::similarity::spearman"]
  }
]

/** Why this evaluator refuses a function that the database has; undefined if it does not refuse it. */
export const refusalOf = (name: string): string | undefined =>
  refusals.find(({ names }) =>
    names.some((known) => (known.endsWith("*") ? name.startsWith(known.slice(0, -1)) : name === known))
  )?.reason

/** Whether a name is that of a constant, such as `math::pi`. */
export const isConstantName = (name: string): boolean => functions.get(name)?.constant !== undefined

/** Up to two known names nearest to an unknown one, if any is near. */
export const closest = (name: string): ReadonlyArray<string> => {
  if (name.length > 60) return []
  const far = Math.max(2, name.length / 3)
  // The distance is at least the difference in length, which is cheap.
  const near = [...functions.keys()].filter((known) => Math.abs(known.length - name.length) <= far)
  return near
    .map((known) => [levenshtein(name, known), known] as const)
    .filter(([d]) => d <= far)
    .sort((a, b) => a[0] - b[0])
    .slice(0, 2)
    .map(([, known]) => known)
}
