/**
 * Many rows in the order of an ORDER BY, as an ordered index is first built of them.
 *
 * The values that decide are read once, into a column each. As many of the first columns as fit into one number are one
 * number for each row, which moves along with the row's position: most comparisons are of two numbers that lie side by
 * side. A row is loaded once, when its values are read; not to compare or to file it. Runs are sorted, then merged by
 * twos, with pauses; the index itself notes the records that change meanwhile. Cost: O(n log n) comparisons, and some
 * 70 bytes for each row until the index is built.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"
import { compareKeys } from "../../surql/values/order.ts"
import { Datetime, field, type RecordKey, type Value } from "../../surql/values/value.ts"
import type { Ordering, OrderingTerm } from "../store/ordering.ts"
import type { Live, RecordSlot, SlotRef } from "../store/recordSlot.ts"

/** Rows that are read, sorted, merged or filed between two pauses. */
export const rowsPerSlice = 2048

/** Receives one row; rows come in order, the last one first. */
type Take = (lead: Value, ref: SlotRef) => void

/** The number that orders a value among numbers, or a time among times; `NaN` where a value has none that is exact. */
const numberOf = (value: Value): number =>
  typeof value === "number"
    ? value
    : value instanceof Datetime && value.nanos % 1e6 === 0
      ? value.seconds * 1e3 + value.nanos / 1e6
      : Number.NaN

/** The values of one ORDER BY term. */
class Column {
  readonly compare: OrderingTerm["compare"]
  readonly values: Array<Value> = []
  /** -1: the term is descending. */
  private readonly sign: 1 | -1
  /** The least and the greatest number of the column, each times `sign`. */
  private least = Number.POSITIVE_INFINITY
  private greatest = Number.NEGATIVE_INFINITY
  /** Count of values that are finite numbers, and of values that are times of whole milliseconds. */
  private numbers = 0
  private times = 0
  /** All numbers of the column are safe integers. */
  private isWhole = true

  constructor(compare: OrderingTerm["compare"]) {
    this.compare = compare
    this.sign = compare(0, 1) < 0 ? 1 : -1
  }

  push(value: Value): void {
    this.values.push(value)
    const number = this.sign * numberOf(value)
    if (!Number.isFinite(number)) return
    if (typeof value === "number") this.numbers++
    else this.times++
    if (number < this.least) this.least = number
    if (number > this.greatest) this.greatest = number
    if (!Number.isSafeInteger(number)) this.isWhole = false
  }

  /** All values are finite numbers, or all are times of whole milliseconds: their numbers give their order. */
  get isNumeric(): boolean {
    return this.numbers === this.values.length || this.times === this.values.length
  }

  /** Number of integers from the least number to the greatest; infinite if one is no integer. */
  get range(): number {
    return this.isWhole ? this.greatest - this.least + 1 : Number.POSITIVE_INFINITY
  }

  /** The number of a row's value, counted from the least one if that is exact. */
  numberAt(at: number): number {
    const number = this.sign * numberOf(this.values[at])
    return this.range <= Number.MAX_SAFE_INTEGER ? number - this.least : number
  }
}

/** Rows during the sort: their positions in the input, and the number made of their first columns. */
interface Order {
  readonly positions: Uint32Array
  readonly keys: Float64Array
}

const orderOf = (length: number): Order => ({
  positions: new Uint32Array(length),
  keys: new Float64Array(length)
})

export class SortedRows {
  private readonly terms: Ordering["terms"]
  /** One column for each term, then the columns of the record keys, which decide last in each order. */
  private readonly columns: ReadonlyArray<Column>
  private readonly ids: Column
  private readonly refs: Array<SlotRef> = []
  /** The rows to sort; during reading, the unread ones are behind them. */
  private readonly slots: Array<RecordSlot>

  /** Takes ownership of the array of rows. */
  constructor({ terms }: Ordering, rows: Array<RecordSlot>) {
    this.terms = terms
    this.slots = rows
    this.ids = new Column((a, b) => compareKeys(a as RecordKey, b as RecordKey))
    this.columns = [...terms.map(({ compare }) => new Column(compare)), this.ids]
  }

