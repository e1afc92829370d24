/**
 * Audit lines as data: the caller, the action, its object, the address, and the outcome (D53).
 *
 * Why every text is made harmless here and not where it is printed: a line is evidence, and view ids, SSP names and job
 * ids are chosen by the caller. Neither a secret nor the query of a request is ever a part of one.
 */

export interface AuditEntry {
  /** The action, as the endpoint declares it (`view.register`); `access` for a refused caller. */
  readonly operation: string
  /** Object of the action: a view, a job, an SSP or an endpoint; empty for the whole server. */
  readonly object: string
  /**
   * Name of the caller's secret; `default` for the one secret of the specification, `none` if no secret is asked for,
   * `unknown` for an unknown one.
   */
  readonly secret: string
  /** IP address of the connection. */
  readonly address: string
  /** `ok`, or the code of the answer. */
  readonly outcome: string
}

/** Most characters kept of a caller's text. */
const most = 200

/** Everything that could end a line, hide a part of it or turn it around is shown as its code point. */
const harmless = (text: string): string => {
  const shortened = text.length > most ? `${text.slice(0, most)}…` : text
  return shortened.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
  )
}

/** An IPv4 address in the IPv6 form of a dual-stack socket is shown as IPv4. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "")

/** The fields logged beside the message `audit`. `audit` marks the line. */
export const annotationsOf = ({
  address,
  object,
  operation,
  outcome,
  secret
}: AuditEntry): { readonly [name: string]: unknown } => ({
  audit: true,
  operation,
  object: harmless(object),
  secret,
  address: harmless(plainAddress(address)),
  outcome: harmless(outcome)
})
