/**
 * Follows the definitions of the database (D57): standalone by reading them, in a cluster through the scheduler's log.
 */
import { Effect, Layer, Runtime } from "effect"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { SchemaWatch } from "../../node/database/schemaWatch.ts"
import { Serving } from "../../ports/Front.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import { Reconcile } from "../reconcile/Reconcile.ts"
import { Views } from "../views/Views.ts"
import { ChangeFeed } from "./ChangeFeed.ts"

export const layer: Layer.Layer<
  never,
  never,
  Upstream | ChangeFeed | Views | Lifecycle | DeclaredTypes | Reconcile | SspConfig | Serving
> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const { changes, schema } = yield* Upstream
    const { mode, phase } = yield* Lifecycle
    const { defineEvents, schemaIntervalMs } = yield* SspConfig
    const types = yield* DeclaredTypes
    const views = yield* Views
    const { derive, refresh } = yield* ChangeFeed
    const reconcile = yield* Reconcile
    if (mode === "scheduler") {
      const serving = yield* Serving
      const runFork = Runtime.runFork(yield* Effect.runtime<never>())
      return views.watch({
        applied: (changes) => {
          const defined = Definitions.latest(changes)
          if (defined === undefined) return
          types.declare(defined.tables)
          runFork(Serving.guard(serving, views.define(defined.definitions)))
        },
        replaced: () => undefined
      })
    }
    if (schema === undefined) return
    const watch = new SchemaWatch(
      { schema, changes },
      {
        known: Effect.sync(types.known),
        declare: ({ definitions, tables }) =>
          Effect.zipRight(
            Effect.sync(() => {
              types.declare(tables)
              derive(tables)
            }),
            views.define(definitions)
          ),
        compare: reconcile.tables,
        refresh,
        note: reconcile.note,
        open: () => phase() === "ready",
        // A ready SSP has the lease.
        mayDefine: () => true
      },
      { intervalMs: schemaIntervalMs, defineEvents: defineEvents === "on" }
    )
    yield* Serving.fork(watch.run)
  })
)
