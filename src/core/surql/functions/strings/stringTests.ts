/**
 * `string::is_*` and `string::semver::*`.
 *
 * Why so: tests of shape and the arithmetic of version numbers, by the standard grammars.
 */

import { uuidOf } from "../../evaluate/cast.ts"
import { ownText, raise } from "../../evaluate/failure.ts"
import * as Datetimes from "../../values/datetime.ts"
import * as RecordIds from "../../values/recordId.ts"
import type { Value } from "../../values/value.ts"
import { int, Table as TableName } from "../../values/value.ts"
import type { Fn, Table } from "../define.ts"
import { define } from "../define.ts"

const shape = (pattern: RegExp): Fn => define<[string]>(["string"], ([s]) => pattern.test(s))

const semver =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/

interface Version {
  /** Unsigned 64-bit numbers. */
  readonly parts: readonly [bigint, bigint, bigint]
  readonly pre: string | undefined
  readonly build: string | undefined
}

const version = (text: string, name: string, message = "Invalid semantic version"): Version => {
  const m = semver.exec(text)
  const parts = m === null ? [] : m.slice(1, 4).map(BigInt)
  return m === null || parts.some((n) => n > 18446744073709551615n)
    ? raise`Incorrect arguments for function ${ownText(name)}(). ${ownText(message)}`
    : { parts: parts as unknown as Version["parts"], pre: m[4], build: m[5] }
}

const show = (v: Version): string =>
  v.parts.join(".") + (v.pre === undefined ? "" : "-" + v.pre) + (v.build === undefined ? "" : "+" + v.build)

const comparePre = (a: string | undefined, b: string | undefined): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  const x = a.split("."),
    y = b.split(".")
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    const p = x[i]!,
      q = y[i]!,
      np = /^\d+$/.test(p),
      nq = /^\d+$/.test(q)
    const c = np && nq ? Number(p) - Number(q) : np !== nq ? (np ? -1 : 1) : p < q ? -1 : p > q ? 1 : 0
    if (c !== 0) return c
  }
  return x.length - y.length
}

const compareVersions = (a: Version, b: Version): number => {
  for (let i = 0; i < 3; i++) if (a.parts[i] !== b.parts[i]) return a.parts[i]! < b.parts[i]! ? -1 : 1
  return (
    Math.sign(comparePre(a.pre, b.pre)) ||
    (a.build === b.build ? 0 : a.build === undefined ? -1 : b.build === undefined ? 1 : a.build < b.build ? -1 : 1)
  )
}

const get = (i: 0 | 1 | 2): Fn =>
  define<[string]>(["string"], ([s], _, name) => int(BigInt.asIntN(64, version(s, name).parts[i])))

const increase = (i: 0 | 1 | 2): Fn =>
  define<[string]>(["string"], ([s], _, name) => {
    const v = version(s, name)
    return show({
      ...v,
      parts: v.parts.map((n, j) =>
        j < i ? n : j === i ? BigInt.asUintN(64, n + 1n) : 0n
      ) as unknown as Version["parts"]
    })
  })

const assign = (i: 0 | 1 | 2): Fn =>
  define<[string, number | bigint]>(
    ["string", "int"],
    ([s, n], _, name) => {
      const v = version(s, name)
      return show({
        ...v,
        parts: v.parts.map((old, j) => (j === i ? BigInt.asUintN(64, BigInt(n)) : old)) as unknown as Version["parts"]
      })
    },
    { wideInts: true }
  )

const isRecord = ([s, ...of]: readonly [string, ...ReadonlyArray<Value>], _: unknown, name: string): boolean => {
  const id = RecordIds.parseWritten(s),
    [table] = of
  if (id === undefined || of.length === 0) return id !== undefined
  if (table instanceof TableName) return table.name === id.table
  return typeof table === "string"
    ? table === id.table
    : raise`Incorrect arguments for function ${ownText(name)}()(). Expected an optional string or table type for the second argument`
}

export const stringTests: Table = {
  "string::is_alpha": shape(/^\p{Alphabetic}+$/u),
  "string::is_alphanum": shape(/^[\p{Alphabetic}\p{N}]+$/u),
  "string::is_ascii": define<[string]>(["string"], ([s]) => s !== "" && !/[^\x00-\x7f]/.test(s)),
  "string::is_datetime": define<[string, string?]>(["string", "?string"], ([s, format]) =>
    format === undefined
      ? Datetimes.parseWritten(s) !== undefined
      : raise`string::is_datetime() with a format is not supported yet`
  ),
  "string::is_hexadecimal": shape(/^[0-9a-fA-F]+$/),
  "string::is_latitude": shape(/^[-+]?([1-8]?\d(\.\d+)?|90(\.0+)?)$/),
  "string::is_longitude": shape(/^[-+]?(180(\.0+)?|((1[0-7]\d)|([1-9]?\d))(\.\d+)?)$/),
  "string::is_numeric": shape(/^\p{N}+$/u),
  "string::is_record": define<[string, ...ReadonlyArray<Value>]>(["string", "?any"], isRecord),
  "string::is_semver": shape(semver),
  "string::is_ulid": shape(/^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$/),
  "string::is_uuid": define<[string]>(["string"], ([s]) => uuidOf(s) !== undefined),
  "string::semver::compare": define<[string, string]>(["string", "string"], ([a, b], _, name) =>
    compareVersions(
      version(a, name, "Invalid semantic version string for left argument"),
      version(b, name, "Invalid semantic version string for right argument")
    )
  ),
  "string::semver::major": get(0),
  "string::semver::minor": get(1),
  "string::semver::patch": get(2),
  "string::semver::inc::major": increase(0),
  "string::semver::inc::minor": increase(1),
  "string::semver::inc::patch": increase(2),
  "string::semver::set::major": assign(0),
  "string::semver::set::minor": assign(1),
  "string::semver::set::patch": assign(2)
}
