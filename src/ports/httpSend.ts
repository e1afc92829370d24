/**
 * How the calls between nodes go out: one request, its whole answer, one time for both.
 *
 * A seam, because a node makes thousands of them a second: over any HTTP client here, on bare connections in `host/exchange.ts`.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
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
}

export const json = "application/json"

/** Fails where there is no whole answer in time. Redirects are not followed. */
export type Send = (request: Sent) => Effect.Effect<{ readonly status: number; readonly text: string }, { readonly message: string }>

export const overClient = (client: HttpClient.HttpClient): Send => ({ body, headers, method, url, withinMs }) => {
  const bare = HttpClientRequest.make(method)(url, { headers })
  return client.execute(body === undefined ? bare : HttpClientRequest.bodyText(bare, body, json)).pipe(
    Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
    Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
    Effect.timeout(Duration.millis(withinMs))
  )
}
