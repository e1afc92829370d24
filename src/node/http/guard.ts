/**
 * Judges a caller (D15): by a secret with the endpoint's scope, or by a token or ticket for a view at endpoints that
 * accept those (D49).
 */
import type { Scope } from "../../core/access/scopes.ts"
import type { IncomingRequest } from "../../ports/Front.ts"
import type { Judgement, makeJudge } from "./bearer.ts"
import { callerByTicket, callerOf, type ViewTokens } from "./viewTokens.ts"

/** The part of a request that a guard looks at. */
interface Wanted {
  readonly endpoint: string
  readonly scope: Scope
  readonly takesTokens: boolean
  /** The view that the path names. */
  readonly view: string | undefined
}

export type Guard = (wanted: Wanted, asked: IncomingRequest) => Judgement

/** The endpoint that accepts tickets: a browser's `EventSource` can send no header. */
const streamOfOne = "GET /view/:view_id/stream"

/** Without `tokens` no token is accepted. */
export const make = (judge: ReturnType<typeof makeJudge>, tokens?: ViewTokens): Guard => {
  const byToken = (
    { endpoint, takesTokens, view }: Wanted,
    { headers, url }: IncomingRequest
  ): Judgement | undefined => {
    if (tokens === undefined || !takesTokens) return undefined
    const { authorization } = headers
    return authorization === undefined && endpoint === streamOfOne
      ? callerByTicket(tokens, url, view)
      : callerOf(tokens, authorization, view)
  }
  return (wanted, asked) => byToken(wanted, asked) ?? judge(asked.headers["authorization"], wanted.scope)
}
