/**
 * Regular expressions beside the real database's: the same texts are patterns, match the same, and are replaced at the
 * same places; what is refused here alone says why; and no pattern takes long.
 */
import { expect, it } from "vitest"
import { sameList } from "../../../../kit/checks/same.ts"
import { runs, seeded } from "../../../../kit/data/random.ts"
import * as Regexes from "../../../../src/core/surql/regex/regex.ts"
import { embedded } from "../embedded.ts"
import { patterns, refusedHere, texts } from "../patterns.ts"

const file = "test/core/surql/regex/regex.test.ts"
const db = embedded()

/** Whether each text matches, and what it is with `<>` at each match; undefined where it is no pattern there. */
const theirs = async (
  pattern: string
): Promise<readonly [ReadonlyArray<boolean>, ReadonlyArray<string>] | undefined> => {
  try {
    const [found, replaced] = await db.query<[Array<boolean>, Array<string>]>(
      "RETURN $texts.map(|$t| string::matches($t, $pattern)); RETURN $texts.map(|$t| string::replace($t, <regex> $pattern, '<>'))",
      { texts, pattern }
    )
    return [found, replaced]
  } catch {
    return undefined
  }
}

const replaced = (pattern: Regexes.Pattern, text: string): string => {
  let out = "",
    last = 0
  for (const [from, to] of pattern.spans(text)) {
    out += `${text.slice(last, from)}<>`
    last = to
  }
  return out + text.slice(last)
}

/** True: a pattern on both sides. */
const compare = async (pattern: string): Promise<boolean> => {
  const here = Regexes.compile(pattern)
  const there = await theirs(pattern)
  expect(here !== undefined, `${pattern}: a pattern here, and there`).toBe(there !== undefined)
  if (here === undefined || there === undefined) return false
  const [found, places] = there
  sameList(
    texts.map((text) => here.matches(text)),
    found,
    pattern
  )
  sameList(
    texts.map((text) => replaced(here, text)),
    places,
    `replaced: ${pattern}`
  )
  return true
}

it("reads every corner as the database does, and matches what it matches", async () => {
  let taken = 0
  for (const pattern of patterns) if (await compare(pattern)) taken++
  expect([taken > 150, patterns.length - taken > 60], "both taken and refused").toEqual([true, true])
})

seeded("reads corners side by side as the database does", file, async (random) => {
  let taken = 0
  const count = runs(150)
  for (let n = 0; n < count; n++) {
    const pieces = Array.from({ length: 2 + random.below(3) }, () => random.pick(patterns))
    const pattern = random.chance(0.3) ? `(?:${pieces.join("|")})*` : pieces.join("")
    // Counts in counts, and what more is refused here alone.
    if (/not supported/.test(Regexes.faultOf(pattern) ?? "")) continue
    if (await compare(pattern)) taken++
  }
  expect(taken).toBeGreaterThan(count / 10)
})

it.each(refusedHere)("refuses %s, which the database takes, and says why", async (pattern, fault) => {
  expect(await theirs(pattern)).toBeDefined()
  expect(Regexes.faultOf(pattern)).toMatch(fault)
})

it.each([
  ["(".repeat(100_000), /deeper than 250/],
  ["[".repeat(100_000), /deeper than 250/],
  [`[${"\\W\\S".repeat(50_000)}]`, /classes are too large/],
  ["[\\W&&a]".repeat(20_000), /classes are too large/],
  ["[^\\W]".repeat(300), /classes are too large/],
  [`\\b${"x{1000}".repeat(100)}`, /too large/]
])("D48 a pattern that would take long or much is refused: %#", (pattern, fault) => {
  expect(Regexes.faultOf(pattern)).toMatch(fault)
})

it("charges for a boundary of words as for three instructions", () => {
  expect(Regexes.workOf("\\bab\\b")).toBe(Regexes.workOf("ab") + 6)
  expect(Regexes.workOf("^ab$")).toBe(Regexes.workOf("ab") + 2)
})

it("D48 ends with what a back-tracking engine would try for ever", () => {
  const long = "x".repeat(20_000)
  for (const pattern of ["(x+x+)+y", "(?:x|x)*(?:x|x)*[yz]", "(?:x*)*(?:x*)*!?[!y]", "\\b(?:\\w+\\b)+\\w[yz]"])
    expect(Regexes.matches(pattern, long), pattern).toBe(false)
})
