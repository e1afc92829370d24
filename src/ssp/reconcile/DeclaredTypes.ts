/**
 * The types that the database declares for the fields of its tables: what a record that comes as JSON is typed by (D1
 * rule 2).
 *
 * A holder and no more: the reader of the database fills it, the routes that take records ask it. While it is empty, as
 * it stays without a database, records are typed by their looks.
 */
import { Context, Layer } from "effect"
import type { Types } from "../../core/record/change.ts"
import { cautionsOf } from "../../node/database/schemaWatch.ts"
import type { UpstreamTable } from "../../ports/Upstream.ts"

/** A table of the database, or of a scheduler, which tells its types alone. */
type Table = Pick<UpstreamTable, "name" | "types"> & Partial<UpstreamTable>

export class DeclaredTypes extends Context.Tag("ssp/database/DeclaredTypes")<
  DeclaredTypes,
  {
    /** Types by path; undefined for a table that nothing is known of. */
    readonly of: (table: string) => Types | undefined
    /** These tables and no others are known from now on. */
    readonly declare: (tables: ReadonlyArray<Table>) => void
    readonly known: () => ReadonlyArray<Table>
    /** Why views of these tables do not follow each write; empty where they do. */
    readonly cautions: (tables: Iterable<string>) => ReadonlyArray<string>
  }
>() {
  static readonly layer: Layer.Layer<DeclaredTypes> = Layer.sync(DeclaredTypes, () => {
    let known: ReadonlyMap<string, Table> = new Map()
    return {
      of: (table) => known.get(table)?.types,
      declare: (tables) => void (known = new Map(tables.map((table) => [table.name, table]))),
      known: () => [...known.values()],
      cautions: (tables) => cautionsOf(Array.from(tables).flatMap((name) => known.get(name) ?? []))
    }
  })
}
