/**
 * Functions and parameters that a database defines, for use in queries (D58).
 *
 * A function is inlined at its call: its body sees the caller's parameters and record, as in the database. The used
 * definitions are noted, to notice when they change.
 */
import type { Expr } from "./ast.ts"

export interface FunctionDefinition {
  /** Name without `fn::`; letter case counts. */
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
  /** The value as the database prints it. */
  readonly value: string
  /** Whether all users may read it. */
  readonly open: boolean
}

export interface Definitions {
  readonly functions: ReadonlyMap<string, FunctionDefinition>
  readonly params: ReadonlyMap<string, ParamDefinition>
}

/** State of inlining while a query is parsed: definitions it may use, and those it has used. */
export interface Inlining {
  readonly definitions: Definitions
  readonly used: Set<FunctionDefinition>
  /** Calls being inlined, the outermost first. */
  within: ReadonlyArray<string>
  /** Characters of all bodies so far. */
  length: number
}

/** A copy of a syntax tree with all offsets set to `at`: faults in an inlined body are reported at its call. */
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
