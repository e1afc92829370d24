/**
 * `string::distance::*` and `string::similarity::*`: the classic measures, over code points.
 *
 * Why so: small textbook algorithms; a library for each would be heavier than the code.
 */
import { levenshtein } from "../../../levenshtein.ts"
import { raise } from "../../evaluate/failure.ts"
import type { Value } from "../../values/value.ts"
import { float } from "../../values/value.ts"
import type { Fn, Table } from "../define.ts"
import { define } from "../define.ts"

type Chars = ReadonlyArray<string>

/** A measure of two strings; its cost is the product of their lengths (see costs.ts). */
const measure = (body: (a: Chars, b: Chars) => Value): Fn =>
  define<[string, string]>(["string", "string"], ([a, b]) => {
    return body(Array.from(a), Array.from(b))
  })

/** Optimal string alignment: neighbours may be swapped, each only once. */
const osa = (a: Chars, b: Chars): number => {
  const d = Array.from({ length: a.length + 1 }, (_, i) => [i, ...new Array<number>(b.length).fill(0)])
  for (let j = 0; j <= b.length; j++) d[0]![j] = j
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let best = Math.min(d[i - 1]![j]! + 1, d[i]![j - 1]! + 1, d[i - 1]![j - 1]! + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) best = Math.min(best, d[i - 2]![j - 2]! + 1)
      d[i]![j] = best
    }
  return d[a.length]![b.length]!
}

/** Damerau-Levenshtein without that restriction. */
const damerau = (a: Chars, b: Chars): number => {
  const last = new Map<string, number>(),
    far = a.length + b.length
  const d = Array.from({ length: a.length + 2 }, () => new Array<number>(b.length + 2).fill(0))
  d[0]![0] = far
  for (let i = 0; i <= a.length; i++) {
    d[i + 1]![0] = far
    d[i + 1]![1] = i
  }
  for (let j = 0; j <= b.length; j++) {
    d[0]![j + 1] = far
    d[1]![j + 1] = j
  }
  for (let i = 1; i <= a.length; i++) {
    let match = 0
    for (let j = 1; j <= b.length; j++) {
      const k = last.get(b[j - 1]!) ?? 0,
        l = match
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      if (cost === 0) match = j
      d[i + 1]![j + 1] = Math.min(
        d[i]![j]! + cost,
        d[i + 1]![j]! + 1,
        d[i]![j + 1]! + 1,
        d[k]![l]! + (i - k - 1) + 1 + (j - l - 1)
      )
    }
    last.set(a[i - 1]!, i)
  }
  return d[a.length + 1]![b.length + 1]!
}

const normalized =
  (f: (a: Chars, b: Chars) => number) =>
  (a: Chars, b: Chars): Value =>
    a.length === 0 && b.length === 0 ? float(1) : float(1 - f(a, b) / Math.max(a.length, b.length))

const jaro = (a: Chars, b: Chars): number => {
  if (a.length === 0 && b.length === 0) return 1
  if (a.length === 0 || b.length === 0) return 0
  const range = Math.max(0, Math.floor(Math.max(a.length, b.length) / 2) - 1)
  const used = new Array<boolean>(b.length).fill(false)
  const found: Array<string> = []
  a.forEach((c, i) => {
    for (let j = Math.max(0, i - range); j < Math.min(b.length, i + range + 1); j++) {
      if (used[j] || b[j] !== c) continue
      used[j] = true
      found.push(c)
      return
    }
  })
  if (found.length === 0) return 0
  const other = b.filter((_, j) => used[j])
  const swaps = found.filter((c, i) => c !== other[i]).length
  const m = found.length
  return (m / a.length + m / b.length + (m - Math.floor(swaps / 2)) / m) / 3
}

const jaroWinkler = (a: Chars, b: Chars): number => {
  const j = jaro(a, b)
  let prefix = 0
  while (prefix < Math.min(4, a.length, b.length) && a[prefix] === b[prefix]) prefix++
  return j > 0.7 ? Math.min(1, j + 0.1 * prefix * (1 - j)) : j
}

/** Length of a text in UTF-8. */
const byteLength = (chars: Chars): number =>
  chars.reduce((n, c) => n + (c < "\u0080" ? 1 : c < "\u0800" ? 2 : c.length === 1 ? 3 : 4), 0)

/** Pairs of characters that both texts have; as in the database, lengths are in bytes. */
const dice = (a: Chars, b: Chars): number => {
  const x = a.filter((c) => !/\s/.test(c)),
    y = b.filter((c) => !/\s/.test(c))
  if (x.join("") === y.join("")) return 1
  const length = byteLength(x) + byteLength(y)
  if (x.length < 2 || y.length < 2) return 0
  const counts = new Map<string, number>()
  for (let i = 0; i + 1 < x.length; i++) counts.set(x[i]! + x[i + 1]!, (counts.get(x[i]! + x[i + 1]!) ?? 0) + 1)
  let shared = 0
  for (let i = 0; i + 1 < y.length; i++) {
    const pair = y[i]! + y[i + 1]!,
      left = counts.get(pair) ?? 0
    if (left > 0) {
      counts.set(pair, left - 1)
      shared++
    }
  }
  return (2 * shared) / (length - 2)
}

