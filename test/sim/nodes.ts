/**
 * Whole nodes in one process: the real layers of a scheduler and of SSPs, on a loopback and in virtual time, to be
 * crashed and started again.
 *
 * A crash is sudden: connections break first, so that no goodbye gets out, and what was not durable is gone. What is
 * durable (log, replica, pool) is in memory and outlives the node, except frozen snapshots, which are a process's own.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpServer from "@effect/platform/HttpServer"
import { Cause, Context, Effect, Exit, Layer, Logger, LogLevel, Random, Redacted, Scope } from "effect"
import { askFront } from "../../kit/checks/frontAsk.ts"
import type { VirtualTime } from "../../kit/data/virtualTime.ts"
import * as HttpSchedulerClient from "../../src/drivers/httpSchedulerClient.ts"
import * as HttpSspClient from "../../src/drivers/httpSspClient.ts"
import * as MemoryPool from "../../src/drivers/memoryPool.ts"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import { Balance } from "../../src/ports/Balance.ts"
import { Database } from "../../src/ports/Database.ts"
import { Front, Serving } from "../../src/ports/Front.ts"
import { Names } from "../../src/ports/Names.ts"
import { PoolStore } from "../../src/ports/PoolStore.ts"
import { Release } from "../../src/ports/Release.ts"
import { Replica, type ReplicaShape } from "../../src/ports/Replica.ts"
import { RequestBody } from "../../src/ports/RequestBody.ts"
import { SavedState } from "../../src/ports/SavedState.ts"
import { Turn } from "../../src/ports/Turn.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { Wal, type WalShape } from "../../src/ports/Wal.ts"
import { feedType } from "../../src/protocol/wire.ts"
import { SchedulerConfig } from "../../src/scheduler/Config.ts"
import { Pool, type PoolShape } from "../../src/scheduler/pool/Pool.ts"
import * as Scheduler from "../../src/scheduler/Scheduler.ts"
import { SspConfig } from "../../src/ssp/Config.ts"
import * as JobPorts from "../../src/ssp/jobs/jobPorts.ts"
import type { Lifecycle } from "../../src/ssp/membership/Lifecycle.ts"
import * as Ssp from "../../src/ssp/Ssp.ts"
import type { Views } from "../../src/ssp/views/Views.ts"
import type { Handler, Network } from "./network.ts"

export const secret = "s3cret"

export interface World {
  readonly time: VirtualTime
  readonly network: Network
  /** Lines of all nodes' logs from `info` on. */
  readonly logs: Array<string>
  /** What ended a node by itself. */
  readonly crashes: Array<string>
}

/** Asked as a server of the package asks them, without a fiber; all others as a web handler is. */
const byCallback: ReadonlySet<string> = new Set(["POST /ingest", "POST /ssp/applied"])

/** The node's routes. */
const layerLoopback = ({ network }: World, name: string, host: string) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const serving = yield* Serving
      const app = yield* HttpApiBuilder.httpApp
      const front = yield* Front
      const web = HttpApp.toWebHandlerRuntime(yield* Effect.runtime<never>())(app as HttpApp.Default)
      const handler: Handler = async ({ body, headers, method, path }) => {
        if (byCallback.has(`${method} ${path}`)) {
          const answer = await askFront(front, { method, url: path, headers, body })
          return { ...answer, headers: { "content-type": "application/json", ...answer.headers } }
        }
        const given = Object.fromEntries(
          Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined)
        )
        const response = await web(
          new Request(`http://${host}${path}`, { method, headers: given, ...(method === "POST" ? { body } : {}) })
        )
        const headersOf = Object.fromEntries(response.headers)
        if (response.status === 200 && headersOf["content-type"] === feedType && response.body !== null)
          return { status: 200, headers: headersOf, body: "", flow: response.body }
        return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() }
      }
      network.bind(name, host, handler)
      yield* serving.listening(Number(host.slice(host.indexOf(":") + 1)))
    })
  ).pipe(
    Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
    Layer.provide(HttpServer.layerContext)
  )

const layerLogs = ({ logs, time }: World, name: string) =>
  Layer.merge(
    Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ logLevel, message }) => void logs.push(`${time.now} ${name} ${logLevel.label} ${String(message)}`))
    ),
    Logger.minimumLogLevel(LogLevel.Info)
  )

/** A node over its lives. `build` is given the seed of the life. */
export class SimNode<R> {
  readonly name: string
  readonly host: string
  context: Context.Context<R | Serving> | undefined
  private lives = 0
  private scope: Scope.CloseableScope | undefined
  private readonly world: World
  private readonly build: (life: number) => Layer.Layer<R | Serving, unknown>
  private readonly fallen: () => void

  constructor(
    world: World,
    name: string,
    host: string,
    build: (life: number) => Layer.Layer<R | Serving, unknown>,
    fallen: () => void = () => {}
  ) {
    this.world = world
    this.name = name
    this.host = host
    this.build = build
    this.fallen = fallen
  }

  get alive(): boolean {
    return this.scope !== undefined
  }

