/**
 * `string::is_*` and `string::semver::*`.
 *
 * Why so: tests of shape and the arithmetic of version numbers, by the standard grammars.
 */
import * as Datetimes from "../datetime.ts"
import { raise } from "../failure.ts"
import { uuidPattern } from "../json.ts"
import * as RecordIds from "../recordId.ts"
import { toText } from "../text.ts"
import type { Value } from "../value.ts"
import { define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

const shape = (pattern: RegExp): Fn => define<[string]>(["string"], ([s]) => pattern.test(s))

const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
const ipv4 = new RegExp(`^${octet}(?:\\.${octet}){3}$`)

const isIpv6 = (s: string): boolean => {
  const halves = s.split("::")
  if (halves.length > 2 || !/^[0-9a-fA-F:.]+$/.test(s)) return false
  const groups = halves.flatMap((h) => (h === "" ? [] : h.split(":")))
  const tail = groups[groups.length - 1] ?? ""
  const extra = tail.includes(".") ? (ipv4.test(tail) ? 1 : NaN) : 0
  const valid = groups.every((g, i) => /^[0-9a-fA-F]{1,4}$/.test(g) || (extra === 1 && i === groups.length - 1))
  return valid && (halves.length === 2 ? groups.length + extra < 8 : groups.length + extra === 8)
}

const semver = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/

interface Version {
  readonly parts: readonly [number, number, number]
  readonly pre: string | undefined
  readonly build: string | undefined
}

const version = (text: string, name: string, message = "Invalid semantic version"): Version => {
  const m = semver.exec(text)
  return m === null ? raise(`Incorrect arguments for function ${name}(). ${message}`) : { parts: [Number(m[1]), Number(m[2]), Number(m[3])], pre: m[4], build: m[5] }
}

const show = (v: Version): string => v.parts.join(".") + (v.pre === undefined ? "" : "-" + v.pre) + (v.build === undefined ? "" : "+" + v.build)

const comparePre = (a: string | undefined, b: string | undefined): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  const x = a.split("."), y = b.split(".")
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    const p = x[i]!, q = y[i]!, np = /^\d+$/.test(p), nq = /^\d+$/.test(q)
    const c = np && nq ? Number(p) - Number(q) : np !== nq ? (np ? -1 : 1) : p < q ? -1 : p > q ? 1 : 0
    if (c !== 0) return c
  }
  return x.length - y.length
}

const compareVersions = (a: Version, b: Version): number => {
  for (let i = 0; i < 3; i++) if (a.parts[i] !== b.parts[i]) return a.parts[i]! < b.parts[i]! ? -1 : 1
  return Math.sign(comparePre(a.pre, b.pre)) || (a.build === b.build ? 0 : a.build === undefined ? -1 : b.build === undefined ? 1 : a.build < b.build ? -1 : 1)
}

const get = (i: 0 | 1 | 2): Fn => define<[string]>(["string"], ([s], _, name) => version(s, name).parts[i])

const increase = (i: 0 | 1 | 2): Fn => define<[string]>(["string"], ([s], _, name) => {
  const v = version(s, name)
  return show({ ...v, parts: v.parts.map((n, j) => (j < i ? n : j === i ? n + 1 : 0)) as unknown as Version["parts"] })
})

const assign = (i: 0 | 1 | 2): Fn => define<[string, number]>(["string", "int"], ([s, n], _, name) => {
  const v = version(s, name)
  return show({ ...v, parts: v.parts.map((old, j) => (j === i ? n : old)) as unknown as Version["parts"] })
})

const isUrl = (s: string): boolean => /^[a-zA-Z][a-zA-Z0-9+.-]*:\S*$/.test(s) && !/^(?:https?|ftp|wss?):\/*$/.test(s)

export const stringTests: Table = {
  "string::is_alpha": shape(/^\p{Alphabetic}+$/u),
  "string::is_alphanum": shape(/^[\p{Alphabetic}\p{N}]+$/u),
  "string::is_ascii": define<[string]>(["string"], ([s]) => s !== "" && !/[^\x00-\x7f]/.test(s)),
  "string::is_datetime": define<[string, string?]>(["string", "?string"], ([s, format]) => format === undefined ? Datetimes.parse(s) !== undefined : raise("string::is_datetime() with a format is not supported yet")),
  "string::is_domain": shape(/^(?=.{1,253}$)(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)*[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u),
  "string::is_email": shape(/^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)*[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u),
  "string::is_hexadecimal": shape(/^[0-9a-fA-F]+$/),
  "string::is_ip": define<[string]>(["string"], ([s]) => ipv4.test(s) || isIpv6(s)),
  "string::is_ipv4": shape(ipv4),
  "string::is_ipv6": define<[string]>(["string"], ([s]) => isIpv6(s)),
  "string::is_latitude": shape(/^[-+]?([1-8]?\d(\.\d+)?|90(\.0+)?)$/),
  "string::is_longitude": shape(/^[-+]?(180(\.0+)?|((1[0-7]\d)|([1-9]?\d))(\.\d+)?)$/),
  "string::is_numeric": shape(/^\p{N}+$/u),
  "string::is_record": define<[string, Value?]>(["string", "?any"], ([s, table]) => { const id = RecordIds.parse(s); return id !== undefined && (table === undefined || toText(table) === id.table) }),
  "string::is_semver": shape(semver),
  "string::is_ulid": shape(/^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/),
  "string::is_url": define<[string]>(["string"], ([s]) => isUrl(s)),
  "string::is_uuid": define<[string]>(["string"], ([s]) => uuidPattern.test(s) || /^[0-9a-fA-F]{32}$/.test(s)),
  "string::semver::compare": define<[string, string]>(["string", "string"], ([a, b], _, name) =>
    compareVersions(version(a, name, "Invalid semantic version string for left argument"), version(b, name, "Invalid semantic version string for right argument"))),
  "string::semver::major": get(0), "string::semver::minor": get(1), "string::semver::patch": get(2),
  "string::semver::inc::major": increase(0), "string::semver::inc::minor": increase(1), "string::semver::inc::patch": increase(2),
  "string::semver::set::major": assign(0), "string::semver::set::minor": assign(1), "string::semver::set::patch": assign(2)
}
