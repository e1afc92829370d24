/**
 * The types that the database declares for the fields of its tables: what a record that comes as JSON is typed by (D1
 * rule 2).
 *
 * A holder and no more: the reader of the database fills it, the routes that take records ask it. While it is empty, as
 * it stays without a database, records are typed by their looks.
 */
import { Context, Layer } from "effect"
import type { Types } from "../../core/record/change.ts"

export class DeclaredTypes extends Context.Tag("ssp/database/DeclaredTypes")<
  DeclaredTypes,
  {
    /** Types by path; undefined for a table that nothing is known of. */
    readonly of: (table: string) => Types | undefined
    /** These tables and no others are known from now on. */
    readonly declare: (tables: ReadonlyArray<{ readonly name: string; readonly types: Types }>) => void
  }
>() {
  static readonly layer: Layer.Layer<DeclaredTypes> = Layer.sync(DeclaredTypes, () => {
    let known: ReadonlyMap<string, Types> = new Map()
    return {
      of: (table) => known.get(table),
      declare: (tables) => void (known = new Map(tables.map(({ name, types }) => [name, types])))
    }
  })
}
