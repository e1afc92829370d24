/**
 * The matching rows of one view, in no order: a record's slot leads to its row, and the row knows its position here.
 *
 * Why no Map by id: the slot has led to the row already (recordSlot.ts). A single row needs no list: most views of a
 * large service show one row or none. Nor an object of its own: a change would find it cold. Cost of each change: O(1).
 */
import type { ViewRow } from "../operators/viewRow.ts"

export type ViewRows = ViewRow | Array<ViewRow> | undefined

/** Replaces a row by its new state; undefined: no row. */
export const withRowReplaced = (held: ViewRows, before: ViewRow | undefined, after: ViewRow | undefined): ViewRows => {
  if (after === undefined) return without(held, before!)
  if (before !== undefined) {
    after.at = before.at
    if (!Array.isArray(held)) return after
    held[after.at] = after
    return held
  }
  if (held === undefined) return after
  if (!Array.isArray(held)) {
    after.at = 1
    return [held, after]
  }
  after.at = held.length
  held.push(after)
  return held
}

const without = (held: ViewRows, row: ViewRow): ViewRows => {
  if (!Array.isArray(held)) return undefined
  const last = held.pop()!
  if (last !== row) {
    held[row.at] = last
    last.at = row.at
  }
  return held
}

export const rowCountOf = (held: ViewRows): number => (held === undefined ? 0 : Array.isArray(held) ? held.length : 1)

export const rowListOf = (held: ViewRows): ReadonlyArray<ViewRow> =>
  held === undefined ? none : Array.isArray(held) ? held : [held]

const none: ReadonlyArray<ViewRow> = []
