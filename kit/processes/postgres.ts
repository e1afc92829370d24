/** The PostgreSQL that tests use, where one can be reached, and logs of their own in it. */
import { randomUUID } from "node:crypto"
import { createConnection } from "node:net"
import { Effect, Layer, Redacted } from "effect"
import * as LogUrl from "../../src/core/settings/logUrl.ts"
import { layerLog } from "../../src/host/wal/serverLog.ts"
import type { SharedLog } from "../../src/ports/SharedLog.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import type { Wal, WalFailed } from "../../src/ports/Wal.ts"
import { layerWal, leadingOf, leaseMs as lease } from "./leading.ts"

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
    socket.setTimeout(20_000, end(false)).once("connect", end(true)).once("error", end(false))
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
export const sharedOf = (url: string, leaseMs = lease): Layer.Layer<SharedLog, StartFault> =>
  Layer.fresh(layerLog({ url: Redacted.make(url), leaseMs, durability: undefined, replicas: 3 }))

/** A term of a log: its WAL and pool once it leads. */
export const leading = (url: string, name: string, leaseMs = lease, copies = 1) =>
  leadingOf(sharedOf(url, leaseMs), { name, leaseMs, copies })

export const walOf = (url = freshLog(), name = "one"): Layer.Layer<Wal, WalFailed> => layerWal(sharedOf(url), name)

interface Client {
  readonly unsafe: (text: string, values?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<object>, unknown>
}

/** One statement beside the log. */
export const ask = async (
  text: string,
  values: ReadonlyArray<unknown> = [],
  at = address
): Promise<ReadonlyArray<{ readonly [column: string]: unknown }>> => {
  const { PgClient } = (await import("@effect/sql-pg" as string)) as {
    readonly PgClient: {
      readonly layer: (config: object) => Layer.Layer<Client, unknown>
      readonly PgClient: Effect.Effect<Client, never, Client>
    }
  }
  const asking = Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(text, values))
  const client = PgClient.layer({ url: Redacted.make(at), maxConnections: 1 })
  return (await Effect.runPromise(Effect.provide(asking, Layer.fresh(client)))) as never
}

export const forget = async (): Promise<void> => {
  if (logs.length === 0) return
  for (const table of ["svc_log", "svc_log_member", "svc_log_pool", "svc_log_pool_head", "svc_log_head"])
    await ask(`DELETE FROM ${table} WHERE log = ANY($1)`, [logs])
}

export const nameOf = (url: string): string => LogUrl.parse(url)!.log