  async start(): Promise<void> {
    const { time } = this.world
    const life = ++this.lives
    const scope = Effect.runSync(Scope.make())
    this.scope = scope
    const random = Random.make(`${this.name} ${life}`)
    const layer = Layer.fresh(this.build(life)).pipe(
      Layer.provide(layerLogs(this.world, this.name)),
      Layer.provide(Layer.merge(time.layer, Layer.setRandom(random)))
    )
    const building = Effect.runPromiseExit(
      Layer.buildWithScope(layer, scope).pipe(Effect.withClock(time.clock), Effect.withRandom(random))
    )
    let done = false
    void building.then(() => {
      done = true
    })
    await time.settle()
    for (let i = 0; !done && i < 1000; i++) await time.advance(1)
    const built = await building
    if (Exit.isFailure(built)) throw new Error(`${this.name} does not start: ${Cause.pretty(built.cause)}`)
    this.context = built.value
    Effect.runFork(
      Context.get(built.value, Serving).crashed.pipe(
        Effect.catchAll((fault) =>
          Effect.sync(() => {
            if (this.scope === scope) this.world.crashes.push(`${time.now} ${this.name}: ${fault.message}`)
          })
        )
      )
    )
    await time.settle()
  }

  async crash(): Promise<void> {
    const { scope } = this
    if (scope === undefined) return
    this.scope = undefined
    this.context = undefined
    this.world.network.unbind(this.host)
    this.world.network.falling.add(this.name)
    const closing = Effect.runPromise(Scope.close(scope, Exit.void))
    let done = false
    void closing.then(() => {
      done = true
    })
    for (let i = 0; !done && i < 10_000; i++) await this.world.time.advance(1)
    await closing
    this.world.network.falling.delete(this.name)
    this.fallen()
  }
}

const schedulerHost = "127.0.0.1:9667"

const schedulerEnv = {
  SVC_AUTH_SECRET: secret,
  SCHEDULER_ID: "scheduler",
  SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "200",
  SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "200",
  SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "1500",
  SVC_SCHEDULER_BOOTSTRAP_TIMEOUT_SECS: "20",
  SVC_SCHEDULER_MAX_BUFFER_PER_SSP: "100",
  SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS: "3"
}

/** What of a scheduler outlives it. */
export interface Durable {
  readonly wal: WalShape
  readonly replica: ReplicaShape
}

export const schedulerNode = (
  world: World,
  env: { readonly [name: string]: string } = {},
  upstream: Layer.Layer<Upstream> = Upstream.layerNone,
  turn: Layer.Layer<Turn> = Turn.layerYield
): { readonly node: SimNode<Pool>; readonly durable: Durable; readonly pool: () => PoolShape } => {
  const kept = Effect.runSync(
    Effect.scoped(Layer.build(Layer.mergeAll(Wal.layerMemory("log"), MemoryReplica.layer, MemoryPool.layer)))
  )
  const replica = Context.get(kept, Replica)
  const frozen = new Set<number>()
  const watched: ReplicaShape = {
    ...replica,
    freeze: (id) => Effect.tap(replica.freeze(id), () => frozen.add(id)),
    thaw: (id) => Effect.tap(replica.thaw(id), () => frozen.delete(id))
  }
  const stores = Layer.mergeAll(
    Layer.succeed(Wal, Context.get(kept, Wal)),
    Layer.succeed(Replica, watched),
    Layer.succeed(PoolStore, Context.get(kept, PoolStore)),
    upstream
  )
  const client = Layer.provide(
    HttpSspClient.layer({ secret: () => Redacted.make(secret), allowedHosts: undefined, timeoutMs: 1000 }),
    [
      Layer.succeed(HttpClient.HttpClient, world.network.client("scheduler")),
      Layer.succeed(Names, { resolve: () => Effect.succeed([]) })
    ]
  )
  const build = () =>
    layerLoopback(world, "scheduler", schedulerHost).pipe(
      Layer.provideMerge(Scheduler.layer),
      Layer.provide(
        Layer.mergeAll(
          stores,
          client,
          Balance.layerNamed("least_queries"),
          RequestBody.layer,
          turn,
          Release.layerOf("1.2.3"),
          SchedulerConfig.layerOf({ ...schedulerEnv, ...env })
        )
      )
    )
  const node = new SimNode<Pool>(world, "scheduler", schedulerHost, build, () => {
    for (const id of [...frozen]) Effect.runSync(watched.thaw(id))
  })
  return { node, durable: { wal: Context.get(kept, Wal), replica }, pool: () => Context.get(node.context!, Pool) }
}

/** For tests that look at records no view reads, or at what an SSP is sent (D61). */
export const isSentAll = { SVC_CLUSTER_FEED: "push" } as const

export const sspNode = (
  world: World,
  n: number,
  more: { readonly [name: string]: string } = {}
): SimNode<Views | Lifecycle> => {
  const name = `ssp-${n}`
  const host = `127.0.0.1:${8660 + n}`
  const scheduler = Layer.provide(
    HttpSchedulerClient.layer(`http://${schedulerHost}`),
    Layer.succeed(HttpClient.HttpClient, world.network.client(name))
  )
  const env = {
    SVC_AUTH_SECRET: secret,
    SSP_ID: name,
    SCHEDULER_URL: `http://${schedulerHost}`,
    LISTEN_ADDR: host,
    HEARTBEAT_INTERVAL_MS: "500",
    ...more
  }
  return new SimNode<Views | Lifecycle>(world, name, host, () =>
    layerLoopback(world, name, host).pipe(
      Layer.provideMerge(Ssp.layer),
      Layer.provide(
        Layer.mergeAll(
          scheduler,
          Database.layerMemory,
          SavedState.layerMemory,
          JobPorts.layerNone,
          Upstream.layerNone,
          RequestBody.layer,
          Turn.layerYield,
          Release.layerOf("1.2.3"),
          SspConfig.layerOf(env)
        )
      )
    )
  )
}
