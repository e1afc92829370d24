/**
 * Tables that a registration's query reads, which decide where it is placed (D65).
 *
 * A hint only: the SSP decides which tables it needs. The text names some tables; an SSP that has taken a view reports
 * all it has read, also those behind links. Reports are remembered by the query's text, for all clients and parameters.
 */
import { Either } from "effect"
import type { ViewSpec } from "../../core/cluster/messages.ts"
import { Recent } from "../../core/recent.ts"
import * as Interest from "../../core/surql/syntax/interest.ts"
import { parseSelect } from "../../core/surql/syntax/parse.ts"
import { isObj, type Value } from "../../core/surql/values/value.ts"

/** Longest query that the scheduler parses: a longer one would take it too long. */
const maxLength = 16_384
/** Limits: queries whose reported tables are remembered, and tables of one query. */
export const maxReported = 1000
const maxTables = 64

type Reads = ReadonlySet<string> | "all" | undefined

interface Query {
  /** Undefined: the text is too long, or there is none. */
  readonly surql: string | undefined
  readonly reads: Reads
}

/** Undefined: the scheduler cannot parse the query, because the database defines a part of it. */
const read = (surql: string, params: unknown): Reads => {
  const parsed = parseSelect(surql)
  if (Either.isLeft(parsed)) return undefined
  // JSON is not typed here: a string in the form of a record id counts as one.
  const { all, tables } = Interest.interestOf(parsed.right, isObj(params as Value) ? (params as never) : {})
  return all ? "all" : tables
}

const nothing: Query = { surql: undefined, reads: undefined }

export class ViewReads {
  /** Parsed queries by registration body. */
  private readonly known = new WeakMap<object, Query>()
  /** Reported tables by the query's text. */
  private readonly learned = new Recent<string, ReadonlyArray<string>>(maxReported)

  readonly of = (spec: ViewSpec): Reads => {
    const { reads, surql } = this.query(spec)
    const more = surql === undefined ? undefined : this.learned.get(surql)
    return more === undefined || reads === "all" ? reads : new Set([...(reads ?? []), ...more])
  }

  /** Remembers the tables that an SSP has read for the view. */
  learn(spec: ViewSpec, tables: ReadonlyArray<string>): void {
    const { reads, surql } = this.query(spec)
    if (surql === undefined || reads === "all") return
    const more = tables.filter((table) => reads?.has(table) !== true).slice(0, maxTables)
    // An empty report replaces nothing: the rows of another client may have links.
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
