/**
 * Tokens for views (D49): `svc1.<payload>.<HMAC-SHA256>`, both parts in base64url, for reading the views they name.
 *
 * The key is derived from a secret, so a token is valid if one of the secrets in force has signed it, and no token is
 * stored. Only secrets that the process knows in the clear can sign. A secret given as its hash cannot: any reader of
 * the settings could sign with the hash.
 */
import { hmac } from "@noble/hashes/hmac.js"
import { sha256 } from "@noble/hashes/sha2.js"
import { utf8ToBytes } from "@noble/hashes/utils.js"
import { Either, Encoding } from "effect"

/** Content of a token; times in Unix milliseconds. */
export interface ViewGrant {
  readonly views: ReadonlyArray<string>
  readonly subject: string | undefined
  readonly issuedAtMs: number
  readonly expiresAtMs: number
  /** Random number of a ticket, which opens one stream once; undefined for other tokens. */
  readonly nonce?: string | undefined
}

/** Payload of a token, with short names, because a token travels with each request. */
interface Payload {
  readonly v: ReadonlyArray<string>
  readonly s?: string
  readonly i: number
  readonly x: number
  readonly n?: string
}

const prefix = "svc1."

/** Most characters of a token: a longer one fits no request line or header that proxies let through. */
export const maxLength = 7_168

/** Whether a bearer has the form of a view token; its signature is not checked. */
export const isTokenForm = (bearer: string): boolean => bearer.startsWith(prefix)

const keyOf = (secret: string): Uint8Array => hmac(sha256, utf8ToBytes(secret), utf8ToBytes("svc view tokens, 1"))

const signatureOf = (secret: string, payload: string): Uint8Array =>
  hmac(sha256, keyOf(secret), utf8ToBytes(prefix + payload))

export const sign = (secret: string, { expiresAtMs, issuedAtMs, nonce, subject, views }: ViewGrant): string => {
  const said: Payload = {
    v: views,
    ...(subject === undefined ? {} : { s: subject }),
    i: issuedAtMs,
    x: expiresAtMs,
    ...(nonce === undefined ? {} : { n: nonce })
  }
  const payload = Encoding.encodeBase64Url(JSON.stringify(said))
  return `${prefix}${payload}.${Encoding.encodeBase64Url(signatureOf(secret, payload))}`
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean => {
  let difference = a.length ^ b.length
  for (let n = 0; n < a.length; n++) difference |= a[n]! ^ b[n % b.length]!
  return difference === 0
}

/**
 * The grant of a token signed with one of the secrets; all secrets are tried, even after one has matched. Expiry is not
 * checked.
 */
export const read = (secrets: ReadonlyArray<string>, token: string): ViewGrant | undefined => {
  if (!isTokenForm(token) || token.length > maxLength) return undefined
  const [payload = "", signature = "", ...more] = token.slice(prefix.length).split(".")
  const given = Encoding.decodeBase64Url(signature)
  if (more.length > 0 || Either.isLeft(given)) return undefined
  let isSigned = false
  for (const secret of secrets) isSigned = isSame(given.right, signatureOf(secret, payload)) || isSigned
  if (!isSigned) return undefined
  // The signature is this service's, so the content is what `sign` wrote.
  const said = JSON.parse(Either.getOrThrow(Encoding.decodeBase64UrlString(payload))) as Payload
  return { views: said.v, subject: said.s, issuedAtMs: said.i, expiresAtMs: said.x, nonce: said.n }
}
