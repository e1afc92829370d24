/**
 * Regular expressions, as the database's engine reads them, run in linear time.
 *
 * Why so: patterns come from query text and data; a back-tracking engine could be made to hang the process. re2js runs
 * in time linear in the text; what its dialect reads otherwise is written out for it (`parsePattern.ts`), and what it
 * cannot say, boundaries of words beyond ASCII, is run by `machine.ts`.
 */
import { RE2JS } from "re2js"
import { keeping } from "../keeping.ts"
import { find, type Program, programOf } from "./machine.ts"
import { parsePattern } from "./parsePattern.ts"
import { type Node, PatternFault } from "./pattern.ts"
import { isOfWords, writePattern } from "./writePattern.ts"

/**
 * Instructions of the largest program that is run: `(a{1000}){1000}` would take a while for each character, and
 * megabytes.
 */
const maxProgram = 20_000
/** Characters of the longest pattern as RE2 writes it: a class that was worked out may have a thousand ranges. */
const maxWritten = 200_000
/** What an instruction of `machine.ts` costs, beside one of re2js. */
const machineWork = 4

const asksForWords = (node: Node): boolean => {
  if (node.kind === "assertion") return isOfWords(node.assertion)
  if (node.kind === "repeat") return asksForWords(node.part)
  return (node.kind === "sequence" || node.kind === "choice") && node.parts.some(asksForWords)
}

const ascii = /^[\0-\x7f]*$/

const compiled = (text: string): RE2JS => {
  try {
    return RE2JS.compile(text)
  } catch (error) {
    throw new PatternFault(`it is not supported: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Tests of one character by what RE2 reads as a set; each set is compiled once, each character asked about once. */
const members = () =>
  keeping((text: string) => {
    const pattern = compiled(`\\A(?:${text})\\z`)
    return keeping((character: string): boolean => pattern.matcher(character).find())
  })

/** Where matches lie in a text, one behind the other, in its own units. */
type Spans = Generator<readonly [from: number, to: number], void>

export class Pattern {
  private readonly re2: RE2JS | undefined
  private readonly program: Program | undefined

  /** Throws `PatternFault`. */
  constructor(source: string) {
    const node = parsePattern(source)
    const text = writePattern(node)
    if (text !== undefined && text.length > maxWritten) throw new PatternFault("it is too large")
    if (asksForWords(node)) this.program = programOf(node, maxProgram, members())
    this.re2 = text === undefined ? undefined : compiled(text)
    if (this.re2 !== undefined && this.re2.programSize() > maxProgram) throw new PatternFault("it is too large")
  }

  /** How much work one character of the text is, in instructions of re2js. */
  workOn(text: string): number {
    return this.re2For(text)?.programSize() ?? machineWork * this.program!.instructions.length
  }

  private re2For(text: string): RE2JS | undefined {
    return this.program === undefined || ascii.test(text) ? this.re2 : undefined
  }

  /** It matches anywhere in the text. */
  matches(text: string): boolean {
    return this.re2For(text)?.matcher(text).find() ?? find(this.program!, Array.from(text), 0) !== undefined
  }

  /** Nothing matches the empty text where a match has just ended. */
  *spans(text: string): Spans {
    let ended = -1
    for (const span of this.found(text)) {
      const [from, to] = span
      if (from === to && to === ended) continue
      ended = to
      yield span
    }
  }

  private *found(text: string): Spans {
    const matcher = this.re2For(text)?.matcher(text)
    if (matcher !== undefined) while (matcher.find()) yield [matcher.start(), matcher.end()]
    else yield* this.foundBeyond(Array.from(text))
  }

  private *foundBeyond(characters: ReadonlyArray<string>): Spans {
    // The length of what lies before each character.
    const units = [0]
    for (const character of characters) units.push(units.at(-1)! + character.length)
    for (let begin = 0; begin <= characters.length; ) {
      const found = find(this.program!, characters, begin)
      if (found === undefined) return
      const [from, to] = found
      yield [units[from]!, units[to]!]
      begin = to === from ? to + 1 : to
    }
  }
}

const maxPatterns = 500

/** The pattern, or why the text is none. */
const known = keeping((source: string): Pattern | string => {
  try {
    return new Pattern(source)
  } catch (error) {
    if (error instanceof PatternFault) return error.message
    throw error
  }
}, maxPatterns)

/** The compiled pattern, undefined when it is no valid one, or not supported. */
export const compile = (source: string): Pattern | undefined => {
  const found = known(source)
  return typeof found === "string" ? undefined : found
}

/** Why a text is no pattern. */
export const faultOf = (source: string): string | undefined => {
  const found = known(source)
  return typeof found === "string" ? found : undefined
}

/** How much work one character of the text is; for no valid pattern, none. */
export const workOn = (source: string, text: string): number => compile(source)?.workOn(text) ?? 0

/** True when the pattern matches anywhere in the text; false for an invalid pattern. */
export const matches = (source: string, text: string): boolean => compile(source)?.matches(text) ?? false
