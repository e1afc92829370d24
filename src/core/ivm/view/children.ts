/**
 * The results of the subqueries that a row shows as fields, and their combined hash.
 *
 * Why hashes and not content: a child is identified by key and version, so a change is seen without reading content. A
 * subquery whose result cannot be maintained for this row is run, and its content is compared.
 */
import { Either } from "effect"
import { run } from "../../surql/evaluate/evaluate.ts"
import { type Failure, raiseAgain } from "../../surql/evaluate/failure.ts"
import type { Scope } from "../../surql/evaluate/scope.ts"
import { writeOut } from "../../surql/written/paid.ts"
import type { EngineContext } from "../context.ts"
import type { ChildResult } from "../delta/delta.ts"
import { type Hash64, hashText } from "../delta/hash.ts"
import type { Shape } from "../query/shape.ts"

interface HeldChildren {
  /** In the order of the shape's fields. */
  readonly children: ReadonlyArray<ChildResult | undefined>
  /** The hashes of the children; undefined where one of them fails or has no result. */
  readonly sums: ReadonlyArray<Hash64> | undefined
  /** Why the row fails, if the result keeps failing rows; in other results `childrenOf` raises it. */
  readonly failure: Failure | undefined
}

/** The children of the row in scope. Content that no child's hash covers is added to `parts`, for the row's digest. */
export const childrenOf = (
  { children: fields }: Shape,
  { resultOf, source }: EngineContext,
  failsAsWhole: boolean,
  scope: Scope,
  parts: Array<string>
): HeldChildren => {
  const children: Array<ChildResult | undefined> = []
  let whole = true
  const sums: Array<Hash64> = []
  let failure: Failure | undefined
  const fail = (failed: Failure): void => {
    if (!failsAsWhole) raiseAgain(failed)
    failure ??= failed
    parts.push(failed.reason)
  }
  for (const { query, value } of fields) {
    const result = resultOf(query, scope)
    if (result === undefined) {
      whole = false
      children.push(undefined)
      const shown = run(value, scope)
      if (Either.isLeft(shown)) fail(shown.left)
      else parts.push(writeOut(scope.budget, shown.right))
      continue
    }
    source.note(result)
    const failed = result.fails() ? source.aside(() => result.failure()) : undefined
    if (failed !== undefined) fail(failed)
    else sums.push(result.sum)
    children.push(result)
  }
  if (whole && failure === undefined) return { children, sums, failure }
  parts.push(sums.map(hashText).join())
  return { children, sums: undefined, failure }
}
