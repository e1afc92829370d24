/**
 * How the calls between nodes go out: one request, its whole answer, one time for both.
 *
 * A seam, because a node makes thousands of them a second: over any HTTP client here, on bare connections in
 * `host/http/exchange.ts`.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Duration, Effect } from "effect"

export interface Sent {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  /** JSON text. */
  readonly body: string | undefined
  /** For all of it: connecting, the request, the answer with its body; in milliseconds. */
  readonly withinMs: number
  /**
   * What the name in `url` stands for, as its caller has judged it: the connection goes to one of these, and the name
   * is not looked up again. Empty where the name is unknown; absent where the URL has an address, or names are not
   * judged.
   */
  readonly addresses?: ReadonlyArray<string> | undefined
}

export const json = "application/json"

/** Fails where there is no whole answer in time. Redirects are not followed. */
export type Send = (
  request: Sent
) => Effect.Effect<{ readonly status: number; readonly text: string }, { readonly message: string }>

/**
 * How the calls between nodes reach each other: whole exchanges, and a client for answers that go on, which connects to
 * `addresses` only.
 */
export interface Transport {
  readonly send: Send
  readonly clientAt: (addresses: ReadonlyArray<string> | undefined) => HttpClient.HttpClient
}

/**
 * A client that asks the first of `addresses`, under the name it was asked for where the client lets us choose. A name
 * that is unknown is left to the client: hosts of a network in one process have no addresses.
 */
const clientAt = (
  client: HttpClient.HttpClient,
  addresses: ReadonlyArray<string> | undefined
): HttpClient.HttpClient => {
  const [first] = addresses ?? []
  return first === undefined
    ? client
    : HttpClient.mapRequest(client, (request) => {
        const url = new URL(request.url)
        const name = url.host
        url.hostname = first.includes(":") ? `[${first}]` : first
        return HttpClientRequest.setHeader(HttpClientRequest.setUrl(request, url.href), "host", name)
      })
}

export const transportOf = (client: HttpClient.HttpClient): Transport => ({
  send: overClient(client),
  clientAt: (addresses) => clientAt(client, addresses)
})

export const overClient =
  (client: HttpClient.HttpClient): Send =>
  ({ addresses, body, headers, method, url, withinMs }) => {
    const bare = HttpClientRequest.make(method)(url, { headers })
    return clientAt(client, addresses)
      .execute(body === undefined ? bare : HttpClientRequest.bodyText(bare, body, json))
      .pipe(
        Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        Effect.timeout(Duration.millis(withinMs))
      )
  }
