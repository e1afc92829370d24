/**
 * Sources: the rows of tables, record ids, ranges, arrays and other values after FROM.
 *
 * Why so: FROM and graph steps with a SELECT of their own share one rule for each kind of value.
 */
import { type Expr, rowParams, type Select } from "../../syntax/ast.ts"
import { decimal, isNumber, type NumberValue, toDecimal, toFloat } from "../../values/number.ts"
import { compare, compareKeys, compareStored, isComposite } from "../../values/order.ts"
import * as Ids from "../../values/recordId.ts"
import type { Bound, Obj, RecordKey, Value } from "../../values/value.ts"
import {
  Datetime,
  Decimal,
  float,
  int,
  isObj,
  Range,
  RecordId,
  RecordRange,
  SetValue,
  setField,
  Table
} from "../../values/value.ts"
import { canFail, compile } from "../evaluate.ts"
import { chargedRecordOf, idOfTable, recordIn } from "../paths.ts"
import type { Compiled, Scope } from "../scope.ts"

/** A row in the pipeline of a SELECT. */
export interface Item {
  readonly scope: Scope
  readonly record: RecordId | undefined
  readonly value: Value
  readonly sort: ReadonlyArray<Value>
  /** The key values of a grouped row. */
  readonly group?: ReadonlyArray<Value>
}

/** The scope of a row inside a query. */
export const scopeIn = (outer: Scope, doc: Value): Scope => {
  const { budget, detached, now, params, source } = outer
  const parent = detached === true ? outer.parent : outer.doc
  return now === undefined ? { doc, params, parent, source, budget } : { doc, params, parent, source, budget, now }
}

const noSort: ReadonlyArray<Value> = []

/** A row that was read: its record is its own id. */
export const itemOf = (outer: Scope, doc: Value): Item => ({
  scope: scopeIn(outer, doc),
  record: recordIn(doc),
  value: undefined,
  sort: noSort
})

/** Whether a key lies in a range of keys. */
export const isInRange = ({ from, to }: Range, key: RecordKey): boolean => {
  if (from !== undefined) {
    const c = compareKeys(key, from.value as RecordKey)
    if (c < 0 || (c === 0 && !from.inclusive)) return false
  }
  if (to === undefined) return true
  const c = compareKeys(key, to.value as RecordKey)
  return c < 0 || (c === 0 && to.inclusive)
}

function* filtered(docs: Iterable<Obj>, range: Range): Iterable<Obj> {
  for (const doc of docs) {
    const id = recordIn(doc)
    if (id !== undefined && isInRange(range, id.key)) yield doc
  }
}

function* several(scope: Scope, items: ReadonlyArray<Value>): Iterable<Value> {
  for (const item of items) yield* rowsOf(scope, item)
}

const nothing: ReadonlyArray<Value> = []

/** The rows of one source value, read lazily. */
export const rowsOf = (scope: Scope, v: Value): Iterable<Value> => {
  const { source } = scope
  if (v === undefined || v === null) return nothing
  if (v instanceof Table) return source.rows(v.name)
  if (v instanceof RecordRange) return source.rowsBetween?.(v.table, v.range) ?? filtered(source.rows(v.table), v.range)
  if (Array.isArray(v)) return several(scope, v as ReadonlyArray<Value>)
  const id = chargedRecordOf(v, scope)
  if (id === undefined) return [v]
  const doc = source.record(id)
  return doc === undefined ? nothing : [doc]
}

/** Whether an expression is the same for every row: constants, parameters and paths from them. */
export const isSameForAllRows = (e: Expr): boolean =>
  e.kind === "literal" ||
  (e.kind === "param" && !rowParams.has(e.name)) ||
  (e.kind === "idiom" && e.start !== undefined && isSameForAllRows(e.start) && e.parts.every((p) => p.kind === "field"))

/** The bare path `id`. */
export const isId = (e: Expr): boolean =>
  e.kind === "idiom" &&
  e.start === undefined &&
  e.parts.length === 1 &&
  e.parts[0]!.kind === "field" &&
  e.parts[0]!.name === "id"

const turned: { readonly [op: string]: string } = { "=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<=" }

interface IdTerm {
  readonly op: string
  readonly value: Compiled
}

/** The comparison of `id` with a value that is the same for every row. */
const idTerm = (e: Expr): IdTerm | undefined => {
  if (e.kind !== "binary") return undefined
  const op = turned[e.op]
  if (op === undefined) return undefined
  return isId(e.left) && isSameForAllRows(e.right)
    ? { op: e.op, value: compile(e.right) }
    : isId(e.right) && isSameForAllRows(e.left)
      ? { op, value: compile(e.left) }
      : undefined
}

