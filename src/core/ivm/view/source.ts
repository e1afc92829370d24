/**
 * The engine's store as expressions see it, with notes of everything else that an evaluation reads.
 *
 * One evaluation at a time: `scope` starts a new list of reads, `reads` is that list. An evaluation in the middle of
 * another one (the fill of a subquery) runs in `aside` and leaves the list unchanged.
 */

import {
  type Budget,
  type Compiled,
  limits,
  queryBudget,
  renewBudget,
  rowBudget,
  type Scope,
  type Source
} from "../../surql/evaluate/scope.ts"
import type { Select } from "../../surql/syntax/ast.ts"
import * as Ids from "../../surql/values/recordId.ts"
import { type Obj, type Range, type RecordId, sameRecord, type Value } from "../../surql/values/value.ts"
import { edgeRead } from "../store/edgeIndex.ts"
import type { Store } from "../store/store.ts"
import { UnfilledResult } from "../unfilled.ts"
import type { Read } from "./dependencies.ts"

/** Limits on the work of evaluations, in steps (about one per row read or element touched). */
export interface StepLimits {
  /** Steps for one row of a view, and for a run of a view that is run whole at every change. */
  readonly rowSteps: number
  /** Steps for an evaluation over many rows. */
  readonly querySteps: number
  /** Steps for all rows of one change together; rows of at most {@link lightSteps} are not counted. */
  readonly changeSteps: number
  /** Bytes of values that one evaluation may make. */
  readonly queryBytes: number
}

export const defaultSteps: StepLimits = {
  rowSteps: limits.rowSteps.value,
  querySteps: limits.querySteps.value,
  changeSteps: limits.changeSteps.value,
  queryBytes: limits.queryBytes.value
}

/** A row with no more steps is evaluated whatever other rows of its change have taken. */
const lightSteps = 1000

/** Name of the read "a whole table". */
export const tableRead = (table: string): string => `\u0000table ${table}`

/** The table of a named read; undefined for edges of a record over any table. */
export const tableOfRead = (read: string): string | undefined => {
  const [, kind = "", table = ""] = /^\u0000(table|out|in) ([^\u0000]*)/.exec(read) ?? []
  return kind === "" ? Ids.parse(read)?.table : table === "" ? undefined : table
}

/** The store without notes of reads: for runs of whole queries. */
export class StoreSource implements Source {
  protected readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  record(id: RecordId): Obj | undefined {
    return this.store.docOf(id)
  }

  *rows(table: string): Iterable<Obj> {
    for (const { doc } of this.store.rowsInOrder(table)) yield doc
  }

  *rowsBetween(table: string, range: Range): Iterable<Obj> {
    for (const { doc } of this.store.liveBetween(table, range)) yield doc
  }

  edges(record: RecordId, direction: "out" | "in", table: string | undefined): Iterable<RecordId> {
    return this.store.edges().edges(record, direction, table)
  }

  tables(): Iterable<string> {
    return this.store.tableNames()
  }
}

/** Answers a subquery from a maintained result; undefined if the plain evaluator has to run it. */
type Answering = (query: Select, scope: Scope) => { readonly read: Read; readonly value: () => Value } | undefined

export class TrackedSource extends StoreSource {
  /**
   * The reads since {@link scope} was last called: texts of records, missing ones too, edges, tables, subqueries.
   */
  reads: ReadonlySet<Read> = none
  /** Number of reads since then. */
  count = 0
  private noted: Set<Read> | undefined = undefined
  private own: RecordId | undefined = undefined
  /** Budget of the current evaluation: one reused object, since there is an evaluation for each changed row. */
  private readonly budget: Budget
  /** Steps of all ended evaluations. */
  private counted = 0
  /** Steps of the current change's rows that exceed {@link lightSteps}; 0 between changes. */
  private heavy = 0
  private isBound = false
  /** Whether the current evaluation may be given up for a result that takes long to fill. */
  mayWait = false
  private readonly answering: Answering
  private readonly limits: StepLimits

  constructor(store: Store, limits: StepLimits, answering: Answering) {
    super(store)
    this.limits = limits
    this.budget = rowBudget(limits.rowSteps, limits.queryBytes, limits.changeSteps)
    this.answering = answering
  }

  /** A scope for the evaluation of one row; reads of its own record are not noted. */
  scope(doc: Obj, params: { readonly [name: string]: Value }, own: RecordId | undefined): Scope {
    this.reads = none
    this.noted = undefined
    this.count = 0
    this.own = own
    const taken = this.tally()
    if (taken > lightSteps || this.heavy > 0) this.share(taken)
    return { doc, params, parent: undefined, source: this, budget: this.budget }
  }

