/**
 * Resolves the name in an SSP's address and judges it: whether the SSP may be called, and whether a secret may be sent
 * there (D15).
 *
 * The result carries the judged addresses, because a name may resolve to others a moment later: the caller connects to
 * these and does not resolve the name again.
 */
import { Effect } from "effect"
import * as Hosts from "../../core/access/hosts.ts"
import type { Names } from "../../ports/Names.ts"
import { steadyMs } from "../../ports/Turn.ts"

/** How long a resolved name is remembered, and an unknown one. */
const resolvedForMs = 10_000
const unknownForMs = 1000
const maxResolved = 1000

/** Current addresses of a URL's name, and the judgement about them. */
export interface JudgedUrl {
  /** Undefined if the URL holds an address. */
  readonly addresses: ReadonlyArray<string> | undefined
  readonly mayHear: boolean
  /** Why the SSP is not called; undefined if it is. */
  readonly refused: string | undefined
}

export const isTls = (url: string): boolean => /^https:/i.test(url)

/** Resolves and judges names. While no name server answers, the last addresses hold. */
export const makeUrlJudge = (
  names: typeof Names.Service,
  allowedHosts: ReadonlyArray<string> | undefined,
  isTlsOnly: boolean
) => {
  const known = new Map<string, { readonly until: number; readonly addresses: ReadonlyArray<string> }>()
  const resolve = Effect.fnUntraced(function* (host: string) {
    const now = yield* steadyMs
    const last = known.get(host)
    if (last !== undefined && now < last.until) return last.addresses
    const found = yield* names.resolve(host)
    const addresses = found.length > 0 ? found : (last?.addresses ?? [])
    if (known.size >= maxResolved) known.clear()
    known.set(host, { until: now + (addresses.length > 0 ? resolvedForMs : unknownForMs), addresses })
    return addresses
  })
  const addressesOf = (host: string): Effect.Effect<ReadonlyArray<string> | undefined> =>
    Hosts.placeOf(host) === undefined ? resolve(host) : Effect.succeed(undefined)
  const refusal = (url: string, host: string, addresses: ReadonlyArray<string>): string | undefined => {
    if (isTlsOnly && !isTls(url)) return "is no https:// address, and SVC_TLS_CA_FILE is set"
    return Hosts.isNeverCalled(host, addresses)
      ? "stands for a link-local or metadata address, which is never called"
      : undefined
  }
  /** Last judgement of each URL, reused while its name has the same addresses. */
  const verdicts = new Map<string, JudgedUrl>()
  const verdict = (url: string, host: string, addresses: ReadonlyArray<string> | undefined): JudgedUrl => {
    const last = verdicts.get(url)
    if (last !== undefined && last.addresses === addresses) return last
    if (verdicts.size >= maxResolved) verdicts.clear()
    const judged = {
      addresses,
      mayHear: Hosts.mayReceiveSecret(url, allowedHosts, addresses ?? []),
      refused: refusal(url, host, addresses ?? [])
    }
    verdicts.set(url, judged)
    return judged
  }
  const judge = (url: string): Effect.Effect<JudgedUrl> => {
    const last = verdicts.get(url)
    if (last !== undefined && last.addresses === undefined) return Effect.succeed(last)
    const host = Hosts.hostOf(url)
    return Effect.map(addressesOf(host), (addresses) => verdict(url, host, addresses))
  }
  return { addressesOf, judge }
}
