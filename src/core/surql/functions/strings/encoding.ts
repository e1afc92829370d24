/**
 * `encoding::*` and `bytes::*`: bytes as text, and text as bytes.
 *
 * Why so: base64 is short enough to write down; no part of the core may ask the host.
 */

import { raise } from "../../evaluate/failure.ts"
import { decodeStranger } from "../../values/cbor/cborReader.ts"
import { encodeCanonical, hasClosure } from "../../values/cbor/cborWriter.ts"
import type { Value } from "../../values/value.ts"
import { Bytes } from "../../values/value.ts"
import type { Table } from "../define.ts"
import { define } from "../define.ts"

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
  const clean = text.replace(/={1,2}$/, "")
  // Padding may be complete, partial or missing.
  const most = (4 - (clean.length % 4)) % 4
  const bad = !/^[A-Za-z0-9+/]*$/.test(clean) || clean.length % 4 === 1 || text.length - clean.length > most
  // Bits after the last whole byte must be zero.
  const left = clean.length % 4 === 2 ? 15 : clean.length % 4 === 3 ? 3 : 0
  if (bad || (base64.indexOf(clean.at(-1) ?? "A") & left) !== 0)
    return raise`Incorrect arguments for function encoding::base64::decode(). invalid base64`
  const out: Array<number> = []
  let bits = 0,
    held = 0
  for (const c of clean) {
    held = (held << 6) | base64.indexOf(c)
    bits += 6
    if (bits >= 8) {
      bits -= 8
      out.push((held >> bits) & 255)
    }
  }
  return new Bytes(Uint8Array.from(out))
}

const encodeCbor = (v: Value): Value => {
  const bytes = encodeCanonical(v)
  if (bytes !== undefined) return new Bytes(bytes)
  return hasClosure(v)
    ? raise`Closure values cannot be converted to public value`
    : raise`Incorrect arguments for function encoding::cbor::encode(). Value could not be encoded into CBOR`
}

const decodeCbor = (b: Bytes): Value => {
  const decoded = decodeStranger(b.value)
  return decoded === undefined
    ? raise`Incorrect arguments for function encoding::cbor::decode(). invalid cbor`
    : decoded.value
}

export const encoding: Table = {
  "bytes::len": define<[Bytes]>(["bytes"], ([b]) => b.value.length),
  "encoding::base64::decode": define<[string]>(["string"], ([s]) => decode64(s)),
  "encoding::base64::encode": define<[Bytes, boolean?]>(["bytes", "?bool"], ([v, padded]) =>
    encode64(v.value, padded === true)
  ),
  "encoding::cbor::decode": define<[Bytes]>(["bytes"], ([b]) => decodeCbor(b)),
  "encoding::cbor::encode": define<[Value]>(["any"], ([v]) => encodeCbor(v))
}
