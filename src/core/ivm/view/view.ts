/**
 * The engine's interface to one result, whether it is maintained or recomputed.
 *
 * A view is a shape with its arguments; several view ids share one. Only the engine changes it; readers see a result, a
 * hash and a generation that always belong together (law L3).
 */
import type { Failure } from "../../surql/evaluate/failure.ts"
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Value } from "../../surql/values/value.ts"
import type { ChildEntry, Delta } from "../delta/delta.ts"
import type { PlanRow } from "../query/explain.ts"
import type { RecordSlot } from "../store/recordSlot.ts"

/** One row of a result: the key and version `flat` lists, and the row as the query returns it. */
export interface ResultRow {
  readonly key: string
  readonly version: number
  readonly value: () => Value
}

/** A row as it is now, with its sort values. */
export interface RankedRow extends ResultRow {
  readonly slot: RecordSlot
  readonly sourceIndex: number
  readonly lead: Value
  readonly sort: ReadonlyArray<Value>
}

/** Single rows with their order, for followers that keep a sorted list themselves. */
export interface Ranking {
  /** The row with this key, which must be shown now. */
  readonly of: (key: string) => RankedRow
  readonly compare: (a: RankedRow, b: RankedRow) => number
}

/** A row left out because an expression fails on it (D2a). */
export interface RowError {
  readonly id: string
  readonly failure: Failure
}

export interface View {
  /** Watchdog slot of the view that its evaluation is charged to (`EvaluationNote`). */
  watchSlot: number
  /** Shape and arguments as text; equal keys are the same view. */
  readonly key: string
  readonly shape: string
  /** Tables of the main rows, and tables that are read in other places. */
  readonly mainTables: ReadonlyArray<string>
  readonly otherTables: ReadonlyArray<string>
  /** `FROM ONLY`: the answer is the one row, or null. */
  readonly only: boolean
  /** Grows by one with each step that changed the result. */
  readonly generation: number
  readonly size: number
  readonly hash: () => string
  /** Sorts the result with pauses, so that `rows` is fast unless the result changes in one of them. */
  readonly arrange: () => Slices<void>
  /** The result, in order. */
  readonly rows: () => ReadonlyArray<ResultRow>
  /** As `rows`, each row made on demand: for a reader that pauses, and stops if the result changes then. */
  readonly each: () => Iterable<ResultRow>
  readonly errors: () => ReadonlyArray<RowError>
  /** Rows left out, in no order, on demand: a large view is walked with pauses. */
  readonly failures: () => Iterable<RowError>
  readonly plan: () => ReadonlyArray<PlanRow>
  /** The shown subquery results: `[alias, row key, keys of the result's rows]`. */
  readonly children: () => Iterable<readonly [alias: string, parent: string, children: ReadonlyArray<string>]>
  /**
   * The shown subquery results as the additions of a delta: one entry for each place, children of children included.
   */
  readonly childEntries: () => Iterable<ChildEntry>
  /**
   * Whether one record may appear several times at one place: SPLIT, a child twice under one parent, a recomputed
   * query.
   */
  readonly repeats: boolean
  /** Undefined if a row's place is known only from reading all rows: windows, groups, SPLIT, ONLY. */
  readonly ranking: Ranking | undefined
}

/** The effect of a step on one view. */
export interface Touched {
  readonly view: View
  readonly delta: Delta
  /** Generation and hash of the view right after the step. */
  readonly generation: number
  readonly hash: string
}

/** The views changed so far in a step; undefined: none. */
export type ChangedViews = Array<Touched> | undefined
