/**
 * The Node HTTP server in front of a node: admits requests, and hands them to the node's front; what that leaves
 * (pages, documents, a composer's routes) goes to the router.
 *
 * Built last and torn down first: while it waits for requests in flight, everything the handlers use is still there.
 */

import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import * as Callers from "../../core/access/callers.ts"
import { clientOf, RateLimit } from "../../core/access/rateLimit.ts"
import * as Settings from "../../core/settings/settings.ts"
import type { Tls } from "../../node/config/tls.ts"
import { toAnswer } from "../../node/http/answers.ts"
import { type Answer, Front, Serving } from "../../ports/Front.ts"
import * as Pages from "../../ports/Pages.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { BodyBudget, boundsOf } from "./bodyBudget.ts"
import * as Compressed from "./compressed.ts"
import { ConnectionLimits } from "./connectionLimits.ts"
import { answerBrokenRequests, Connections, endsWithConnection } from "./connections.ts"
import { NodeExchange } from "./nodeExchange.ts"
import { OpenBodies } from "./openBodies.ts"
import * as TlsServer from "./tlsServer.ts"

export interface ListenOptions {
  /** Undefined for all interfaces. */
  readonly host: string | undefined
  readonly port: number
  /** Setting to name when the address cannot be had. */
  readonly setting: string
  readonly maxConnections: number
  /** Most of them from one address; 0 or absent: half. */
  readonly maxConnectionsPerAddress?: number
  /** Most bytes of unfinished bodies, and of one body; 64 MiB and 2 MiB when absent. */
  readonly maxBodyBytesTotal?: number
  readonly maxBodyBytes?: number
  /** Time for a request to arrive whole, and for a client to take some of its answer; 120 s when absent. */
  readonly requestTimeoutSecs?: number
  /** Requests per second and client address; 0 or absent: any number. */
  readonly rateLimit?: number
  /** Origins whose pages may call a server that asks for no secret; the node says which may read its answers. */
  readonly corsOrigins?: ReadonlyArray<string>
  /** Origins whose pages may read views. */
  readonly browserOrigins?: ReadonlyArray<string>
  /** Whether no caller is asked for a secret; false when absent. */
  readonly isOpen?: boolean
  /** Whether an open server answers any address under any name; false when absent. */
  readonly answersAnybody?: boolean
  /** Names under which an open server may be asked, beside addresses and reserved names. */
  readonly hosts?: ReadonlyArray<string> | undefined
  /** TLS and nothing else, where set. */
  readonly tls?: Tls | undefined
  /** Paths that need a client certificate where nodes show each other theirs. */
  readonly nodePaths?: ReadonlyArray<string>
  /** The code of {@link stoppingAnswer}; an SSP's when absent. */
  readonly stoppingCode?: "SSP_NOT_READY" | "OVERLOADED"
}

/** In-flight requests get this long to finish after a stop; the process gives up at 10 s. */
const drainMs = 8000

/** Node looks for late requests at intervals; a short limit must not be overrun many times. */
const checkEveryMs = (limitMs: number): number => Math.min(30_000, Math.max(100, limitMs / 4))

const serverOptions = (limitMs: number) => ({
  /** Longer than the usual pool's, so that the client closes first. */
  keepAliveTimeout: 65_000,
  headersTimeout: Math.min(66_000, limitMs),
  requestTimeout: limitMs,
  connectionsCheckingInterval: checkEveryMs(limitMs),
  /** Seen to here, where the answer is JSON. */
  requireHostHeader: false
})

const defaultLimitSecs = 120

/** Beside the dashboard's files: what describes the service and holds no data. */
const openPages = ["/docs", "/openapi.json"]

/** What a request gets that comes while the process stops. */
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

/** A target that is neither a path nor a whole address (RFC 9112, 3.2), which the router takes for the root. */
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
  isNode: TlsServer.isProven(socket)
})

/**
 * What every request meets first: a process that stops, a limit that is reached, a request that names no host, a caller
 * that may not ask.
 */
const makeAdmission = (
  options: ListenOptions,
  { pageHeaders }: Pick<typeof Front.Service, "pageHeaders">,
  staticPaths: ReadonlySet<string>,
  isStopping: () => boolean,
  limits: ConnectionLimits
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
  const limit = rateLimit > 0 ? new RateLimit(rateLimit) : undefined
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
    if (limit !== undefined && !Callers.probes.has(request.url ?? "")) {
      const waitSecs = limit.take(clientOf(request.socket.remoteAddress ?? ""), performance.now())
      if (waitSecs > 0) return tooMany(rateLimit, waitSecs)
    }
    if (request.headers.host === undefined && request.httpVersion === "1.1") return noHost
    if (!isOpen && !rules.asksCertificates && request.headers.origin === undefined) return undefined
    const refused = Callers.refusal(rules, callerOf(request))
    return refused && toAnswer(refused)
  }
}

