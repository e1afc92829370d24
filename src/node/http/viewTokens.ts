/**
 * View tokens of one process: issues and judges them, and knows which subjects were revoked (D49).
 *
 * A revocation is known to this process until the last token that it concerns has expired; another process, and this
 * one after a restart, accepts such a token until then.
 */
import { bytesToHex, randomBytes } from "@noble/hashes/utils.js"
import { Effect } from "effect"
import { type KnownSecret, reservedNames } from "../../core/access/scopedSecrets.ts"
import * as ViewToken from "../../core/access/viewToken.ts"
import { type Judgement, tokenIn } from "./bearer.ts"

interface ViewTokenParts {
  readonly secrets: () => ReadonlyArray<KnownSecret>
  readonly ttlMs: number
  readonly nowMs: () => number
}

/** The subject, the lifetime and the kind of a token to be issued. */
interface GivenFor {
  readonly subject?: string | undefined
  readonly ttlMs?: number | undefined
  /** Whether the token is a ticket: for one stream, once, within 30 s. */
  readonly isTicket?: boolean | undefined
}

/**
 * Permission to follow a view, until `expiresAtMs` (Unix milliseconds) and on behalf of `subject`. Both are undefined
 * for a caller with a secret.
 */
export interface ViewPermission {
  readonly expiresAtMs: number | undefined
  readonly subject: string | undefined
}

/** Why a view may not be followed. */
export interface PermissionRefused {
  readonly code: "UNAUTHORIZED"
  readonly message: string
}

/** Most revoked subjects that are remembered; beyond it the one revoked longest ago is forgotten. */
const maxRevoked = 100_000

/** Lifetime of a ticket, in milliseconds. */
const ticketMs = 30_000
/** Longest time between two checks whether the token of an open stream has expired, in milliseconds. */
const lookMs = 1_000

const fault = (message: string): PermissionRefused => ({ code: "UNAUTHORIZED", message })

const onlyTicket = fault("this is a ticket: it opens one stream, as `?ticket=`")
const noTicket = fault("this is a token and no ticket (POST /view/token with `once`)")
const usedTicket = fault("the ticket was used; ask for another")
const unknown = fault("the token is not one that a secret of this service has signed")

export class ViewTokens {
  /** Times of revocation by subject, earliest first. */
  private readonly revokedAtMs = new Map<string, number>()
  /** Expiry times of used tickets by nonce, in the order of use. */
  private readonly used = new Map<string, number>()
  private lastIssuedMs = 0
  private readonly onRevoked = new Set<(subject: string) => void>()

  constructor(private readonly parts: ViewTokenParts) {}

  /** Secrets that sign: those with the scope `read` whose clear text is known. */
  private get signing(): ReadonlyArray<string> {
    return this.parts
      .secrets()
      .flatMap(({ scopes, text }) => (text !== undefined && scopes.includes("read") ? [text] : []))
  }

  /** A token and its lifetime; undefined if no secret can sign it. */
  give(
    views: ReadonlyArray<string>,
    { isTicket = false, subject, ttlMs = this.parts.ttlMs }: GivenFor = {}
  ): { readonly token: string; readonly expires_in_ms: number } | undefined {
    const [secret] = this.signing
    if (secret === undefined) return undefined
    const nowMs = this.parts.nowMs()
    // Later than any revocation of the subject, even if the clock was set back since.
    const issuedAtMs = Math.max(nowMs, (subject === undefined ? 0 : (this.revokedAtMs.get(subject) ?? 0)) + 1)
    if (issuedAtMs > this.lastIssuedMs) this.lastIssuedMs = issuedAtMs
    const forMs = Math.min(ttlMs, this.parts.ttlMs, isTicket ? ticketMs : Number.POSITIVE_INFINITY)
    const nonce = isTicket ? bytesToHex(randomBytes(16)) : undefined
    const grant = { views, subject, issuedAtMs, expiresAtMs: nowMs + forMs, nonce }
    return { token: ViewToken.sign(secret, grant), expires_in_ms: forMs }
  }

  /** The grant of a token, or why it is refused. */
  judge(token: string): ViewToken.ViewGrant | PermissionRefused {
    const grant = this.read(token)
    return "code" in grant || grant.nonce === undefined ? grant : onlyTicket
  }

  /** The grant of a ticket, which this call uses up: a stream of one view, for the lifetime of a token. */
  redeem(ticket: string, view: string): ViewToken.ViewGrant | PermissionRefused {
    const grant = this.read(ticket)
    if ("code" in grant) return grant
    const { expiresAtMs, nonce } = grant
    if (nonce === undefined) return noTicket
    if (!grantsView(grant, view)) return notNamed
    const nowMs = this.parts.nowMs()
    for (const [each, untilMs] of this.used) {
      if (untilMs > nowMs) break
      this.used.delete(each)
    }
    if (this.used.has(nonce)) return usedTicket
    this.used.set(nonce, expiresAtMs)
    return { ...grant, views: [view], expiresAtMs: nowMs + this.parts.ttlMs }
  }

