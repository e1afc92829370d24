/**
 * The data of an engine test, kept by the test: sorted tables of documents with the versions D4 gives them, and the
 * oracle, a fresh run of a query by the plain evaluator over them.
 *
 * Why not the engine's own store: an oracle that reads it would agree with every fault of it. Nothing here is
 * incremental but the sorted lists of keys; edges are found by looking at every edge, each time.
 */
import type { Change } from "../../../src/core/change.ts"
import type { Select } from "../../../src/core/surql/ast.ts"
import { encode } from "../../../src/core/surql/encode.ts"
import { EvalError } from "../../../src/core/surql/failure.ts"
import { compareRecords } from "../../../src/core/surql/order.ts"
import { recordOf } from "../../../src/core/surql/paths.ts"
import { budget, type Source } from "../../../src/core/surql/scope.ts"
import { compileSelect, type LeftOut } from "../../../src/core/surql/select.ts"
import { field, type Obj, type RecordId, type Value } from "../../../src/core/surql/value.ts"

export interface Kept {
  readonly id: RecordId
  readonly version: number
  readonly doc: Obj
}

interface Edge {
  readonly id: RecordId
  readonly in: RecordId
  readonly out: RecordId
}

export class Model implements Source {
  readonly records = new Map<string, Kept>()
  /** The last version of each record that is gone. */
  readonly gone = new Map<string, { readonly id: RecordId; readonly version: number }>()
  private readonly sorted = new Map<string, ReadonlyArray<RecordId>>()
  private edgeList: ReadonlyArray<Edge> | undefined = undefined

  /** D3 and D4; true when the change has an effect. */
  take(change: Change): boolean {
    const { id } = change
    const before = this.records.get(id.text)
    if (change.op === "DELETE") {
      if (before === undefined) return false
      this.records.delete(id.text)
      this.gone.set(id.text, { id, version: before.version })
      this.resort(id.table)
      return true
    }
    if (before !== undefined) {
      if (change.version !== undefined && change.version < before.version) return false
      if (encode(before.doc) === encode(change.doc) && (change.version ?? before.version) === before.version) return false
    }
    const version = change.version ?? (before?.version ?? this.gone.get(id.text)?.version ?? 0) + 1
    this.records.set(id.text, { id, version, doc: change.doc })
    this.gone.delete(id.text)
    this.resort(id.table)
    return true
  }

  record(id: RecordId): Obj | undefined {
    return this.records.get(id.text)?.doc
  }

  rows(table: string): Iterable<Obj> {
    let ids = this.sorted.get(table)
    if (ids === undefined) this.sorted.set(table, (ids = this.ids((id) => id.table === table)))
    return ids.map((id) => this.records.get(id.text)!.doc)
  }

  edges(record: RecordId, direction: "out" | "in", table: string | undefined): Iterable<RecordId> {
    this.edgeList ??= this.ids(() => true).flatMap((id) => {
      const { doc } = this.records.get(id.text)!
      const from = recordOf(field(doc, "in")), to = recordOf(field(doc, "out"))
      return from === undefined || to === undefined ? [] : [{ id, in: from, out: to }]
    })
    const end = direction === "out" ? "in" : "out"
    return this.edgeList.filter((edge) => edge[end].text === record.text && (table === undefined || edge.id.table === table)).map((edge) => edge.id)
  }

  tables(): Iterable<string> {
    return [...new Set([...this.records.values()].map(({ id }) => id.table))].sort()
  }

  private ids(wanted: (id: RecordId) => boolean): ReadonlyArray<RecordId> {
    return [...this.records.values()].map(({ id }) => id).filter(wanted).sort(compareRecords)
  }

  private resort(table: string): void {
    this.sorted.delete(table)
    this.edgeList = undefined
  }
}

export interface PlainRow {
  /** Undefined for a row that is no record. */
  readonly record: string | undefined
  readonly version: number | undefined
  readonly value: Value
  /** Every type told apart. */
  readonly text: string
}

export interface PlainResult {
  readonly rows: ReadonlyArray<PlainRow>
  /** Ids of records left out because an expression fails on them; empty text where no record is to blame. */
  readonly failing: ReadonlySet<string>
}

/** Compiles a query once; each call of the answer is a fresh run of it. */
export const plainly = (select: Select, params: { readonly [name: string]: Value }, model: Model): (() => PlainResult) => {
  const { run } = compileSelect(select)
  return () => {
    const left: Array<LeftOut> = []
    try {
      const slices = run({ doc: undefined, params, parent: undefined, source: model, budget: budget(1e9, "no limit") }, left)
      let step = slices.next()
      while (step.done !== true) step = slices.next()
      if (select.only && step.value.length > 1) return whole
      const rows = step.value.map(({ record, value }): PlainRow => ({ record: record?.text, version: record && model.records.get(record.text)?.version, value, text: encode(value) }))
      return { rows, failing: new Set(left.map(({ record }) => record?.text ?? "")) }
    } catch (error) {
      if (error instanceof EvalError) return whole
      throw error
    }
  }
}

/** The query fails as a whole. */
const whole: PlainResult = { rows: [], failing: new Set([""]) }
