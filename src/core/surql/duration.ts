/**
 * Durations: the database's text form (`1h30m`) in and out, and conversion to other units.
 *
 * Why so: a duration is whole seconds plus nanoseconds, up to 2^64 seconds in the database; here the seconds are a safe
 * integer, which is 285 million years.
 */
import { Duration } from "./value.ts"

const unitNanos: { readonly [unit: string]: bigint } = {
  ns: 1n, us: 1_000n, "µs": 1_000n, "μs": 1_000n, ms: 1_000_000n, s: 1_000_000_000n, m: 60_000_000_000n,
  h: 3_600_000_000_000n, d: 86_400_000_000_000n, w: 604_800_000_000_000n, y: 31_536_000_000_000_000n
}

const whole = /^(?:\d+(?:ns|us|µs|μs|ms|s|m|h|d|w|y))+$/
const piece = /(\d+)(ns|us|µs|μs|ms|s|m|h|d|w|y)/g

/** Reads `1h30m`; `undefined` when the text is no duration or too long to hold. */
export const parse = (text: string): Duration | undefined => {
  if (!whole.test(text)) return undefined
  let nanos = 0n
  for (const [, count, unit] of text.matchAll(piece)) nanos += BigInt(count!) * unitNanos[unit!]!
  return fromNanos(nanos)
}

/** A duration of whole nanoseconds; `undefined` below zero or beyond what is held. */
export const fromNanos = (nanos: bigint): Duration | undefined => {
  const seconds = nanos / 1_000_000_000n
  if (nanos < 0n || seconds > 9007199254740991n) return undefined
  return new Duration(Number(seconds), Number(nanos % 1_000_000_000n))
}

/** The length in nanoseconds. */
export const toNanos = (d: Duration): bigint => BigInt(d.seconds) * 1_000_000_000n + BigInt(d.nanos)

/** The length in milliseconds, fractions kept. */
export const toMillis = (d: Duration): number => d.seconds * 1000 + d.nanos / 1e6

/** Text as the database prints it: largest units first, `0ns` for nothing. */
export const render = (d: Duration): string => {
  if (d.seconds === 0 && d.nanos === 0) return "0ns"
  const years = Math.floor(d.seconds / 31_536_000), inYear = d.seconds % 31_536_000
  const weeks = Math.floor(inYear / 604_800), inWeek = inYear % 604_800
  const days = Math.floor(inWeek / 86_400), inDay = inWeek % 86_400
  const hours = Math.floor(inDay / 3600), minutes = Math.floor((inDay % 3600) / 60), seconds = inDay % 60
  const millis = Math.floor(d.nanos / 1e6), micros = Math.floor(d.nanos / 1e3) % 1000, nanos = d.nanos % 1000
  const part = (n: number, unit: string): string => (n > 0 ? n + unit : "")
  return part(years, "y") + part(weeks, "w") + part(days, "d") + part(hours, "h") + part(minutes, "m") +
    part(seconds, "s") + part(millis, "ms") + part(micros, "µs") + part(nanos, "ns")
}
