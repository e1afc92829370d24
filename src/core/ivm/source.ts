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

/** Names a look at the edges of a record, as {@link TrackedSource} notes it: no record's text starts so. */
export const edgeRead = (direction: "out" | "in", table: string | undefined, record: RecordId): string => `\u0000${direction} ${table ?? ""}\u0000${record.text}`

export class TrackedSource implements Source {
  /** What was read since {@link scope} was last called: texts of records, missing ones too, and {@link edgeRead}s. */
  reads: ReadonlySet<string> = none
  private noted: Set<string> | undefined = undefined
  private own = ""
  private readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /** A scope for the evaluation of one row, whose own record is not noted. */
  scope(doc: Obj, params: { readonly [name: string]: Value }, own: string): Scope {
    this.reads = none
    this.noted = undefined
    this.own = own
    return { doc, params, parent: undefined, source: this, budget: budget(rowSteps, rowSetting) }
  }

  record(id: RecordId): Obj | undefined {
    if (id.text !== this.own) this.note(id.text)
    return this.store.get(id)?.doc
  }

  *rows(table: string): Iterable<Obj> {
    for (const row of this.store.rowsInOrder(table)) yield row.doc
  }

  edges(record: RecordId, direction: "out" | "in", table: string | undefined): Iterable<RecordId> {
    this.note(edgeRead(direction, table, record))
    return this.store.edges().edges(record, direction, table)
  }

  tables(): Iterable<string> {
    return this.store.tableNames()
  }

  private note(read: string): void {
    if (this.noted === undefined) this.reads = this.noted = new Set()
    this.noted.add(read)
  }
}

const none: ReadonlySet<string> = new Set()
const rowSetting = "the limit of steps per row"

/** A budget for running a whole query. */
export const queryBudget = () => budget(querySteps, "the limit of steps per query")
