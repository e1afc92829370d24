/**
 * The listening socket of a process, for its whole life, and the node that answers on it: one after another.
 *
 * A scheduler that stands by and then leads is two nodes in turn. Connections belong to the listener, so the second
 * node takes them over: none is refused or cut.
 */
import { createServer, type RequestListener, type Server } from "node:http"
import { Effect, type Scope } from "effect"
import { RateLimit } from "../../core/access/rateLimit.ts"
import * as Settings from "../../core/settings/settings.ts"
import type { Tls } from "../../node/config/tls.ts"
import type { Serving } from "../../ports/Front.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { BodyBudget, boundsOf } from "./bodyBudget.ts"
import { ConnectionLimits } from "./connectionLimits.ts"
import { answerBrokenRequests, Connections, type FinishRequests } from "./connections.ts"
import type { OpenBodies } from "./openBodies.ts"
import * as TlsServer from "./tlsServer.ts"

export interface ListenOptions {
  /** Undefined for all interfaces. */
  readonly host: string | undefined
  readonly port: number
  /** Setting to name if the address cannot be bound. */
  readonly setting: string
  readonly maxConnections: number
  /** Most connections from one address; 0 or absent: half. */
  readonly maxConnectionsPerAddress?: number
  /** Most bytes of unfinished bodies, and of one body; 64 MiB and 2 MiB when absent. */
  readonly maxBodyBytesTotal?: number
  readonly maxBodyBytes?: number
  /** Time for a request to arrive whole, and for a client to take some of its answer; 120 s when absent. */
  readonly requestTimeoutSecs?: number
  /** Requests per second and client address; 0 or absent: unlimited. */
  readonly rateLimit?: number
  /** Origins whose pages may call a server that asks for no secret; the node decides which may read its answers. */
  readonly corsOrigins?: ReadonlyArray<string>
  /** Origins whose pages may read views. */
  readonly browserOrigins?: ReadonlyArray<string>
  /** Whether the server asks for no secret; false when absent. */
  readonly isOpen?: boolean
  /** Whether an open server answers any address under any name; false when absent. */
  readonly answersAnybody?: boolean
  /** Host names under which an open server may be asked, beside addresses and reserved names. */
  readonly hosts?: ReadonlyArray<string> | undefined
  /** If set, the server speaks TLS only. */
  readonly tls?: Tls | undefined
  /** Paths that need a client certificate if nodes verify each other. */
  readonly nodePaths?: ReadonlyArray<string>
  /** Code of the answer to a request that comes while the process stops; an SSP's when absent. */
  readonly stoppingCode?: "SSP_NOT_READY" | "OVERLOADED"
}

/** Time for requests in flight after a stop; the process gives up at 10 s. */
const drainMs = 8000

/** Node looks for late requests at intervals, which are short beside the limit, so that none exceeds it by far. */
const checkEveryMs = (limitMs: number): number => Math.min(30_000, Math.max(100, limitMs / 4))

const serverOptions = (limitMs: number) => ({
  /** Longer than that of usual client pools, so that the client closes first. */
  keepAliveTimeout: 65_000,
  headersTimeout: Math.min(66_000, limitMs),
  requestTimeout: limitMs,
  connectionsCheckingInterval: checkEveryMs(limitMs),
  /** Checked in `Server.ts`, which answers in JSON. */
  requireHostHeader: false
})

const defaultLimitSecs = 120

/** Time for a request to arrive whole, and for a client to take some of its answer, in ms. */
export const limitOf = ({ requestTimeoutSecs = defaultLimitSecs }: ListenOptions): number => requestTimeoutSecs * 1000

/** A server with its limits: connections, bytes of unfinished bodies. */
const makeServer = (options: ListenOptions) => {
  const limitMs = limitOf(options)
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

/** Lets new TLS files count for connections that begin after a reload. */
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

/** A node on a listener. */
interface Served {
  /** Answers each request. */
  readonly answer: RequestListener
  readonly serving: Pick<typeof Serving.Service, "listening" | "stop">
  /** Requests with endless bodies. */
  readonly bodies: Pick<OpenBodies, "end">
}

export class Listener {
  readonly limits: ConnectionLimits
  /** Shared by all nodes: a client's requests are counted across a take-over. */
  readonly rate: RateLimit | undefined
  private readonly server: Server
  private readonly connections: Connections
  private served: Served | undefined
  /** For each earlier node, the function that waits for its requests. */
  private readonly finishing = new WeakMap<Served, FinishRequests>()
  private port: number | undefined
  private stopped = false

  private constructor(readonly options: ListenOptions) {
    const { connections, limits, server } = makeServer(options)
    const { rateLimit = 0 } = options
    this.server = server
    this.limits = limits
    this.connections = connections
    this.rate = rateLimit > 0 ? new RateLimit(rateLimit) : undefined
    const answer: RequestListener = (request, response) => this.served?.answer(request, response)
    server.on("request", answer)
    server.on("checkExpectation", answer)
  }

  /** The listener binds its address when the first node is served. */
  static readonly make = (options: ListenOptions): Effect.Effect<Listener, never, Scope.Scope> =>
    Effect.gen(function* () {
      const listener = new Listener(options)
      if (options.tls !== undefined) yield* followFiles(listener.server, options.tls)
      return listener
    })

  readonly isStopping = (): boolean => this.stopped

  /**
   * Lets a node answer in place of the earlier one, until the scope closes. The current node closes the listener with
   * itself; an earlier one waits for its own requests only.
   */
  serve(served: Served): Effect.Effect<void, StartFault, Scope.Scope> {
    return Effect.flatMap(
      Effect.acquireRelease(this.begin(served), () => this.leave(served)),
      served.serving.listening
    )
  }

  private begin(served: Served): Effect.Effect<number, StartFault> {
    return Effect.suspend(() => {
      const before = this.served
      this.served = served
      if (before !== undefined) this.finishing.set(before, this.connections.finishing())
      return this.port === undefined
        ? Effect.tap(listen(this.server, this.options), (port) => Effect.sync(() => void (this.port = port)))
        : Effect.succeed(this.port)
    })
  }

  private leave(served: Served): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const finishing = this.finishing.get(served)
      if (finishing === undefined) this.stopped = true
      served.bodies.end()
      yield* served.serving.stop
      if (finishing === undefined)
        yield* Effect.logInfo(
          `stopping: no new connections, ${this.connections.inFlight().length} requests and streams to finish`
        )
      const cut = yield* Effect.async<number>((resume) => {
        const done = (count: number): void => resume(Effect.succeed(count))
        if (finishing === undefined) this.connections.close(drainMs, done)
        else finishing(drainMs, done)
      })
      if (cut > 0) yield* Effect.logWarning(`${cut} connections were still busy after ${drainMs} ms and were cut`)
    })
  }
}
