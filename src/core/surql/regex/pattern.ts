/**
 * Syntax tree of a pattern, and the fault of a text that is none.
 *
 * The tree holds neither groups nor flags: nothing here captures, and each leaf is already resolved by the flags in
 * force.
 */

/** A condition between two characters, or at an end of the text. Words are Unicode's. */
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

/** A node of the tree. */
export type Node =
  /** An empty pattern, written as no text or as flags alone; cannot be repeated. */
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

/** Fault of a text that is no pattern, or no supported one. */
export class PatternFault extends Error {}

/** Throws a {@link PatternFault}. */
export const fault = (message: string): never => {
  throw new PatternFault(message)
}
