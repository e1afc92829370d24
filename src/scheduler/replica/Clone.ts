/**
 * Clones the database beside the node: starts the clone, reports its progress, and tells the pool when the replica is
 * complete (D25).
 *
 * The work is done in `Cloning.ts`. A node whose replica is complete serves at once; it reads the database's
 * declarations again only if the log holds no definitions.
 */
import { Context, Effect, Layer } from "effect"
import { Serving } from "../../ports/Front.ts"
import { Progress } from "../../ports/Progress.ts"
import { Replica, startFault } from "../../ports/Replica.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { DeclaredTables } from "../pool/DeclaredTables.ts"
import { Pool } from "../pool/Pool.ts"
import { type CloneProgress as Cloned, clone, storeDeclaredTables, storeDefinitions } from "./Cloning.ts"

export class Clone extends Context.Tag("scheduler/replica/Clone")<
  Clone,
  {
    /** Progress of the clone; undefined before its first step and without a database. */
    readonly progress: () => Cloned | undefined
  }
>() {
  static readonly layer: Layer.Layer<
    Clone,
    never,
    Upstream | Replica | Pool | DeclaredTables | SchedulerConfig | Serving
  > = Layer.scoped(
    Clone,
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const replica = yield* Replica
      const pool = yield* Pool
      const { reload, text } = yield* DeclaredTables
      const { bootstrapChunkSize } = yield* SchedulerConfig
      let progress: Cloned | undefined
      const work = Effect.gen(function* () {
        const { compared, written } = yield* Progress.during("clone", "the database", "records", (step) =>
          clone({
            upstream,
            replica,
            chunkSize: bootstrapChunkSize,
            onProgress: (done) => {
              progress = done
              step.reach(done.compared)
              step.at(`walk ${done.walk}, table ${done.table}`)
            }
          })
        )
        yield* storeDefinitions({ upstream, replica })
        yield* reload
        yield* Effect.logInfo(`the database is cloned: ${compared} records compared, ${written} written or removed`)
        yield* pool.tell({ tag: "Cloned" })
      })
      // If the log holds definitions, later ones come through the log too.
      const again = Effect.suspend(() =>
        text() === undefined ? Effect.zipRight(storeDeclaredTables({ upstream, replica }), reload) : Effect.void
      )
      const whole = pool.state().phase !== "Cloning"
      if (upstream.present) yield* Serving.fork(Effect.mapError(whole ? again : work, startFault))
      return { progress: () => progress }
    })
  )
}
