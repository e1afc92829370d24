/**
 * Field types that the database declares; a record that comes as JSON is typed by them (D1 rule 2).
 *
 * A holder only: the reader of the database fills it, the routes that take records read it. While it is empty, as
 * without a database, records are typed by their values.
 */
import { Context, Layer } from "effect"
import type { Types } from "../../core/record/change.ts"
import { tableWarnings } from "../../node/database/schemaWatch.ts"
import type { UpstreamTable } from "../../ports/Upstream.ts"

/** A table of the database, or of a scheduler, which sends types alone. */
type Table = Pick<UpstreamTable, "name" | "types"> & Partial<UpstreamTable>

export class DeclaredTypes extends Context.Tag("ssp/database/DeclaredTypes")<
  DeclaredTypes,
  {
    /** Types by path; undefined for an unknown table. */
    readonly of: (table: string) => Types | undefined
    /** Replaces all known tables. */
    readonly declare: (tables: ReadonlyArray<Table>) => void
    readonly known: () => ReadonlyArray<Table>
    /** Why views of these tables do not follow each write; empty if they do. */
    readonly cautions: (tables: Iterable<string>) => ReadonlyArray<string>
  }
>() {
  static readonly layer: Layer.Layer<DeclaredTypes> = Layer.sync(DeclaredTypes, () => {
    let known: ReadonlyMap<string, Table> = new Map()
    return {
      of: (table) => known.get(table)?.types,
      declare: (tables) => void (known = new Map(tables.map((table) => [table.name, table]))),
      known: () => [...known.values()],
      cautions: (tables) => tableWarnings(Array.from(tables).flatMap((name) => known.get(name) ?? []))
    }
  })
}