  /** Ends an evaluation: counts its steps and resets the budget. Minimal, because each row comes here. */
  private tally(): number {
    const { budget } = this
    const taken = budget.limit - budget.left
    this.counted += taken
    renewBudget(budget)
    return taken
  }

  /** After a row with many steps: leaves the next row only the rest of the change's steps. */
  private share(taken: number): void {
    this.weigh(taken)
    if (this.heavy > 0) this.budget.floor = this.floorOf(this.budget.limit)
  }

  private weigh(taken: number): void {
    if (taken > lightSteps && this.isBound) this.heavy += taken
  }

  private floorOf(steps: number): number {
    return Math.max(0, steps - Math.max(lightSteps, this.limits.changeSteps - this.heavy))
  }

  /** Steps of all evaluations of rows so far. */
  get spent(): number {
    return this.counted + this.budget.limit - this.budget.left
  }

  /** While bound, all evaluations belong to one change and share its steps. */
  bind(isBound: boolean): void {
    this.tally()
    this.heavy = 0
    this.isBound = isBound
  }

  /** The row evaluated last had fewer steps than it needed, because of other rows of its change. */
  get isOverdrawn(): boolean {
    return this.budget.left < this.budget.floor
  }

  /** The steps of the current change are used up. */
  get isSpent(): boolean {
    return this.heavy >= this.limits.changeSteps
  }

  /** Budget of a run of a whole query; the caller reports the steps taken to {@link took}. */
  readonly runBudget = (): Budget => {
    const { changeSteps, queryBytes, rowSteps } = this.limits
    const made = rowBudget(rowSteps, queryBytes, changeSteps)
    if (this.heavy > 0) made.floor = this.floorOf(rowSteps)
    return made
  }

  /** Runs a slice of a fill under the step limit of a change. */
  boundWork(work: () => void): void {
    this.bind(true)
    try {
      work()
    } finally {
      this.bind(false)
    }
  }

  /** Evaluates in a first fill; answers the result that has to be filled before it can be done, if it waits for one. */
  attempt(work: () => void, waits = true): UnfilledResult | undefined {
    const { mayWait } = this
    this.mayWait = waits
    try {
      work()
      return undefined
    } catch (error) {
      if (error instanceof UnfilledResult) return error
      throw error
    } finally {
      this.mayWait = mayWait
    }
  }

  took(steps: number): void {
    this.counted += steps
    this.weigh(steps)
  }

  /** A scope for an evaluation over many rows, with the step limit of a whole query. */
  wholeScope(params: { readonly [name: string]: Value }): Scope {
    return {
      ...this.scope({}, params, undefined),
      doc: undefined,
      budget: queryBudget(this.limits.querySteps, this.limits.rowSteps, this.limits.queryBytes)
    }
  }

  /** Runs other evaluations in the middle of one. */
  aside<A>(work: () => A): A {
    const { budget, count, mayWait, noted, own, reads } = this
    const { bytes, floor, left } = budget
    // The interrupted evaluation's steps are restored below and counted when it ends.
    const taken = this.tally()
    this.counted -= taken
    this.mayWait = false
    try {
      return work()
    } finally {
      this.weigh(this.tally())
      this.mayWait = mayWait
      this.count = count
      this.noted = noted
      this.own = own
      this.reads = reads
      budget.left = left
      budget.floor = floor
      budget.bytes = bytes
    }
  }

  note(read: Read): void {
    this.count++
    if (this.noted === undefined) this.reads = this.noted = new Set()
    this.noted.add(read)
  }

  override record(id: RecordId): Obj | undefined {
    if (this.own === undefined || !sameRecord(id, this.own)) this.note(id.text)
    return this.store.docOf(id)
  }

  override rows(table: string): Iterable<Obj> {
    this.note(tableRead(table))
    return super.rows(table)
  }

  override rowsBetween(table: string, range: Range): Iterable<Obj> {
    this.note(tableRead(table))
    return super.rowsBetween(table, range)
  }

  override edges(record: RecordId, direction: "out" | "in", table: string | undefined): Iterable<RecordId> {
    this.note(edgeRead(direction, table, record))
    return super.edges(record, direction, table)
  }

  subquery(query: Select, scope: Scope, plain: Compiled): Value {
    const answer = this.answering(query, scope)
    if (answer === undefined) return plain(scope)
    this.note(answer.read)
    return answer.value()
  }
}

const none: ReadonlySet<Read> = new Set()
