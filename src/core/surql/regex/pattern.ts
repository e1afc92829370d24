/**
 * Syntax tree of a pattern, and the fault of an invalid one.
 *
 * The tree has neither groups nor flags: nothing captures, and the flags in force are already applied to each leaf.
 */

/** A condition between two characters, or at an end of the text. Words are by Unicode. */
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

/** Code points in ascending ranges, both ends included, none adjacent: `[from, to, from, to]`. */
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
      /** Infinity: unbounded. */
      readonly max: number
      readonly isLazy: boolean
    }

/** Fault of an invalid or unsupported pattern. */
export class PatternFault extends Error {}

/** Throws a {@link PatternFault}. */
export const fault = (message: string): never => {
  throw new PatternFault(message)
}
