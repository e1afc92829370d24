/**
 * Many rows in the order of an ORDER BY, as an ordered index is first built of them.
 *
 * The values that decide are read once, into a column each, and rows are then sorted as numbers: a row is loaded when
 * it is read and when it is filed, and for no comparison. Runs are sorted, then merged by twos, with pauses; what
 * changes meanwhile is for the index to know. Cost: O(n log n) comparisons, and some 40 bytes for each row until the
 * index is built.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"
import { compareKeys } from "../../surql/values/order.ts"
import { field, type RecordKey, type Value } from "../../surql/values/value.ts"
import type { Live, RecordSlot } from "../store/recordSlot.ts"
import type { Ordering, OrderingTerm } from "./orderedRows.ts"

/** Rows that are read, sorted, merged or filed between two pauses. */
export const stretch = 2048

/** Takes one row; rows come in order, the last one first. */
export type Take = (lead: Value, slot: RecordSlot) => void

/** The values by which rows are compared. */
interface Column {
  readonly compare: OrderingTerm["compare"]
  readonly values: Array<Value>
}

export class SortedRows {
  private readonly terms: Ordering["terms"]
  private readonly columns: ReadonlyArray<Column>
  private readonly slots: Array<RecordSlot> = []
  /** The last term of each order. */
  private readonly ids: Array<RecordKey> = []

  constructor({ terms }: Ordering) {
    this.terms = terms
    this.columns = terms.map(({ compare }) => ({ compare, values: [] }))
  }

  /** Reads rows, but for those that are left out, sorts them and hands each over once, the last first. Pauses. */
  *all(rows: ReadonlyArray<RecordSlot>, leftOut: ReadonlySet<RecordSlot>, take: Take): Slices<void> {
    for (let at = 0; at < rows.length; at += stretch) {
      this.read(rows, at, Math.min(at + stretch, rows.length), leftOut)
      yield
    }
    const order = yield* this.order()
    for (let end = order.length; end > 0; end -= stretch) {
      this.hand(order, Math.max(0, end - stretch), end, leftOut, take)
      yield
    }
  }

  private read(rows: ReadonlyArray<RecordSlot>, from: number, to: number, leftOut: ReadonlySet<RecordSlot>): void {
    const { columns, ids, slots, terms } = this
    for (let at = from; at < to; at++) {
      const row = rows[at]!
      if (leftOut.size > 0 && leftOut.has(row)) continue
      const { doc } = row as Live
      for (let i = 0; i < terms.length; i++) columns[i]!.values.push(field(doc, terms[i]!.field))
      ids.push(row.id.key)
      slots.push(row)
    }
  }

  private hand(order: Uint32Array, from: number, to: number, leftOut: ReadonlySet<RecordSlot>, take: Take): void {
    const { slots } = this
    const leads = this.columns[0]?.values
    for (let i = to - 1; i >= from; i--) {
      const at = order[i]!,
        slot = slots[at]!
      // A scan that goes on while rows come may meet one twice.
      if (i > 0 && slots[order[i - 1]!] === slot) continue
      if (leftOut.size === 0 || !leftOut.has(slot)) take(leads?.[at], slot)
    }
  }

  /** Positions of the rows, in order. */
  private *order(): Slices<Uint32Array> {
    const { length } = this.slots
    const compare = this.comparison()
    let from = new Uint32Array(length)
    for (let i = 0; i < length; i++) from[i] = i
    let to = new Uint32Array(length)
    for (let at = 0; at < length; at += stretch) {
      sortRun(from, to, at, Math.min(at + stretch, length), compare)
      yield
    }
    for (let width = stretch; width < length; width *= 2) {
      for (let begin = 0; begin < length; begin += 2 * width) {
        const middle = Math.min(begin + width, length),
          end = Math.min(middle + width, length)
        if (areApart(from, to, begin, middle, end, compare)) yield
        else
          for (let at = begin, left = begin; at < end; at += stretch) {
            left = merge(from, to, at, left, middle, end, Math.min(at + stretch, end), compare)
            yield
          }
      }
      const done = to
      to = from
      from = done
    }
    return from
  }

