/**
 * A pattern as a tree, and what is wrong with one.
 *
 * Groups and flags are gone from it: nothing here captures, and each leaf carries what the flags make of it.
 */

/** What holds between two characters, or at an end of the text. Words are Unicode's. */
export type Assertion =
  | "textStart"
  | "textEnd"
  | "lineStart"
  | "lineEnd"
  | "wordBoundary"
  | "noWordBoundary"
  | "wordStart"
  | "wordEnd"
  | "halfStart"
  | "halfEnd"

/** Code points in ascending ranges, both ends within, none adjacent: `[from, to, from, to]`. */
export type Ranges = ReadonlyArray<number>

export type Node =
  /** Nothing, written as nothing or as flags: it cannot be repeated. */
  | { readonly kind: "nothing" }
  /** One character of a set. */
  | { readonly kind: "set"; readonly ranges: Ranges }
  | { readonly kind: "assertion"; readonly assertion: Assertion }
  | { readonly kind: "sequence"; readonly parts: ReadonlyArray<Node> }
  | { readonly kind: "choice"; readonly parts: ReadonlyArray<Node> }
  | {
      readonly kind: "repeat"
      readonly part: Node
      readonly min: number
      /** Infinity: without end. */
      readonly max: number
      readonly isLazy: boolean
    }

/** Why a text is no pattern, or none that is supported. */
export class PatternFault extends Error {}

export const fault = (message: string): never => {
  throw new PatternFault(message)
}
