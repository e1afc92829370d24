/**
 * Result hashes: an order-free sum of one 64-bit hash per row, kept up to date by adding and taking away.
 *
 * Formula: H(view) = sum over rows of h(record id, version, digest) in two independent 32-bit halves. A sum (and
 * not xor) so that a row counted twice shows. Cost per changed row: one pass over the id. State: two numbers per view.
 * The order of a result is a function of its rows' content, and content is covered by the version, so order needs no
 * term of its own.
 */

import { idPrefix } from "../../surql/values/names.ts"
import type { RecordId } from "../../surql/values/value.ts"

/** Two 32-bit halves, as signed integers: V8 stores no other numbers without an object. */
export interface Hash64 {
  readonly high: number
  readonly low: number
}

/**
 * Hash of a text (cyrb53's mixing, both halves kept whole), starting from a seed. `digits` are `count` more characters
 * behind the text, the last one first.
 */
const mix = (text: string, seed: number, digits: Uint8Array = none, count = 0): Hash64 => {
  // Spreads the seed first: otherwise a version and the first letter would cancel (`t:2` at 2, `u:2` at 3).
  let high = 0xdeadbeef ^ Math.imul(seed, 2246822519)
  let low = 0x41c6ce57 ^ Math.imul(seed, 3266489917)
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    high = Math.imul(high ^ unit, 2654435761)
    low = Math.imul(low ^ unit, 1597334677)
  }
  for (let i = count - 1; i >= 0; i--) {
    const unit = digits[i]!
    high = Math.imul(high ^ unit, 2654435761)
    low = Math.imul(low ^ unit, 1597334677)
  }
  return finished(high, low)
}

const none = new Uint8Array(0)

/** Spreads every bit over both halves. */
const finished = (h: number, l: number): Hash64 => {
  const high = Math.imul(h ^ (h >>> 16), 2246822507) ^ Math.imul(l ^ (l >>> 13), 3266489909)
  const low = Math.imul(l ^ (l >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return { high, low }
}

const seedOf = (version: number): number =>
  version >>> 0 === version
    ? version ^ 0x9e3779b1
    : (version % 0x100000000) ^ Math.imul(Math.floor(version / 0x100000000) + 1, 0x9e3779b1)

/** Hash of one row of a result; `digest` covers shown content that the version does not (linked records). */
export const rowHash = (id: string, version: number, digest: string | undefined): Hash64 =>
  mix(digest === undefined ? id : `${id}\u0000${digest}`, seedOf(version))

const digits = new Uint8Array(10)

/** Hash of a row that shows its record and nothing else. A counted id has no text yet, and needs none for this. */
export const recordHash = (id: RecordId, version: number): Hash64 => {
  const { raw, table } = id
  if (typeof raw !== "number" || raw !== raw >>> 0) return rowHash(id.text, version, undefined)
  let count = 0
  for (let left = raw; left > 0 || count === 0; left = (left / 10) >>> 0) digits[count++] = 48 + (left % 10)
  return mix(idPrefix(table), seedOf(version), digits, count)
}

/** Longest text that a digest contains as it is. */
const shortDigest = 1024

/**
 * Digest of what a row shows: the texts themselves, or 128 bits and the length of long ones. Rows live as long as their
 * views, so a digest must not be as long as the texts.
 */
export const digestOf = (texts: ReadonlyArray<string>): string => {
  const text = texts.length === 1 ? texts[0]! : texts.join("\n")
  if (text.length <= shortDigest) return text
  return `${text.length} ${hashText(mix(text, text.length))}${hashText(mix(text, ~text.length))}`
}

export const noSum: Hash64 = { high: 0, low: 0 }

/** One hash of two, dependent on their order. */
export const combined = (a: Hash64, b: Hash64): Hash64 =>
  finished(
    (Math.imul(a.high ^ 0x2545f491, 2654435761) + b.high) | 0,
    (Math.imul(a.low ^ 0x9e3779b1, 1597334677) + b.low) | 0
  )

/**
 * A hash as two fields of its owner: the running sum of a result, or the share of a shown row in it. No object of its
 * own, since a change finds each object cold.
 */
export interface HashSum {
  high: number
  low: number
}

/** Adds a row's hash to a sum. */
export const add = (sum: HashSum, hash: Hash64): void => {
  sum.high = (sum.high + hash.high) | 0
  sum.low = (sum.low + hash.low) | 0
}

/** Takes a row's hash out of a sum. */
export const remove = (sum: HashSum, hash: Hash64): void => {
  sum.high = (sum.high - hash.high) | 0
  sum.low = (sum.low - hash.low) | 0
}

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))
const hex32 = (n: number): string =>
  hexBytes[n >>> 24]! + hexBytes[(n >>> 16) & 255]! + hexBytes[(n >>> 8) & 255]! + hexBytes[n & 255]!

/** 16 hexadecimal digits; an empty result is all zeros. */
export const hashText = ({ high, low }: Hash64): string => hex32(high) + hex32(low)
