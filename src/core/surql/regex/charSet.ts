/**
 * Sets of characters as ranges: union, difference, complement, case folding.
 *
 * Classes may be nested and combined (`[a-z&&[^aeiou]]`); as ranges each is a set like any other, and membership is a
 * binary search, however the set was made.
 */
import { memoize } from "../memoize.ts"
import { fault, type Ranges } from "./pattern.ts"

const last = 0x10ffff
/** Case folds that upper and lower case do not give; the dotless `i` is the lower case of `I` only in Turkish. */
const odd: ReadonlyMap<number, number> = new Map([
  [0x131, 0x131],
  [0x1fd3, 0x390],
  [0x1fe3, 0x3b0],
  [0xfb05, 0xfb06]
])

const united = (sets: ReadonlyArray<Ranges>): Ranges => {
  if (sets.length === 1) return sets[0]!
  const pairs = sets
    .flatMap((set) => Array.from({ length: set.length / 2 }, (_, i) => [set[2 * i]!, set[2 * i + 1]!] as const))
    .sort(([a], [b]) => a - b)
  const ranges: Array<number> = []
  for (const [from, to] of pairs) {
    const end = ranges.length - 1
    if (end > 0 && from <= ranges[end]! + 1) ranges[end] = Math.max(ranges[end]!, to)
    else ranges.push(from, to)
  }
  return ranges
}

const complement = (set: Ranges): Ranges => {
  const ranges: Array<number> = []
  let next = 0
  for (let i = 0; i < set.length; i += 2) {
    if (set[i]! > next) ranges.push(next, set[i]! - 1)
    next = set[i + 1]! + 1
  }
  if (next <= last) ranges.push(next, last)
  return ranges
}

const common = (a: Ranges, b: Ranges): Ranges => complement(united([complement(a), complement(b)]))

export type Operator = "&&" | "--" | "~~"

const operate = (operator: Operator, a: Ranges, b: Ranges): Ranges =>
  operator === "&&"
    ? common(a, b)
    : operator === "--"
      ? common(a, complement(b))
      : united([common(a, complement(b)), common(b, complement(a))])

export type SetNode =
  | { readonly kind: "range"; readonly from: number; readonly to: number }
  /** A Unicode property by the runtime's name for it: a general category, a script, `Any`. */
  | { readonly kind: "property"; readonly name: string; readonly isNegated: boolean }
  /** Sets that are closed under case folding. */
  | { readonly kind: "named"; readonly name: keyof typeof escapeSets }
  | { readonly kind: "union"; readonly parts: ReadonlyArray<SetNode>; readonly isNegated: boolean }
  | { readonly kind: "operation"; readonly operator: Operator; readonly left: SetNode; readonly right: SetNode }

export const range = (from: number, to = from): SetNode => ({ kind: "range", from, to })
export const property = (name: string, isNegated = false): SetNode => ({ kind: "property", name, isNegated })
export const union = (parts: ReadonlyArray<SetNode>, isNegated = false): SetNode => ({
  kind: "union",
  parts,
  isNegated
})

/** In the database's engine `\s` and `\w` are Unicode's: `\w` includes é. */
const escapeSets = {
  space: union([range(9, 13), range(0x85), property("Z")]),
  /** Alphabetic, marks, decimal digits, connectors, joiners. By category circled letters are only symbols. */
  word: union([
    ...["L", "M", "Nd", "Nl", "Pc"].map((name) => property(name)),
    range(0x200c, 0x200d),
    range(0x24b6, 0x24e9),
    range(0x1f130, 0x1f149),
    range(0x1f150, 0x1f169),
    range(0x1f170, 0x1f189)
  ])
}

/** Planes with individual characters; each other plane is in a property whole, or not at all. */
const planes: ReadonlyArray<number> = [0, 1, 2, 3, 14]
const planeSize = 0x10000
const surrogates = { from: 0xd800, count: 0x800 }

/** All characters of a plane; cached, because every property is searched in them. */
const charactersOf = memoize((plane: number): string => {
  let text = ""
  for (let code = plane * planeSize; code < (plane + 1) * planeSize; code += surrogates.count)
    if (code !== surrogates.from)
      text += String.fromCodePoint(...Array.from({ length: surrogates.count }, (_, i) => code + i))
  return text
})

/** A pattern for a property, by the runtime's own Unicode data. */
const matcherOf = (name: string): RegExp => {
  for (const kind of ["", "Script="])
    try {
      return new RegExp(`\\p{${kind}${name}}+`, "gu")
    } catch {
      // The name belongs to the other kind of property, or to none.
    }
  return fault(`\\p{${name}} is not supported`)
}

/** Most names cached: there are a few hundred properties, some with several spellings. */
const maxNames = 500

