/**
 * `crypto::*` hashes. Password functions are left out: they are slow by design and have no place in a view.
 *
 * Why so: one kept library has all of them but joaat, which is six lines.
 */
import { blake3 } from "@noble/hashes/blake3.js"
import { md5, sha1 } from "@noble/hashes/legacy.js"
import { sha256, sha512 } from "@noble/hashes/sha2.js"
import { utf8 } from "../evaluate/cast.ts"
import type { Fn, Table } from "./define.ts"
import { define } from "./define.ts"

const bytesOf = (text: string): Uint8Array => Uint8Array.from(utf8(text))

const hex = (b: Uint8Array): string => Array.from(b, (n) => n.toString(16).padStart(2, "0")).join("")

const hash = (f: (b: Uint8Array) => Uint8Array): Fn => define<[string]>(["string"], ([v]) => hex(f(bytesOf(v))))

/** Jenkins' one-at-a-time hash, an unsigned 32-bit int. */
const joaat = (b: Uint8Array): number => {
  let h = 0
  for (const n of b) {
    h = (h + n) >>> 0
    h = (h + (h << 10)) >>> 0
    h = (h ^ (h >>> 6)) >>> 0
  }
  h = (h + (h << 3)) >>> 0
  h = (h ^ (h >>> 11)) >>> 0
  return (h + (h << 15)) >>> 0
}

export const crypto: Table = {
  "crypto::blake3": hash(blake3),
  "crypto::joaat": define<[string]>(["string"], ([v]) => joaat(bytesOf(v))),
  "crypto::md5": hash(md5),
  "crypto::sha1": hash(sha1),
  "crypto::sha256": hash(sha256),
  "crypto::sha512": hash(sha512)
}
