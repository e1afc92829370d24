/**
 * Which pages may call from a browser (CORS): the headers of an answer, and the answer to a preflight.
 *
 * Never with browser credentials: there are no cookies, and the secret travels in a header that a page must set itself.
 * So `*` only means "any page that knows the secret".
 */

/** Response headers by lower-case name. */
export interface Headers {
  readonly [name: string]: string
}

/** Request headers that a page may send beyond those always allowed, and response headers that it may read. */
const requestHeaders = "authorization, content-type, if-none-match, last-event-id, traceparent"
const exposed = "etag, retry-after, svc-snapshot-seq, www-authenticate"

/** The origin to allow in the answer; undefined for none. */
const allowedOrigin = (origins: ReadonlyArray<string>, origin: string | undefined): string | undefined =>
  origin === undefined
    ? undefined
    : origins[0] === "*"
      ? "*"
      : origins.includes(origin.toLowerCase())
        ? origin
        : undefined

/** `Vary` header: a cache must not give one origin's answer to another. */
const vary = (origins: ReadonlyArray<string>): Headers => (origins[0] === "*" ? {} : { vary: "Origin" })

/** Headers for every answer; undefined when no page may call at all. */
export const headersFor = (origins: ReadonlyArray<string>, origin: string | undefined): Headers | undefined => {
  if (origins.length === 0) return undefined
  const allowed = allowedOrigin(origins, origin)
  return allowed === undefined
    ? vary(origins)
    : { ...vary(origins), "access-control-allow-origin": allowed, "access-control-expose-headers": exposed }
}

/**
 * Headers of the answer to a preflight, a 204 without a body; undefined for any other request, or from a page that may
 * not call.
 */
export const preflight = (
  origins: ReadonlyArray<string>,
  method: string,
  origin: string | undefined,
  requestMethod: string | undefined
): Headers | undefined => {
  if (method !== "OPTIONS" || requestMethod === undefined) return undefined
  const allowed = allowedOrigin(origins, origin)
  return allowed === undefined
    ? undefined
    : {
        ...vary(origins),
        "access-control-allow-origin": allowed,
        "access-control-allow-methods": "GET, HEAD, POST",
        "access-control-allow-headers": requestHeaders,
        "access-control-max-age": "600"
      }
}

/** Allowed origins: `all` for every path, `browser` only for the paths that pages use to read views (D49). */
export interface Origins {
  readonly all: ReadonlyArray<string>
  readonly browser: ReadonlyArray<string>
}

/** Paths to read, follow and touch views. `/view/token` is not included: a page is given its token. */
const browserPaths =
  /^\/(?:stream(?:\/[^/]+)?|view\/(?:touch|(?!(?:register|unregister|token|free)$)[^/]+(?:\/stream)?))$/

/** Origins whose pages may call a path; `path` has no query. */
export const originsFor = ({ all, browser }: Origins, path: string): ReadonlyArray<string> => {
  if (browser.length === 0 || all[0] === "*" || !browserPaths.test(path)) return all
  return browser[0] === "*" ? browser : [...all, ...browser]
}
