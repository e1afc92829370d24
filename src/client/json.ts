/**
 * JSON of the server, whose 64-bit integers have all their digits. `JSON.parse` would round integers beyond 2^53.
 *
 * Where a text has that many digits in a row, such integers are put in quotes before it is parsed.
 */

/** Parses JSON. Throws on invalid JSON. */
export type ReadJson = (text: string) => unknown

/** Strings in their quotes (field names with their colon), and numbers. */
const tokens = /"(?:[^"\\]|\\.)*":?|-?\d[\d.eE+-]*/g

const isLong = /\d{16}/

const isLarge = (token: string): boolean => /^-?\d+$/.test(token) && !Number.isSafeInteger(+token)

/** Integers beyond 2^53 are text. */
export const jsonWithText: ReadJson = (text) =>
  JSON.parse(isLong.test(text) ? text.replace(tokens, (token) => (isLarge(token) ? `"${token}"` : token)) : text)

/** Prefix that marks an integer in a string; a string that begins with it gets it a second time. */
const mark = '"\\u0000'

const marked = (token: string): string =>
  isLarge(token) ? `${mark}${token}"` : token.startsWith(mark) && !token.endsWith(":") ? mark + token.slice(1) : token

/** Integers beyond 2^53 are `bigint`. */
export const jsonWithBigints: ReadJson = (text) =>
  isLong.test(text)
    ? JSON.parse(text.replace(tokens, marked), (_, value: unknown) => {
        if (typeof value !== "string" || value[0] !== "\0") return value
        return value[1] === "\0" ? value.slice(1) : BigInt(value.slice(1))
      })
    : JSON.parse(text)
