/** `GET /replica` on the wire: the headers that identify and prove the file (RFC 9530 for its digest). */
import { Either, Encoding } from "effect"

export const contentType = "application/vnd.sqlite3"
export const logIdHeader = "svc-log-id"
export const digestHeader = "repr-digest"

/** The digest header's value for a SHA-256 in hexadecimal. */
export const digestOf = (sha256: string): string =>
  `sha-256=:${Encoding.encodeBase64(Either.getOrThrow(Encoding.decodeHex(sha256)))}:`

/** SHA-256 of the header in hexadecimal; undefined if it has none. */
export const sha256In = (header: string | undefined): string | undefined => {
  const [, base64] = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):/.exec(header ?? "") ?? []
  return base64 === undefined ? undefined : Encoding.encodeHex(Either.getOrThrow(Encoding.decodeBase64(base64)))
}