/** Cost: some milliseconds, once for each property. */
const rangesOfProperty = memoize((name: string): Ranges => {
  const matcher = matcherOf(name)
  const ranges: Array<number> = []
  for (let plane = 0; plane <= last >> 16; plane++) {
    const first = plane * planeSize
    const codeAt = (index: number): number =>
      plane > 0 ? first + index / 2 : index < surrogates.from ? index : index + surrogates.count
    if (planes.includes(plane))
      for (const { 0: run, index } of charactersOf(plane).matchAll(matcher))
        ranges.push(codeAt(index), codeAt(index + run.length) - 1)
    else if (String.fromCodePoint(first).search(matcher) === 0) ranges.push(first, first + planeSize - 1)
  }
  // Ranges of planes, and ranges beside the surrogates, may be adjacent.
  return united([ranges, []])
}, maxNames)

/** Ranges that computing the classes of one pattern may still use. */
interface Budget {
  ranges: number
}

export const budgetOfPattern = (): Budget => ({ ranges: 200_000 })

const charged = (budget: Budget, ranges: Ranges): Ranges => {
  budget.ranges -= ranges.length
  return budget.ranges < 0 ? fault("its classes are too large") : ranges
}

/** For each letter, the letters that differ from it only in case, by Unicode's simple case folding. */
const cases = memoize((_all: true): ReadonlyMap<number, ReadonlyArray<number>> => {
  const only = (text: string): number | undefined => {
    const code = text.codePointAt(0)!
    return text.length === String.fromCodePoint(code).length ? code : undefined
  }
  const byFold = new Map<number, Array<number>>()
  const [from = 0, ...more] = rangesOfProperty("Changes_When_Casemapped")
  const ranges = [from, ...more]
  for (let i = 0; i < ranges.length; i += 2)
    for (let code = ranges[i]!; code <= ranges[i + 1]!; code++) {
      const upper = only(String.fromCodePoint(code).toUpperCase()) ?? code
      const fold = odd.get(code) ?? only(String.fromCodePoint(upper).toLowerCase()) ?? upper
      const alike = byFold.get(fold)
      if (alike === undefined) byFold.set(fold, [code])
      else alike.push(code)
    }
  return new Map(Array.from(byFold.values()).flatMap((alike) => alike.map((code) => [code, alike] as const)))
})

/** A set with all letters that differ from its own only in case. */
const folded = (ranges: Ranges): Ranges => {
  const [only, end] = ranges
  // Most patterns have single characters.
  if (ranges.length === 2 && only === end) return lettersAs(only!)
  const more: Array<Ranges> = [ranges]
  const letters = cases(true)
  for (let i = 0; i < ranges.length; i += 2) {
    const [from, to] = [ranges[i]!, ranges[i + 1]!]
    if (to - from < letters.size) for (let code = from; code <= to; code++) add(more, letters.get(code))
    else for (const [code, alike] of letters) if (code >= from && code <= to) add(more, alike)
  }
  return united(more)
}

const lettersAs = memoize(
  (code: number): Ranges => united((cases(true).get(code) ?? [code]).map((each) => [each, each]))
)

const add = (sets: Array<Ranges>, alike: ReadonlyArray<number> = []): void => {
  for (const code of alike) sets.push([code, code])
}

/** The ranges of a pattern's set. Letters are case-folded before any complement. */
export const rangesOf = (set: SetNode, ignoresCase: boolean, budget: Budget): Ranges => {
  const leaf = (ranges: Ranges): Ranges => (ignoresCase ? folded(ranges) : ranges)
  switch (set.kind) {
    case "range":
      return charged(budget, leaf([set.from, set.to]))
    case "property": {
      const ranges = leaf(rangesOfProperty(set.name))
      return charged(budget, set.isNegated ? complement(ranges) : ranges)
    }
    case "named":
      return charged(budget, rangesOfNamed(set.name))
    case "union": {
      const ranges = united(set.parts.map((part) => rangesOf(part, ignoresCase, budget)))
      return charged(budget, set.isNegated ? complement(ranges) : ranges)
    }
    case "operation": {
      const [left, right] = [rangesOf(set.left, ignoresCase, budget), rangesOf(set.right, ignoresCase, budget)]
      return charged(budget, operate(set.operator, left, right))
    }
  }
}

/** Whether a set contains a character. */
export const has = (ranges: Ranges, code: number): boolean => {
  let [low, high] = [0, ranges.length >> 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (ranges[2 * middle + 1]! < code) low = middle + 1
    else high = middle
  }
  return 2 * low < ranges.length && ranges[2 * low]! <= code
}

const rangesOfNamed = memoize(
  (name: keyof typeof escapeSets): Ranges => rangesOf(escapeSets[name], false, { ranges: Infinity })
)

const wordOfAscii = /[0-9A-Za-z_]/

const asciiWords = Uint8Array.from({ length: 128 }, (_, code) => (wordOfAscii.test(String.fromCharCode(code)) ? 1 : 0))

/** Whether a character belongs to a word, by Unicode. */
export const isWord = (code: number): boolean =>
  code < 128 ? asciiWords[code] === 1 : has(rangesOfNamed("word"), code)
