/**
 * A scheduler follows which tables its database defines (D57): new ones get their event, and what a definition has
 * changed in records goes the way of any change. Declared types stay those of the last clone.
 */
import { Effect, Layer } from "effect"
import { SchemaWatch } from "../../node/schemaWatch.ts"
import { Serving } from "../../ports/Front.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { Declared } from "../ingest/Declared.ts"
import { Pool } from "../pool/Pool.ts"
import { Following } from "./Following.ts"
import { Reconcile } from "./Reconcile.ts"

export const layer: Layer.Layer<
  never,
  never,
  Upstream | Declared | Pool | Following | Reconcile | SchedulerConfig | Serving
> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const { changes, schema } = yield* Upstream
    const declared = yield* Declared
    const pool = yield* Pool
    const { holds } = yield* Following
    const reconcile = yield* Reconcile
    const { defineEvents, schemaIntervalMs } = yield* SchedulerConfig
    if (schema === undefined) return
    const watch = new SchemaWatch(
      { schema, changes },
      {
        known: Effect.sync(declared.tables),
        // SSPs type what is posted here by what they have pulled; two kinds of types for one log would part them.
        declare: () => Effect.void,
        compare: reconcile.tables,
        // While it clones, the clone declares what it reads.
        open: () => pool.state().phase !== "Cloning",
        mayDefine: holds
      },
      { intervalMs: schemaIntervalMs, defineEvents: defineEvents === "on" }
    )
    yield* Serving.fork(watch.run)
  })
)
