/**
 * Durations: the database's text form (`1h30m`) in and out, and conversion to other units.
 *
 * Why so: a duration is whole seconds, 64 bits without a sign, plus nanoseconds. Seconds beyond 2^53 are a bigint;
 * they are met only by a query that asks for the largest duration, or that makes a duration of a negative number.
 */
import { Duration, int } from "./value.ts"

const unitNanos: { readonly [unit: string]: bigint } = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
  w: 604_800_000_000_000n,
  y: 31_536_000_000_000_000n
}

const piece = /(\d[\d_]*)(ns|us|µs|μs|ms|s|m|h|d|w|y)/g
/** Pattern of a duration in text. */
export const durationPattern = `(?:${piece.source})+`
const whole = new RegExp(`^${durationPattern}$`)

const mostSeconds = 18446744073709551615n

/** Reads `1h30m`, and `1_000ms`; `undefined` when the text is no duration or too long to hold. */
export const parse = (text: string): Duration | undefined => {
  if (!whole.test(text)) return undefined
  let nanos = 0n
  for (const [, count, unit] of text.matchAll(piece)) {
    const n = BigInt(count!.replaceAll("_", ""))
    if (n > mostSeconds) return undefined
    nanos += n * unitNanos[unit!]!
  }
  return fromNanos(nanos)
}

/** A duration of whole nanoseconds; `undefined` below zero or beyond 64 bits of seconds. */
export const fromNanos = (nanos: bigint): Duration | undefined => {
  const seconds = nanos / 1_000_000_000n
  if (nanos < 0n || seconds > mostSeconds) return undefined
  return new Duration(int(seconds), Number(nanos % 1_000_000_000n))
}

/**
 * A duration of seconds with a fraction, rounded to the nearest nanosecond (ties to even) from the float's exact value.
 */
export const fromSeconds = (seconds: number): Duration | undefined => {
  if (!(seconds >= 0 && seconds < 2 ** 64)) return undefined
  // A float is a multiple of 2^-1074; few of the digits after a nanosecond can matter, but a tie must be recognised.
  const whole = Math.trunc(seconds)
  let fraction = seconds - whole,
    bits = 0
  while (!Number.isInteger(fraction)) {
    fraction *= 2
    bits++
  }
  const scaled = BigInt(fraction) * 1_000_000_000n,
    unit = 1n << BigInt(bits)
  const nanos = scaled / unit,
    twice = (scaled % unit) * 2n
  return fromNanos(
    BigInt(whole) * 1_000_000_000n + nanos + (twice > unit || (twice === unit && nanos % 2n === 1n) ? 1n : 0n)
  )
}

/** The longest duration there is. */
export const longest = new Duration(mostSeconds, 999_999_999)

/** The length in seconds, as near as a float comes. */
export const toSeconds = (d: Duration): number => Number(d.seconds) + d.nanos / 1e9

/** The length in nanoseconds. */
export const toNanos = (d: Duration): bigint => BigInt(d.seconds) * 1_000_000_000n + BigInt(d.nanos)

const units: ReadonlyArray<readonly [string, bigint]> = [
  ["y", 31_536_000n],
  ["w", 604_800n],
  ["d", 86_400n],
  ["h", 3600n],
  ["m", 60n],
  ["s", 1n]
]

/** Text as the database prints it: largest units first, `0ns` for nothing. */
export const render = (d: Duration): string => {
  let out = "",
    rest = BigInt(d.seconds)
  for (const [unit, seconds] of units) {
    const n = rest / seconds
    rest %= seconds
    if (n > 0n) out += n + unit
  }
  const part = (n: number, unit: string): string => (n > 0 ? n + unit : "")
  out +=
    part(Math.floor(d.nanos / 1e6), "ms") + part(Math.floor(d.nanos / 1e3) % 1000, "µs") + part(d.nanos % 1000, "ns")
  return out === "" ? "0ns" : out
}
