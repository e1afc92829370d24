/**
 * What the database defines, as of the end of the log: its types type a record that comes as JSON (D1 rule 2, D28).
 *
 * A record of the log says it (D57), so that replica, log and SSPs take a new definition over at the same change. While
 * there is no such record it is what the last clone has declared.
 */
import { Context, Effect, Layer } from "effect"
import type * as Change from "../../core/record/change.ts"
import type { TableDefinition } from "../../core/surreal/databaseSchema.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { Replica, type ReplicaError, type ReplicaShape, startFault } from "../../ports/Replica.ts"
import type { StartFault } from "../../ports/StartFault.ts"

/** A table as it is defined, or its types alone, as a clone declares them. */
type DeclaredTable = Pick<TableDefinition, "name" | "types"> & Partial<TableDefinition>

/** Definitions of the database in the replica, with the text of the record that holds them. */
export const inReplica = (
  replica: Pick<ReplicaShape, "current" | "tables">
): Effect.Effect<{ readonly text: string | undefined; readonly tables: ReadonlyArray<DeclaredTable> }, ReplicaError> =>
  Effect.gen(function* () {
    const record = (yield* replica.current([Definitions.definitionsId])).get(Definitions.definitionsId.text)
    const text = Definitions.textIn(record?.doc)
    return { text, tables: text === undefined ? yield* replica.tables : Definitions.ofText(text).tables }
  })

export class Declared extends Context.Tag("scheduler/ingest/Declared")<
  Declared,
  {
    readonly schema: Change.Schema
    readonly tables: () => ReadonlyArray<DeclaredTable>
    /** The text of the log's record; undefined before the first. */
    readonly text: () => string | undefined
    /** Counts up with every other schema: a change typed under another schema is typed again. */
    readonly count: () => number
    /** A record of the log has been applied to the replica. */
    readonly take: (text: string) => void
    readonly reload: Effect.Effect<void, ReplicaError>
  }
>() {
  static readonly layer: Layer.Layer<Declared, StartFault, Replica> = Layer.effect(
    Declared,
    Effect.gen(function* () {
      const replica = yield* Replica
      let known = new Map<string, DeclaredTable>()
      let said: string | undefined
      let count = 0
      const put = (text: string | undefined, tables: ReadonlyArray<DeclaredTable>): void => {
        said = text
        known = new Map(tables.map((table) => [table.name, table]))
        count++
      }
      const reload = Effect.map(inReplica(replica), ({ tables, text }) => put(text, tables))
      yield* Effect.mapError(reload, startFault)
      return {
        schema: (table: string) => known.get(table)?.types,
        tables: () => [...known.values()],
        text: () => said,
        count: () => count,
        take: (text) => put(text, Definitions.ofText(text).tables),
        reload
      }
    })
  )
}
