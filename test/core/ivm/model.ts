/**
 * The data of an engine test, kept by the test: sorted tables of documents with the versions D4 gives them, and the
 * oracle, a fresh run of a query by the plain evaluator over them.
 *
 * Why not the engine's own store: an oracle that reads it would agree with every fault of it. Nothing here is
 * incremental but the sorted lists of keys; edges are found by looking at every edge, each time. What a run reads is
 * noted, by table, record and edge end, so that a run whose reads have not changed need not be repeated.
 */
import type { Change } from "../../../src/core/record/change.ts"
import { EvalError } from "../../../src/core/surql/evaluate/failure.ts"
import { recordOf } from "../../../src/core/surql/evaluate/paths.ts"
import { makeBudget, type Source } from "../../../src/core/surql/evaluate/scope.ts"
import { compileSelect, type LeftOut } from "../../../src/core/surql/evaluate/select/select.ts"
import type { Select } from "../../../src/core/surql/syntax/ast.ts"
import { encode } from "../../../src/core/surql/values/encode.ts"
import { compareRecords } from "../../../src/core/surql/values/order.ts"
import { field, type Obj, type RecordId, type Value } from "../../../src/core/surql/values/value.ts"

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
  /** What is read is added here. */
  reads = new Set<string>()
  /** What the changes since the last call of {@link moved} touched, in the names of {@link reads}. */
  private touched = new Set<string>()
  private readonly sorted = new Map<string, ReadonlyArray<RecordId>>()
  private edgeList: ReadonlyArray<Edge> | undefined = undefined

  /** What has been touched since it was last asked. */
  moved(): ReadonlySet<string> {
    const moved = this.touched
    this.touched = new Set()
    return moved
  }

  /** D3 and D4; true when the change has an effect. */
  take(change: Change): boolean {
    const before = this.records.get(change.id.text)?.doc
    if (!this.replace(change)) return false
    const { id } = change
    this.touched.add(`rows ${id.table}`).add(id.text)
    for (const doc of [before, this.records.get(id.text)?.doc]) {
      for (const end of [doc && recordOf(field(doc, "in")), doc && recordOf(field(doc, "out"))])
        if (end !== undefined) this.touched.add(`edges ${end.text}`)
    }
    return true
  }

  private replace(change: Change): boolean {
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
      if (encode(before.doc) === encode(change.doc) && (change.version ?? before.version) === before.version)
        return false
    }
    // A version given twice with other content is a new state all the same.
    const given = change.version === before?.version ? undefined : change.version
    const version = given ?? (before?.version ?? this.gone.get(id.text)?.version ?? 0) + 1
    this.records.set(id.text, { id, version, doc: change.doc })
    this.gone.delete(id.text)
    this.resort(id.table)
    return true
  }

  record(id: RecordId): Obj | undefined {
    this.reads.add(id.text)
    return this.records.get(id.text)?.doc
  }

  rows(table: string): Iterable<Obj> {
    this.reads.add(`rows ${table}`)
    let ids = this.sorted.get(table)
    if (ids === undefined) this.sorted.set(table, (ids = this.ids((id) => id.table === table)))
    return ids.map((id) => this.records.get(id.text)!.doc)
  }

  edges(record: RecordId, direction: "out" | "in", table: string | undefined): Iterable<RecordId> {
    this.edgeList ??= this.ids(() => true).flatMap((id) => {
      const { doc } = this.records.get(id.text)!
      const from = recordOf(field(doc, "in")),
        to = recordOf(field(doc, "out"))
      return from === undefined || to === undefined ? [] : [{ id, in: from, out: to }]
    })
    this.reads.add(`edges ${record.text}`)
    const end = direction === "out" ? "in" : "out"
    return this.edgeList
      .filter((edge) => edge[end].text === record.text && (table === undefined || edge.id.table === table))
      .map((edge) => edge.id)
  }

  tables(): Iterable<string> {
    return [...new Set([...this.records.values()].map(({ id }) => id.table))].sort()
  }

  private ids(wanted: (id: RecordId) => boolean): ReadonlyArray<RecordId> {
    return [...this.records.values()]
      .map(({ id }) => id)
      .filter(wanted)
      .sort(compareRecords)
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

/**
 * Compiles a query once; each call of the answer is a fresh run of it, unless nothing of what the last run read has
 * been touched.
 */
export const plainly = (
  select: Select,
  params: { readonly [name: string]: Value },
  model: Model
): ((touched: ReadonlySet<string> | undefined) => PlainResult) => {
  const run = freshly(select, params, model)
  let last: PlainResult | undefined
  let reads: ReadonlySet<string> = new Set()
  return (touched) => {
    if (last !== undefined && touched !== undefined && ![...touched].some((name) => reads.has(name))) return last
    model.reads = new Set()
    last = run()
    reads = model.reads
    return last
  }
}

const freshly = (select: Select, params: { readonly [name: string]: Value }, model: Model): (() => PlainResult) => {
  const { run } = compileSelect(select)
  return () => {
    const left: Array<LeftOut> = []
    try {
      const slices = run(
        { doc: undefined, params, parent: undefined, source: model, budget: makeBudget(1e9, "no limit") },
        left
      )
      let step = slices.next()
      while (step.done !== true) step = slices.next()
      if (select.only && step.value.length > 1) return whole
      const rows = step.value.map(
        ({ record, value }): PlainRow => ({
          record: record?.text,
          version: record && model.records.get(record.text)?.version,
          value,
          text: encode(value)
        })
      )
      return { rows, failing: new Set(left.map(({ record }) => record?.text ?? "")) }
    } catch (error) {
      if (error instanceof EvalError) return whole
      throw error
    }
  }
}

/** The query fails as a whole. */
const whole: PlainResult = { rows: [], failing: new Set([""]) }
