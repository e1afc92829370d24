/**
 * The scope of an evaluation: the document, parameters, access to other records, and the budget of work.
 *
 * Why so: one small object per row is all that an evaluation reads, so the engine can wrap {@link Source} to note which
 * records a row read, and bound every evaluation by counted steps instead of a clock.
 */
import type { Select } from "../syntax/ast.ts"
import type { Datetime, Obj, Range, RecordId, Value } from "../values/value.ts"
import { ownText, raise } from "./failure.ts"

/** Other records, as they are right now. Rows are full documents with their `id`; they are never mutated. */
export interface Source {
  /** The record, or `undefined` when there is none. */
  readonly record: (id: RecordId) => Obj | undefined
  /**
   * All records of a table in record-key order; nothing for an unknown table. Read lazily, so records must not change
   * while a sliced evaluation is paused: give it a snapshot, or run it without other work.
   */
  readonly rows: (table: string) => Iterable<Obj>
  /**
   * The records with keys in a range, in record-key order, at a cost that grows with the number taken; without it
   * tables are scanned.
   */
  readonly rowsBetween?: (table: string, range: Range) => Iterable<Obj>
  /**
   * Ids of the edge records that leave (`out`: their `in` is the record) or reach (`in`: their `out` is the record) a
   * record, by edge table name and then key; of one edge table, or (`undefined`) of all.
   */
  readonly edges: (record: RecordId, direction: "out" | "in", table: string | undefined) => Iterable<RecordId>
  /**
   * Bytes of a record that was read only for this evaluation, as long as it is held; absent if records are in memory
   * anyway.
   */
  readonly bytesOf?: (record: RecordId) => number
  /** Names of the tables, sorted; for INFO FOR DB. */
  readonly tables?: () => Iterable<string>
  /** Runs a subquery in another way (the engine: from a maintained result); `plain` evaluates it. */
  readonly subquery?: (query: Select, scope: Scope, plain: Compiled) => Value
  /** Declared fields of a table (name to type), for INFO FOR TABLE; undefined for an undeclared table. */
  readonly fields?: (table: string) => { readonly [name: string]: string } | undefined
}

/** A run that pauses: yields between slices of its work, returns its result. Abandoned by `return()`. */
export type Slices<A> = Generator<undefined, A, void>

/** Runs to the end without pausing. */
export const drain = <A>(slices: Slices<A>): A => {
  for (;;) {
    const step = slices.next()
    if (step.done === true) return step.value
  }
}

/** Limits of evaluation: the settings that raise them, and their defaults. */
export const limits = {
  rowSteps: { setting: "SVC_QUERY_ROW_STEPS", value: 1_000_000 },
  querySteps: { setting: "SVC_QUERY_STEPS", value: 100_000_000 },
  changeSteps: { setting: "SVC_QUERY_CHANGE_STEPS", value: 5_000_000 },
  queryRows: { setting: "SVC_QUERY_ROWS", value: 100_000 },
  queryBytes: { setting: "SVC_QUERY_BYTES", value: 67_108_864 }
} as const

/** Steps and bytes left, shared by one run. `setting`: the setting that raises the steps. */
export interface Budget {
  left: number
  /** Lower bound of `left`: above 0 while a row is evaluated that may use only a part of the budget. */
  floor: number
  readonly limit: number
  readonly setting: string
  /** Most steps of one row, which is evaluated without a pause. */
  readonly rowLimit: number
  /** Steps that all rows of one change may use together, if `floor` enforces that. */
  readonly shared: number | undefined
  /** Bytes that may still be made. Freed bytes are given back row by row, see {@link keepBytes}. */
  bytes: number
  readonly byteLimit: number
  /** Runs the subqueries of a row that may be given up for one that takes long; undefined: without a pause. */
  subqueries: SubqueryRuns | undefined
}

interface SubqueryRuns {
  readonly run: <Row>(slices: Slices<ReadonlyArray<Row>>) => ReadonlyArray<Row>
}

/** A budget of steps (about one per looping expression node, row read or element touched) and bytes. */
export const makeBudget = (
  limit: number,
  setting: string,
  rowLimit = Infinity,
  byteLimit: number = limits.queryBytes.value,
  shared?: number
): Budget => ({
  left: limit,
  floor: 0,
  limit,
  setting,
  rowLimit,
  shared,
  bytes: byteLimit,
  byteLimit,
  subqueries: undefined
})

