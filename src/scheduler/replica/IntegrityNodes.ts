/**
 * Writes the replica's hashes into the database (D41): in a cluster the scheduler alone writes `_svc_integrity`.
 *
 * Only beside a database, and only while the replica is complete: hashes of half a clone would name false differences.
 */
import { Effect, Layer } from "effect"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import * as Writer from "../../node/database/integrityWriter.ts"
import { Serving } from "../../ports/Front.ts"
import { Replica } from "../../ports/Replica.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { Pool } from "../pool/Pool.ts"
import { RecordTrees, type TreeError } from "./RecordTrees.ts"

export const layer: Layer.Layer<never, never, Upstream | SchedulerConfig | Pool | Replica | RecordTrees | Serving> =
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const { integrityQuietSecs } = yield* SchedulerConfig
      if (!upstream.present || integrityQuietSecs === 0) return
      const pool = yield* Pool
      const replica = yield* Replica
      const records = yield* RecordTrees
      const trees: Writer.HashedTables<TreeError> = {
        tables: Effect.suspend(() =>
          pool.state().phase === "Cloning"
            ? Effect.succeed([])
            : Effect.map(replica.names, (names) => names.filter((name) => !isOwn(name)))
        ),
        stamp: (table) => records.stamp(table),
        // The stamp is read first: a change in between is written in a later round.
        root: (table) =>
          Effect.suspend(() => {
            const stamp = records.stamp(table)
            return Effect.map(records.node(table, 0, 0), (node) => ({ node, stamp }))
          })
      }
      let prepared = false
      const prepare = Effect.suspend(() =>
        prepared ? Effect.void : Effect.map(upstream.prepare, () => void (prepared = true))
      )
      yield* Serving.fork(
        Writer.loop(
          trees,
          { ...upstream, putNodes: (nodes) => Effect.zipRight(prepare, upstream.putNodes(nodes)) },
          integrityQuietSecs
        )
      )
    })
  )
