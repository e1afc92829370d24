/**
 * Regular expressions with the syntax of the database's engine, run in linear time (`machine.ts`).
 */
import { memoize } from "../memoize.ts"
import { Program } from "./machine.ts"
import { parsePattern } from "./parsePattern.ts"
import { PatternFault } from "./pattern.ts"

/** Most instructions of a program: `(a{1000}){1000}` would take long for each character, and megabytes. */
const maxProgram = 20_000

/** Matches in a text, in order, as positions in UTF-16 units. */
type Spans = Generator<readonly [from: number, to: number], void>

export class Pattern {
  private readonly program: Program
  /** Work per character of a text, in instructions. */
  readonly work: number

  /** Throws `PatternFault`. */
  constructor(source: string) {
    this.program = new Program(parsePattern(source), maxProgram)
    this.work = this.program.work
  }

  /** Whether the pattern matches anywhere in the text. */
  matches(text: string): boolean {
    return this.program.find(text, 0) !== undefined
  }

  /** All matches. An empty match directly after another match does not count. */
  *spans(text: string): Spans {
    let ended = -1
    for (let begin = 0; begin <= text.length; ) {
      const found = this.program.find(text, begin)
      if (found === undefined) return
      const [from, to] = found
      begin = to > from ? to : to + (text.codePointAt(to)! > 0xffff ? 2 : 1)
      if (from === to && to === ended) continue
      ended = to
      yield found
    }
  }
}

const maxPatterns = 500

/** The compiled pattern, or why the text is invalid; cached. */
const known = memoize((source: string): Pattern | string => {
  try {
    return new Pattern(source)
  } catch (error) {
    if (error instanceof PatternFault) return error.message
    throw error
  }
}, maxPatterns)

/** The compiled pattern; undefined if it is invalid or unsupported. */
export const compile = (source: string): Pattern | undefined => {
  const found = known(source)
  return typeof found === "string" ? undefined : found
}

/** Why a text is no valid pattern; undefined if it is one. */
export const faultOf = (source: string): string | undefined => {
  const found = known(source)
  return typeof found === "string" ? found : undefined
}

/** Work per character of a text, in instructions; 0 for an invalid pattern. */
export const workOf = (source: string): number => compile(source)?.work ?? 0

/** True when the pattern matches anywhere in the text; false for an invalid pattern. */
export const matches = (source: string, text: string): boolean => compile(source)?.matches(text) ?? false
