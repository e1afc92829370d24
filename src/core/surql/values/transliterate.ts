/**
 * Characters beyond ASCII as the database writes them with letters of ASCII: what a text sorts as under COLLATE, and
 * its slug.
 *
 * Why so: the database has a table over all of Unicode (李 is `li`, ß is `ss`, Ж is `zh`), which is unpacked on first
 * use. Hangul syllables are not in it, they are written by their parts. Looking a character up takes one index into an
 * array.
 */
import { codeDigits, codes, letterWords, runs, symbolWords } from "./transliterations.ts"

interface Words {
  /** The place of its word by code point; `none` for a character without one. */
  readonly places: Uint16Array
  readonly words: ReadonlyArray<string>
  /** Words before this place are of letters and digits, the others of symbols. */
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
 * The word of a character, with a gap beside it where it stands apart; `undefined` without one or (`lettersOnly`) for a
 * symbol.
 */
const wordOf = (codePoint: number, lettersOnly: boolean): string | undefined => {
  if (codePoint >= 0xac00 && codePoint <= 0xd7a3) return hangul(codePoint - 0xac00)
  const { letters, places, words } = (unpacked ??= unpack())
  const place = codePoint < places.length ? places[codePoint]! : none
  return place === none || (lettersOnly && place >= letters) ? undefined : words[place]
}

/**
 * The lower-case ASCII a character beyond ASCII sorts as: nothing for an accent on its own, `undefined` where it sorts
 * as itself.
 */
export const collated = (codePoint: number): string | undefined => wordOf(codePoint, true)?.trim()

/** Characters that the database's table has as nothing, and ours lacks: controls, and the byte order mark. */
const dropped = /[\0-\x1f\x7f\ufeff]/g

/**
 * A text as part of an address: lower-case letters, digits, `_`, and `-` for all between them. The table is asked from
 * the first character beyond ASCII on.
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
