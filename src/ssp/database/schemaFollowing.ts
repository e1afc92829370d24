/** A standalone SSP follows what the database beside it defines (D57); in a cluster the scheduler does. */
import { Effect, Layer } from "effect"
import { SchemaWatch } from "../../node/schemaWatch.ts"
import { Serving } from "../../ports/Front.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Views } from "../views/Views.ts"
import { ChangeFeed } from "./ChangeFeed.ts"
import { DeclaredTypes } from "./DeclaredTypes.ts"
import { Reconcile } from "./Reconcile.ts"

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
    const { derive } = yield* ChangeFeed
    const reconcile = yield* Reconcile
    if (schema === undefined || mode === "scheduler") return
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
        open: () => phase() === "ready",
        // Ready means that this SSP has the lease.
        mayDefine: () => true
      },
      { intervalMs: schemaIntervalMs, defineEvents: defineEvents === "on" }
    )
    yield* Serving.fork(watch.run)
  })
)
