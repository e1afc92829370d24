/**
 * What the engine offers of one maintained result, however it is maintained.
 *
 * A view is a shape with its arguments; several view ids share one. The engine owns its changes; readers see a
 * result, a hash and a generation that always belong together (law L3).
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

/** A row with what says where it stands, as it was when it was asked for. */
export interface RankedRow extends ResultRow {
  readonly slot: RecordSlot
  readonly sourceIndex: number
  readonly lead: Value
  readonly sort: ReadonlyArray<Value>
}

/** Rows one by one, and which of two stands first: for followers that keep the order themselves. */
export interface Ranking {
  /** A row that is shown now. */
  readonly of: (key: string) => RankedRow
  readonly compare: (a: RankedRow, b: RankedRow) => number
}

/** A row left out because an expression fails on it (D2a). */
export interface RowError {
  readonly id: string
  readonly failure: Failure
}

export interface View {
  /** Of the view that its evaluation is put down to, in a watchdog's memory (`Evaluating`). */
  watchSlot: number
  /** Shape and arguments as text; equal keys are the same view. */
  readonly key: string
  readonly shape: string
  /** The table of the main rows, and those only read along the way. */
  readonly mainTables: ReadonlyArray<string>
  readonly otherTables: ReadonlyArray<string>
  /** `FROM ONLY`: the answer is the one row, or null. */
  readonly only: boolean
  /** Grows by one with each step that changed the result. */
  readonly generation: number
  readonly size: number
  readonly hash: () => string
  /** Puts the result in order with pauses, so that `rows` finds it so unless it changes in one of them. */
  readonly arrange: () => Slices<void>
  /** The result, in order. */
  readonly rows: () => ReadonlyArray<ResultRow>
  /** The same, each row made when it is asked for: for a reader that pauses, and stops when the result changes then. */
  readonly each: () => Iterable<ResultRow>
  readonly errors: () => ReadonlyArray<RowError>
  /** The same in no order, one by one: of a large view they are walked with pauses. */
  readonly failures: () => Iterable<RowError>
  readonly plan: () => ReadonlyArray<PlanRow>
  /** The rows of the subqueries shown, by alias and row: `[alias, row key, keys of the rows]`. */
  readonly children: () => Iterable<readonly [alias: string, parent: string, children: ReadonlyArray<string>]>
  /** The same as a delta would tell them from nothing: one entry for each place, children of children included. */
  readonly childEntries: () => Iterable<ChildEntry>
  /**
   * One record may be shown several times at one place: SPLIT, a child under the same parent twice, a query that is run
   * whole.
   */
  readonly repeats: boolean
  /** Undefined where rows have to be read in order to know where one stands: windows, groups, SPLIT, ONLY. */
  readonly ranking: Ranking | undefined
}

/** One view's part of a step. */
export interface Touched {
  readonly view: View
  readonly delta: Delta
  /** Generation and hash of the view right after the step. */
  readonly generation: number
  readonly hash: string
}

/** What a step has changed so far. */
export type Told = Array<Touched> | undefined
