/**
 * Requests that an SSP answers, asked at the scheduler: forwarded to the SSP that has the view, and the answer handed
 * back as it comes.
 *
 * So that a reader of a cluster needs one address. The SSP checks the caller's secret; the scheduler only knows the
 * way. A scheduler with a secret of its own has checked that, which is not for SSPs to hear: it sends the one they
 * know.
 */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Stream } from "effect"
import * as Quarantine from "../../core/cluster/poolQuarantine.ts"
import * as State from "../../core/cluster/state.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { bearerOf } from "../../node/bearer.ts"
import { Serving } from "../../ports/Front.ts"
import type { PassedAnswer } from "../../ports/SspClient.ts"
import { SspClient } from "../../ports/SspClient.ts"
import { SchedulerConfig } from "../Config.ts"
import { Pool } from "../pool/Pool.ts"
import * as Errors from "./HttpErrors.ts"

const shutdown = new TextEncoder().encode('\n\nevent: end\ndata: {"reason":"shutdown"}\n\n')

export const formatOf = ({ format }: { readonly format?: string | undefined }): string =>
  format === undefined ? "" : `?format=${format}`

/**
 * An event stream ends when this process stops or its SSP is gone, so that the client asks again; anything else that
 * breaks off must not look whole.
 */
const bodyOf = ({ body, contentType }: PassedAnswer, stopping: Effect.Effect<void>) => {
  if (!contentType.startsWith("text/event-stream")) return body
  let stopped = false
  const stop = Effect.tap(stopping, () =>
    Effect.sync(() => {
      stopped = true
    })
  )
  return body.pipe(
    Stream.catchAll(() => Stream.empty),
    Stream.interruptWhen(stop),
    Stream.concat(Stream.suspend(() => (stopped ? Stream.make(shutdown) : Stream.empty)))
  )
}

const methods = { GET: "GET", HEAD: "HEAD", POST: "POST" } as const

const isMethod = (method: string): method is keyof typeof methods => Object.hasOwn(methods, method)

/** Hands a request on to an SSP. */
export const toSsp = Effect.map(
  Effect.all([SspClient, Serving, SchedulerConfig, Pool]),
  ([client, { stopping }, config, pool]) =>
    (request: HttpServerRequest.HttpServerRequest, ssp: State.SspMember, path: string, as?: "GET") => {
      const { authorization: own, "if-none-match": ifNoneMatch, "last-event-id": lastEventId } = request.headers
      const secret = config.bearers === undefined ? undefined : config.sspSecret(ssp.ssp)
      const authorization = config.bearers === undefined ? own : secret === undefined ? undefined : bearerOf(secret)
      // Interruptible, or its time-out could not end it within a handler that is not.
      return Effect.interruptible(
        client.pass(ssp.ssp, ssp.url, {
          method: as ?? (isMethod(request.method) ? request.method : "GET"),
          path,
          authorization,
          lastEventId,
          ifNoneMatch
        })
      ).pipe(
        Effect.map((answer) => {
          const { contentType, headers, status } = answer
          return status === 304
            ? HttpServerResponse.empty({ status, headers })
            : HttpServerResponse.stream(bodyOf(answer, stopping), { status, contentType, headers })
        }),
        Effect.tapError(({ refused }) =>
          refused ? pool.tell({ tag: "Refused", ssp: ssp.ssp, registration: ssp.registration }) : Effect.void
        ),
        Effect.mapError(Errors.unreachable)
      )
    }
)

/** Hands a request about a view on to the SSP that has it; `pathOf` is given the id as a piece of a path. */
export const toOwner = Effect.map(
  Effect.all([Pool, toSsp]),
  ([pool, pass]) =>
    (request: HttpServerRequest.HttpServerRequest, id: string, pathOf: (id: string) => string) =>
      Effect.gen(function* () {
        const key = viewKey(id)
        const view = key === undefined ? undefined : State.view(pool.state(), key)
        // Dots alone would be taken for steps of a path.
        if (view === undefined || view.gone || /^\.{1,2}$/.test(id)) return yield* Effect.fail(Errors.viewNotFound(id))
        const owner = State.at(pool.state(), view.home)
        const aside = owner === undefined ? Quarantine.of(pool.state(), view.spec) : undefined
        if (aside !== undefined) return yield* Effect.fail(Errors.viewQuarantined(id, aside))
        return owner === undefined
          ? yield* Effect.fail(Errors.viewWaits(id))
          : yield* pass(request, owner, pathOf(encodeURIComponent(id)))
      })
)
