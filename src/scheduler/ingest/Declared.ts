/**
 * What the cloned database declares for its tables: what types a record that comes as JSON (D1 rule 2, D28).
 *
 * Kept in the replica, so that a restart types as before; read once and again after every clone.
 */
import { Context, Effect, Layer } from "effect"
import type * as Change from "../../core/record/change.ts"
import { Replica, type ReplicaError, type ReplicaTable, startFault } from "../../ports/Replica.ts"
import type { StartFault } from "../../ports/StartFault.ts"

export class Declared extends Context.Tag("scheduler/ingest/Declared")<
  Declared,
  {
    readonly schema: Change.Schema
    readonly tables: () => ReadonlyArray<ReplicaTable>
    readonly reload: Effect.Effect<void, ReplicaError>
  }
>() {
  static readonly layer: Layer.Layer<Declared, StartFault, Replica> = Layer.effect(
    Declared,
    Effect.gen(function* () {
      const replica = yield* Replica
      let known = new Map<string, ReplicaTable>()
      const reload = Effect.map(replica.tables, (tables) => {
        known = new Map(tables.map((table) => [table.name, table]))
      })
      yield* Effect.mapError(reload, startFault)
      return { schema: (table: string) => known.get(table)?.types, tables: () => [...known.values()], reload }
    })
  )
}
