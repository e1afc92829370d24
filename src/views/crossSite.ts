/**
 * Whether a page may make a request with the user's cookie: pages of the handler's own origin, and of those it lists.
 *
 * `Sec-Fetch-Site` is decided by the browser and holds behind a proxy, where the handler does not know its own address.
 * A browser that does not send it names the page's origin. A request with neither comes from no browser, so that no
 * cookie is in it that its sender does not know.
 */

/** Undefined: it may. Otherwise the reason, for the page's developer. */
export const refused = (request: Request, origins: ReadonlyArray<string>): string | undefined => {
  const origin = request.headers.get("origin")
  const site = request.headers.get("sec-fetch-site")
  if (origin !== null && origins.includes(origin)) return undefined
  if (site === "same-origin" || (site === null && origin === null)) return undefined
  if (site === null && origin === new URL(request.url).origin) return undefined
  return `a page of ${origin ?? "another origin"} may not ask for views here (option \`origins\` of the handler)`
}

/** For an answer to a page of a listed origin; none for others. */
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

export const preflightHeaders = {
  "access-control-allow-methods": "POST",
  "access-control-allow-headers": "content-type, authorization",
  "access-control-max-age": "600"
}
