/**
 * Lifting constants out of a query: `author = user:1` and `author = $u` become one shape with one argument.
 *
 * Why: all views of one shape share one set of compiled closures and one argument index, so that a change costs the
 * number of shapes and not the number of views (law L4). Only WHERE, START and LIMIT are lifted: in the projection a
 * constant's text names the output field. A constant that cannot be evaluated stays where it is and fails row by row,
 * as it does in the database. Regular expressions stay too: equality with one is a match and cannot be indexed.
 */
import { Either } from "effect"
import type { Expr, Select } from "../surql/ast.ts"
import { compile, isConstant, run } from "../surql/evaluate.ts"
import type { Scope } from "../surql/scope.ts"
import { Regex, type Value } from "../surql/value.ts"

export interface Lifted {
  readonly select: Select
  /** Values of the lifted constants, by the parameter name that stands for each in `select`. */
  readonly args: { readonly [name: string]: Value }
}

/** No parameter a user can write starts so. */
export const liftedPrefix = "\u0000"

const holdsRegex = (value: Value): boolean =>
  value instanceof Regex || (Array.isArray(value) && (value as ReadonlyArray<Value>).some(holdsRegex))

/** `scope` gives the user's parameters; its document is never read. */
export const lift = (select: Select, scope: Scope): Lifted => {
  const args: Record<string, Value> = {}
  let count = 0
  const constant = (expr: Expr): Expr | undefined => {
    if (!isConstant(expr)) return undefined
    const value = run(compile(expr), scope)
    if (Either.isLeft(value) || holdsRegex(value.right)) return undefined
    const name = `${liftedPrefix}${count++}`
    args[name] = value.right
    return { kind: "param", at: expr.at, name }
  }
  const walk = (expr: Expr): Expr => {
    const lifted = constant(expr)
    if (lifted !== undefined) return lifted
    if (expr.kind === "binary") return { ...expr, left: walk(expr.left), right: walk(expr.right) }
    if (expr.kind === "unary") return { ...expr, operand: walk(expr.operand) }
    return expr
  }
  const optional = (expr: Expr | undefined): Expr | undefined => expr && walk(expr)
  return {
    select: { ...select, where: optional(select.where), limit: optional(select.limit), start: optional(select.start) },
    args
  }
}
