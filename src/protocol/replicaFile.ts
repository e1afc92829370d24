/** `GET /replica` on the wire: which headers name and prove the file (RFC 9530 for its digest). */
import { Either, Encoding } from "effect"

export const contentType = "application/vnd.sqlite3"
export const logIdHeader = "svc-log-id"
export const digestHeader = "repr-digest"

/** `sha256` in hexadecimal. */
export const digestOf = (sha256: string): string =>
  `sha-256=:${Encoding.encodeBase64(Either.getOrThrow(Encoding.decodeHex(sha256)))}:`

/** SHA-256 in hexadecimal; undefined where the header has none. */
export const sha256In = (header: string | undefined): string | undefined => {
  const [, base64] = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):/.exec(header ?? "") ?? []
  return base64 === undefined ? undefined : Encoding.encodeHex(Either.getOrThrow(Encoding.decodeBase64(base64)))
}
