/**
 * Aggregates that are updated row by row instead of computed over the whole group again: counts, exact sums, extremes.
 *
 * Formulas and cost: `count(x)` a number, O(1). Sum and mean: a sum of floats depends on its order, so a running sum
 * stands only while every partial sum in any order is exact: all values are whole multiples of one power of two, 2^-k,
 * and the sum of their magnitudes stays below 2^53 of it (ints: k = 0); O(1). Otherwise the accumulator has no answer,
 * and the group is added up again in scan order, as the plain evaluator does. Extremes: a tree by value and source
 * order, O(log n); of equal values of different kinds (1, 1.0, 1dec) the first in scan order is the answer, as it is
 * there.
 */
import sortedBTree from "sorted-btree"
import { subtractWrapping } from "../../surql/evaluate/arithmetic.ts"
import { aggregatedPart } from "../../surql/evaluate/select/group.ts"
import type { NumberValue } from "../../surql/values/number.ts"
import { compare } from "../../surql/values/order.ts"
import { Float, float, isInt, type Value } from "../../surql/values/value.ts"
import { compareSourceOrder, type GroupEntry } from "./groupScan.ts"

const BTree = sortedBTree.default

export interface Accumulator {
  readonly add: (entry: GroupEntry) => void
  readonly remove: (entry: GroupEntry) => void
  /** There is no exact answer; it depends on the order of the rows. */
  readonly inexact: boolean
  /**
   * Tries to become exact again, from all entries. Does nothing until as many entries have moved since the last try as
   * there are.
   */
  readonly renew: (entries: Iterable<GroupEntry>) => void
  /** Number of values that count. */
  readonly size: number
  /** The result of an aggregate that reads this accumulator; only if it is not `inexact`. */
  readonly result: (name: string) => Value
}

/** Makes the accumulator of one group. */
export interface Accumulating {
  readonly text: string
  readonly make: () => Accumulator
}

/** The accumulator for an aggregate over a column; undefined if there is none. Calls with equal texts share one. */
export const accumulating = (name: string, column: number): Accumulating | undefined => {
  switch (name) {
    case "count":
      return { text: `count ${column}`, make: () => new Count(column) }
    case "math::sum":
      return { text: `sum ${column}`, make: () => new Sum(column, aggregatedPart(name)) }
    case "math::mean":
      return { text: `mean ${column}`, make: () => new Sum(column, aggregatedPart(name)) }
    case "math::min":
    case "math::max":
    case "math::spread":
      return { text: `numbers ${column}`, make: () => new Extremes(column, aggregatedPart(name)) }
    case "time::min":
    case "time::max":
      return { text: `times ${column}`, make: () => new Extremes(column, aggregatedPart(name)) }
    default:
      return undefined
  }
}

/** Number of values that are true. */
class Count implements Accumulator {
  readonly inexact = false
  size = 0
  private readonly column: number

  constructor(column: number) {
    this.column = column
  }

  add({ values }: GroupEntry): void {
    if (values[this.column] === true) this.size++
  }

  remove({ values }: GroupEntry): void {
    if (values[this.column] === true) this.size--
  }

  renew(): void {}

  result(): Value {
    return this.size
  }
}

const limit = 2 ** 53
const bits = new Float64Array(1)
const words = new Uint32Array(bits.buffer)

/** The k of the smallest 2^-k, k >= 0, that a finite number is a whole multiple of. */
const places = (n: number): number => {
  if (Number.isInteger(n)) return 0
  bits[0] = n
  const low = words[0]!,
    high = words[1]!
  const exponent = (high >>> 20) & 0x7ff
  const zeros = low !== 0 ? 31 - Math.clz32(low & -low) : 32 + (31 - Math.clz32((high | 0x100000) & -(high | 0x100000)))
  return (exponent === 0 ? 1074 : 1075 - exponent) - zeros
}

