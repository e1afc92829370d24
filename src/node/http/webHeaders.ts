/**
 * Headers for browsers: which pages may call (CORS), which sources a page of ours may load (CSP), and no guessing of
 * content types.
 *
 * Around all routes and before their guards: a preflight carries no secret, and the page must be able to read a
 * refusal. A page of ours runs its own scripts only, inline ones by hash, so that text from a record can never become
 * code.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { sha256 } from "@noble/hashes/sha2.js"
import { Effect, Encoding } from "effect"
import * as Cors from "../../core/access/cors.ts"

const inlineScript = /<script(?![^>]*\s(?:src=|type="application\/json"))[^>]*>([\s\S]*?)<\/script>/g

/** `'sha256-...'` of every inline script. */
const hashes = (html: string): ReadonlyArray<string> =>
  [...html.matchAll(inlineScript)].map(
    ([, script]) => `'sha256-${Encoding.encodeBase64(sha256(new TextEncoder().encode(script)))}'`
  )

/**
 * Content security policy: no other origins, frames or forms; styles may be inline, as plots and Swagger's page need.
 */
const policy = (html: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' ${hashes(html).join(" ")}`.trim(),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

const policies = new WeakMap<object, string>()

/** Computed once for each page body. */
const policyOf = (body: Uint8Array): string => {
  const known = policies.get(body) ?? policy(new TextDecoder().decode(body))
  policies.set(body, known)
  return known
}

const documentHeaders = (response: HttpServerResponse.HttpServerResponse): Cors.Headers => {
  const { body } = response
  if (
    body._tag !== "Uint8Array" ||
    !body.contentType.startsWith("text/html") ||
    "content-security-policy" in response.headers
  )
    return {}
  return {
    "content-security-policy": policyOf(body.body),
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin"
  }
}

/** Headers of every answer to pages of an origin that may read it. */
export const pageHeadersFor =
  (allowed: Cors.Origins) =>
  (url: string, origin: string | undefined): Cors.Headers | undefined =>
    Cors.headersFor(Cors.originsFor(allowed, url.split("?", 1)[0] ?? ""), origin)

/** Adds the headers to `app`, for these origins. */
export const wrap =
  (allowed: Cors.Origins) =>
  <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method, url }) => {
      const { origin } = headers
      const origins = Cors.originsFor(allowed, url.split("?", 1)[0] ?? "")
      const asked = Cors.preflight(origins, method, origin, headers["access-control-request-method"])
      if (asked !== undefined) return Effect.succeed(HttpServerResponse.empty({ status: 204, headers: asked }))
      return Effect.map(app, (response) =>
        HttpServerResponse.setHeaders(response, {
          "x-content-type-options": "nosniff",
          ...Cors.headersFor(origins, origin),
          ...documentHeaders(response)
        })
      )
    })
