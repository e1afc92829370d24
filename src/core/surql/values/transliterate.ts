/**
 * Non-ASCII characters in ASCII as the database writes them: how a text sorts under COLLATE, and its slug.
 *
 * Why so: the database has a table over all of Unicode (李 is `li`, ß is `ss`, Ж is `zh`), unpacked on first use. Hangul
 * syllables are not in it: they are composed of their parts. A look-up is one array access.
 */
import { codeDigits, codes, letterWords, runs, symbolWords } from "./transliterations.ts"

interface Words {
  /** Position of the word by code point; `none` for a character without one. */
  readonly places: Uint16Array
  readonly words: ReadonlyArray<string>
  /** Words before this position are of letters and digits, the others of symbols. */
  readonly letters: number
}

const none = 0xffff

const unpack = (): Words => {
  const letters = letterWords.split("\t"),
    words = [...letters, ...symbolWords.split("\t")]
  const digits = new Map(Array.from(codeDigits, (c, i) => [c, i]))
  const spans = runs.split(" ").map((run) => run.split(",").map((n) => parseInt(n, 36)) as [number, number])
  const places = new Uint16Array(spans.reduce((end, [gap, length]) => end + gap + length, 0)).fill(none)
  let at = 0,
    next = 0
  for (const [gap, length] of spans) {
    at += gap
    for (let i = 0; i < length; i++, next += 2)
      places[at++] = digits.get(codes[next]!)! * codeDigits.length + digits.get(codes[next + 1]!)!
  }
  return { places, words, letters: letters.length }
}

let unpacked: Words | undefined

const initials = "g gg n d dd r m b bb s ss  j jj c k t p h".split(" ")
const vowels = "a ae ya yae eo e yeo ye o wa wae oe yo u weo we wi yu eu yi i".split(" ")
const finals = " g gg gs n nj nh d l lg lm lb ls lt lp lh m b bs s ss ng j c k t p h".split(" ")

const hangul = (syllable: number): string =>
  initials[Math.floor(syllable / 588)]! + vowels[Math.floor(syllable / 28) % 21]! + finals[syllable % 28]!

/**
 * The word of a character, with a gap beside it if it is separate; `undefined` without one or (`lettersOnly`) for a
 * symbol.
 */
const wordOf = (codePoint: number, lettersOnly: boolean): string | undefined => {
  if (codePoint >= 0xac00 && codePoint <= 0xd7a3) return hangul(codePoint - 0xac00)
  const { letters, places, words } = (unpacked ??= unpack())
  const place = codePoint < places.length ? places[codePoint]! : none
  return place === none || (lettersOnly && place >= letters) ? undefined : words[place]
}

/**
 * The lower-case ASCII that a non-ASCII character sorts as: empty for an accent alone, `undefined` if it sorts as
 * itself.
 */
export const collationOf = (codePoint: number): string | undefined => wordOf(codePoint, true)?.trim()

/** Characters that are empty in the database's table, and missing in this one: controls, and the byte order mark. */
const dropped = /[\0-\x1f\x7f\ufeff]/g

/**
 * A text for a URL: lower-case letters, digits, `_`, and `-` for all between them. The table is used from the first
 * non-ASCII character on.
 */
export const slug = (text: string): string => {
  const from = text.search(/[^\0-\x7f]/)
  const head = from < 0 ? text : text.slice(0, from)
  const tail = text
    .slice(head.length)
    .replace(dropped, "")
    .replace(/[^ -~]/gu, (c) => wordOf(c.codePointAt(0)!, false) ?? "-")
  return (head.replaceAll("\x7f", "") + tail)
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^-|-$/g, "")
}
