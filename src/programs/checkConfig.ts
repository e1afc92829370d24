/**
 * The part of `--check-config` beyond the settings: reads the OpenAPI documents and schema files that the backends of
 * `svc.yml` name.
 */
import { Effect, Layer } from "effect"
import * as ConfigFile from "../host/ConfigFile.ts"
import * as OutboxFiles from "../host/outboxFiles.ts"
import * as Generate from "../outbox/generate.ts"
import { ConfigSource } from "../ports/ConfigSource.ts"
import { StartFault } from "../ports/StartFault.ts"

const file = Effect.provide(
  Effect.map(ConfigSource, (source) => source.file?.path),
  Layer.fresh(ConfigFile.layer)
)

/** Fails with every fault. */
export const run: Effect.Effect<void, StartFault> = Effect.gen(function* () {
  const path = yield* file
  if (path === undefined) return
  const documents = yield* Effect.promise(() => OutboxFiles.read(path))
  const schemas = OutboxFiles.schemas(path)
  const faults = new Set([...Generate.faultsOf(documents), ...("faults" in schemas ? schemas.faults : [])])
  if (faults.size > 0) return yield* new StartFault({ exitCode: 2, message: [...faults].join("\n") })
})
