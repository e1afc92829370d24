/**
 * Left-to-right sums of a scan, exactly as adding up number after number gives them, without looking at every number.
 *
 * Formula: while a running float sum x stays inside one binade, 2^e < |x| < 2^(e+1), adding v moves it by v rounded to
 * whole ulps (2^(e-52)) and by nothing else, unless v lies exactly between two (then it depends on x: a tie). So a
 * chunk without ties moves every x that stays inside by the same total, and where x stays is known from the chunk's
 * least and greatest partial total. State: per chunk its floats, and that total for the last e asked for. Cost:
 * O(chunks) for the whole sum, plus one pass over the chunks that changed or in which the sum changes binade.
 */
import { addWrapping } from "../../surql/evaluate/arithmetic.ts"
import { Float, float, isInt, type Value } from "../../surql/values/value.ts"
import type { Chunk } from "./groupScan.ts"

/** The numbers of a chunk as floats. No list if one is neither a float nor an int that a float holds exactly. */
export interface FloatRun {
  readonly numbers: Float64Array | undefined
  /** Position of the first float among ints. */
  firstFloat: number
  /** Exponent of the binade that the totals below hold for; NaN: none yet. */
  exponent: number
  /** How near to the ends of the binade the sum may be before this chunk. */
  low: number
  high: number
  /** False if there is a tie, or a number too large beside the sum. */
  even: boolean
  total: number
  least: number
  greatest: number
}

/** A column to add up, and how its values become numbers. `call` identifies the run that each chunk keeps for it. */
export interface SummedColumn {
  readonly call: number
  readonly column: number
  readonly take: (value: Value) => Value
}

const plain = (value: Value): number | undefined =>
  typeof value === "number" ? value : value instanceof Float ? value.value : undefined

const runOf = ({ entries }: Chunk, { column, take }: SummedColumn): FloatRun => {
  const numbers = new Float64Array(entries.length)
  let count = 0,
    all = true,
    firstFloat = Infinity
  for (const { values } of entries) {
    const value = take(values[column])
    if (value === undefined) continue
    const n = plain(value)
    if (n === undefined) all = false
    else {
      if (firstFloat === Infinity && !isInt(value)) firstFloat = count
      numbers[count++] = n
    }
  }
  return {
    numbers: all ? numbers.subarray(0, count) : undefined,
    firstFloat,
    exponent: NaN,
    low: 0,
    high: 0,
    even: false,
    total: 0,
    least: 0,
    greatest: 0
  }
}

/** Writes one changed number into a run; false if the run has to be made again. */
const patched = (run: FloatRun, at: number, size: number, value: Value): boolean => {
  const n = plain(value)
  if (n === undefined || run.numbers === undefined || run.numbers.length < size || at <= run.firstFloat) return false
  run.numbers[at] = n
  run.exponent = NaN
  return true
}

/** Updates the runs of a chunk in which one row has other values now. */
export const patchRuns = (chunk: Chunk, at: number): void => {
  for (const [i, known] of chunk.runs.entries()) {
    if (known === undefined) continue
    const { run, summing } = known
    if (!patched(run, at, chunk.entries.length, summing.take(chunk.entries[at]!.values[summing.column])))
      chunk.runs[i] = undefined
  }
}

/** Computes the total that a chunk adds to a sum in the binade of 2^e. */
const prepare = (run: FloatRun, numbers: Float64Array, e: number): void => {
  const unit = 2 ** (e - 52),
    middle = 1.5 * 2 ** e,
    largest = 2 ** (e - 2)
  let total = 0,
    least = 0,
    greatest = 0
  run.exponent = e
  run.low = 2 ** e + unit
  run.high = 2 ** (e + 1) - unit
  run.even = false
  for (const n of numbers) {
    if (!(Math.abs(n) <= largest)) return
    const rounded = n + middle - middle
    if (Math.abs(n - rounded) * 2 === unit) return
    total += rounded
    if (total < least) least = total
    else if (total > greatest) greatest = total
    if (greatest - least > middle) return
  }
  run.total = total
  run.least = least
  run.greatest = greatest
  run.even = true
}

const bits = new Float64Array(1)
const words = new Uint32Array(bits.buffer)

/** e with 2^e <= |x| < 2^(e+1); undefined near the ends of the float range. */
const binade = (x: number): number | undefined => {
  bits[0] = x
  const exponent = ((words[1]! >>> 20) & 0x7ff) - 1023
  return exponent > -900 && exponent < 1000 ? exponent : undefined
}

const addRun = (run: FloatRun, numbers: Float64Array, x: number): number => {
  const e = numbers.length < 8 ? undefined : binade(x)
  if (e !== undefined) {
    if (run.exponent !== e) prepare(run, numbers, e)
    const { high, low } = run
    if (
      run.even &&
      (x > 0 ? x + run.least >= low && x + run.greatest <= high : x + run.greatest <= -low && x + run.least >= -high)
    )
      return x + run.total
  }
  let sum = x
  for (const n of numbers) sum += n
  return sum
}

/** Adds a run to an int sum: the float result, or undefined if it stays an int or exceeds the exact range of floats. */
const fromInt = ({ firstFloat }: FloatRun, numbers: Float64Array, start: number): number | undefined => {
  let sum = start
  if (firstFloat >= numbers.length) return undefined
  for (let i = 0; i < firstFloat; i++) {
    sum += numbers[i]!
    if (!Number.isSafeInteger(sum)) return undefined
  }
  for (let i = firstFloat; i < numbers.length; i++) sum += numbers[i]!
  return sum
}

/** The sum of a column in scan order; `floats`: with all numbers as floats, for a mean. Fails where adding fails. */
export const sumInOrder = (chunks: ReadonlyArray<Chunk>, summing: SummedColumn, floats = false): Value => {
  const { call, column, take } = summing
  let sum: Value = 0
  /** The sum, from the first float on; undefined while it is an int. */
  let x: number | undefined = floats ? 0 : undefined
  for (const chunk of chunks) {
    const { run } = (chunk.runs[call] ??= { run: runOf(chunk, summing), summing })
    const { numbers } = run
    if (numbers !== undefined) {
      const next: number | undefined =
        x !== undefined ? addRun(run, numbers, x) : typeof sum === "number" ? fromInt(run, numbers, sum) : undefined
      if (next !== undefined) {
        x = next
        continue
      }
    }
    if (x !== undefined) sum = float(x)
    for (const { values } of chunk.entries) {
      const value = take(values[column])
      if (value !== undefined) sum = addWrapping(sum, value)
    }
    x = isInt(sum) ? undefined : plain(sum)
  }
  return x === undefined ? sum : float(x)
}
