/**
 * Left-to-right sums of a scan, exactly as adding up number after number gives them, without looking at every number.
 *
 * Formula: while a running float sum x stays inside one binade, 2^e < |x| < 2^(e+1), adding v moves it by v rounded to whole
 * ulps (2^(e-52)) and by nothing else, unless v lies exactly between two (then it depends on x: a tie). So a chunk without
 * ties moves every x that stays inside by the same total, and where x stays is known from the chunk's least and greatest
 * partial total. State: per chunk its floats, and that total for the last e asked for. Cost: O(chunks) for the whole sum,
 * plus one pass over the chunks that changed or in which the sum changes binade.
 */
import { add } from "../surql/arithmetic.ts"
import { Float, float, type Value } from "../surql/value.ts"
import type { Chunk } from "./scan.ts"

/** The numbers of a chunk as floats; no list where one is neither a float nor an int that a float holds. */
export interface FloatRun {
  readonly numbers: Float64Array | undefined
  /** The binade the totals below hold for; NaN for none yet. */
  exponent: number
  /** False where there is a tie, or a number too large beside the sum. */
  even: boolean
  total: number
  least: number
  greatest: number
}

type Take = (value: Value) => Value

const plain = (value: Value): number | undefined => (typeof value === "number" ? value : value instanceof Float ? value.value : undefined)

const runOf = (chunk: Chunk, column: number, take: Take): FloatRun => {
  const numbers: Array<number> = []
  let all = true
  for (const { values } of chunk.entries) {
    const value = take(values[column])
    if (value === undefined) continue
    const n = plain(value)
    if (n === undefined) all = false
    else numbers.push(n)
  }
  return { numbers: all ? Float64Array.from(numbers) : undefined, exponent: NaN, even: false, total: 0, least: 0, greatest: 0 }
}

/** Works out what a chunk adds to a sum in the binade of 2^e. */
const prepare = (run: FloatRun, numbers: Float64Array, e: number): void => {
  const unit = 2 ** (e - 52), middle = 1.5 * 2 ** e, largest = 2 ** (e - 2)
  let total = 0, least = 0, greatest = 0
  run.exponent = e
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

/** e with 2^e <= |x| < 2^(e+1); far from where floats end. */
const binade = (x: number): number | undefined => {
  bits[0] = x
  const exponent = ((words[1]! >>> 20) & 0x7ff) - 1023
  return exponent > -900 && exponent < 1000 ? exponent : undefined
}

const addRun = (run: FloatRun, numbers: Float64Array, x: number): number => {
  const e = numbers.length < 8 ? undefined : binade(x)
  if (e !== undefined) {
    if (run.exponent !== e) prepare(run, numbers, e)
    const unit = 2 ** (e - 52), low = 2 ** e + unit, high = 2 ** (e + 1) - unit
    if (run.even && (x > 0 ? x + run.least >= low && x + run.greatest <= high : x + run.greatest <= -low && x + run.least >= -high)) return x + run.total
  }
  let sum = x
  for (const n of numbers) sum += n
  return sum
}

/** The sum of a column in scan order, `call` naming what is kept for it; fails where adding does. */
export const sumInOrder = (chunks: ReadonlyArray<Chunk>, call: number, column: number, take: Take): Value => {
  let sum: Value = 0
  /** The sum once it is a float. */
  let x: number | undefined = undefined
  for (const chunk of chunks) {
    const runs = (chunk.runs ??= new Map<number, FloatRun>())
    let run = runs.get(call)
    if (run === undefined) runs.set(call, (run = runOf(chunk, column, take)))
    if (x !== undefined && run.numbers !== undefined) {
      x = addRun(run, run.numbers, x)
      continue
    }
    if (x !== undefined) sum = float(x)
    for (const { values } of chunk.entries) {
      const value = take(values[column])
      if (value !== undefined) sum = add(sum, value)
    }
    x = sum instanceof Float ? sum.value : typeof sum === "number" && (!Number.isSafeInteger(sum) || Object.is(sum, -0)) ? sum : undefined
  }
  return x === undefined ? sum : float(x)
}
