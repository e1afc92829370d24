/** The PostgreSQL that tests use, where one can be reached, and logs of their own in it. */
import { randomUUID } from "node:crypto"
import { createConnection } from "node:net"
import { Context, Effect, Layer, Redacted } from "effect"
import * as LogUrl from "../../src/core/settings/logUrl.ts"
import { layerPostgres } from "../../src/host/wal/postgresLog.ts"
import { SharedLog } from "../../src/ports/SharedLog.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import { Wal, WalFailed } from "../../src/ports/Wal.ts"
import * as LeaderWal from "../../src/scheduler/standby/leaderWal.ts"
import { type Following, Standing } from "../../src/scheduler/standby/Standing.ts"

/** Without a database where there is none: `describe.skipIf` shows it then. */
export const address = process.env.SVC_TEST_POSTGRES ?? "postgres://postgres@127.0.0.1:5432/test"

const answers = (): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(address)
    const socket = createConnection({ host: hostname, port: Number(port || 5432) })
    const end = (is: boolean) => () => {
      socket.destroy()
      resolve(is)
    }
    socket.setTimeout(1_000, end(false)).once("connect", end(true)).once("error", end(false))
  })

const installed = await import("@effect/sql-pg/PgClient" as string).then(
  () => true,
  () => false
)

export const isReachable = installed && (await answers())

const logs: Array<string> = []

export const freshLog = (): string => {
  const log = `test-${randomUUID()}`
  logs.push(log)
  return `${address}?log=${log}`
}

/** What a scheduler opens before it knows whether it leads. */
export const sharedOf = (url: string, leaseMs = 1_000): Layer.Layer<SharedLog, StartFault> =>
  Layer.fresh(layerPostgres({ url: Redacted.make(url), leaseMs, isRelaxed: false }))

const nothing: Following = {
  step: () => Effect.succeed(false),
  canLead: () => true,
  applied: () => 0,
  synced: () => 0
}

/** A term of a log: its WAL and pool once it leads. */
export const leading = (url: string, name: string, leaseMs = 1_000, copies = 1) =>
  Effect.gen(function* () {
    const log = Context.get(yield* Layer.build(sharedOf(url, leaseMs)), SharedLog)
    const standing = yield* Standing.make(log, { name, leaseMs })
    const frame = yield* standing.follow(`http://${name}`, nothing)
    const led = yield* LeaderWal.make(standing, frame, {
      copies,
      synced: 0,
      keep: () => Effect.succeed(undefined)
    })
    yield* standing.lead(led)
    return { log, standing, wal: led.wal, pool: log.pool(standing.termOf(frame)), epoch: frame.epoch }
  })

/** For a layer whose error is the port's own. */
export const walOf = (url = freshLog(), name = "one"): Layer.Layer<Wal, WalFailed> =>
  Layer.scoped(
    Wal,
    leading(url, name).pipe(
      Effect.map(({ wal }) => wal),
      Effect.mapError(({ message }) => new WalFailed({ reason: "failed", message }))
    )
  ).pipe(Layer.fresh)

interface Client {
  readonly unsafe: (text: string, values?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<object>, unknown>
}

/** One statement beside the log. */
export const ask = async (
  text: string,
  values: ReadonlyArray<unknown> = []
): Promise<ReadonlyArray<{ readonly [column: string]: unknown }>> => {
  const { PgClient } = (await import("@effect/sql-pg" as string)) as {
    readonly PgClient: {
      readonly layer: (config: object) => Layer.Layer<Client, unknown>
      readonly PgClient: Effect.Effect<Client, never, Client>
    }
  }
  const asking = Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(text, values))
  const client = PgClient.layer({ url: Redacted.make(address), maxConnections: 1 })
  return (await Effect.runPromise(Effect.provide(asking, Layer.fresh(client)))) as never
}

export const forget = async (): Promise<void> => {
  for (const table of ["svc_log", "svc_log_member", "svc_log_pool", "svc_log_pool_head", "svc_log_head"])
    await ask(`DELETE FROM ${table} WHERE log = ANY($1)`, [logs])
}

export const nameOf = (url: string): string => LogUrl.parse(url)!.log
