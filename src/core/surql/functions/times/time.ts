/**
 * `time::*` on given datetimes; `time::now` and its like are not deterministic and refused in live views.
 *
 * Why so: parts of a date come from the proleptic calendar in datetime.ts; rounding counts from the Unix epoch.
 */

import { ownText, raise } from "../../evaluate/failure.ts"
import type { Scope } from "../../evaluate/scope.ts"
import type { Civil } from "../../values/datetime.ts"
import {
  civil,
  daysFromCivil,
  daysInMonth,
  fromCivil,
  fromNanos,
  fromNanosInRange,
  isLeap,
  toMillis,
  toNanos
} from "../../values/datetime.ts"
import * as Durations from "../../values/duration.ts"
import { compare } from "../../values/order.ts"
import { render } from "../../values/text.ts"
import type { Value } from "../../values/value.ts"
import { Datetime, type Duration, int, type Uuid } from "../../values/value.ts"
import type { Fn, Table } from "../define.ts"
import { constant, define, volatile } from "../define.ts"
import { formatTime } from "./timeFormat.ts"

/** The time of the caller; fails without one. */
const now = (scope: Scope, name: string): Datetime =>
  scope.now ?? raise`${ownText(name)}() without a datetime is not deterministic`

/** A part of a datetime; without an argument, of the present. */
const part = (body: (d: Datetime, c: Civil) => Value): Fn => ({
  ...define<[Datetime?]>(["?datetime"], ([given], scope, name) => {
    const d = given ?? now(scope, name)
    return body(d, civil(d))
  }),
  pureWithArguments: true
})

/** Day of the week, Monday 1. */
export const weekday = (d: Datetime): number => ((((Math.floor(d.seconds / 86400) + 3) % 7) + 7) % 7) + 1

/** Day of the year from 1. */
export const yearDay = (c: Civil): number => daysFromCivil(c.year, c.month, c.day) - daysFromCivil(c.year, 1, 1) + 1

/** ISO week: its year and number. */
export const isoWeek = (d: Datetime): readonly [number, number] => {
  const thursday = civil(new Datetime((Math.floor(d.seconds / 86400) - weekday(d) + 4) * 86400, 0))
  return [thursday.year, Math.floor((yearDay(thursday) - 1) / 7) + 1]
}

const floorTo = (d: Datetime, by: Duration): bigint => {
  const n = toNanos(d),
    step = Durations.toNanos(by)
  return n - (((n % step) + step) % step)
}

/** True for nanoseconds that 64 bits hold. */
const inNanos = (n: bigint): boolean => n >= -9223372036854775808n && n <= 9223372036854775807n

const rounding = (body: (floor: bigint, n: bigint, step: bigint) => bigint): Fn =>
  define<[Datetime, Duration]>(["datetime", "duration"], ([d, by], _, name) => {
    const step = Durations.toNanos(by),
      n = toNanos(d)
    if (step === 0n) return d
    if (!inNanos(step) || !inNanos(n))
      return raise`Incorrect arguments for function ${ownText(name)}(). The second argument must be a duration, and must be able to be represented as nanoseconds.`
    return fromNanos(body(floorTo(d, by), n, step))
  })

const units = ["year", "month", "day", "hour", "minute", "second"]

const group = (d: Datetime, unit: string): Value => {
  const at = units.indexOf(unit)
  if (at < 0)
    return raise`Incorrect arguments for function time::group(). The second argument must be a string, and can be one of 'year', 'month', 'day', 'hour', 'minute', or 'second'.`
  const c = civil(d)
  return fromCivil({
    year: c.year,
    month: at >= 1 ? c.month : 1,
    day: at >= 2 ? c.day : 1,
    hour: at >= 3 ? c.hour : 0,
    minute: at >= 4 ? c.minute : 0,
    second: at >= 5 ? c.second : 0,
    nanos: 0
  })
}

const from = (scale: bigint, unit: string): Fn =>
  define<[number | bigint]>(
    ["int"],
    ([n], _, name) =>
      fromNanosInRange(BigInt(n) * scale) ??
      raise`Incorrect arguments for function ${ownText(name)}(). The argument must be a number of ${ownText(unit)} relative to January 1, 1970 0:00:00 UTC that produces a datetime between -262143-01-01T00:00:00Z and +262142-12-31T23:59:59Z.`,
    { wideInts: true }
  )

const extreme = (sign: number): Fn =>
  define<[ReadonlyArray<Value>]>(["array"], ([a], _, name) =>
    a.reduce<Value>((best, v) => {
      if (!(v instanceof Datetime))
        return raise`Incorrect arguments for function ${ownText(name)}(). Argument 1 was the wrong type. Expected \`datetime\` but found \`${render(v)}\``
      return best === undefined || compare(v, best) * sign > 0 ? v : best
    }, undefined)
  )

