/**
 * The log on a server: chooses the engine by the address, with its settings.
 *
 * Each engine's driver is loaded only if its address is set.
 */
import { Effect, Layer, Redacted } from "effect"
import * as LogUrl from "../../core/settings/logUrl.ts"
import type { Durability, SharedLog } from "../../ports/SharedLog.ts"
import { StartFault } from "../../ports/StartFault.ts"

interface LogAddress {
  readonly url: Redacted.Redacted<string>
  readonly leaseMs: number
  /** Undefined: the engine's default. */
  readonly durability: Durability | undefined
  /** Copies, for an engine that replicates by itself. */
  readonly replicas: number
}

/** Opens the log for reading; a leader is not disturbed. */
export const layerLog = ({ durability, leaseMs, replicas, url }: LogAddress): Layer.Layer<SharedLog, StartFault> => {
  const parsed = LogUrl.parse(Redacted.value(url))
  if (parsed === undefined)
    return Layer.fail(new StartFault({ exitCode: 2, message: `SVC_LOG_URL must be ${LogUrl.allowed}` }))
  if (parsed.engine === "nats")
    return Layer.unwrapEffect(
      Effect.map(
        Effect.promise(() => import("./natsLog.ts")),
        ({ layerNats }) => layerNats({ address: parsed, leaseMs, durability, replicas })
      )
    )
  if (durability === "replicated")
    return Layer.fail(
      new StartFault({
        exitCode: 2,
        message: "SVC_LOG_DURABILITY=replicated is of NATS; of PostgreSQL it is flushed or relaxed"
      })
    )
  return Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("./postgresLog.ts")),
      ({ layerPostgres }) => layerPostgres({ address: parsed, leaseMs, isRelaxed: durability === "relaxed" })
    )
  )
}
