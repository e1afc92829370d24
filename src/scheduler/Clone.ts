/**
 * The clone of the database beside a serving node: begun at the start, reported on the way, and the pool told when the replica is whole (D25).
 *
 * What it decides lies in `Cloning.ts`; here it gets the node's own way in for what has changed, so that SSPs that are still there from
 * before a restart hear of it as of anything else.
 */
import { Context, Effect, Layer } from "effect"
import { Serving } from "../ports/Front.ts"
import { Replica, startFault } from "../ports/Replica.ts"
import { Upstream } from "../ports/Upstream.ts"
import { clone, type Progress } from "./Cloning.ts"
import { SchedulerConfig } from "./Config.ts"
import { Declared } from "./Declared.ts"
import { Ingest } from "./Ingest.ts"
import { Pool } from "./Pool.ts"

export class Clone extends Context.Tag("scheduler/Clone")<Clone, {
  /** How far it is; undefined before the first step and without a database. */
  readonly progress: () => Progress | undefined
}>() {
  static readonly layer: Layer.Layer<Clone, never, Upstream | Replica | Ingest | Pool | Declared | SchedulerConfig | Serving> = Layer.scoped(
    Clone,
    Effect.gen(function*() {
      const upstream = yield* Upstream
      const replica = yield* Replica
      const { ingest } = yield* Ingest
      const pool = yield* Pool
      const { reload } = yield* Declared
      const { bootstrapChunkSize } = yield* SchedulerConfig
      let progress: Progress | undefined
      const work = Effect.gen(function*() {
        const { compared, kind, written } = yield* clone({
          upstream, replica, chunkSize: bootstrapChunkSize,
          ingest: (repairs) => Effect.asVoid(ingest(repairs.map(({ change }) => change), repairs.map(({ raw }) => raw))),
          onProgress: (step) => {
            progress = step
          }
        })
        yield* reload
        yield* Effect.logInfo(`the database is ${kind}: ${compared} records compared, ${written} written or removed`)
        yield* pool.tell({ tag: "Cloned" })
      })
      if (upstream.present) yield* Serving.fork(Effect.mapError(work, startFault))
      return { progress: () => progress }
    })
  )
}
