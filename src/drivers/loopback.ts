/**
 * An HTTP client whose hosts are functions in this process: connects the nodes of a cluster in a test, without sockets.
 *
 * A driver and not a test helper, because composers of nodes test them the same way.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Effect, Layer } from "effect"

/** A handler as `HttpApiBuilder.toWebHandler` makes it. */
export type Handler = (request: Request) => Promise<Response>

/**
 * `handlers` by `host:port`, looked up at each request, so that nodes may come and go; an absent one refuses
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
