/**
 * Datetimes: RFC 3339 text with nanoseconds in and out, and the calendar arithmetic behind it.
 *
 * Why so: JavaScript's Date stops at milliseconds and the years of its own range; the database keeps nanoseconds. Days
 * are counted with the proleptic Gregorian calendar, as the database does. Text goes out in UTC with 0, 3, 6 or 9
 * digits.
 */
import { Datetime } from "./value.ts"

/** A date-time taken apart, in UTC. `month` 1-12, `day` 1-31. */
export interface Civil {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly nanos: number
}

/** Days since 1970-01-01 of a civil date. */
export const daysFromCivil = (year: number, month: number, day: number): number => {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yoe = y - era * 400
  const doy = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const doe = yoe * 365 + Math.floor(yoe / 4) - Math.floor(yoe / 100) + doy
  return era * 146097 + doe - 719468
}

export const isLeap = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0

export const daysInMonth = (year: number, month: number): number =>
  month === 2 ? (isLeap(year) ? 29 : 28) : month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31

/** The UTC date and time of day of a datetime. */
export const civil = (d: Datetime): Civil => {
  const days = Math.floor(d.seconds / 86400)
  const rest = d.seconds - days * 86400
  const z = days + 719468
  const era = Math.floor(z / 146097)
  const doe = z - era * 146097
  const yoe = Math.floor((doe - Math.floor(doe / 1460) + Math.floor(doe / 36524) - Math.floor(doe / 146096)) / 365)
  const doy = doe - (365 * yoe + Math.floor(yoe / 4) - Math.floor(yoe / 100))
  const mp = Math.floor((5 * doy + 2) / 153)
  const month = mp < 10 ? mp + 3 : mp - 9
  return {
    year: yoe + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: doy - Math.floor((153 * mp + 2) / 5) + 1,
    hour: Math.floor(rest / 3600),
    minute: Math.floor((rest % 3600) / 60),
    second: rest % 60,
    nanos: d.nanos
  }
}

/** The datetime of a civil date and time in UTC (fields in range). */
export const fromCivil = (c: Civil): Datetime =>
  new Datetime(daysFromCivil(c.year, c.month, c.day) * 86400 + c.hour * 3600 + c.minute * 60 + c.second, c.nanos)

/** Pattern of a datetime: numbers after the year may have a digit `more`; `rest` is allowed after the zone. */
const reader = (year: string, more: string, rest: string): RegExp =>
  new RegExp(
    `^(${year})-(\\d\\d${more})-(\\d\\d${more})(?:[T ](\\d\\d${more}):(\\d\\d${more}):(\\d\\d${more})(?:\\.(\\d{1,9})(\\d*))?(?:Z|([+-])(\\d\\d${more}):(\\d\\d${more}))${rest})?$`,
    "s"
  )

const exactly = reader("[+-]\\d{1,6}|\\d{4}", "", ""),
  widely = reader("[+-]?\\d{4,7}", "\\d?", ".*")

/** Parses `2020-01-01T00:00:00.5+02:00`; `undefined` for any other text. */
export const parse = (text: string): Datetime | undefined => (text.includes("T") ? read(exactly, text) : undefined)

/**
 * Parses what the language accepts as a datetime: also `2020-01-01`, a space or small letters between and after date
 * and time, one more digit per number. The database ignores text after a zone.
 */
export const parseWritten = (text: string): Datetime | undefined => read(widely, text.toUpperCase())

/** Nanoseconds that further digits add: in the database each of five or more adds one. */
const roundedUp = (digits: string): number => {
  let up = 0
  for (const digit of digits) if (digit >= "5") up++
  return up
}

const read = (pattern: RegExp, text: string): Datetime | undefined => {
  const m = pattern.exec(text)
  if (m === null) return undefined
  const year = Number(m[1]),
    month = Number(m[2]),
    day = Number(m[3])
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month) || year < -262143 || year > 262142)
    return undefined
  const days = daysFromCivil(year, month, day)
  if (m[4] === undefined) return new Datetime(days * 86400, 0)
  const hour = Number(m[4]),
    minute = Number(m[5]),
    second = Number(m[6])
  if (hour > 23 || minute > 59 || second > 59) return undefined
  const nanos = m[7] === undefined ? 0 : Number(m[7].padEnd(9, "0")) + roundedUp(m[8]!)
  if (nanos >= 1e9) return undefined
  let offset = 0
  if (m[9] !== undefined) {
    const oh = Number(m[10]),
      om = Number(m[11])
    if (oh > 23 || om > 59) return undefined
    offset = (oh * 3600 + om * 60) * (m[9] === "-" ? -1 : 1)
  }
  return new Datetime(days * 86400 + hour * 3600 + minute * 60 + second - offset, nanos)
}

/** Whether a text could be a complete RFC 3339 date-time; cheap, so that plain strings meet no regular expression. */
export const looksLikeDatetime = (text: string): boolean =>
  text.length >= 20 &&
  text.length <= 35 &&
  text.charCodeAt(4) === 45 &&
  text.charCodeAt(10) === 84 &&
  text.charCodeAt(7) === 45

const two = (n: number): string => (n < 10 ? "0" + n : String(n))

/** At least four digits; with a sign before year 0 and behind 9999. */
export const yearText = (year: number): string => {
  const digits = String(Math.abs(year)).padStart(4, "0")
  return year < 0 ? "-" + digits : year > 9999 ? "+" + digits : digits
}

const fraction = (nanos: number): string => {
  if (nanos === 0) return ""
  const text = String(nanos).padStart(9, "0")
  return "." + (nanos % 1e6 === 0 ? text.slice(0, 3) : nanos % 1e3 === 0 ? text.slice(0, 6) : text)
}

/** RFC 3339 in UTC, as the database prints it: `2020-01-01T00:00:00.100Z`. */
export const render = (d: Datetime): string => {
  const c = civil(d)
  return `${yearText(c.year)}-${two(c.month)}-${two(c.day)}T${two(c.hour)}:${two(c.minute)}:${two(c.second)}${fraction(c.nanos)}Z`
}

/** Milliseconds since the Unix epoch, rounded down. */
export const toMillis = (d: Datetime): number => d.seconds * 1000 + Math.floor(d.nanos / 1e6)

/** A datetime from whole nanoseconds since the epoch. */
export const fromNanos = (nanos: bigint): Datetime => {
  const rest = ((nanos % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n
  return new Datetime(Number((nanos - rest) / 1_000_000_000n), Number(rest))
}

const earliest = -8334601228800,
  latest = 8210266876799

/**
 * A datetime from whole nanoseconds since the epoch; `undefined` beyond the years -262143 and 262142, as in the
 * database.
 */
export const fromNanosInRange = (nanos: bigint): Datetime | undefined => {
  const d = fromNanos(nanos)
  return d.seconds >= earliest && d.seconds <= latest ? d : undefined
}

/** Whole nanoseconds since the epoch. */
export const toNanos = (d: Datetime): bigint => BigInt(d.seconds) * 1_000_000_000n + BigInt(d.nanos)