/** The budget of one row. */
export const rowBudget = (
  rowSteps: number = limits.rowSteps.value,
  queryBytes: number = limits.queryBytes.value,
  shared?: number
): Budget => makeBudget(rowSteps, limits.rowSteps.setting, Infinity, queryBytes, shared)

/** The budget of a whole query and of each of its rows. */
export const queryBudget = (
  querySteps: number = limits.querySteps.value,
  rowSteps: number = limits.rowSteps.value,
  queryBytes: number = limits.queryBytes.value
): Budget => makeBudget(querySteps, limits.querySteps.setting, rowSteps, queryBytes)

/** Resets steps and bytes. */
export const renewBudget = (b: Budget): void => {
  b.left = b.limit
  b.floor = 0
  b.bytes = b.byteLimit
}

/** Refused work is neither done nor counted. */
const exhausted = (b: Budget): never => {
  b.left = (b.left < 0 ? 0 : b.floor) - 1
  return b.left < 0
    ? raise`The query needs more than ${ownText(b.limit)} steps; raise ${ownText(b.setting)} to allow it`
    : b.shared === undefined
      ? raise`A row needs more than ${ownText(b.rowLimit)} steps; raise ${ownText(limits.rowSteps.setting)} to allow it`
      : raise`The rows of one change need more than ${ownText(b.shared)} steps; raise ${ownText(limits.changeSteps.setting)} to allow it`
}

/** Takes steps from a budget; fails when it is used up. */
export const spendSteps = (b: Budget, steps: number): void => {
  b.left -= steps
  if (b.left < b.floor) exhausted(b)
}

const tooLarge = (b: Budget): never =>
  raise`The query makes more than ${ownText(b.byteLimit)} bytes; raise ${ownText(limits.queryBytes.setting)} to allow it`

/** Takes bytes from a budget, before they are made; fails when it is used up. */
export const spendBytes = (b: Budget, bytes: number): void => {
  b.bytes -= bytes
  if (b.bytes < 0) tooLarge(b)
}

/** Gives back the bytes made since there were `before` left, except `kept`. */
export const keepBytes = (b: Budget, before: number, kept: number): void => {
  b.bytes = Math.max(b.bytes, before - kept)
}

/** Counts the steps of one row from here to {@link endRows}. */
export const beginRow = (b: Budget): void => {
  b.floor = b.left > b.rowLimit ? b.left - b.rowLimit : 0
}

export const endRows = (b: Budget): void => {
  b.floor = 0
}

export interface Scope {
  /** The current document, NONE outside a SELECT. */
  readonly doc: Value
  readonly params: { readonly [name: string]: Value }
  /** After a link or a graph step: there is no document, and `$parent` of a subquery is the outer query's. */
  readonly detached?: boolean
  /** The document before the link, if `detached`. */
  readonly row?: Value
  /**
   * Inside a closure that a function calls, which the database runs by its older evaluator. Not set in a subquery,
   * whose result is shared.
   */
  readonly older?: boolean
  /** The document of the outer query, for `$parent`. */
  readonly parent: Value
  readonly source: Source
  readonly budget: Budget
  /** Time for `time::now()`; without it that call fails, as it must in a live view. */
  readonly now?: Datetime
  /** Inside a tree, which continues at `@`. */
  readonly repeat?: {
    readonly below: (v: Value, scope: Scope) => Value
    /** Whether this is above the least depth. */
    readonly isShallow: boolean
    /** Whether a branch has ended above the least depth, which ends the tree. */
    hasEnded: boolean
  }
}

export type Compiled = (scope: Scope) => Value

/** Steps of making a scope, as for each element that a path continues from. */
export const scopeSteps = 16

/** Steps of reading another record. */
export const recordReadSteps = 8

/** The same scope with another document. */
export const withDoc = (s: Scope, doc: Value): Scope => ({ ...s, doc, detached: false })

/** The same scope after a link or a graph step, where the database has no document. */
export const detach = (s: Scope): Scope => ({ ...s, doc: undefined, detached: true, row: s.doc })
