/**
 * Functions and parameters that a database defines, as a query may use them (D58).
 *
 * A function is inlined where it is called: its body sees what the caller's sees, parameters and record, as in the
 * database. What a query has used is written down, so that it can be told when that is defined otherwise.
 */
import type { Expr } from "./ast.ts"

export interface FunctionDefinition {
  /** Without `fn::`; letter case counts. */
  readonly name: string
  /** Names without `$`, with their types. */
  readonly args: ReadonlyArray<readonly [name: string, type: string]>
  readonly block: string
  readonly returns: string | undefined
  /** Whether all users may call the function. */
  readonly open: boolean
}

export interface ParamDefinition {
  readonly name: string
  /** The value as the database writes it. */
  readonly value: string
  /** Whether all users may read it. */
  readonly open: boolean
}

export interface Definitions {
  readonly functions: ReadonlyMap<string, FunctionDefinition>
  readonly params: ReadonlyMap<string, ParamDefinition>
}

/** While a query is read: what it may use, and what it has used. */
export interface Inlining {
  readonly definitions: Definitions
  readonly used: Set<FunctionDefinition>
  /** Calls that the reader is inside of, the outermost first. */
  within: ReadonlyArray<string>
  /** Characters of bodies so far. */
  length: number
}

/**
 * A copy of a syntax tree with all its positions moved to `at`: the body of a function that is inlined stands where it
 * is called.
 */
export const repositioned = (node: Expr, at: number): Expr => {
  const move = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(move)
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
    const entries = Object.entries(value)
    const isLiteral = "kind" in value && value.kind === "literal"
    return Object.fromEntries(
      entries.map(([key, part]) => [key, key === "at" ? at : isLiteral && key === "value" ? part : move(part)])
    )
  }
  return move(node) as Expr
}
