/**
 * A row of a result: a matching row, a piece of a split row, or a group; one class of results shows them all.
 *
 * Why one: order, window, ONLY, hash and delta are the same for all three. Only the moves differ: a row moves itself, a
 * split row moves its pieces, a group is replaced when the step that changed it ends.
 */
import type { Value } from "../../surql/values/value.ts"
import type { GroupRow } from "../operators/groups.ts"
import type { Piece, ViewRow } from "../operators/viewRow.ts"

export type OutputRow = ViewRow | GroupRow

/** The value that a group or a piece stores since a record last changed it; undefined for other rows. */
export const storedContentOf = (row: OutputRow): { readonly value: Value } | undefined =>
  "group" in row ? row : (row.part as Piece | undefined)
