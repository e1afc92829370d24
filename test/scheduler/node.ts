/**
 * A whole scheduler inside the test, on a real port: the layers of the door over memory, or over a folder that outlives
 * it.
 *
 * Why not the process: hundreds of rows and a dozen restarts take seconds here; the door itself has tests of its own.
 */

import { join } from "node:path"
import { type Clock, Context, Effect, Exit, Layer, Logger, LogLevel, Scope } from "effect"
import { type Answer, request } from "../../kit/checks/http.ts"
import { secret } from "../../kit/processes/Door.ts"
import * as MemoryPool from "../../src/drivers/memoryPool.ts"
import * as MemoryReplica from "../../src/drivers/memoryReplica.ts"
import * as Names from "../../src/host/http/names.ts"
import { layerNode } from "../../src/host/http/readBody.ts"
import * as Server from "../../src/host/http/Server.ts"
import { layer as sspCalls } from "../../src/host/http/sspCalls.ts"
import { layerTurn } from "../../src/host/process/turn.ts"
import * as Stores from "../../src/host/schedulerStores.ts"
import { Balance } from "../../src/ports/Balance.ts"
import { Serving } from "../../src/ports/Front.ts"
import type { PoolStore } from "../../src/ports/PoolStore.ts"
import { Release } from "../../src/ports/Release.ts"
import type { Replica } from "../../src/ports/Replica.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import { Upstream } from "../../src/ports/Upstream.ts"
import { Wal } from "../../src/ports/Wal.ts"
import { SchedulerConfig } from "../../src/scheduler/Config.ts"
import { Ingest } from "../../src/scheduler/ingest/Ingest.ts"
import { Pool, type PoolShape } from "../../src/scheduler/pool/Pool.ts"
import * as Scheduler from "../../src/scheduler/Scheduler.ts"

export type Stored = Layer.Layer<Replica | PoolStore | Wal | Upstream, StartFault>

export const inMemory: Stored = Layer.mergeAll(
  MemoryReplica.layer,
  MemoryPool.layer,
  Wal.layerMemory("log-of-the-test"),
  Upstream.layerNone
)

export const inFolder = (folder: string): Stored =>
  Stores.layer({ replicaDbPath: join(folder, "replica"), walPath: join(folder, "wal.log"), database: undefined })

/** Short times, so that what a test waits for comes soon; none of them is asserted on. */
const quick = {
  SVC_AUTH_SECRET: secret,
  SCHEDULER_ID: "scheduler-test",
  SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "20",
  SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "20",
  SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "60000",
  SVC_SCHEDULER_BOOTSTRAP_TIMEOUT_SECS: "60"
}

export interface Options {
  readonly env?: { readonly [name: string]: string }
  readonly stores?: Stored
  /** How long a call to an SSP may take; a test whose SSP hangs wants less than the usual. */
  readonly callTimeoutMs?: number | undefined
  /** The clock that it reads; the machine's by default. */
  readonly clock?: Clock.Clock
}

export class Node {
  readonly url: string
  readonly port: number
  readonly pool: PoolShape
  readonly ingest: typeof Ingest.Service
  readonly logs: Array<string>
  /** Annotations of the same lines. */
  readonly annotated: ReadonlyArray<{ readonly [name: string]: unknown }>
  readonly close: () => Promise<void>

  private constructor(
    port: number,
    pool: PoolShape,
    ingest: typeof Ingest.Service,
    logs: Array<string>,
    annotated: ReadonlyArray<{ readonly [name: string]: unknown }>,
    close: () => Promise<void>
  ) {
    this.url = `http://127.0.0.1:${port}`
    this.port = port
    this.pool = pool
    this.ingest = ingest
    this.logs = logs
    this.annotated = annotated
    this.close = close
  }

  static start({ callTimeoutMs = 10_000, clock, env = {}, stores = inMemory }: Options = {}): Promise<Node> {
    const logs: Array<string> = []
    const annotated: Array<{ readonly [name: string]: unknown }> = []
    const log = Layer.merge(
      Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ annotations, message }) => {
          logs.push(String(message))
          annotated.push(Object.fromEntries(annotations))
        })
      ),
      Logger.minimumLogLevel(LogLevel.Debug)
    )
    const config = SchedulerConfig.layerOf({ ...quick, ...env })
    const client = Layer.unwrapEffect(
      Effect.map(SchedulerConfig, ({ allowedHosts, sspSecret }) =>
        sspCalls({ secret: sspSecret, allowedHosts, timeoutMs: callTimeoutMs })
      )
    )
    const balance = Layer.unwrapEffect(
      Effect.map(SchedulerConfig, ({ loadBalance }) => Balance.layerNamed(loadBalance))
    )
    const drivers = Layer.mergeAll(
      stores,
      layerNode,
      layerTurn,
      Release.layerOf("1.2.3"),
      Layer.provideMerge(Layer.merge(Layer.provide(client, Names.layer), balance), config)
    )
    const server = Server.layer({
      host: "127.0.0.1",
      port: 0,
      maxConnections: 1000,
      setting: "SVC_SCHEDULER_INGEST_PORT",
      stoppingCode: "OVERLOADED"
    })
    const whole = Layer.fresh(
      server.pipe(Layer.provideMerge(Scheduler.layer), Layer.provide(drivers), Layer.provide(log))
    )
    return Effect.gen(function* () {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(whole, scope).pipe(
        Effect.tapErrorCause(() => Scope.close(scope, Exit.void)),
        clock === undefined ? (effect) => effect : Effect.withClock(clock)
      )
      const port = yield* Context.get(context, Serving).port
      return new Node(port, Context.get(context, Pool), Context.get(context, Ingest), logs, annotated, () =>
        Effect.runPromise(Scope.close(scope, Exit.void))
      )
    }).pipe(Effect.runPromise)
  }

  post(path: string, body?: unknown): Promise<Answer> {
    return request(this.url, { method: "POST", path, ...(body === undefined ? {} : { body }) })
  }

  get(path: string): Promise<Answer> {
    return request(this.url, { path })
  }
}
