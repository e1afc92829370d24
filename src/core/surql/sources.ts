/**
 * Sources: the rows that tables, record ids, ranges, arrays and other values behind FROM stand for.
 *
 * Why so: what each kind of value means as a source is one rule, used by FROM and by graph steps with a SELECT of their own.
 */
import { compareKeys } from "./order.ts"
import { recordOf } from "./paths.ts"
import type { Scope } from "./scope.ts"
import { spend } from "./scope.ts"
import { RecordId, RecordRange, Range, Table, field, isObj } from "./value.ts"
import type { RecordKey, Value } from "./value.ts"

/** A row on its way through the steps. */
export interface Item {
  readonly scope: Scope
  readonly record: RecordId | undefined
  readonly value: Value
  readonly sort: ReadonlyArray<Value>
}

/** The scope of a row inside a query. */
export const inner = (outer: Scope, doc: Value): Scope => ({ doc, params: outer.params, parent: outer.doc, source: outer.source, budget: outer.budget, ...(outer.now === undefined ? {} : { now: outer.now }) })

const emit = (out: Array<Item>, outer: Scope, doc: Value, record: RecordId | undefined): void => {
  spend(outer.budget, 1)
  out.push({ scope: inner(outer, doc), record, value: undefined, sort: [] })
}

const inKeys = (range: Range, key: RecordKey): boolean => {
  const { from, to } = range
  if (from !== undefined) {
    const c = compareKeys(key, from.value as RecordKey)
    if (c < 0 || (c === 0 && !from.inclusive)) return false
  }
  if (to === undefined) return true
  const c = compareKeys(key, to.value as RecordKey)
  return c < 0 || (c === 0 && to.inclusive)
}

/** The rows one source value stands for. */
export const expand = (out: Array<Item>, outer: Scope, v: Value): void => {
  if (v === undefined || v === null) return
  if (v instanceof Table) {
    for (const doc of outer.source.rows(v.name)) emit(out, outer, doc, recordOf(field(doc, "id")))
    return
  }
  if (v instanceof RecordRange) {
    for (const doc of outer.source.rows(v.table)) {
      const id = recordOf(field(doc, "id"))
      if (id !== undefined && inKeys(v.range, id.key)) emit(out, outer, doc, id)
    }
    return
  }
  if (Array.isArray(v)) {
    for (const item of v as ReadonlyArray<Value>) expand(out, outer, item)
    return
  }
  const id = recordOf(v)
  if (id === undefined) {
    emit(out, outer, v, isObj(v) ? recordOf(field(v, "id")) : undefined)
    return
  }
  const doc = outer.source.record(id)
  if (doc !== undefined) emit(out, outer, doc, id)
}