export const conjuncts = (e: Expr | undefined): ReadonlyArray<Expr> =>
  e === undefined ? [] : e.kind === "binary" && e.op === "AND" ? [...conjuncts(e.left), ...conjuncts(e.right)] : [e]

/**
 * The comparisons of `id` that every row must pass before any other part of the filter can fail on it: excluded rows
 * need not be read.
 */
export const idTerms = (where: Expr | undefined): ReadonlyArray<IdTerm> => {
  const parts = conjuncts(where)
  const first = parts.findIndex((part) => canFail(part))
  return (first < 0 ? parts : parts.slice(0, first)).flatMap((part) => idTerm(part) ?? [])
}

/** Of all numbers equal to `n`, the one that tables order first (`low`) or last. */
const outermost = (n: NumberValue, low: boolean): Value => {
  const exact = toDecimal(n instanceof Decimal ? n.value : n)
  const whole = exact.isInteger() && exact.abs().lt("9223372036854775807") ? [int(BigInt(exact.toFixed()))] : []
  const kinds: ReadonlyArray<Value> = [...whole, float(toFloat(n)), decimal(exact), n]
  return kinds
    .filter((kind) => kind !== undefined && compare(kind, n) === 0)
    .reduce((a, b) => (compareStored(a, b) < 0 === low ? a : b))
}

/**
 * A bound that is safe for tables, which order numbers of different kinds, and datetimes within a second, differently
 * from values ({@link compareKeys}): no key that passes the comparison lies outside of it.
 */
const widened = (v: Value, low: boolean): Value => {
  if (isNumber(v)) return outermost(v, low)
  // As text a whole second sorts last in its second: safe bounds are the second before, and 1 ns into the next.
  if (v instanceof Datetime) return low ? new Datetime(v.seconds - 1, 0) : new Datetime(v.seconds + 1, 1)
  if (v instanceof RecordId)
    return Ids.make(v.table, isComposite(v) ? (widened(v.key as Value, low) as RecordKey) : v.key)
  if (v instanceof SetValue) return new SetValue(v.items.map((item) => widened(item, low)))
  if (Array.isArray(v)) return (v as ReadonlyArray<Value>).map((item) => widened(item, low))
  if (!isObj(v)) return v
  const out: Record<string, Value> = {}
  for (const name of Object.keys(v)) setField(out, name, widened(v[name], low))
  return out
}

const tighter = (a: Bound | undefined, b: Bound, direction: 1 | -1): Bound => {
  if (a === undefined) return b
  const c = direction * compareKeys(a.value as RecordKey, b.value as RecordKey)
  return c < 0 || (c === 0 && !b.inclusive) ? b : a
}

/** A source narrowed by the comparisons of ids: one record, nothing, a range of keys, or the whole table. */
const narrowed = (table: Table, terms: ReadonlyArray<IdTerm>, scope: Scope): Value => {
  let from: Bound | undefined, to: Bound | undefined
  for (const { op, value } of terms) {
    const v = idOfTable(value(scope), table.name)
    if (op === "=") {
      const id = chargedRecordOf(v, scope)
      if (id !== undefined) return id.table === table.name ? id : undefined
    } else if (v instanceof RecordId && v.table === table.name) {
      const low = op.startsWith(">")
      const bound = isComposite(v)
        ? { value: widened(v.key as Value, low), inclusive: true }
        : { value: v.key as Value, inclusive: op.length === 2 }
      if (low) from = tighter(from, bound, 1)
      else to = tighter(to, bound, -1)
    }
  }
  return from === undefined && to === undefined ? table : new RecordRange(table.name, new Range(from, to))
}

/**
 * Compiles the sources of a SELECT. Of a single table whose ids the filter compares first, only records that can pass
 * are read: by look-up or as a range of keys. The filter still runs on them.
 */
export const compileSources = (select: Select): ReadonlyArray<Compiled> => {
  const [only] = select.from
  const terms = select.from.length === 1 && only?.kind === "table" ? idTerms(select.where) : []
  if (only?.kind !== "table" || terms.length === 0) return select.from.map(compile)
  const table = new Table(only.name)
  return [(around) => narrowed(table, terms, { ...around, doc: undefined })]
}

/** Whether rows come in the order of their ids: from one table or a range of it. */
export const inKeyOrder = ({ from: [only, ...others] }: Select): boolean =>
  others.length === 0 &&
  (only?.kind === "table" ||
    only?.kind === "recordRange" ||
    (only?.kind === "literal" && only.value instanceof RecordRange))
