/**
 * Rows in order in one array, each after its lead (its first ORDER BY value): a search and the rows it finds lie
 * together.
 *
 * Why functions on a plain array: a small window is a single such array, a large one has many (`sortedList.ts`).
 */
import type { Value } from "../../surql/values/value.ts"

/** A total order of rows: rows that compare 0 are the same row. */
export interface RowOrder<T> {
  readonly compare: (a: T, b: T) => number
  /**
   * The value that is compared first, if it is a single one; stored beside the rows, so that a search does not load
   * them.
   */
  readonly lead?: ((row: T) => Value) | undefined
  readonly compareLeads?: ((a: Value, b: Value) => number) | undefined
}

/** Lead, row, lead, row, ... */
export type SortedLeaf<T> = Array<Value | T>

/** Most rows of one array: an insert moves half of them. */
export const maxLeaf = 64

export const rowAt = <T>(cells: SortedLeaf<T>, position: number): T => cells[2 * position + 1] as T

export const rowsOf = <T>(cells: SortedLeaf<T>): Array<T> =>
  Array.from({ length: cells.length >> 1 }, (_, i) => rowAt(cells, i))

export const leafOf = <T>(rows: ReadonlyArray<T>, order: RowOrder<T>): SortedLeaf<T> =>
  rows.flatMap((row) => [leadOf(row, order), row])

export const leadOf = <T>(row: T, { lead }: RowOrder<T>): Value => (lead === undefined ? undefined : lead(row))

/** Number of rows before this one, which need not be in the array; `orHere`: counts the row itself too. */
export const rowsBefore = <T>(
  cells: SortedLeaf<T>,
  row: T,
  own: Value,
  { compare, compareLeads, lead }: RowOrder<T>,
  orHere: boolean
): number => {
  let low = 0
  for (let high = cells.length >> 1; low < high; ) {
    const middle = (low + high) >> 1
    const order =
      (lead === undefined ? 0 : compareLeads!(cells[2 * middle] as Value, own)) || compare(rowAt(cells, middle), row)
    if (order < 0 || (orHere && order === 0)) low = middle + 1
    else high = middle
  }
  return low
}

/** Inserts a row. Answers its position. */
export const insertRow = <T>(cells: SortedLeaf<T>, row: T, order: RowOrder<T>): number => {
  const lead = leadOf(row, order)
  const position = rowsBefore(cells, row, lead, order, false)
  const at = 2 * position
  cells.push(lead, row)
  for (let i = cells.length - 1; i > at + 1; i--) cells[i] = cells[i - 2]!
  cells[at] = lead
  cells[at + 1] = row
  return position
}

/** Removes a row. Answers its former position. */
export const removeRow = <T>(cells: SortedLeaf<T>, row: T, order: RowOrder<T>): number => {
  const position = rowsBefore(cells, row, leadOf(row, order), order, false)
  for (let i = 2 * position + 2; i < cells.length; i++) cells[i - 2] = cells[i]!
  cells.pop()
  cells.pop()
  return position
}

/** Replaces a row by its new state, which compares 0 with it. Answers the position. */
export const replaceRow = <T>(cells: SortedLeaf<T>, row: T, order: RowOrder<T>): number => {
  const position = rowsBefore(cells, row, leadOf(row, order), order, false)
  cells[2 * position + 1] = row
  return position
}
