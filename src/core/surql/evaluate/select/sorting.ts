/**
 * ORDER BY: comparing sort values, with COLLATE (all scripts as lower-case ASCII, punctuation first) and NUMERIC (digit
 * runs by value).
 *
 * Why so: the two only change how two strings compare; everything else sorts by the total order. DESC reverses it
 * whole. Texts are transliterated while they are compared, from where they begin to differ, so that nothing is kept and
 * one comparison costs the first difference.
 */
import type { OrderTerm } from "../../syntax/ast.ts"
import { compare, compareStrings } from "../../values/order.ts"
import { collationOf } from "../../values/transliterate.ts"
import type { Value } from "../../values/value.ts"

/** Reads a text as code points; collated, as the characters that each sorts as. */
class Reader {
  /** The next code point; -1 at the end. */
  head = -1
  private word = ""
  private inWord = 0

  constructor(
    private readonly text: string,
    private at: number,
    private readonly collate: boolean
  ) {
    this.advance()
  }

  advance(): void {
    this.head = this.inWord < this.word.length ? this.word.charCodeAt(this.inWord++) : this.read()
  }

  private read(): number {
    while (this.at < this.text.length) {
      const c = this.text.codePointAt(this.at)!
      this.at += c > 0xffff ? 2 : 1
      if (!this.collate) return c
      if (c < 0x80) return c >= 65 && c <= 90 ? c + 32 : c
      const word = collationOf(c)
      if (word === undefined) return c
      if (word === "") continue
      this.word = word
      this.inWord = 1
      return word.charCodeAt(0)
    }
    return -1
  }
}

const isDigit = (c: number): boolean => c >= 48 && c <= 57

const isWord = (c: number): boolean =>
  c < 0x80 ? isDigit(c) || (c >= 97 && c <= 122) : /[\p{Alphabetic}\p{N}]/u.test(String.fromCodePoint(c))

/** With COLLATE, characters other than letters and digits come first, right after the end of the text. */
const compareHeads = (a: number, b: number, collate: boolean): number =>
  collate && a >= 0 && b >= 0 ? Number(isWord(a)) - Number(isWord(b)) || a - b : a - b

const digitsOf = (reader: Reader): string => {
  let digits = ""
  for (; isDigit(reader.head); reader.advance()) digits += String.fromCharCode(reader.head)
  return digits
}

/** Digit runs as the database compares them: more digits are greater; beyond 19 digits only 64 bits count. */
const compareNumbers = (a: string, b: string): number => {
  if (a.length !== b.length) return a.length - b.length
  if (a.length < 20) return a < b ? -1 : a > b ? 1 : 0
  const x = BigInt.asUintN(64, BigInt(a)),
    y = BigInt.asUintN(64, BigInt(b))
  return x < y ? -1 : x > y ? 1 : 0
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00

/** Where a comparison must begin: the first difference, or the start of the number or character around it. */
const firstDifference = (a: string, b: string, numeric: boolean): number => {
  const length = Math.min(a.length, b.length)
  let at = 0
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  // A non-ASCII character may be transliterated to digits, or to nothing.
  if (numeric) while (at > 0 && (isDigit(a.charCodeAt(at - 1)) || a.charCodeAt(at - 1) >= 0x80)) at--
  return at > 0 && isHighSurrogate(a.charCodeAt(at - 1)) ? at - 1 : at
}

const compareTexts = (a: string, b: string, collate: boolean, numeric: boolean): number => {
  if (a === b) return 0
  const from = firstDifference(a, b, numeric)
  const x = new Reader(a, from, collate),
    y = new Reader(b, from, collate)
  for (;;) {
    if (numeric && isDigit(x.head) && isDigit(y.head)) {
      const c = compareNumbers(digitsOf(x), digitsOf(y))
      if (c !== 0) return c
    } else if (x.head !== y.head) return compareHeads(x.head, y.head, collate)
    else if (x.head < 0) return collate ? compareStrings(a, b) : 0
    else {
      x.advance()
      y.advance()
    }
  }
}

/** The comparison of one ORDER BY term, direction included. */
export const compareTerm = ({
  collate,
  descending,
  numeric
}: Pick<OrderTerm, "collate" | "descending" | "numeric">): ((a: Value, b: Value) => number) => {
  if (!collate && !numeric) return descending ? (a, b) => compare(b, a) : compare
  const ascending = (a: Value, b: Value): number =>
    typeof a === "string" && typeof b === "string" ? compareTexts(a, b, collate, numeric) : compare(a, b)
  return descending ? (a, b) => ascending(b, a) : ascending
}
