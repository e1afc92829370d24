/**
 * `Authorization: Bearer <secret>` as nodes send it and as both servers check it: any of several secrets, all compared, in constant time (D15).
 *
 * One place, because a comparison that ends early on one of two doors is a hole in both.
 */
import { Redacted } from "effect"

/** What a caller sends. */
export const bearerOf = (secret: Redacted.Redacted<string>): string => `Bearer ${Redacted.value(secret)}`

/** Takes the same time wherever the first difference is; how long the wrong guess was may show. */
const sameText = (given: string, expected: string): boolean => {
  let difference = given.length ^ expected.length
  for (let i = 0; i < given.length; i++) difference |= given.charCodeAt(i) ^ expected.charCodeAt(i % expected.length)
  return difference === 0
}

const scheme = /^bearer +/i

/** `Bearer <secret>`, the scheme in any letter case, one or more blanks. Without a secret nobody is let in. `secrets` is asked at each request. */
export const makeAuthorized = (secrets: () => ReadonlyArray<string>) => (authorization: string | undefined): boolean => {
  if (authorization === undefined) return false
  const match = scheme.exec(authorization)
  if (match === null) return false
  const given = authorization.slice(match[0].length).trimEnd()
  let found = false
  for (const secret of secrets()) {
    const same = sameText(given, secret)
    found = found || same
  }
  return found
}
