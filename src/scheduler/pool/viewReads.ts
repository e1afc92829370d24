/**
 * Which tables the query of a registration reads, for where it is placed (D65).
 *
 * A hint and no more: the SSP decides what it needs. The text says which tables it names, and an SSP that has taken a
 * view names the tables it has read, also those behind links. These are remembered by the text of the query, for all
 * clients and parameters.
 */
import { Either } from "effect"
import type { ViewSpec } from "../../core/cluster/messages.ts"
import { Recent } from "../../core/recent.ts"
import * as Interest from "../../core/surql/syntax/interest.ts"
import { parseSelect } from "../../core/surql/syntax/parse.ts"
import { isObj, type Value } from "../../core/surql/values/value.ts"

/** Reading a longer one takes the scheduler too long. */
const maxLength = 16_384
/** Queries whose tables behind links are remembered, and how many tables of one. */
export const maxLearned = 1000
const maxTables = 64

type Reads = ReadonlySet<string> | "all" | undefined

interface Query {
  /** Undefined where the text is too long, or none. */
  readonly surql: string | undefined
  readonly reads: Reads
}

/** Undefined where the scheduler cannot read the query by itself, because the database defines a part of it. */
const read = (surql: string, params: unknown): Reads => {
  const parsed = parseSelect(surql)
  if (Either.isLeft(parsed)) return undefined
  // JSON is not typed here: text in the form of an id counts as one.
  const { all, tables } = Interest.interestOf(parsed.right, isObj(params as Value) ? (params as never) : {})
  return all ? "all" : tables
}

const nothing: Query = { surql: undefined, reads: undefined }

export class ViewReads {
  /** Read once for each registration. */
  private readonly known = new WeakMap<object, Query>()
  /** By the text of the query. */
  private readonly learned = new Recent<string, ReadonlyArray<string>>(maxLearned)

  readonly of = (spec: ViewSpec): Reads => {
    const { reads, surql } = this.query(spec)
    const more = surql === undefined ? undefined : this.learned.get(surql)
    return more === undefined || reads === "all" ? reads : new Set([...(reads ?? []), ...more])
  }

  /** An SSP has taken the view, and has read these tables for it. */
  learn(spec: ViewSpec, tables: ReadonlyArray<string>): void {
    const { reads, surql } = this.query(spec)
    if (surql === undefined || reads === "all") return
    const more = tables.filter((table) => reads?.has(table) !== true).slice(0, maxTables)
    // Another client's rows may link to nothing yet.
    if (more.length > 0) this.learned.set(surql, more)
  }

  private query({ body }: ViewSpec): Query {
    if (typeof body !== "object" || body === null) return nothing
    const found = this.known.get(body)
    if (found !== undefined) return found
    const { params, surql } = body as { readonly params?: unknown; readonly surql?: unknown }
    const query =
      typeof surql === "string" && surql.length <= maxLength ? { surql, reads: read(surql, params) } : nothing
    this.known.set(body, query)
    return query
  }
}
