/**
 * The engine's store as expressions see it, with a note of every other record an evaluation looked at.
 *
 * One evaluation at a time: `scope` starts a new list of reads, `reads` is what has been read since.
 */
import { budget, type Scope, type Source } from "../surql/scope.ts"
import type { Obj, RecordId, Value } from "../surql/value.ts"
import type { Store } from "./store.ts"

/** Steps one row's evaluation, or one run of a whole query, may take. */
const rowSteps = 1_000_000
const querySteps = 100_000_000

export class TrackedSource implements Source {
  /** Texts of the records read since {@link scope} was last called; a record that is missing counts too. */
  reads: ReadonlyArray<string> = none
  private noted: Array<string> | undefined = undefined
  private readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /** A scope for one row's evaluation. */
  scope(doc: Obj, params: { readonly [name: string]: Value }): Scope {
    this.reads = none
    this.noted = undefined
    return { doc, params, parent: undefined, source: this, budget: budget(rowSteps, rowSetting) }
  }

  record(id: RecordId): Obj | undefined {
    if (this.noted === undefined) this.reads = this.noted = [id.text]
    else if (!this.noted.includes(id.text)) this.noted.push(id.text)
    return this.store.get(id)?.doc
  }

  *rows(table: string): Iterable<Obj> {
    for (const row of this.store.rowsInOrder(table)) yield row.doc
  }

  edges(record: RecordId, direction: "out" | "in", table: string | undefined): Iterable<RecordId> {
    return this.store.edges().edges(record, direction, table)
  }

  tables(): Iterable<string> {
    return this.store.tableNames()
  }
}

const none: ReadonlyArray<string> = []
const rowSetting = "the limit of steps per row"

/** A budget for running a whole query. */
export const queryBudget = () => budget(querySteps, "the limit of steps per query")