  private comparison(): Compare {
    const { columns, ids } = this
    const numbers = numbersOf(columns[0])
    const behind = numbers === undefined ? 0 : 1
    const compareRest: Compare = (a, b) => {
      for (let i = behind; i < columns.length; i++) {
        const { compare, values } = columns[i]!
        const order = compare(values[a], values[b])
        if (order !== 0) return order
      }
      return compareKeys(ids[a]!, ids[b]!)
    }
    return numbers === undefined ? compareRest : (a, b) => numbers[a]! - numbers[b]! || compareRest(a, b)
  }
}

/** Negative: the row at one position comes before the row at the other. */
type Compare = (a: number, b: number) => number

/** A column of numbers alone as numbers that ascend in its order; undefined where it has others. */
const numbersOf = (column: Column | undefined): Float64Array | undefined => {
  if (column === undefined) return undefined
  const { compare, values } = column
  const sign = compare(0, 1) < 0 ? 1 : -1
  const numbers = new Float64Array(values.length)
  for (let i = 0; i < values.length; i++) {
    const value = values[i]
    // The difference of two infinities is no number.
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined
    numbers[i] = sign * value
  }
  return numbers
}

/** Rows that are put in order one by one. */
const shortRun = 8

/** How many positions from `begin` on come each behind the one before it, or each before it with a `sign` of -1. */
const inOrder = (from: Uint32Array, begin: number, end: number, sign: 1 | -1, compare: Compare): number => {
  let at = begin + 1
  while (at < end && sign * compare(from[at - 1]!, from[at]!) < 0) at++
  return at - begin
}

/** Sorts a run of at most {@link stretch} positions where it lies. */
const sortRun = (from: Uint32Array, to: Uint32Array, begin: number, end: number, compare: Compare): void => {
  // Tables are often read in this order, or against it.
  if (inOrder(from, begin, end, 1, compare) === end - begin) return
  if (inOrder(from, begin, end, -1, compare) === end - begin) {
    from.subarray(begin, end).reverse()
    return
  }
  for (let at = begin; at < end; at += shortRun)
    for (let i = at + 1; i < end && i < at + shortRun; i++) {
      const position = from[i]!
      let before = i
      for (; before > at && compare(from[before - 1]!, position) > 0; before--) from[before] = from[before - 1]!
      from[before] = position
    }
  // Twice as long each time, there and back.
  for (let width = shortRun; width < end - begin; width *= 4) {
    mergeTwos(from, to, begin, end, width, compare)
    mergeTwos(to, from, begin, end, 2 * width, compare)
  }
}

const mergeTwos = (
  from: Uint32Array,
  to: Uint32Array,
  first: number,
  last: number,
  width: number,
  compare: Compare
): void => {
  for (let begin = first; begin < last; begin += 2 * width) {
    const middle = Math.min(begin + width, last),
      end = Math.min(middle + width, last)
    if (!areApart(from, to, begin, middle, end, compare)) merge(from, to, begin, begin, middle, end, end, compare)
  }
}

/**
 * Whether one of two neighbouring runs comes before the other as a whole, as in a table that was written in this order
 * or against it: then they are one run in `to`.
 */
const areApart = (
  from: Uint32Array,
  to: Uint32Array,
  begin: number,
  middle: number,
  end: number,
  compare: Compare
): boolean => {
  if (middle === end || compare(from[middle - 1]!, from[middle]!) <= 0) to.set(from.subarray(begin, end), begin)
  else if (compare(from[end - 1]!, from[begin]!) < 0) {
    to.set(from.subarray(middle, end), begin)
    to.set(from.subarray(begin, middle), begin + end - middle)
  } else return false
  return true
}

/**
 * Goes on merging two neighbouring runs, the first of which ends at `middle`: fills `to` from `at` up to `until`, where
 * `left` is how far the first run has been taken. Answers how far it has been taken then.
 */
const merge = (
  from: Uint32Array,
  to: Uint32Array,
  at: number,
  left: number,
  middle: number,
  end: number,
  until: number,
  compare: Compare
): number => {
  // As many were taken of both as were put.
  for (let right = middle + at - left; at < until; at++)
    to[at] = right >= end || (left < middle && compare(from[left]!, from[right]!) <= 0) ? from[left++]! : from[right++]!
  return left
}
