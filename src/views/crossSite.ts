/**
 * Whether a page may make a request with the user's cookie: only pages of the handler's own origin and of the listed
 * ones.
 *
 * The browser sets `Sec-Fetch-Site`, which also holds behind a proxy, where the handler does not know its own address.
 * Without that header the request's `Origin` decides. A request with neither comes from no browser, so its sender knows
 * every cookie in it.
 */

/** Why the page may not make the request, for its developer; undefined if it may. */
export const crossSiteRefusal = (request: Request, origins: ReadonlyArray<string>): string | undefined => {
  const origin = request.headers.get("origin")
  const site = request.headers.get("sec-fetch-site")
  if (origin !== null && origins.includes(origin)) return undefined
  if (site === "same-origin" || (site === null && origin === null)) return undefined
  if (site === null && origin === new URL(request.url).origin) return undefined
  return `a page of ${origin ?? "another origin"} may not ask for views here (option \`origins\` of the handler)`
}

/** CORS headers for a page of a listed origin; none for others. */
export const corsHeaders = (request: Request, origins: ReadonlyArray<string>): { readonly [name: string]: string } => {
  const origin = request.headers.get("origin")
  if (origin === null || !origins.includes(origin)) return { vary: "origin" }
  return {
    vary: "origin",
    "access-control-allow-origin": origin,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "retry-after"
  }
}

/** Further CORS headers of the answer to a preflight request. */
export const preflightHeaders = {
  "access-control-allow-methods": "POST",
  "access-control-allow-headers": "content-type, authorization",
  "access-control-max-age": "600"
}
