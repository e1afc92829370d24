/**
 * What an expression is evaluated in: the document, parameters, other records, and how much work it may do.
 *
 * Why so: one small object per row is all that evaluation reads, so the engine can wrap {@link Source} to remember which
 * records a row looked at, and bound every evaluation by counted steps instead of a clock.
 */
import { raise } from "./failure.ts"
import type { Datetime, Obj, RecordId, Value } from "./value.ts"

/** Other records, as they are right now. Rows are full documents with their `id`; nobody mutates them. */
export interface Source {
  /** The record, or `undefined` when there is none. */
  readonly record: (id: RecordId) => Obj | undefined
  /** All records of a table in record-key order; nothing for an unknown table. */
  readonly rows: (table: string) => Iterable<Obj>
  /**
   * Ids of the edge records that leave (`out`: their `in` is the record) or reach (`in`: their `out` is the record) a record, by
   * edge table name and then key; of one edge table, or (`undefined`) of all.
   */
  readonly edges: (record: RecordId, direction: "out" | "in", table: string | undefined) => Iterable<RecordId>
  /** Names of the tables, sorted; for INFO FOR DB. */
  readonly tables?: () => Iterable<string>
  /** The declared fields of a table (name to type), for INFO FOR TABLE. */
  readonly fields?: (table: string) => { readonly [name: string]: string } | undefined
}

/** Steps left; shared by everything one run does. `setting` names the knob that raises it. */
export interface Budget {
  left: number
  readonly limit: number
  readonly setting: string
}

/** A budget of so many steps (about one per expression node that loops, row read or element touched). */
export const budget = (limit: number, setting: string): Budget => ({ left: limit, limit, setting })

/** Takes steps from a budget; fails when it is used up. */
export const spend = (b: Budget, steps: number): void => {
  b.left -= steps
  if (b.left < 0) raise(`The query needs more than ${b.limit} steps; raise ${b.setting} to allow it`)
}

export interface Scope {
  /** The current document, NONE outside a SELECT. */
  readonly doc: Value
  readonly params: { readonly [name: string]: Value }
  /** The document of the query around a subquery, for `$parent`. */
  readonly parent: Value
  readonly source: Source
  readonly budget: Budget
  /** The present for `time::now()`; without it that fails, as it must in a live view. */
  readonly now?: Datetime
  /** Inside a recursive path: goes on from a value at `@`. */
  readonly repeat?: (v: Value, scope: Scope) => Value
}

export type Compiled = (scope: Scope) => Value
