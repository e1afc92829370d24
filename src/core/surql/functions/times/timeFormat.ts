/**
 * `time::format`: the strftime letters of the database's date library, in UTC and English.
 *
 * Why so: a table of letters; unknown ones are an error, as there.
 */

import { raise } from "../../evaluate/failure.ts"
import type { Civil } from "../../values/datetime.ts"
import { civil, yearText } from "../../values/datetime.ts"
import type { Datetime } from "../../values/value.ts"
import { isoWeek, weekday, yearDay } from "./time.ts"

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December"
]
const days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

const pad = (n: number, width: number, fill = "0"): string => String(n).padStart(width, fill)

const inCentury = (year: number): number => ((year % 100) + 100) % 100

/**
 * The century in a byte, as the database's date library writes it: before year 0 and after 9999 its first character is
 * no digit.
 */
const century = (year: number): string => {
  const n = Math.floor(year / 100) & 255
  return String.fromCharCode(48 + Math.floor(n / 10)) + String(n % 10)
}

const letters: { readonly [letter: string]: (d: Datetime, c: Civil) => string } = {
  Y: (_, c) => yearText(c.year),
  C: (_, c) => century(c.year),
  y: (_, c) => pad(inCentury(c.year), 2),
  m: (_, c) => pad(c.month, 2),
  b: (_, c) => months[c.month - 1]!.slice(0, 3),
  B: (_, c) => months[c.month - 1]!,
  h: (_, c) => months[c.month - 1]!.slice(0, 3),
  d: (_, c) => pad(c.day, 2),
  e: (_, c) => pad(c.day, 2, " "),
  a: (d) => days[weekday(d) - 1]!.slice(0, 3),
  A: (d) => days[weekday(d) - 1]!,
  w: (d) => String(weekday(d) % 7),
  u: (d) => String(weekday(d)),
  U: (d, c) => pad(Math.floor((yearDay(c) - 1 + 7 - (weekday(d) % 7)) / 7), 2),
  W: (d, c) => pad(Math.floor((yearDay(c) - 1 + 7 - (weekday(d) - 1)) / 7), 2),
  G: (d) => yearText(isoWeek(d)[0]),
  g: (d) => pad(inCentury(isoWeek(d)[0]), 2),
  V: (d) => pad(isoWeek(d)[1], 2),
  j: (_, c) => pad(yearDay(c), 3),
  q: (_, c) => String(Math.ceil(c.month / 3)),
  D: (_, c) => `${pad(c.month, 2)}/${pad(c.day, 2)}/${pad(inCentury(c.year), 2)}`,
  x: (_, c) => `${pad(c.month, 2)}/${pad(c.day, 2)}/${pad(inCentury(c.year), 2)}`,
  F: (_, c) => `${yearText(c.year)}-${pad(c.month, 2)}-${pad(c.day, 2)}`,
  v: (_, c) => `${pad(c.day, 2, " ")}-${months[c.month - 1]!.slice(0, 3)}-${yearText(c.year)}`,
  H: (_, c) => pad(c.hour, 2),
  k: (_, c) => pad(c.hour, 2, " "),
  I: (_, c) => pad(c.hour % 12 || 12, 2),
  l: (_, c) => pad(c.hour % 12 || 12, 2, " "),
  P: (_, c) => (c.hour < 12 ? "am" : "pm"),
  p: (_, c) => (c.hour < 12 ? "AM" : "PM"),
  M: (_, c) => pad(c.minute, 2),
  S: (_, c) => pad(c.second, 2),
  f: (_, c) => pad(c.nanos, 9),
  R: (_, c) => `${pad(c.hour, 2)}:${pad(c.minute, 2)}`,
  T: (_, c) => `${pad(c.hour, 2)}:${pad(c.minute, 2)}:${pad(c.second, 2)}`,
  X: (_, c) => `${pad(c.hour, 2)}:${pad(c.minute, 2)}:${pad(c.second, 2)}`,
  r: (_, c) => `${pad(c.hour % 12 || 12, 2)}:${pad(c.minute, 2)}:${pad(c.second, 2)} ${c.hour < 12 ? "AM" : "PM"}`,
  Z: () => "UTC",
  z: () => "+0000",
  s: (d) => String(d.seconds),
  t: () => "\t",
  n: () => "\n",
  "%": () => "%",
  c: (d, c) =>
    `${days[weekday(d) - 1]!.slice(0, 3)} ${months[c.month - 1]!.slice(0, 3)} ${pad(c.day, 2, " ")} ${pad(c.hour, 2)}:${pad(c.minute, 2)}:${pad(c.second, 2)} ${yearText(c.year)}`
}

/** Letters of a single number, which may have a padding flag (`%-d`, `%0e`); with others a flag is an error. */
const mayBePadded = (letter: string): boolean => "YCymdewuUWGgVjqHkIlMSfs".includes(letter)

/** A number padded by a flag: `-` not at all, `_` with spaces, `0` with zeros after its sign. */
const padded = (text: string, flag: string, width: number): string => {
  const [whole, sign = "", digits = ""] = /^([+-]?)[0 ]*(\d+)$/.exec(text) ?? []
  // A century whose first character is no digit.
  if (whole === undefined) return text
  if (flag === "-") return sign + digits
  return flag === "_" ? (sign + digits).padStart(width) : sign + digits.padStart(width - sign.length, "0")
}

const fractions = (c: Civil, width: number, dot: boolean): string => (dot ? "." : "") + pad(c.nanos, 9).slice(0, width)

/** A datetime by a format such as `%Y-%m-%d`. */
export const formatTime = (d: Datetime, format: string): string => {
  const c = civil(d)
  return format.replace(/%(\.?[369]f|\.f|:z|::z|\+|[-_0]?[\s\S]|$)/g, (_, spec: string) => {
    if (/^\.?[369]f$/.test(spec)) return fractions(c, Number(spec.replace(/\D/g, "")), spec.startsWith("."))
    if (spec === ".f")
      return c.nanos === 0 ? "" : fractions(c, c.nanos % 1e6 === 0 ? 3 : c.nanos % 1e3 === 0 ? 6 : 9, true)
    if (spec === ":z") return "+00:00"
    if (spec === "::z") return "+00:00:00"
    if (spec === "+")
      return `${letters["F"]!(d, c)}T${letters["T"]!(d, c)}${c.nanos === 0 ? "" : fractions(c, c.nanos % 1e6 === 0 ? 3 : c.nanos % 1e3 === 0 ? 6 : 9, true)}+00:00`
    const letter = letters[spec.slice(-1)]
    if (letter === undefined || spec === "" || (spec.length > 1 && !mayBePadded(spec.slice(-1))))
      return raise`Incorrect arguments for method time::format(). \`${format}\` is not a valid time formatting string`
    const text = letter(d, c)
    return spec.length === 1 ? text : padded(text, spec[0]!, spec[1] === "s" ? 9 : text.length)
  })
}