  private read(token: string): ViewToken.ViewGrant | PermissionRefused {
    const grant = ViewToken.read(this.signing, token)
    return grant === undefined ? unknown : this.now(grant)
  }

  /** Judges a grant again, which was valid when its request began. */
  now(grant: ViewToken.ViewGrant): ViewToken.ViewGrant | PermissionRefused {
    const { expiresAtMs } = grant
    if (expiresAtMs <= this.parts.nowMs()) return fault("the token has expired; ask for another")
    return this.isRevoked(grant) ? fault("the token was revoked") : grant
  }

  private isRevoked({ issuedAtMs, subject }: ViewToken.ViewGrant): boolean {
    const revokedAtMs = subject === undefined ? undefined : this.revokedAtMs.get(subject)
    return revokedAtMs !== undefined && issuedAtMs <= revokedAtMs
  }

  /** Refuses all tokens issued to the subject so far. */
  revoke(subject: string): void {
    const nowMs = this.parts.nowMs()
    for (const [each, atMs] of this.revokedAtMs) {
      if (atMs + this.parts.ttlMs > nowMs && this.revokedAtMs.size < maxRevoked) break
      this.revokedAtMs.delete(each)
    }
    this.revokedAtMs.delete(subject)
    // Covers tokens that were issued before the clock was set back.
    this.revokedAtMs.set(subject, Math.max(nowMs, this.lastIssuedMs))
    for (const each of this.onRevoked) each(subject)
  }

  /** Waits until a grant expires or is revoked; answers which. */
  lapse(grant: ViewToken.ViewGrant): Effect.Effect<"unauthorized" | "revoked"> {
    const { expiresAtMs, subject } = grant
    // In short sleeps: one timer for the whole time would miss that the clock is set forward.
    const expired: Effect.Effect<"unauthorized"> = Effect.suspend(() => {
      const leftMs = expiresAtMs - this.parts.nowMs()
      return leftMs <= 0
        ? Effect.succeed("unauthorized")
        : Effect.zipRight(Effect.sleep(Math.min(leftMs, lookMs)), expired)
    })
    const revoked = Effect.async<"revoked">((resume) => {
      // The grant may have been revoked since the request was accepted.
      if (this.isRevoked(grant)) return resume(Effect.succeed("revoked"))
      const hear = (named: string): void => {
        if (named === subject) resume(Effect.succeed("revoked"))
      }
      this.onRevoked.add(hear)
      return Effect.sync(() => void this.onRevoked.delete(hear))
    })
    return subject === undefined ? expired : Effect.race(expired, revoked)
  }
}

const notNamed = fault("the token does not name this view")

/** Whether a token's grant is for a view. */
export const grantsView = ({ views }: ViewToken.ViewGrant, view: string): boolean => views.includes(view)

/** The caller by a token for this view, if one is needed; undefined if the bearer is no token. */
export const callerOf = (
  tokens: ViewTokens,
  authorization: string | undefined,
  view: string | undefined
): Judgement | undefined => {
  const given = tokenIn(authorization)
  if (given === undefined || !ViewToken.isTokenForm(given)) return undefined
  const grant = tokens.judge(given)
  if ("code" in grant) return { turned: grant, name: reservedNames.token }
  return view === undefined || grantsView(grant, view)
    ? { caller: { name: reservedNames.token, onlySsp: undefined, sees: "kinds", grant } }
    : { turned: notNamed, name: reservedNames.token }
}

/** The caller of a view's stream by the ticket in the request's target; undefined if there is none. */
export const callerByTicket = (tokens: ViewTokens, url: string, view: string | undefined): Judgement | undefined => {
  const ticket = new URLSearchParams(url.slice(url.indexOf("?") + 1)).get("ticket")
  if (ticket === null || view === undefined || !url.includes("?")) return undefined
  const grant = tokens.redeem(ticket, view)
  return "code" in grant
    ? { turned: grant, name: reservedNames.token }
    : { caller: { name: reservedNames.token, onlySsp: undefined, sees: "kinds", grant } }
}

/** Permission of `caller` to follow `view`, or of `token`'s bearer if one is given. */
export const permissionFor = (
  tokens: ViewTokens,
  caller: ViewToken.ViewGrant | undefined,
  view: string,
  token: string | undefined
): ViewPermission | PermissionRefused => {
  if (token === undefined && caller === undefined) return byASecret
  const grant = token === undefined ? tokens.now(caller!) : tokens.judge(token)
  if ("code" in grant) return grant
  return grantsView(grant, view) ? grant : notNamed
}

const byASecret: ViewPermission = { expiresAtMs: undefined, subject: undefined }
