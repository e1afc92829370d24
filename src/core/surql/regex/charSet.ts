/**
 * Sets of characters in classes: united, subtracted, complemented, and written as RE2 writes them.
 *
 * Why: in the database's engine classes may lie in one another and have operators (`[a-z&&[^aeiou]]`), where RE2 reads
 * the same text as other sets. What RE2 can write as it stands stays so; the rest is worked out as ranges.
 */
import { RE2JS } from "re2js"
import { keeping } from "../keeping.ts"
import { codeText, fault } from "./pattern.ts"

/** Code points in ascending ranges, both ends within, none adjacent: `[from, to, from, to]`. */
type Ranges = ReadonlyArray<number>

const last = 0x10ffff

const united = (sets: ReadonlyArray<Ranges>): Ranges => {
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
  /** Of Unicode, by the name that RE2 or the runtime has for it: a general category, a script, `Any`. */
  | { readonly kind: "property"; readonly name: string; readonly isNegated: boolean }
  | { readonly kind: "union"; readonly parts: ReadonlyArray<SetNode>; readonly isNegated: boolean }
  | { readonly kind: "operation"; readonly operator: Operator; readonly left: SetNode; readonly right: SetNode }

export const range = (from: number, to = from): SetNode => ({ kind: "range", from, to })
export const property = (name: string, isNegated = false): SetNode => ({ kind: "property", name, isNegated })
export const union = (parts: ReadonlyArray<SetNode>, isNegated = false): SetNode => ({
  kind: "union",
  parts,
  isNegated
})

/** `\s` and `\w` of the database's engine are Unicode's: `\w` has é. */
export const spaces = union([range(9, 13), range(0x85), property("Z")])
/** Alphabetic, marks, decimal digits, connectors, joiners. Letters in circles and squares are symbols by category. */
export const wordCharacters = union([
  ...["L", "M", "Nd", "Nl", "Pc"].map((name) => property(name)),
  range(0x200c, 0x200d),
  range(0x24b6, 0x24e9),
  range(0x1f130, 0x1f149),
  range(0x1f150, 0x1f169),
  range(0x1f170, 0x1f189)
])

/** The planes that have characters one by one; each of the others is in a property whole, or not at all. */
const planes: ReadonlyArray<number> = [0, 1, 2, 3, 14]
const planeSize = 0x10000
const surrogates = { from: 0xd800, count: 0x800 }

/** All characters of a plane; kept, as all properties are looked for in them. */
const charactersOf = keeping((plane: number): string => {
  let text = ""
  for (let code = plane * planeSize; code < (plane + 1) * planeSize; code += surrogates.count)
    if (code !== surrogates.from)
      text += String.fromCodePoint(...Array.from({ length: surrogates.count }, (_, i) => code + i))
  return text
})

/** A property by the runtime's own Unicode data. */
const matcherOf = (name: string): RegExp => {
  for (const kind of ["", "Script="])
    try {
      return new RegExp(`\\p{${kind}${name}}+`, "gu")
    } catch {
      // It is of the other kind, or of none.
    }
  return fault(`\\p{${name}} is not supported`)
}

/** Names that are kept: there are a few hundred properties, and several ways to write one. */
const maxNames = 500

/** Cost: some milliseconds, once for each property. */
const rangesOfProperty = keeping((name: string): Ranges => {
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
  return united([ranges])
}, maxNames)

/** Ranges that the classes of one pattern may still take to work out. */
interface Budget {
  ranges: number
}

export const budgetOfPattern = (): Budget => ({ ranges: 200_000 })

const charged = (budget: Budget, ranges: Ranges): Ranges => {
  budget.ranges -= ranges.length
  return budget.ranges < 0 ? fault("its classes are too large") : ranges
}

const rangesOf = (set: SetNode, budget: Budget): Ranges => {
  switch (set.kind) {
    case "range":
      return charged(budget, [set.from, set.to])
    case "property": {
      const ranges = rangesOfProperty(set.name)
      return charged(budget, set.isNegated ? complement(ranges) : ranges)
    }
    case "union": {
      const ranges = united(set.parts.map((part) => rangesOf(part, budget)))
      return charged(budget, set.isNegated ? complement(ranges) : ranges)
    }
    case "operation":
      return charged(budget, operate(set.operator, rangesOf(set.left, budget), rangesOf(set.right, budget)))
  }
}

const rangeText = (from: number, to: number): string =>
  from === to ? codeText(from) : `${codeText(from)}-${codeText(to)}`

const rangesText = (ranges: Ranges): string => {
  let text = ""
  for (let i = 0; i < ranges.length; i += 2) text += rangeText(ranges[i]!, ranges[i + 1]!)
  return text
}

const isKnownToRe2 = keeping((text: string): boolean => {
  try {
    RE2JS.compile(text)
    return true
  } catch {
    return false
  }
}, maxNames)

/** A set as parts of an RE2 class, where it is a union of what such a class may have; else undefined. */
const partsText = (set: SetNode, budget: Budget): string | undefined => {
  if (set.kind === "range") return rangeText(set.from, set.to)
  if (set.kind === "property") {
    const text = `\\${set.isNegated ? "P" : "p"}{${set.name}}`
    return isKnownToRe2(text) ? text : rangesText(rangesOf(set, budget))
  }
  if (set.kind === "operation" || set.isNegated) return undefined
  let text = ""
  for (const part of set.parts) {
    const more = partsText(part, budget)
    if (more === undefined) return undefined
    text += more
  }
  return text
}

/** How RE2 writes the set. It folds letters before it complements, which ranges that were worked out are not. */
export const setText = (set: SetNode, ignoresCase: boolean, budget: Budget): string => {
  if (set.kind === "union" && set.parts.length > 0) {
    const text = partsText({ ...set, isNegated: false }, budget)
    if (text !== undefined) return `[${set.isNegated ? "^" : ""}${text}]`
  } else if (set.kind === "property") return `[${partsText(set, budget)!}]`
  if (ignoresCase) return fault("a class with operators, or with a negated class in it, is not supported under (?i)")
  const ranges = rangesOf(set, budget)
  return ranges.length === 0 ? `[^${rangeText(0, last)}]` : `[${rangesText(ranges)}]`
}
