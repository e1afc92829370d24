/**
 * Passes requests on to the SSP that has the view, and the answer back as it comes.
 *
 * So a client of a cluster needs one address. The SSP checks the caller's secret. A scheduler with a secret of its own
 * has checked that one, which must not reach SSPs, and sends the secret that they know.
 */
import { Effect, Stream } from "effect"
import * as Bytes from "../../core/bytes.ts"
import * as State from "../../core/cluster/state.ts"
import { bearerOf } from "../../node/http/bearer.ts"
import type { Call, RouteAnswer } from "../../node/http/routes.ts"
import { Browsers } from "../../node/streams/Browsers.ts"
import { bytesOf, type EndReason, endEvent } from "../../node/streams/viewEvent.ts"
import { Serving } from "../../ports/Front.ts"
import type { ForwardedAnswer } from "../../ports/SspClient.ts"
import { SspClient, SspUnreachable } from "../../ports/SspClient.ts"
import type { Sees } from "../../protocol/access.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import * as ViewOwner from "../pool/viewOwner.ts"

/** An id that a URL would take for a step of the path, so it cannot be passed on. */
export const isPathStep = (id: string): boolean => /^\.{1,2}$/.test(id)

/** Last event of a stream; the blank line ends an event that was cut in two. */
const lastOf = (reason: EndReason): Uint8Array =>
  Bytes.joined([new TextEncoder().encode("\n\n"), bytesOf(endEvent(reason))])

interface Asked {
  readonly format?: string | undefined
  readonly errors?: "kinds" | undefined
}

/** Query of the passed-on request. The SSP sees the scheduler's secret, so it is told how much the caller may see. */
const queryOf = ({ errors, format }: Asked, sees: Sees): string => {
  const asked = [
    ...(format === undefined ? [] : [`format=${format}`]),
    ...(errors === "kinds" || sees === "kinds" ? ["errors=kinds"] : [])
  ]
  return asked.length === 0 ? "" : `?${asked.join("&")}`
}

/**
 * Body of the answer. An event stream whose SSP is gone ends with the reason from `over`, so that the client asks
 * again; any other body that breaks off must not look complete.
 */
const bodyOf = ({ body, contentType }: ForwardedAnswer, over: Effect.Effect<EndReason>) => {
  if (!contentType.startsWith("text/event-stream")) return body
  let reason: EndReason | undefined
  const stop = Effect.map(over, (why) => {
    reason = why
  })
  return body.pipe(
    Stream.catchAll(() => Stream.empty),
    Stream.interruptWhen(stop),
    Stream.concat(Stream.suspend(() => (reason === undefined ? Stream.empty : Stream.make(lastOf(reason)))))
  )
}

const methods = { GET: "GET", HEAD: "HEAD", POST: "POST" } as const

const isMethod = (method: string): method is keyof typeof methods => Object.hasOwn(methods, method)

/** Passes a request on to an SSP. */
export const toSsp = Effect.map(
  Effect.all([SspClient, Serving, SchedulerConfig, Pool, Browsers]),
  ([client, { stopping }, config, pool, { tokens }]) =>
    ({ asked: { headers, method }, caller: { grant } }: Call, ssp: State.SspMember, path: string, as?: "GET") =>
      Effect.suspend(() => {
        const { authorization: own, "if-none-match": ifNoneMatch, "last-event-id": lastEventId } = headers
        const isChecked = config.bearers !== undefined || grant !== undefined
        const secret = isChecked ? config.sspSecret(ssp.ssp) : undefined
        const authorization = isChecked ? secret && bearerOf(secret) : own
        const stopped = Effect.as(stopping, "shutdown" as const)
        const over = grant === undefined ? stopped : Effect.race(stopped, tokens.lapse(grant))
        // Interruptible, because the handler around it is not and the time-out must be able to end it.
        return Effect.interruptible(
          client.forward(ssp.ssp, ssp.url, {
            method: as ?? (isMethod(method) ? method : "GET"),
            path,
            authorization,
            lastEventId,
            ifNoneMatch
          })
        ).pipe(
          Effect.filterOrFail(
            // A 401 is no answer for a caller whose secret this scheduler has accepted.
            ({ status }) => !isChecked || status !== 401,
            () => new SspUnreachable({ message: `SSP ${State.secretFault(ssp.ssp)}`, refused: false })
          ),
          Effect.map((answer): RouteAnswer => {
            const { contentType, headers, status } = answer
            return status === 304
              ? { status, headers, pieces: [] }
              : { status, headers: { ...headers, "content-type": contentType }, flow: bodyOf(answer, over) }
          }),
          Effect.tapError(({ refused }) =>
            refused ? pool.tell({ tag: "Refused", ssp: ssp.ssp, registration: ssp.registration }) : Effect.void
          ),
          Effect.mapError(Errors.unreachable)
        )
      })
)

/** Passes a request about a view on to the SSP that has it; `pathOf` gets the id percent-encoded. */
export const toOwner = Effect.map(
  Effect.all([Pool, toSsp]),
  ([pool, pass]) =>
    (call: Call, id: string, pathOf: (id: string) => string, asked: Asked) =>
      Effect.gen(function* () {
        const found = isPathStep(id) ? ({ isGone: true } as const) : ViewOwner.ownerOf(pool.state(), id)
        if ("isGone" in found) return yield* Effect.fail(Errors.viewNotFound(id))
        if ("refused" in found) return yield* Effect.fail(found.refused)
        return yield* pass(call, found.owner, `${pathOf(encodeURIComponent(id))}${queryOf(asked, call.caller.sees)}`)
      })
)