  /** Reads the rows, except the left-out ones, sorts them and passes each to `take` once, the last first. Pauses. */
  *all(leftOut: ReadonlySet<RecordSlot>, take: Take): Slices<void> {
    for (let at = 0; at < this.slots.length; at += rowsPerSlice) {
      this.read(at, Math.min(at + rowsPerSlice, this.slots.length), leftOut)
      yield
    }
    this.slots.length = this.refs.length
    const positions = yield* this.order()
    for (let end = positions.length; end > 0; end -= rowsPerSlice) {
      this.hand(positions, Math.max(0, end - rowsPerSlice), end, leftOut, take)
      yield
    }
  }

  private read(from: number, to: number, leftOut: ReadonlySet<RecordSlot>): void {
    const { columns, ids, refs, slots, terms } = this
    for (let at = from; at < to; at++) {
      const row = slots[at]!
      if (leftOut.size > 0 && leftOut.has(row)) continue
      const { doc } = row as Live
      for (let i = 0; i < terms.length; i++) columns[i]!.push(field(doc, terms[i]!.field))
      ids.push(row.id.key)
      slots[refs.length] = row
      refs.push(row.ref)
    }
  }

  private hand(positions: Uint32Array, from: number, to: number, leftOut: ReadonlySet<RecordSlot>, take: Take): void {
    const { refs, slots, terms } = this
    const leads = terms.length === 0 ? undefined : this.columns[0]!.values
    for (let i = to - 1; i >= from; i--) {
      const at = positions[i]!,
        ref = refs[at]!
      // A scan may meet a row twice if rows are added meanwhile.
      if (i > 0 && refs[positions[i - 1]!] === ref) continue
      if (leftOut.size === 0 || !leftOut.has(slots[at]!)) take(leads?.[at], ref)
    }
  }

  /** Positions of the rows, in order. */
  private *order(): Slices<Uint32Array> {
    const { length } = this.slots
    const decided = this.decided()
    const compare = this.comparison(decided)
    let from = yield* this.unordered(decided)
    let to = orderOf(length)
    for (let at = 0; at < length; at += rowsPerSlice) {
      sortRun(from, to, at, Math.min(at + rowsPerSlice, length), compare)
      yield
    }
    for (let width = rowsPerSlice; width < length; width *= 2) {
      for (let begin = 0; begin < length; begin += 2 * width) {
        const middle = Math.min(begin + width, length),
          end = Math.min(middle + width, length)
        if (areApart(from, to, begin, middle, end, compare)) yield
        else
          for (let at = begin, left = begin; at < end; at += rowsPerSlice) {
            left = merge(from, to, at, left, middle, end, Math.min(at + rowsPerSlice, end), compare)
            yield
          }
      }
      const done = to
      to = from
      from = done
    }
    return from.positions
  }

  /** How many of the first columns fit into one number. A first column whose numbers are not whole is taken alone. */
  private decided(): number {
    let count = 0
    for (let size = 1; count < this.columns.length; count++) {
      const column = this.columns[count]!
      if (!column.isNumeric) break
      size *= column.range
      if (size > Number.MAX_SAFE_INTEGER) return Math.max(count, 1)
    }
    return count
  }

  /** The rows in the order they were read in. */
  private *unordered(decided: number): Slices<Order> {
    const { length } = this.slots
    const order = orderOf(length)
    const columns = this.columns.slice(0, decided)
    for (let begin = 0; begin < length; begin += rowsPerSlice) {
      const end = Math.min(begin + rowsPerSlice, length)
      for (let at = begin; at < end; at++) order.positions[at] = at
      columns.forEach((column, i) => {
        const { range } = column
        for (let at = begin; at < end; at++)
          order.keys[at] = (i === 0 ? 0 : order.keys[at]! * range) + column.numberAt(at)
      })
      yield
    }
    return order
  }

  /** Compares rows whose numbers are equal, by the remaining columns. */
  private comparison(decided: number): Compare {
    const columns = this.columns.slice(decided)
    return (a, b) => {
      for (let i = 0; i < columns.length; i++) {
        const { compare, values } = columns[i]!
        const order = compare(values[a], values[b])
        if (order !== 0) return order
      }
      return 0
    }
  }
}

