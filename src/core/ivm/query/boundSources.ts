/**
 * Where the rows of one view come from: whole tables, ranges of records, single records, in the order written.
 *
 * A record belongs to at most one source, so that its id names its row. Overlapping sources (a record twice, a table
 * and a part of it) are declined, and the view is recomputed.
 */

import { recordOf } from "../../surql/evaluate/paths.ts"
import { isInRange } from "../../surql/evaluate/select/sources.ts"
import type { Expr } from "../../surql/syntax/ast.ts"
import { type Range, RecordId, RecordRange, Table, type Value } from "../../surql/values/value.ts"
import { isLive, type Live } from "../store/recordSlot.ts"
import type { Store } from "../store/store.ts"
import type { Params } from "./lift.ts"
import type { Declined } from "./shape.ts"

interface TableSlot {
  readonly table: string
  readonly range: Range | undefined
  readonly sourceIndex: number
}

/** The sources of one view. */
export class BoundSources {
  /** Whole tables and ranges. */
  readonly scanned: ReadonlyArray<TableSlot>
  /** Single records, by text. */
  readonly records: ReadonlyMap<string, { readonly id: RecordId; readonly sourceIndex: number }>

  constructor(
    scanned: ReadonlyArray<TableSlot>,
    records: ReadonlyMap<string, { readonly id: RecordId; readonly sourceIndex: number }>
  ) {
    this.scanned = scanned
    this.records = records
  }

  tables(): ReadonlySet<string> {
    return new Set([
      ...this.scanned.map((slot) => slot.table),
      ...[...this.records.values()].map((slot) => slot.id.table)
    ])
  }

  /** All rows come from one range of one table, in the order of their keys. */
  get isOneRange(): boolean {
    return this.scanned.length === 1 && this.records.size === 0
  }

  /** Position of the source that a record belongs to; undefined for none. */
  of(id: RecordId): number | undefined {
    const single = this.records.get(id.text)
    if (single !== undefined) return single.sourceIndex
    for (const { range, sourceIndex, table } of this.scanned)
      if (table === id.table && (range === undefined || isInRange(range, id.key))) return sourceIndex
    return undefined
  }

  /** All rows, in no particular order. */
  *rows(store: Store): Iterable<Live> {
    for (const { range, table } of this.scanned) {
      yield* range === undefined ? store.rows(table) : store.liveBetween(table, range)
    }
    for (const { id } of this.records.values()) {
      const slot = store.slotOf(id)
      if (isLive(slot)) yield slot
    }
  }
}

export const boundSourcesOf = (sources: ReadonlyArray<Expr>, params: Params): BoundSources | Declined => {
  const scanned: Array<TableSlot> = []
  const records = new Map<string, { readonly id: RecordId; readonly sourceIndex: number }>()
  let sourceIndex = 0
  const add = (value: Value): string | undefined => {
    if (value === undefined || value === null) return undefined
    if (Array.isArray(value)) return (value as ReadonlyArray<Value>).map(add).find((reason) => reason !== undefined)
    if (value instanceof Table || value instanceof RecordRange) {
      const table = value instanceof Table ? value.name : value.table
      if (overlaps(table, undefined)) return `the sources in ${table} may overlap`
      scanned.push({ table, range: value instanceof Table ? undefined : value.range, sourceIndex: sourceIndex++ })
      return undefined
    }
    const id = value instanceof RecordId || typeof value === "string" ? recordOf(value) : undefined
    if (id === undefined) return "a source is a value and no record"
    if (overlaps(id.table, id)) return `the sources in ${id.table} may overlap`
    records.set(id.text, { id, sourceIndex: sourceIndex++ })
    return undefined
  }
  const overlaps = (table: string, id: RecordId | undefined): boolean =>
    scanned.some((other) => other.table === table) ||
    (id === undefined ? [...records.values()].some((other) => other.id.table === table) : records.has(id.text))
  for (const source of sources) {
    const reason = add(
      source.kind === "table" ? new Table(source.name) : source.kind === "param" ? params[source.name] : undefined
    )
    if (reason !== undefined) return { reason }
  }
  return new BoundSources(scanned, records)
}
