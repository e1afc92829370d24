/**
 * Durations as the database writes them (`1h30m`), read as milliseconds for time-to-live arithmetic (D14).
 */

const unitMs: { readonly [unit: string]: number } = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: 31_536_000_000
}

const whole = /^(?:\d+(?:ns|us|µs|μs|ms|s|m|h|d|w|y))+$/
const part = /(\d+)(ns|us|µs|μs|ms|s|m|h|d|w|y)/g

/** Longest text parsed; a longer one is no sensible duration. */
const maxLength = 200

/** Milliseconds, rounded up; undefined if `text` is no duration. Capped so that adding it to a date stays exact. */
export const parseMs = (text: string): number | undefined => {
  if (text.length > maxLength || !whole.test(text)) return undefined
  let ms = 0
  for (const [, digits, unit] of text.matchAll(part)) ms += Number(digits) * (unitMs[unit ?? ""] ?? 0)
  return Math.min(Math.ceil(ms), 2 ** 52)
}