/** Compares the rows at two positions whose numbers are equal; negative: the first one comes before. */
type Compare = (a: number, b: number) => number

const compareAt = ({ keys, positions }: Order, a: number, b: number, compare: Compare): number => {
  const left = keys[a]!,
    right = keys[b]!
  return left < right ? -1 : left > right ? 1 : compare(positions[a]!, positions[b]!)
}

const copy = (from: Order, to: Order, begin: number, end: number, at: number): void => {
  to.positions.set(from.positions.subarray(begin, end), at)
  to.keys.set(from.keys.subarray(begin, end), at)
}

/** Length of runs that insertion sort puts in order. */
const shortRun = 8

/** Number of rows from `begin` on that are in ascending order already, or in descending order for a `sign` of -1. */
const inOrder = (from: Order, begin: number, end: number, sign: 1 | -1, compare: Compare): number => {
  let at = begin + 1
  while (at < end && sign * compareAt(from, at - 1, at, compare) < 0) at++
  return at - begin
}

/** Insertion sort of a short run. */
const sortShortRun = ({ keys, positions }: Order, begin: number, end: number, compare: Compare): void => {
  for (let i = begin + 1; i < end; i++) {
    const key = keys[i]!,
      position = positions[i]!
    let before = i
    for (; before > begin; before--) {
      const other = keys[before - 1]!
      if (other < key || (other === key && compare(positions[before - 1]!, position) <= 0)) break
      keys[before] = other
      positions[before] = positions[before - 1]!
    }
    keys[before] = key
    positions[before] = position
  }
}

/** Sorts a run of at most {@link rowsPerSlice} rows in place. */
const sortRun = (from: Order, to: Order, begin: number, end: number, compare: Compare): void => {
  // Tables are often read in this order, or in the reverse one.
  if (inOrder(from, begin, end, 1, compare) === end - begin) return
  if (inOrder(from, begin, end, -1, compare) === end - begin) {
    from.positions.subarray(begin, end).reverse()
    from.keys.subarray(begin, end).reverse()
    return
  }
  for (let at = begin; at < end; at += shortRun) sortShortRun(from, at, Math.min(at + shortRun, end), compare)
  // Each pass merges twice, from one array to the other and back, so runs grow fourfold.
  for (let width = shortRun; width < end - begin; width *= 4) {
    mergeTwos(from, to, begin, end, width, compare)
    mergeTwos(to, from, begin, end, 2 * width, compare)
  }
}

const mergeTwos = (from: Order, to: Order, first: number, last: number, width: number, compare: Compare): void => {
  for (let begin = first; begin < last; begin += 2 * width) {
    const middle = Math.min(begin + width, last),
      end = Math.min(middle + width, last)
    if (!areApart(from, to, begin, middle, end, compare)) merge(from, to, begin, begin, middle, end, end, compare)
  }
}

/**
 * Whether one of two neighbouring runs comes wholly before the other, as in a table that was written in this order or
 * in the reverse one; then copies them to `to` as one run.
 */
const areApart = (from: Order, to: Order, begin: number, middle: number, end: number, compare: Compare): boolean => {
  if (middle === end || compareAt(from, middle - 1, middle, compare) <= 0) copy(from, to, begin, end, begin)
  else if (compareAt(from, end - 1, begin, compare) < 0) {
    copy(from, to, middle, end, begin)
    copy(from, to, begin, middle, begin + end - middle)
  } else return false
  return true
}

/**
 * Continues the merge of two neighbouring runs, the first of which ends at `middle`: fills `to` from `at` to `until`;
 * `left` is the position reached in the first run. Answers the position reached then.
 */
const merge = (
  from: Order,
  to: Order,
  at: number,
  left: number,
  middle: number,
  end: number,
  until: number,
  compare: Compare
): number => {
  const { keys, positions } = from
  // The position in the second run follows: as many rows were taken from both runs as were written.
  for (let right = middle + at - left; at < until; at++) {
    const taken = right >= end || (left < middle && compareAt(from, left, right, compare) <= 0) ? left++ : right++
    to.keys[at] = keys[taken]!
    to.positions[at] = positions[taken]!
  }
  return left
}
