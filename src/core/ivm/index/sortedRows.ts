/**
 * All rows of a table in the order of an ORDER BY, as an ordered index is first built of them.
 *
 * The values that decide are read once, into a column each, and rows are then sorted as numbers: a row is loaded when
 * it is read and when it is filed, and for no comparison. Runs are sorted, then merged by twos, with pauses; what
 * changes meanwhile is for the index to know. Cost: O(n log n) comparisons, and some 40 bytes for each row until the
 * index is built.
 */
import type { Slices } from "../../surql/evaluate/scope.ts"
import { compareKeys } from "../../surql/values/order.ts"
import { field, type RecordKey, type Value } from "../../surql/values/value.ts"
import type { FiledKey } from "../store/denseMap.ts"
import type { Live, RecordSlot } from "../store/recordSlot.ts"
import { type KeySpec, type Keys, keysOf } from "./indexKey.ts"
import type { Ordering, OrderingTerm } from "./orderedRows.ts"

/** Rows that are read, sorted, merged or filed between two pauses. */
export const stretch = 2048

/** Takes one row; rows come in order. */
export type Take = (key: Keys, lead: Value, slot: RecordSlot) => void

/** The values by which rows are compared. */
interface Column {
  readonly compare: OrderingTerm["compare"]
  readonly values: Array<Value>
}

export class SortedRows {
  private readonly spec: KeySpec
  private readonly terms: Ordering["terms"]
  private readonly columns: ReadonlyArray<Column>
  private readonly slots: Array<RecordSlot> = []
  private readonly keys: Array<FiledKey> = []
  /** The last term of each order. */
  private readonly ids: Array<RecordKey> = []

  constructor(spec: KeySpec, { terms }: Ordering) {
    this.spec = spec
    this.terms = terms
    this.columns = terms.map(({ compare }) => ({ compare, values: [] }))
  }

  /** Reads rows, sorts them and hands each over once, in order. Pauses. */
  *all(rows: Iterable<Live>, take: Take): Slices<void> {
    for (const row of rows) {
      this.read(row)
      if (this.slots.length % stretch === 0) yield
    }
    const order = yield* this.order()
    const { keys, slots } = this
    const leads = this.columns[0]?.values
    for (let i = 0; i < order.length; i++) {
      const at = order[i]!
      // A scan that goes on while rows come may meet one twice.
      if (i === 0 || slots[order[i - 1]!] !== slots[at]) take(keys[at], leads?.[at], slots[at]!)
      if ((i + 1) % stretch === 0) yield
    }
  }

  private read(slot: Live): void {
    const { columns, terms } = this
    const { doc } = slot
    for (let i = 0; i < terms.length; i++) columns[i]!.values.push(field(doc, terms[i]!.field))
    this.keys.push(keysOf(doc, this.spec))
    this.ids.push(slot.id.key)
    this.slots.push(slot)
  }

  /** Positions of the rows, in order. */
  private *order(): Slices<Uint32Array> {
    const { length } = this.slots
    const compare = this.comparison()
    let from = new Uint32Array(length)
    for (let i = 0; i < length; i++) from[i] = i
    for (let at = 0; at < length; at += stretch) {
      from.subarray(at, at + stretch).sort(compare)
      yield
    }
    let to = new Uint32Array(length)
    for (let width = stretch; width < length; width *= 2) {
      for (let at = 0; at < length; at += 2 * width) yield* merge(from, to, at, width, compare)
      const done = to
      to = from
      from = done
    }
    return from
  }

  private comparison(): (a: number, b: number) => number {
    const { columns, ids } = this
    return (a, b) => {
      for (let i = 0; i < columns.length; i++) {
        const { compare, values } = columns[i]!
        const order = compare(values[a], values[b])
        if (order !== 0) return order
      }
      return compareKeys(ids[a]!, ids[b]!)
    }
  }
}

/** Merges the two runs of a width that begin at a position. */
function* merge(
  from: Uint32Array,
  to: Uint32Array,
  begin: number,
  width: number,
  compare: (a: number, b: number) => number
): Slices<void> {
  const middle = Math.min(begin + width, from.length),
    end = Math.min(middle + width, from.length)
  for (let at = begin, left = begin, right = middle; at < end; ) {
    for (const pause = Math.min(at + stretch, end); at < pause; at++)
      to[at] =
        right >= end || (left < middle && compare(from[left]!, from[right]!) <= 0) ? from[left++]! : from[right++]!
    yield
  }
}
