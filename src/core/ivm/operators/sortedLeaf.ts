/**
 * Rows in order in one array, each behind the value that decides first: a search and what it finds lie together.
 *
 * Why functions on a plain array: a small window is nothing but one, and a large one has many (`sortedList.ts`).
 */
import type { Value } from "../../surql/values/value.ts"

/** The order of the rows: total, so that rows that compare 0 are the same row. */
export interface RowOrder<T> {
  readonly compare: (a: T, b: T) => number
  /**
   * The value that decides first, where it is one value: kept beside the rows, so that a search need not look at them.
   */
  readonly lead?: ((row: T) => Value) | undefined
  readonly compareLeads?: ((a: Value, b: Value) => number) | undefined
}

/** Lead, row, lead, row. */
export type SortedLeaf<T> = Array<Value | T>

/** As many rows as one array holds: to put one in its place moves half of them. */
export const few = 64

export const rowAt = <T>(cells: SortedLeaf<T>, position: number): T => cells[2 * position + 1] as T

export const rowsOf = <T>(cells: SortedLeaf<T>): Array<T> =>
  Array.from({ length: cells.length >> 1 }, (_, i) => rowAt(cells, i))

export const leafOf = <T>(rows: ReadonlyArray<T>, order: RowOrder<T>): SortedLeaf<T> =>
  rows.flatMap((row) => [leadOf(row, order), row])

export const leadOf = <T>(row: T, { lead }: RowOrder<T>): Value => (lead === undefined ? undefined : lead(row))

/** How many rows stand before this one, which need not be among them; `orHere`: itself counted. */
export const search = <T>(
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

/** Puts a row in its place. Answers its position. */
export const put = <T>(cells: SortedLeaf<T>, row: T, order: RowOrder<T>): number => {
  const lead = leadOf(row, order)
  const position = search(cells, row, lead, order, false)
  const at = 2 * position
  cells.push(lead, row)
  for (let i = cells.length - 1; i > at + 1; i--) cells[i] = cells[i - 2]!
  cells[at] = lead
  cells[at + 1] = row
  return position
}

/** Takes a row out. Answers the position it had. */
export const take = <T>(cells: SortedLeaf<T>, row: T, order: RowOrder<T>): number => {
  const position = search(cells, row, leadOf(row, order), order, false)
  for (let i = 2 * position + 2; i < cells.length; i++) cells[i - 2] = cells[i]!
  cells.pop()
  cells.pop()
  return position
}

/** Puts the new state of a row where its old one stands: both compare 0. Answers the position. */
export const swap = <T>(cells: SortedLeaf<T>, row: T, order: RowOrder<T>): number => {
  const position = search(cells, row, leadOf(row, order), order, false)
  cells[2 * position + 1] = row
  return position
}
