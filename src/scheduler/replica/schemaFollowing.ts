/**
 * Follows the definitions of the scheduler's database (D57): logs them, so that SSPs adopt them at the same change;
 * defines events of new tables; and repairs records that a definition has changed.
 */
import { Effect, Layer } from "effect"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { SchemaWatch } from "../../node/database/schemaWatch.ts"
import { Serving } from "../../ports/Front.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { Ingest } from "../ingest/Ingest.ts"
import { DeclaredTables } from "../pool/DeclaredTables.ts"
import { Pool } from "../pool/Pool.ts"
import { ChangeFeed } from "./ChangeFeed.ts"
import { ChangeTableLease } from "./ChangeTableLease.ts"
import { Reconcile } from "./Reconcile.ts"

export const layer: Layer.Layer<
  never,
  never,
  Upstream | DeclaredTables | Ingest | Pool | ChangeFeed | ChangeTableLease | Reconcile | SchedulerConfig | Serving
> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const { changes, schema } = yield* Upstream
    const declared = yield* DeclaredTables
    const { define } = yield* Ingest
    const { derive, refresh } = yield* ChangeFeed
    const pool = yield* Pool
    const { holds, note } = yield* ChangeTableLease
    const reconcile = yield* Reconcile
    const { defineEvents, maxBodyBytes, schemaIntervalMs } = yield* SchedulerConfig
    if (schema === undefined) return
    const watch = new SchemaWatch(
      { schema, changes },
      {
        known: Effect.sync(declared.tables),
        declare: (found) =>
          Effect.suspend(() => {
            const text = Definitions.textOf(found)
            const fault = Definitions.tooLong(text, maxBodyBytes)
            if (fault !== undefined) return Effect.fail({ message: `${fault} (SVC_MAX_BODY_BYTES)` })
            return Effect.tap(define(text), () => derive(found.tables))
          }),
        compare: reconcile.tables,
        refresh,
        note,
        // During a clone, the clone declares the tables it reads.
        open: () => pool.state().phase !== "Cloning",
        mayDefine: holds
      },
      { intervalMs: schemaIntervalMs, defineEvents: defineEvents === "on" }
    )
    yield* Serving.fork(watch.run)
  })
)
