/**
 * `Authorization: Bearer <secret>`, as nodes send it and both servers check it: against several secrets, all compared,
 * in constant time (D15).
 *
 * In one place, because a comparison that ends early on one server is a hole in both.
 */
import { Redacted } from "effect"
import { hashOf, type KnownSecret, reservedNames } from "../../core/access/scopedSecrets.ts"
import type { Scope } from "../../core/access/scopes.ts"
import type { Caller } from "../../protocol/access.ts"

/** Value of the `Authorization` header for a secret. */
export const bearerOf = (secret: Redacted.Redacted<string>): string => `Bearer ${Redacted.value(secret)}`

/** Takes the same time wherever the first difference is; only the length of a wrong guess may show. */
const sameText = (given: string, expected: string): boolean => {
  let difference = given.length ^ expected.length
  for (let i = 0; i < given.length; i++) difference |= given.charCodeAt(i) ^ expected.charCodeAt(i % expected.length)
  return difference === 0
}

const scheme = /^bearer +/i

/** Token behind `Bearer`; undefined for a header of another scheme. */
export const tokenIn = (authorization: string | undefined): string | undefined => {
  const match = authorization === undefined ? null : scheme.exec(authorization)
  return match === null ? undefined : authorization!.slice(match[0].length).trimEnd()
}

/**
 * Finds the known secret in `Bearer <secret>`; the scheme in any letter case, one or more blanks. Undefined: an unknown
 * secret. All secrets are compared, whichever fits. `secrets` is asked at each request.
 */
export const makeSecretFinder =
  (secrets: () => ReadonlyArray<KnownSecret>) =>
  (authorization: string | undefined): KnownSecret | undefined => {
    const given = tokenIn(authorization)
    if (given === undefined) return undefined
    const known = secrets()
    const hash = known.some(({ sha256 }) => sha256 !== undefined) ? hashOf(given) : ""
    let found: KnownSecret | undefined
    for (const secret of known) {
      const same = secret.sha256 === undefined ? sameText(given, secret.text ?? "") : sameText(hash, secret.sha256)
      found = same ? (found ?? secret) : found
    }
    return found
  }

/** Why a caller is refused. */
type Turned =
  | { readonly code: "UNAUTHORIZED"; readonly message: string }
  | { readonly code: "SCOPE_REQUIRED"; readonly message: string; readonly details: { readonly scope: Scope } }

/** `name`: of the secret, for the audit line. */
export type Judgement = { readonly caller: Caller["Type"] } | { readonly turned: Turned; readonly name: string }

const scopeRequired = ({ name, scopes }: KnownSecret, scope: Scope): Turned => ({
  code: "SCOPE_REQUIRED",
  details: { scope },
  message: `needs a secret with the scope ${scope}; the secret ${JSON.stringify(name)} has ${scopes.join(", ")} (setting SVC_AUTH_SECRETS)`
})

const anybody: Judgement = { caller: { name: reservedNames.open, onlySsp: undefined, sees: "whole" } }

/** Judges every request of a server. `secrets` undefined: callers need none. */
export const makeJudge = (secrets: (() => ReadonlyArray<KnownSecret>) | undefined, unauthorized: Turned) => {
  if (secrets === undefined) return (): Judgement => anybody
  const holderOf = makeSecretFinder(secrets)
  return (authorization: string | undefined, scope: Scope): Judgement => {
    const holder = holderOf(authorization)
    if (holder === undefined) return { turned: unauthorized, name: reservedNames.unknown }
    if (!holder.scopes.includes(scope)) return { turned: scopeRequired(holder, scope), name: holder.name }
    const { name, scopes } = holder
    const sees = scopes.includes("admin") ? "whole" : "kinds"
    return { caller: { name, onlySsp: name === reservedNames.one ? undefined : name, sees } }
  }
}
