/**
 * Sources: the rows that tables, record ids, ranges, arrays and other values behind FROM stand for.
 *
 * Why so: what each kind of value means as a source is one rule, used by FROM and by graph steps with a SELECT of their own.
 */
import type { Expr, Select } from "./ast.ts"
import { compile } from "./evaluate.ts"
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

/** True for expressions that are the same for every row: constants, parameters and paths from them. */
const fixed = (e: Expr): boolean =>
  e.kind === "literal" || (e.kind === "param" && e.name !== "this" && e.name !== "self") || (e.kind === "idiom" && e.start !== undefined && fixed(e.start) && e.parts.every((p) => p.kind === "field"))

/** What `id` must equal for a row to pass, where the filter says so with something that is the same for every row. */
const wantedId = (where: Expr | undefined): Expr | undefined => {
  if (where?.kind !== "binary") return undefined
  if (where.op === "AND") return wantedId(where.left)
  const isId = (e: Expr): boolean => e.kind === "idiom" && e.start === undefined && e.parts.length === 1 && e.parts[0]!.kind === "field" && e.parts[0]!.name === "id"
  if (where.op !== "=") return undefined
  return isId(where.left) && fixed(where.right) ? where.right : isId(where.right) && fixed(where.left) ? where.left : undefined
}

/** Compiles the sources of a SELECT; one record is looked up, not searched for, where the filter names it first. */
export const compileSources = (select: Select): ((outer: Scope) => ReadonlyArray<Value>) => {
  const sources = select.from.map(compile)
  const [only] = select.from, id = wantedId(select.where)
  if (select.from.length !== 1 || only?.kind !== "table" || id === undefined) return (outer) => sources.map((source) => source(outer))
  const wanted = compile(id), { name } = only
  return (outer) => {
    const v = wanted(inner(outer, undefined))
    const found = v instanceof RecordId || typeof v === "string" ? recordOf(v) : undefined
    return found === undefined ? sources.map((source) => source(outer)) : found.table === name ? [found] : []
  }
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

