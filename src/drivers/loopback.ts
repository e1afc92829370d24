/**
 * An HTTP client whose hosts are functions in this process: how the nodes of a cluster talk in a test, without sockets.
 *
 * A port's layer and not a test's own, because a composer of nodes tests them the same way.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Effect, Layer } from "effect"

/** As `HttpApiBuilder.toWebHandler` gives it. */
export type Handler = (request: Request) => Promise<Response>

/**
 * `handlers` by `host:port`, looked up at each request, so that nodes may come and go; one that is not there refuses
 * connections.
 */
export const layer = (handlers: ReadonlyMap<string, Handler>): Layer.Layer<HttpClient.HttpClient> =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request, url, signal) => {
      const handler = handlers.get(url.host)
      const failed = (cause: unknown) =>
        new HttpClientError.RequestError({
          request,
          reason: "Transport",
          cause,
          description: `${url.host} does not answer`
        })
      if (handler === undefined) return Effect.fail(failed(undefined))
      const { body } = request
      if (body._tag !== "Empty" && body._tag !== "Uint8Array")
        return Effect.dieMessage(`a loopback takes no body of kind ${body._tag}`)
      const init = {
        method: request.method,
        headers: request.headers,
        signal,
        ...(body._tag === "Empty" ? {} : { body: body.body as Uint8Array<ArrayBuffer> })
      }
      return Effect.tryPromise({ try: () => handler(new Request(url, init)), catch: failed }).pipe(
        Effect.map((response) => HttpClientResponse.fromWeb(request, response))
      )
    })
  )