class Sum implements Accumulator {
  /** Count of values that are numbers, of the floats among them, and of the ones that no exact sum can hold. */
  size = 0
  private floats = 0
  private others = 0
  private sum = 0
  private magnitude = 0
  /** Numbers with a fraction, counted by their binary places, and the most places. */
  private fractions: Map<number, number> | undefined = undefined
  private most = 0
  /** `sum` and `magnitude` are exact so far. */
  private exact = true
  /** Moves since they became inexact. */
  private moves = 0
  private readonly column: number
  private readonly take: (value: Value) => Value

  constructor(column: number, take: (value: Value) => Value) {
    this.column = column
    this.take = take
  }

  get inexact(): boolean {
    return this.others > 0 || !this.exact
  }

  add({ values }: GroupEntry): void {
    this.move(values[this.column], 1)
  }

  remove({ values }: GroupEntry): void {
    this.move(values[this.column], -1)
  }

  renew(entries: Iterable<GroupEntry>): void {
    if (this.exact || this.moves < this.size) return
    this.clear()
    for (const entry of entries) this.add(entry)
    this.moves = 0
  }

  result(name: string): Value {
    if (name === "math::mean") return float(this.size === 0 ? NaN : this.sum / this.size)
    return this.floats > 0 ? float(this.sum) : this.sum
  }

  private clear(): void {
    this.size = this.floats = this.others = this.sum = this.magnitude = this.most = 0
    this.fractions = undefined
    this.exact = true
  }

  private move(given: Value, by: 1 | -1): void {
    const value = this.take(given)
    if (value === undefined) return
    this.moves++
    this.size += by
    if (this.size === 0) return this.clear()
    const n = value instanceof Float ? value.value : value
    if (typeof n !== "number" || !Number.isFinite(n)) {
      this.others += by
      return
    }
    if (value instanceof Float || !isInt(value)) this.floats += by
    const k = places(n)
    if (k > 0) this.note(k, by)
    this.sum += by * n
    this.magnitude += by * Math.abs(n)
    if (this.magnitude * 2 ** this.most >= limit) this.exact = false
  }

  private note(k: number, by: 1 | -1): void {
    const fractions = (this.fractions ??= new Map())
    const count = (fractions.get(k) ?? 0) + by
    if (count > 0) {
      fractions.set(k, count)
      if (k > this.most) this.most = k
      return
    }
    fractions.delete(k)
    if (k === this.most) this.most = Math.max(0, ...fractions.keys())
  }
}

class Extremes implements Accumulator {
  readonly inexact = false
  private readonly column: number
  private readonly take: (value: Value) => Value
  private readonly tree: InstanceType<typeof BTree<GroupEntry, undefined>>

  constructor(column: number, take: (value: Value) => Value) {
    this.column = column
    this.take = take
    this.tree = new BTree<GroupEntry, undefined>(
      undefined,
      (a, b) => compare(a.values[column], b.values[column]) || compareSourceOrder(a, b)
    )
  }

  add(entry: GroupEntry): void {
    if (this.take(entry.values[this.column]) !== undefined) this.tree.set(entry, undefined)
  }

  remove(entry: GroupEntry): void {
    if (this.take(entry.values[this.column]) !== undefined) this.tree.delete(entry)
  }

  get size(): number {
    return this.tree.size
  }

  renew(): void {}

  result(name: string): Value {
    if (name === "math::spread") return this.spread()
    const least = name.endsWith("min")
    const found = least ? this.tree.minKey() : this.tree.maxKey()
    if (found === undefined) return name.startsWith("time") ? undefined : least ? Infinity : -Infinity
    if (least) return found.values[this.column]
    const first = this.tree.nextHigherKey({ ...found, sourceIndex: -Infinity })
    return first!.values[this.column]
  }

  /**
   * `math::spread`: of equal values of different kinds the last greatest and the first least, as the function over an
   * array takes them.
   */
  private spread(): Value {
    const least = this.tree.minKey()?.values[this.column],
      greatest = this.tree.maxKey()?.values[this.column]
    return least === undefined
      ? NaN
      : subtractWrapping(this.take(greatest) as NumberValue, this.take(least) as NumberValue)
  }
}