/** `rest`: what answers requests that the front leaves. */
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
    if (request.method === "GET") Compressed.offer(request, response, silenceMs)
    if (serve(exchange, exchange)) return
    request.socket.setTimeout(silenceMs)
    endsWithConnection(response)
    rest(request, response)
  }

/** A server with its bounds: connections, bytes of unfinished bodies. */
const makeServer = (options: ListenOptions, limitMs: number) => {
  const { isOpen = false, maxConnections, tls } = options
  const {
    maxBodyBytes = Settings.defaultBodyBytes,
    maxBodyBytesTotal = Settings.maxBodyBytesTotal.fallback,
    maxConnectionsPerAddress = Settings.maxConnectionsPerAddress.fallback
  } = options
  const server =
    tls === undefined ? createServer(serverOptions(limitMs)) : TlsServer.createTlsServer(serverOptions(limitMs), tls)
  const limits = new ConnectionLimits(server, { maxConnections, maxConnectionsPerAddress })
  new BodyBudget(boundsOf(maxBodyBytesTotal, maxBodyBytes, isOpen)).follow(server)
  answerBrokenRequests(server)
  return { server, limits, connections: new Connections(server) }
}

const listen = (server: Server, { host, port, setting }: ListenOptions): Effect.Effect<number, StartFault> =>
  Effect.async<number, StartFault>((resume) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const where = `${host ?? "all interfaces"}, port ${port}`
      const why =
        error.code === "EADDRINUSE"
          ? "it is in use by another process"
          : error.code === "EACCES"
            ? "this user may not"
            : error.message
      resume(
        Effect.fail(
          new StartFault({
            exitCode: 1,
            message: `cannot listen on ${where}: ${why}; set ${setting} to an address that is free`
          })
        )
      )
    }
    server.once("error", onError)
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.off("error", onError)
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port))
    })
  })

/** New files of TLS are in force for connections that begin after a reload. */
const followFiles = (server: Server, tls: Tls) =>
  Effect.flatMap(Effect.runtime(), (runtime) => {
    const onFailure = (error: unknown): void =>
      void Effect.runFork(
        Effect.provide(Effect.logError("new files of TLS are not taken, the old ones stay in force", error), runtime)
      )
    return Effect.acquireRelease(
      Effect.sync(() => TlsServer.followFiles(server, tls, onFailure)),
      (end) => Effect.sync(end)
    )
  })

/** Serves until its scope closes; then stops accepting, ends streams, finishes requests in flight. */
export const layer = (options: ListenOptions) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const serving = yield* Serving
      const app = yield* HttpApiBuilder.httpApp
      const handler = yield* NodeHttpServer.makeHandler(app).pipe(
        Effect.locally(HttpMiddleware.currentTracerDisabledWhen, () => true)
      )
      const front = yield* Front
      let stopped = false
      const limitMs = (options.requestTimeoutSecs ?? defaultLimitSecs) * 1000
      const { connections, limits, server } = makeServer(options, limitMs)
      const bodies = new OpenBodies()
      const staticPaths = new Set([...openPages, ...(yield* Pages.paths)])
      const admit = makeAdmission(options, front, staticPaths, () => stopped, limits)
      const listener = makeListener(front, handler, admit, bodies, limitMs)
      if (options.tls !== undefined) yield* followFiles(server, options.tls)
      server.on("request", listener)
      server.on("checkExpectation", listener)
      yield* Effect.acquireRelease(listen(server, options), () =>
        Effect.gen(function* () {
          stopped = true
          bodies.end()
          yield* serving.stop
          yield* Effect.logInfo(
            `stopping: no new connections, ${connections.inFlight().length} requests and streams to finish`
          )
          const cut = yield* Effect.async<number>((resume) =>
            connections.close(drainMs, (count) => resume(Effect.succeed(count)))
          )
          if (cut > 0) yield* Effect.logWarning(`${cut} connections were still busy after ${drainMs} ms and were cut`)
        })
      ).pipe(Effect.flatMap(serving.listening))
    })
  ).pipe(
    Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
    Layer.provide(NodeHttpServer.layerContext)
  )
