/**
 * The socket that a process listens on, for as long as it lives, and the node that answers there: one after another.
 *
 * A scheduler that stands by and then leads is two nodes in turn. Connections are the listener's, so that the second
 * node takes them over as they are: none is refused or cut for it.
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
import { answerBrokenRequests, Connections, type Finishing } from "./connections.ts"
import type { OpenBodies } from "./openBodies.ts"
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
  /** The code of the answer to a request that comes while the process stops; an SSP's when absent. */
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

/** Time for a request to arrive whole, and for a client to take some of its answer. */
export const limitOf = ({ requestTimeoutSecs = defaultLimitSecs }: ListenOptions): number => requestTimeoutSecs * 1000

/** A server with its bounds: connections, bytes of unfinished bodies. */
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

/** A node, as its listener has it. */
interface Served {
  /** Answers each request. */
  readonly answer: RequestListener
  readonly serving: Pick<typeof Serving.Service, "listening" | "stop">
  /** Requests whose bodies go on. */
  readonly bodies: Pick<OpenBodies, "end">
}

export class Listener {
  readonly limits: ConnectionLimits
  /** Of all nodes together: a client's requests are counted across a take-over. */
  readonly rate: RateLimit | undefined
  private readonly server: Server
  private readonly connections: Connections
  private served: Served | undefined
  /** How the requests of a node end that another one has followed. */
  private readonly finishing = new WeakMap<Served, Finishing>()
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

  /** It listens once there is a node to answer. */
  static readonly make = (options: ListenOptions): Effect.Effect<Listener, never, Scope.Scope> =>
    Effect.gen(function* () {
      const listener = new Listener(options)
      if (options.tls !== undefined) yield* followFiles(listener.server, options.tls)
      return listener
    })

  readonly isStopping = (): boolean => this.stopped

  /**
   * Has a node answer from now on, in the place of the one before, until the scope closes. The node that answers then
   * takes the listener down with it; one that another has followed waits for its own requests alone.
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
