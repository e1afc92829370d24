/**
 * The Node HTTP server in front of a node: admits requests and passes them to the node's front; the router answers the
 * others (pages, documents, a composer's routes).
 *
 * Built last and torn down first: while it waits for requests in flight, everything the handlers use still exists.
 */

import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import * as Callers from "../../core/access/callers.ts"
import { clientOf } from "../../core/access/rateLimit.ts"
import { toAnswer } from "../../node/http/answers.ts"
import { type Answer, Front, Serving } from "../../ports/Front.ts"
import * as Pages from "../../ports/Pages.ts"
import { endsWithConnection } from "./connections.ts"
import { Listener, type ListenOptions, limitOf } from "./Listener.ts"
import { NodeExchange } from "./nodeExchange.ts"
import { OpenBodies } from "./openBodies.ts"
import * as TlsServer from "./tlsServer.ts"

/** Pages without data that need no secret, beside the dashboard's files. */
const openPages = ["/docs", "/openapi.json"]

/** Answer to a request that arrives while the process stops. */
const stoppingAnswer = (code: "SSP_NOT_READY" | "OVERLOADED"): Answer => ({
  status: 503,
  headers: { connection: "close", ...(code === "OVERLOADED" ? { "retry-after": "1" } : {}) },
  body: JSON.stringify({ code, message: "this process is stopping" })
})

const noHost: Answer = {
  status: 400,
  headers: { connection: "close" },
  body: JSON.stringify({
    code: "INVALID_REQUEST",
    message: "request has no Host header",
    details: [{ path: "", reason: "has no Host header" }]
  })
}

/** 404 for a target that is neither a path nor a URL (RFC 9112, 3.2), which the router would take for the root. */
const noPath = ({ method = "", url = "" }: IncomingMessage): Answer | undefined =>
  url.startsWith("/") || /^https?:\/\//i.test(url)
    ? undefined
    : toAnswer({ code: "NOT_FOUND", message: `${method} ${url.slice(0, 300)}: no such route` })

const tooMany = (limit: number, waitSecs: number): Answer =>
  toAnswer({
    code: "RATE_LIMITED",
    message: `more than ${limit} requests per second from one address (setting SVC_RATE_LIMIT)`,
    retryAfterSecs: waitSecs
  })

const callerOf = ({ headers, method = "", socket, url = "" }: IncomingMessage): Callers.Caller => ({
  method,
  path: url.split("?", 1)[0] ?? "",
  host: headers.host,
  origin: headers.origin,
  contentType: headers["content-type"],
  address: socket.remoteAddress ?? "",
  isNode: TlsServer.hasCertificate(socket)
})

/**
 * Admission of requests, before any route: refuses while the process stops, above a rate limit, without a host name,
 * and callers that may not ask.
 */
const makeAdmission = (
  { isStopping, limits, options, rate }: Pick<Listener, "isStopping" | "limits" | "options" | "rate">,
  { pageHeaders }: Pick<typeof Front.Service, "pageHeaders">,
  staticPaths: ReadonlySet<string>
) => {
  const {
    answersAnybody = false,
    browserOrigins = [],
    corsOrigins = [],
    hosts,
    isOpen = false,
    nodePaths = [],
    rateLimit = 0,
    stoppingCode = "SSP_NOT_READY",
    tls
  } = options
  const stopping = stoppingAnswer(stoppingCode)
  const origins = { all: corsOrigins, browser: browserOrigins }
  const asksCertificates = tls?.isMutual ?? false
  const rules = { isOpen, answersAnybody, origins, hosts, staticPaths, nodePaths, asksCertificates }
  return (request: IncomingMessage, response: ServerResponse): Answer | undefined => {
    const cors = pageHeaders(request.url ?? "", request.headers.origin)
    if (cors !== undefined) for (const [name, value] of Object.entries(cors)) response.setHeader(name, value)
    if (isStopping()) return stopping
    const beyond = limits.refusal(request.socket)
    if (beyond !== undefined) {
      response.setHeader("connection", "close")
      if (!Callers.probes.has(request.url ?? ""))
        return toAnswer({ code: "OVERLOADED", message: beyond, retryAfterSecs: 1 })
    }
    if (rate !== undefined && !Callers.probes.has(request.url ?? "")) {
      const waitSecs = rate.take(clientOf(request.socket.remoteAddress ?? ""), performance.now())
      if (waitSecs > 0) return tooMany(rateLimit, waitSecs)
    }
    if (request.headers.host === undefined && request.httpVersion === "1.1") return noHost
    if (!isOpen && !rules.asksCertificates && request.headers.origin === undefined) return undefined
    const refused = Callers.refusal(rules, callerOf(request))
    return refused && toAnswer(refused)
  }
}

/** `rest`: answers requests that the front leaves. */
const makeListener =
  (
    { serve }: Pick<typeof Front.Service, "serve">,
    rest: RequestListener,
    admit: ReturnType<typeof makeAdmission>,
    bodies: OpenBodies,
    silenceMs: number
  ): RequestListener =>
  (request, response) => {
    const exchange = new NodeExchange({ silenceMs, bodies }, request, response)
    const refused = admit(request, response) ?? noPath(request)
    if (refused !== undefined) return exchange.send(refused)
    if (serve(exchange, exchange)) return
    request.socket.setTimeout(silenceMs)
    endsWithConnection(response)
    rest(request, response)
  }

/** Serves on a listener until its scope closes; then ends streams and finishes requests in flight. */
export const layerOn = (listener: Listener) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const serving = yield* Serving
      const app = yield* HttpApiBuilder.httpApp
      const handler = yield* NodeHttpServer.makeHandler(app).pipe(
        Effect.locally(HttpMiddleware.currentTracerDisabledWhen, () => true)
      )
      const front = yield* Front
      const bodies = new OpenBodies()
      const staticPaths = new Set([...openPages, ...(yield* Pages.paths)])
      const admit = makeAdmission(listener, front, staticPaths)
      const answer = makeListener(front, handler, admit, bodies, limitOf(listener.options))
      yield* listener.serve({ answer, bodies, serving })
    })
  ).pipe(
    Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
    Layer.provide(NodeHttpServer.layerContext)
  )

/** Listens and serves until its scope closes; then stops accepting, ends streams, finishes requests in flight. */
export const layer = (options: ListenOptions) => Layer.unwrapScoped(Effect.map(Listener.make(options), layerOn))
