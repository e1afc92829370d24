/**
 * The log in PostgreSQL, as a layer over the optional driver, which is loaded only if a log's address is set.
 *
 * The driver's one function is declared here, because a user need not have installed it.
 */

import { randomUUID } from "node:crypto"
import type * as SqlClient from "@effect/sql/SqlClient"
import { SqlClient as Sql } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { type ConfigError, Effect, Layer, Redacted } from "effect"
import type { PostgresUrl } from "../../core/settings/logUrl.ts"
import * as PostgresLog from "../../drivers/postgres/sharedLog.ts"
import { SharedLog } from "../../ports/SharedLog.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { startFault } from "../../ports/Wal.ts"
import * as OptionalPackage from "../optionalPackage.ts"
import { unreachable } from "./unreachable.ts"

export interface PostgresLogAddress {
  readonly address: PostgresUrl
  readonly leaseMs: number
  readonly isRelaxed: boolean
}

interface Driver {
  readonly layer: (config: {
    readonly url: Redacted.Redacted<string>
    readonly connectTimeout: number
    readonly maxConnections: number
    readonly applicationName: string
  }) => Layer.Layer<SqlClient.SqlClient, ConfigError.ConfigError | SqlError>
}

const optional = "@effect/sql-pg/PgClient"
const load = (): Promise<Driver> => import(/* @vite-ignore */ optional)

const driver = (from: () => Promise<Driver>): Effect.Effect<Driver, StartFault> =>
  OptionalPackage.load("SVC_LOG_URL asks for a log in PostgreSQL", { name: "@effect/sql-pg", version: "0.53.0" }, from)

/** Opens the log for reading; a leader is not disturbed. */
export const layerPostgres = (
  { address, isRelaxed, leaseMs }: PostgresLogAddress,
  from: () => Promise<Driver> = load
): Layer.Layer<SharedLog, StartFault> =>
  Layer.unwrapEffect(
    Effect.map(driver(from), ({ layer }) => {
      const { log, shown, url } = address
      const client = layer({
        url: Redacted.make(url),
        connectTimeout: 5_000,
        maxConnections: 6,
        applicationName: "scheduler"
      }).pipe(
        Layer.catchAll((error) => {
          const why = "cause" in error && error.cause instanceof Error ? error.cause.message : String(error)
          return Layer.fail(unreachable(shown, why || "no connection"))
        })
      )
      const options = { log, shown, leaseMs, isRelaxed, newLogId: randomUUID() }
      const opened = Layer.effect(
        SharedLog,
        Effect.flatMap(Sql, (sql) => Effect.mapError(PostgresLog.open(sql, options), startFault))
      )
      return Layer.provide(opened, Layer.fresh(client))
    })
  )
