/**
 * Which tables the query of a registration reads, for where it is placed (D65).
 *
 * A hint and no more: the SSP decides what it needs. What records link to is not looked at, and neither is a query that
 * the scheduler cannot read by itself, because the database defines a part of it.
 */
import { Either } from "effect"
import type { ViewSpec } from "../../core/cluster/messages.ts"
import * as Interest from "../../core/surql/syntax/interest.ts"
import { parseSelect } from "../../core/surql/syntax/parse.ts"
import { isObj, type Value } from "../../core/surql/values/value.ts"

/** Reading a longer one takes the scheduler too long. */
const maxLength = 16_384

type Reads = ReadonlySet<string> | "all" | undefined

const read = (body: unknown): Reads => {
  const { params, surql } = body as { readonly params?: unknown; readonly surql?: unknown }
  if (typeof surql !== "string" || surql.length > maxLength) return undefined
  const parsed = parseSelect(surql)
  if (Either.isLeft(parsed)) return undefined
  // JSON is not typed here: text in the form of an id counts as one.
  const { all, tables } = Interest.interestOf(parsed.right, isObj(params as Value) ? (params as never) : {})
  return all ? "all" : tables
}

/** Read once for each registration. */
export const make = (): ((spec: ViewSpec) => Reads) => {
  const known = new WeakMap<object, { readonly reads: Reads }>()
  return ({ body }) => {
    if (typeof body !== "object" || body === null) return undefined
    const found = known.get(body)
    if (found !== undefined) return found.reads
    const reads = read(body)
    known.set(body, { reads })
    return reads
  }
}
