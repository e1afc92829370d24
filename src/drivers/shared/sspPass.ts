/**
 * Passes a client's request on to an SSP, and the answer back as it comes, unbuffered and unchanged.
 *
 * The caller's own credentials are sent, and only where a secret may go (D15), because any process can register as an
 * SSP. The scheduler's secret is never sent: it would give every caller of an open scheduler the rights of its holder.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Duration, Effect, Stream } from "effect"
import { isRefused } from "../../core/reason.ts"
import { type ForwardedAnswer, type ForwardedRequest, SspUnreachable } from "../../ports/SspClient.ts"
import type { Exchange } from "./exchange.ts"
import type { JudgedUrl } from "./judge.ts"

/** Streams send a comment every 15 s: an SSP that is silent for so long is gone. */
export const maxStreamSilence = Duration.seconds(45)

const kept = ["www-authenticate", "retry-after", "cache-control", "etag", "x-accel-buffering"] as const

const headersOf = ({
  authorization,
  ifNoneMatch,
  lastEventId
}: ForwardedRequest): { readonly [name: string]: string } => ({
  // The answer is passed on; the scheduler compresses it itself for the client.
  "accept-encoding": "identity",
  ...(authorization === undefined ? {} : { authorization }),
  ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
  ...(ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch })
})

/** `judge`: resolves a URL's name, and decides whether a secret may go there. */
export const make =
  (clientAt: Exchange["clientAt"], judge: (url: string) => Effect.Effect<JudgedUrl>, timeoutMs: number) =>
  (ssp: string, url: string, asked: ForwardedRequest): Effect.Effect<ForwardedAnswer, SspUnreachable> =>
    Effect.gen(function* () {
      const unreachable = (why: string, refused = false) =>
        new SspUnreachable({ message: `SSP ${ssp} at ${url} ${why}`, refused })
      const { addresses, mayHear, refused } = yield* judge(url)
      if (refused !== undefined) return yield* unreachable(refused)
      if (asked.authorization !== undefined && !mayHear)
        return yield* unreachable(
          "is at an address that no secret is sent to; list it in SVC_SCHEDULER_SSP_URL_ALLOW, or ask it directly"
        )
      const request = HttpClientRequest.make(asked.method)(`${url}${asked.path}`, { headers: headersOf(asked) })
      const response = yield* clientAt(addresses)
        .execute(request)
        .pipe(
          Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
          Effect.mapError((error) => unreachable("does not answer", isRefused(error))),
          Effect.timeoutFail({
            duration: Duration.millis(timeoutMs),
            onTimeout: () => unreachable(`does not answer within ${timeoutMs} ms`)
          })
        )
      // A redirect would lead to an address that was not judged.
      if (response.status >= 300 && response.status < 400 && response.status !== 304)
        return yield* unreachable(`answers ${response.status}, a redirect, which is not followed`)
      return {
        status: response.status,
        contentType: response.headers["content-type"] ?? "application/octet-stream",
        headers: Object.fromEntries(
          kept.flatMap((name) => (response.headers[name] === undefined ? [] : [[name, response.headers[name]]]))
        ),
        body: response.stream.pipe(
          Stream.mapError(() => unreachable("broke off its answer")),
          Stream.timeoutFail(() => unreachable("fell silent"), maxStreamSilence)
        )
      }
    })
