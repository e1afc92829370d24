/**
 * `duration::*`, `record::*`, `meta::*`, `bytes::*`, `parse::*`, `encoding::*`, and what is knowingly refused.
 *
 * Why so: small families, each a line per function.
 */
import * as Durations from "../duration.ts"
import { raise } from "../failure.ts"
import { recordOf } from "../paths.ts"
import { spend } from "../scope.ts"
import { Bytes, Duration, RecordId, field, int, isObj } from "../value.ts"
import type { Value } from "../value.ts"
import { constant, define, volatile } from "./define.ts"
import type { Fn, Table } from "./define.ts"

const unit = (nanos: bigint): Fn => define<[Duration]>(["duration"], ([d]) => int(Durations.toNanos(d) / nanos))

const fromUnit = (nanos: bigint): Fn => define<[number | bigint]>(["int"], ([n], _, name) =>
  Durations.fromNanos(BigInt(n) * nanos) ?? raise(`Incorrect arguments for function ${name}(). The argument is not a valid duration`))

const unitNanos: ReadonlyArray<readonly [string, bigint]> = [
  ["nanos", 1n], ["micros", 1_000n], ["millis", 1_000_000n], ["secs", 1_000_000_000n], ["mins", 60_000_000_000n], ["hours", 3_600_000_000_000n],
  ["days", 86_400_000_000_000n], ["weeks", 604_800_000_000_000n], ["years", 31_536_000_000_000_000n]
]

const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

const encode64 = (bytes: Uint8Array, padded: boolean): string => {
  let out = ""
  for (let i = 0; i < bytes.length; i += 3) {
    const n = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0)
    const chars = Math.min(3, bytes.length - i) + 1
    for (let k = 0; k < chars; k++) out += base64[(n >> (18 - 6 * k)) & 63]
    if (padded) out += "=".repeat(4 - chars)
  }
  return out
}

const decode64 = (text: string): Value => {
  const clean = text.replace(/=+$/, "")
  if (!/^[A-Za-z0-9+/]*$/.test(clean) || clean.length % 4 === 1) return raise("Incorrect arguments for function encoding::base64::decode(). Invalid base64")
  const out: Array<number> = []
  let bits = 0, held = 0
  for (const c of clean) {
    held = (held << 6) | base64.indexOf(c)
    bits += 6
    if (bits >= 8) { bits -= 8; out.push((held >> bits) & 255) }
  }
  return new Bytes(Uint8Array.from(out))
}

interface Url { readonly scheme: string; readonly host: string | undefined; readonly port: number | undefined; readonly path: string; readonly query: string | undefined; readonly fragment: string | undefined }

const ports: { readonly [scheme: string]: number } = { http: 80, ws: 80, https: 443, wss: 443, ftp: 21 }

const url = (text: string): Url | undefined => {
  const m = /^([a-zA-Z][a-zA-Z0-9+.-]*):(?:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d*))?)?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(text.trim())
  if (m === null) return undefined
  const scheme = m[1]!.toLowerCase(), special = Object.hasOwn(ports, scheme)
  const host = m[2] === undefined || m[2] === "" ? undefined : special ? m[2].toLowerCase() : m[2]
  if (special && host === undefined) return undefined
  return { scheme, host, port: m[3] === undefined || m[3] === "" ? ports[scheme] : Number(m[3]), path: m[4] === "" && special ? "/" : m[4]!, query: m[5], fragment: m[6] }
}

const urlPart = (pick: (u: Url) => Value): Fn => define<[string]>(["string"], ([s]) => { const u = url(s); return u === undefined ? undefined : pick(u) })

const email = /^([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+)@([\p{L}\p{N}.-]+\.[\p{L}\p{N}-]+)$/u

const refused = (names: ReadonlyArray<string>): Table => Object.fromEntries(names.map((name) => [name, volatile(() => raise(`${name}() is not deterministic, and not available here`))]))

export const misc: Table = {
  ...Object.fromEntries(unitNanos.flatMap(([name, nanos]) => [[`duration::${name}`, unit(nanos)], ...(name === "years" ? [] : [[`duration::from_${name}`, fromUnit(nanos)]] as const)] as const)),
  "duration::max": constant(new Duration(9007199254740991, 999_999_999)),
  "record::exists": define<[RecordId]>(["record"], ([id], scope) => { spend(scope.budget, 1); return scope.source.record(id) !== undefined }, { reads: true }),
  "record::id": define<[RecordId]>(["record"], ([id]) => id.key as Value),
  "record::is_edge": define<[Value]>(["record|string"], ([v], scope) => {
    const id = recordOf(v), doc = id === undefined ? undefined : scope.source.record(id)
    return isObj(doc) && recordOf(field(doc, "in")) !== undefined && recordOf(field(doc, "out")) !== undefined
  }, { reads: true }),
  "record::table": define<[RecordId]>(["record"], ([id]) => id.table),
  "record::tb": define<[RecordId]>(["record"], ([id]) => id.table),
  "meta::id": define<[RecordId]>(["record"], ([id]) => id.key as Value),
  "meta::tb": define<[RecordId]>(["record"], ([id]) => id.table),
  "bytes::len": define<[Bytes]>(["bytes"], ([b]) => b.value.length),
  "parse::email::host": define<[string]>(["string"], ([s]) => email.exec(s)?.[2]),
  "parse::email::user": define<[string]>(["string"], ([s]) => email.exec(s)?.[1]),
  "parse::url::domain": urlPart((u) => (u.host === undefined || /^[\d.]+$|^\[/.test(u.host) ? undefined : u.host)),
  "parse::url::fragment": urlPart((u) => u.fragment),
  "parse::url::host": urlPart((u) => u.host),
  "parse::url::path": urlPart((u) => u.path),
  "parse::url::port": urlPart((u) => u.port),
  "parse::url::query": urlPart((u) => u.query),
  "parse::url::scheme": urlPart((u) => u.scheme),
  "encoding::base64::decode": define<[string]>(["string"], ([s]) => decode64(s)),
  "encoding::base64::encode": define<[Bytes, boolean?]>(["bytes", "?bool"], ([v, padded]) => encode64(v.value, padded === true)),
  ...refused([
    "rand", "rand::bool", "rand::duration", "rand::enum", "rand::float", "rand::id", "rand::int", "rand::string", "rand::time", "rand::ulid", "rand::uuid", "rand::uuid::v4",
    "rand::uuid::v7", "array::shuffle", "session::ac", "session::db", "session::id", "session::ip", "session::ns", "session::origin", "session::rd", "session::token",
    "crypto::argon2::generate", "crypto::bcrypt::generate", "crypto::pbkdf2::generate", "crypto::scrypt::generate"
  ])
}

