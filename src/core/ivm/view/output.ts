/**
 * What a view shows: matching rows, pieces of rows that are split, or groups; all in one kind of result.
 *
 * Why one: order, window, ONLY, hash and delta are the same for all three. What moves differs: a row comes as it is, a
 * row that is split as its pieces, a group when the step that changed it ends.
 */
import type { Value } from "../../surql/values/value.ts"
import type { GroupRow } from "../operators/groups.ts"
import type { Piece, ViewRow } from "../operators/viewRow.ts"

export type Output = ViewRow | GroupRow

/** A group or a piece of a row holds its value as it was made when a record changed. */
export const madeOf = (row: Output): { readonly value: Value } | undefined =>
  "group" in row ? row : (row.part as Piece | undefined)
