/**
 * ORDER BY: comparing sort values, with COLLATE (case and accents aside, punctuation first) and NUMERIC (digit runs by value).
 *
 * Why so: the two only change how two strings compare; everything else sorts by the total order. DESC reverses it whole.
 */
import type { OrderTerm } from "./ast.ts"
import { compare, compareStrings } from "./order.ts"
import type { Value } from "./value.ts"

const letters: { readonly [char: string]: string } = { "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "þ": "th", "ð": "d", "ı": "i" }

/** Text folded for collation: lower case, without accents. */
const fold = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[ßæœøđłþðı]/g, (c) => letters[c]!)

const digitRun = /\d+/y

const runAt = (text: string, at: number): string => {
  digitRun.lastIndex = at
  return digitRun.exec(text)?.[0] ?? ""
}

type CompareChars = (a: string, b: string) => number

const isWord = (char: string): boolean => /[\p{L}\p{N}]/u.test(char)

/** Collated, what is neither letter nor digit comes first. */
const collated: CompareChars = (a, b) => (a === b ? 0 : Number(isWord(a)) - Number(isWord(b)) || compareStrings(a, b))

const byChars = (compareChars: CompareChars) => (a: string, b: string): number => {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const c = compareChars(a[i]!, b[i]!)
    if (c !== 0) return c
  }
  return a.length - b.length
}

/** Strings with their digit runs compared as numbers. */
const natural = (compareChars: CompareChars) => (a: string, b: string): number => {
  let i = 0, j = 0
  while (i < a.length && j < b.length) {
    const x = runAt(a, i), y = runAt(b, j)
    if (x !== "" && y !== "") {
      const p = x.replace(/^0+(?=\d)/, ""), q = y.replace(/^0+(?=\d)/, "")
      const c = p.length - q.length || compareStrings(p, q)
      if (c !== 0) return c
      i += x.length
      j += y.length
    } else {
      const c = compareChars(a[i]!, b[j]!)
      if (c !== 0) return c
      i++
      j++
    }
  }
  return a.length - i - (b.length - j)
}

const compareText = (term: OrderTerm): ((a: string, b: string) => number) => {
  if (!term.collate && !term.numeric) return compareStrings
  const inner = !term.collate ? natural(compareStrings) : term.numeric ? natural(collated) : byChars(collated)
  const folded = term.collate ? fold : (text: string): string => text
  return (a, b) => inner(folded(a), folded(b)) || compareStrings(a, b)
}

/** The comparison one ORDER BY term asks for, direction included. */
export const compareTerm = (term: OrderTerm): ((a: Value, b: Value) => number) => {
  if (!term.collate && !term.numeric) return term.descending ? (a, b) => compare(b, a) : compare
  const text = compareText(term)
  const ascending = (a: Value, b: Value): number => (typeof a === "string" && typeof b === "string" ? text(a, b) : compare(a, b))
  return term.descending ? (a, b) => ascending(b, a) : ascending
}
