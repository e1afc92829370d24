/**
 * The files of the dashboard and how they are served: a static shell that holds no data, so it asks for no secret
 * (D34).
 *
 * A port with a default, because reading files is a runtime's business, and another deployment may have no
 * dashboard: then `/` is no route.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Context, Effect } from "effect"

/** A file of the dashboard. */
export interface Page {
  /** Exact path; no other path leads to the file. */
  readonly path: string
  readonly contentType: string
  readonly body: Uint8Array
  /** Entity tag of the content, with its quotes. */
  readonly etag: string
}

/** Files of the dashboard; none by default. */
export class Pages extends Context.Reference<Pages>()("ports/Pages", { defaultValue: (): ReadonlyArray<Page> => [] }) {}

/**
 * Content security policy of all pages: only the service's own scripts run, nothing is loaded from other origins, no
 * page may frame these, and no form is submitted.
 */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const headersOf = ({ etag }: Page) => ({
  etag,
  "cache-control": "no-cache",
  "content-security-policy": contentSecurityPolicy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "x-frame-options": "DENY"
})

const matches = (header: string | undefined, etag: string): boolean =>
  header?.split(",").some((one) => one.trim().replace(/^W\//, "") === etag) === true

const answer = (page: Page) => {
  const headers = headersOf(page)
  const whole = HttpServerResponse.uint8Array(page.body, { contentType: page.contentType, headers })
  const same = HttpServerResponse.empty({ status: 304, headers })
  return (request: HttpServerRequest.HttpServerRequest) =>
    matches(request.headers["if-none-match"], page.etag) ? same : whole
}

/** One route a file. */
export const layerRoutes = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    for (const page of yield* Pages) {
      const respond = answer(page)
      yield* router.get(page.path as `/${string}`, Effect.map(HttpServerRequest.HttpServerRequest, respond))
    }
  })
)

/** The paths of the files, to answer 405 for other methods. */
export const paths: Effect.Effect<ReadonlyArray<string>> = Effect.map(Pages, (pages) => pages.map(({ path }) => path))
