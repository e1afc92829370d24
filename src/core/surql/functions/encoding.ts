/**
 * `encoding::*`, `bytes::*` and `parse::*`: text and bytes taken apart.
 *
 * Why so: base64 and the parts of URLs and addresses are short enough to write down; no part of the core may ask the host.
 */
import { decode } from "../cborDecode.ts"
import { encode, hasClosure } from "../cborEncode.ts"
import { raise } from "../failure.ts"
import { Bytes } from "../value.ts"
import type { Value } from "../value.ts"
import { define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

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

const encodeCbor = (v: Value): Value => {
  const bytes = encode(v)
  if (bytes !== undefined) return new Bytes(bytes)
  return raise(hasClosure(v) ? "Closure values cannot be converted to public value" : "Incorrect arguments for function encoding::cbor::encode(). Value could not be encoded into CBOR")
}

const decodeCbor = (b: Bytes): Value => {
  const decoded = decode(b.value)
  return decoded === undefined ? raise("Incorrect arguments for function encoding::cbor::decode(). invalid cbor") : decoded.value
}

export const encoding: Table = {
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
  "encoding::cbor::decode": define<[Bytes]>(["bytes"], ([b]) => decodeCbor(b)),
  "encoding::cbor::encode": define<[Value]>(["any"], ([v]) => encodeCbor(v))
}