const set = (unit: keyof Civil, word: string, max: (c: Civil) => number, min: number): Fn =>
  define<[Datetime, number]>(["datetime", "number"], ([d, n]) => {
    const [before = "", after = ""] = word.split("_")
    const c = civil(d)
    const next = { ...c, [unit]: n }
    if (!Number.isInteger(n) || n < min || n > max(c) || next.day > daysInMonth(next.year, next.month))
      return raise`Unable to set datetime to ${ownText(before)}${n}${ownText(after)}`
    return fromCivil(next)
  })

const fromUlid = (text: string): Value => {
  if (!/^[0-9A-HJKMNP-TV-Z]{26}$/i.test(text))
    return raise`Incorrect arguments for function time::from_ulid(). The first argument must be a string, containing a valid ULID.`
  const millis = Array.from(text.slice(0, 10).toUpperCase()).reduce(
    (n, c) => n * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(c),
    0
  )
  // The first ten letters have fifty bits, forty-eight of which are the time.
  return fromNanos(BigInt(millis % 2 ** 48) * 1_000_000n)
}

const fromUuid = (u: Uuid): Value => {
  const hex = u.text.replaceAll("-", ""),
    version = hex[12]
  if (version === "7") return fromNanos(BigInt("0x" + hex.slice(0, 12)) * 1_000_000n)
  const ticks =
    version === "1"
      ? hex.slice(13, 16) + hex.slice(8, 12) + hex.slice(0, 8)
      : version === "6"
        ? hex.slice(0, 12) + hex.slice(13, 16)
        : undefined
  if (ticks === undefined)
    return raise`Incorrect arguments for function time::from_uuid(). The first argument must be a v1, v6 or v7 UUID.`
  return fromNanos((BigInt("0x" + ticks) - 0x01b21dd213814000n) * 100n)
}

export const time: Table = {
  "time::ceil": rounding((floor, n, step) => (floor === n ? n : floor + step)),
  "time::day": part((_, c) => c.day),
  "time::floor": rounding((floor) => floor),
  "time::format": define<[Datetime, string]>(["datetime", "string"], ([d, format]) => formatTime(d, format)),
  "time::group": define<[Datetime, string]>(["datetime", "string"], ([d, unit]) => group(d, unit)),
  "time::hour": part((_, c) => c.hour),
  "time::max": extreme(1),
  "time::micros": part((d) => int(toNanos(d) / 1000n - (toNanos(d) % 1000n < 0n ? 1n : 0n))),
  "time::millis": part(toMillis),
  "time::min": extreme(-1),
  "time::minute": part((_, c) => c.minute),
  "time::month": part((_, c) => c.month),
  "time::nano": part((d) => (inNanos(toNanos(d)) ? int(toNanos(d)) : 0)),
  "time::now": volatile((_, scope, name) => now(scope, name)),
  "time::round": rounding((floor, n, step) => (2n * (n - floor) >= step ? floor + step : floor)),
  "time::second": part((_, c) => c.second),
  "time::timezone": volatile((_, __, name) => raise`${ownText(name)}() is not deterministic`),
  "time::unix": part((d) => d.seconds),
  "time::wday": part((d) => weekday(d)),
  "time::week": part((d) => isoWeek(d)[1]),
  "time::yday": part((_, c) => yearDay(c)),
  "time::year": part((_, c) => c.year),
  "time::from_micros": from(1000n, "microseconds"),
  "time::from_millis": from(1_000_000n, "milliseconds"),
  "time::from_nanos": from(1n, "nanoseconds"),
  "time::from_secs": from(1_000_000_000n, "seconds"),
  "time::from_unix": from(1_000_000_000n, "seconds"),
  "time::from_ulid": define<[string]>(["string"], ([s]) => fromUlid(s)),
  "time::from_uuid": define<[Uuid]>(["uuid"], ([u]) => fromUuid(u)),
  "time::is_leap_year": part((_, c) => isLeap(c.year)),
  "time::set_year": set("year", "year _", () => 262142, -262143),
  "time::set_month": set("month", "month _", () => 12, 1),
  "time::set_day": set("day", "day _", (c) => daysInMonth(c.year, c.month), 1),
  "time::set_hour": set("hour", "hour _", () => 23, 0),
  "time::set_minute": set("minute", "_ minutes", () => 59, 0),
  "time::set_second": set("second", "_ seconds", () => 59, 0),
  "time::set_nanosecond": set("nanos", "_ nanoseconds", () => 1_999_999_999, 0),
  "time::epoch": constant(new Datetime(0, 0)),
  "time::minimum": constant(new Datetime(daysFromCivil(-262143, 1, 1) * 86400, 0)),
  "time::maximum": constant(new Datetime(daysFromCivil(262142, 12, 31) * 86400 + 86399, 999_999_999))
}