type Kind = "start" | "upper" | "lower" | "digit" | "gap" | "sign"

const kindOf = (c: string): Kind =>
  c === "\0"
    ? "start"
    : " /\\|()[]{}".includes(c)
      ? "gap"
      : /^[!-'*-.:-@^-`~]$/.test(c)
        ? "sign"
        : /^[0-9]$/.test(c)
          ? "digit"
          : /^[A-Z]$/.test(c)
            ? "upper"
            : "lower"

/** Bonus of each character as a place to match: the beginning of a word counts, that of the text twice. */
const placeBonuses = (text: Chars): ReadonlyArray<number> => {
  let before: Kind = "start"
  return text.map((c, j) => {
    const at = kindOf(c)
    const bonus =
      before === "start" || before === "gap"
        ? 8
        : before === "sign"
          ? 7
          : at === "upper" && (before === "lower" || before === "digit")
            ? 6
            : 0
    before = at
    return j === 0 ? bonus * 2 : bonus
  })
}

const asciiLower = (c: string): string => (/^[A-Z]$/.test(c) ? c.toLowerCase() : c)

/** First position of each character of a pattern after the one before; undefined if one is not found. */
const firstPlaces = (text: Chars, pattern: Chars): ReadonlyArray<number> | undefined => {
  const out: Array<number> = []
  text.forEach((c, j) => {
    if (out.length < pattern.length && asciiLower(c) === asciiLower(pattern[out.length]!)) out.push(j)
  })
  return out.length === pattern.length ? out : undefined
}

const unreachable = -32768

/**
 * The fuzzy finder's score of a pattern in a text (Smith-Waterman with affine gaps): 16 a match (2 less in the other
 * letter case), at least 4 more next to the one before, -3 to open a gap, -1 per character of it; 0 where the pattern
 * is not within. `met[j]` is the best score that ends with a match at character j, `skipped[j]` with it left out,
 * `run[j]` the bonus of the run. Rows are used in turn and keep what they held, because the database's library does;
 * the library also keeps them from one call to the next, so the database's own answers vary with what it compared
 * before. Here every call starts with empty rows.
 */
const fuzzy = (text: Chars, pattern: Chars): number => {
  const places = firstPlaces(text, pattern)
  if (pattern.length === 0 || places === undefined) return 0
  const bonuses = placeBonuses(text)
  const row = (skipped: number) => ({
    met: new Array<number>(text.length + 1).fill(unreachable),
    skipped: new Array<number>(text.length + 1).fill(skipped),
    run: new Array<number>(text.length + 1).fill(0)
  })
  let above = row(-1),
    here = row(unreachable)
  pattern.forEach((p, i) => {
    for (let j = places[i]!; j < text.length; j++) {
      const c = text[j]!
      if (asciiLower(c) === asciiLower(p)) {
        const run = Math.max(here.run[j]!, bonuses[j]!, 4)
        here.run[j] = run
        here.met[j + 1] = (p === c ? 16 : 14) + Math.max(above.met[j]! + run, above.skipped[j]! + bonuses[j]!)
      } else {
        here.met[j + 1] = unreachable
        here.run[j + 1] = 0
      }
      here.skipped[j + 1] = Math.max(here.met[j]! - 4, here.skipped[j]! - 1)
    }
    ;[above, here] = [here, above]
  })
  return above.met.slice(places[places.length - 1]).reduce((a, b) => Math.max(a, b))
}

const hamming = (a: Chars, b: Chars): Value =>
  a.length !== b.length
    ? raise`Incorrect arguments for function string::distance::hamming(). Strings must be of equal length.`
    : a.filter((c, i) => c !== b[i]).length

export const similarity: Table = {
  "string::distance::damerau_levenshtein": measure(damerau),
  "string::distance::hamming": measure(hamming),
  "string::distance::levenshtein": measure(levenshtein),
  "string::distance::normalized_damerau_levenshtein": measure(normalized(damerau)),
  "string::distance::normalized_levenshtein": measure(normalized(levenshtein)),
  "string::distance::osa": measure(osa),
  "string::similarity::fuzzy": measure(fuzzy),
  "string::similarity::jaro": measure((a, b) => float(jaro(a, b))),
  "string::similarity::jaro_winkler": measure((a, b) => float(jaroWinkler(a, b))),
  "string::similarity::smithwaterman": measure(fuzzy),
  "string::similarity::sorensen_dice": measure((a, b) => float(dice(a, b)))
}
