/**
 * Definitions of the database as of the end of the log: a record that comes as JSON is typed by them (D1 rule 2, D28).
 *
 * Definitions are a record of the log (D57), so that replica, log and SSPs adopt a new definition at the same change.
 * Before the first such record the types of the last clone count.
 */
import { Context, Effect, Layer } from "effect"
import type * as Change from "../../core/record/change.ts"
import type { TableDefinition } from "../../core/surreal/databaseSchema.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { Replica, type ReplicaError, type ReplicaShape, startFault } from "../../ports/Replica.ts"
import type { StartFault } from "../../ports/StartFault.ts"

/** A table's definition, or its types alone if they come from a clone. */
type DeclaredTable = Pick<TableDefinition, "name" | "types"> & Partial<TableDefinition>

/** The database's definitions in the replica, and the text of the record that holds them. */
export const definitionsInReplica = (
  replica: Pick<ReplicaShape, "current" | "tables">
): Effect.Effect<{ readonly text: string | undefined; readonly tables: ReadonlyArray<DeclaredTable> }, ReplicaError> =>
  Effect.gen(function* () {
    const record = (yield* replica.current([Definitions.definitionsId])).get(Definitions.definitionsId.text)
    const text = Definitions.textIn(record?.doc)
    return { text, tables: text === undefined ? yield* replica.tables : Definitions.ofText(text).tables }
  })

export class DeclaredTables extends Context.Tag("scheduler/ingest/Declared")<
  DeclaredTables,
  {
    readonly schema: Change.Schema
    readonly tables: () => ReadonlyArray<DeclaredTable>
    /** Text of the definitions record in the log; undefined before the first. */
    readonly text: () => string | undefined
    /** Number of the schema: a change typed under an earlier number is typed again. */
    readonly count: () => number
    /** Called when a definitions record of the log has been applied to the replica. */
    readonly take: (text: string) => void
    readonly reload: Effect.Effect<void, ReplicaError>
  }
>() {
  static readonly layer: Layer.Layer<DeclaredTables, StartFault, Replica> = Layer.effect(
    DeclaredTables,
    Effect.gen(function* () {
      const replica = yield* Replica
      let known = new Map<string, DeclaredTable>()
      let definitionsText: string | undefined
      let count = 0
      const put = (text: string | undefined, tables: ReadonlyArray<DeclaredTable>): void => {
        definitionsText = text
        known = new Map(tables.map((table) => [table.name, table]))
        count++
      }
      const reload = Effect.map(definitionsInReplica(replica), ({ tables, text }) => put(text, tables))
      yield* Effect.mapError(reload, startFault)
      return {
        schema: (table: string) => known.get(table)?.types,
        tables: () => [...known.values()],
        text: () => definitionsText,
        count: () => count,
        take: (text) => put(text, Definitions.ofText(text).tables),
        reload
      }
    })
  )
}
