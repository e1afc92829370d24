/**
 * Records the database's transliteration into `src/core/surql/values/transliterations.ts`: `npx vite-node
 * scripts/transliterations.ts`.
 *
 * Why so: the table is asked of the database, character by character, as the corpus is, because no package has the one
 * it uses: `string::slug` shows letters, digits and gaps, and where a character sorts among texts of ASCII shows the
 * rest. `test/core/surql/evaluate/sorting.test.ts` compares the two over all of Unicode. Takes about two minutes.
 */

import { writeFileSync } from "node:fs"
import { createNodeEngines } from "@surrealdb/node"
import { Surreal } from "surrealdb"

const db = new Surreal({ engines: createNodeEngines() })
await db.connect("mem://")
await db.use({ namespace: "test", database: "test" })

const ask = async <A>(expression: string, items: ReadonlyArray<unknown>): Promise<ReadonlyArray<A>> => {
  const out: Array<A> = []
  for (let at = 0; at < items.length; at += 8192)
    out.push(
      ...(await db.query<[Array<A>]>(`RETURN $items.map(|$x| ${expression})`, { items: items.slice(at, at + 8192) }))[0]
    )
  return out
}

/** Which of some texts the database sorts first. */
const firsts = (lists: ReadonlyArray<ReadonlyArray<string>>): Promise<ReadonlyArray<string>> =>
  ask<string>("array::sort_lexical($x)[0]", lists)

// The byte order mark is lost on the way back; slugs drop it.
const characters = Array.from({ length: 0x110000 - 0x80 }, (_, i) => i + 0x80)
  .filter((p) => (p < 0xd800 || p > 0xdfff) && p !== 0xfeff)
  .map((p) => String.fromCodePoint(p))
const slugs = new Map(
  (
    await ask<string>(
      "string::slug($x)",
      characters.map((c) => `x${c}x`)
    )
  ).map((text, i) => [characters[i]!, text.slice(1, -1)])
)

/** Characters that sort as texts of ASCII do: neither behind all letters nor between punctuation and digits. */
const behindLetters = await firsts(characters.map((c) => [c, "zzzzzzzz"]))
const behindPunctuation = await firsts(characters.map((c) => [c, "~~~~~~~~"]))
const beforeDigits = await firsts(characters.map((c) => [`${c}zz`, "0"]))
const sorted = characters.filter(
  (c, i) => behindLetters[i] === c && !(behindPunctuation[i] !== c && beforeDigits[i] === `${c}zz`)
)

/** The text a character sorts as: mostly its slug, else found character by character among all that could follow. */
const probes = ["\n", ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))]
  .filter((c) => !/[A-Z]/.test(c))
  .sort((a, b) => Number(/\w/.test(a) && a !== "_") - Number(/\w/.test(b) && b !== "_") || (a < b ? -1 : 1))
const search = async (c: string): Promise<string> => {
  for (let found = ""; ; ) {
    const [list] = await ask<ReadonlyArray<string>>("array::sort_lexical($x)", [
      [c, ...probes.map((probe) => found + probe)]
    ])
    const at = list!.indexOf(c)
    if (at === 0) return found
    found = list![at - 1]!
  }
}
const letters = new Map<string, string>()
const guess = (c: string): string => slugs.get(c)!.replace(/-$/, "")
const between = await firsts(
  sorted.flatMap((c) => [
    [`${c}z`, `${guess(c)}y`],
    [`${c}y`, `${guess(c)}z`],
    [`${c}b`, `${guess(c)}a`],
    [`${c}a`, `${guess(c)}b`]
  ])
)
for (const [i, c] of sorted.entries()) {
  const right = [0, 1, 2, 3].every(
    (k) => between[4 * i + k] === (k % 2 === 0 ? guess(c) + "ya"[k / 2]! : c + "ya"[(k - 1) / 2]!)
  )
  const text = right ? guess(c) : await search(c)
  letters.set(
    c,
    (/^-\w/.test(slugs.get(c)!) && /^\w/.test(text) ? " " : "") +
      text +
      (slugs.get(c)!.endsWith("-") && /\w$|^$/.test(text) ? " " : "")
  )
}
await db.close()

// Hangul syllables are made of their parts, without a table.
const isHangul = (p: number): boolean => p >= 0xac00 && p <= 0xd7a3
const wordOf = (p: number): readonly [kind: "letter" | "symbol", word: string] | undefined => {
  const c = String.fromCodePoint(p),
    letter = letters.get(c),
    slug = slugs.get(c)
  if (isHangul(p)) return undefined
  return letter !== undefined ? ["letter", letter] : slug === undefined || slug === "-" ? undefined : ["symbol", slug]
}
const known = Array.from({ length: 0x110000 }, (_, p) => p).flatMap((p) => {
  const word = wordOf(p)
  return word === undefined ? [] : [[p, ...word] as const]
})
const counts = (kind: string): ReadonlyArray<string> =>
  [...new Set(known.filter(([, k]) => k === kind).map(([, , word]) => word))].sort()
const letterWords = counts("letter"),
  symbolWords = counts("symbol")
const place = new Map([
  ...letterWords.map((w, i) => [`letter ${w}`, i] as const),
  ...symbolWords.map((w, i) => [`symbol ${w}`, letterWords.length + i] as const)
])

// Neither a backslash, which would be two, nor the letter that decisions are cited by.
const digits = Array.from({ length: 126 - 35 + 1 }, (_, i) => String.fromCharCode(35 + i))
  .filter((c) => c !== "\\" && c !== "D")
  .join("")
const pair = (n: number): string => digits[Math.floor(n / digits.length)]! + digits[n % digits.length]!
const runs: Array<[number, Array<string>]> = []
for (const [p, kind, word] of known) {
  const last = runs[runs.length - 1]
  const code = pair(place.get(`${kind} ${word}`)!)
  if (last !== undefined && last[0] + last[1].length === p) last[1].push(code)
  else runs.push([p, [code]])
}
const lines = (text: string): string =>
  (text.match(/.{1,900}/gsu) ?? []).map((line) => `  ${JSON.stringify(line)}`).join(",\n")
const list = (words: ReadonlyArray<string>): string => `[\n${lines(words.join("\t"))}\n].join("")`
writeFileSync(
  new URL("../src/core/surql/values/transliterations.ts", import.meta.url),
  `/**
 * How the database writes characters beyond ASCII with letters of ASCII, for \`COLLATE\` and \`string::slug\`.
 *
 * Why so: written by \`scripts/transliterations.ts\`, which asks the database; do not edit it by hand.
 * \`transliterate.ts\` reads it.
 */

/** ASCII words of letters and digits, in lower case, each ended by a tab; a space beside it is a gap between words. */
export const letterWords = ${list(letterWords)}

/** ASCII words of other characters in a slug; they sort as themselves. */
export const symbolWords = ${list(symbolWords)}

/** Digits of the places in \`codes\`. */
export const codeDigits = ${JSON.stringify(digits)}

/**
 * Runs of characters that have a word: where each begins behind the end of the one before it, and how long it is, in
 * base 36.
 */
export const runs = [
${lines(runs.map(([p, codes], i) => `${(p - (i === 0 ? 0 : runs[i - 1]![0] + runs[i - 1]![1].length)).toString(36)},${codes.length.toString(36)}`).join(" "))}
].join("")

/** For each of these characters the place of its word, letters first, in two digits. */
export const codes = [
${lines(runs.map(([, codes]) => codes.join("")).join(""))}
].join("")
`
)
console.log(`${known.length} characters, ${letterWords.length} + ${symbolWords.length} words, ${runs.length} runs`)
