/**
 * SELECT as the plain evaluator runs it: source, filter, split, group or project, order, window, fetch.
 *
 * Why so: this is the law the engine is tested against, the answer to `/proxy/query`, and the engine's fallback, so it is
 * written for plainness: each step is a list to a list. A failing row fails the statement, or (D2a) is left out and named.
 * Equal sort keys are ordered by record id; without ORDER BY rows keep the order of their sources.
 */
import { Either } from "effect"
import type { Expr, Idiom, Select, Statement } from "./ast.ts"
import { compile } from "./evaluate.ts"
import { EvalError, raise } from "./failure.ts"
import type { Failure } from "./failure.ts"
import { compileGrouping } from "./group.ts"
import { aliasNames } from "./names.ts"
import { compareKeys, compareRecords, isTruthy } from "./order.ts"
import { compileParts, recordOf } from "./paths.ts"
import { print } from "./print.ts"
import { compileProjection } from "./project.ts"
import type { Budget, Compiled, Scope, Source } from "./scope.ts"
import { spend } from "./scope.ts"
import { copyOf, replaceAt, setPath } from "./shape.ts"
import { compareTerm } from "./sorting.ts"
import { toText } from "./text.ts"
import { RecordId, RecordRange, Range, Table, field, isInt, isObj } from "./value.ts"
import type { RecordKey, Value } from "./value.ts"

/** A result row and the record it comes from (`undefined` for grouped rows and values that are no record). */
export interface SelectedRow {
  readonly value: Value
  readonly record: RecordId | undefined
}

/** A row left out because an expression failed on it. */
export interface LeftOut {
  readonly record: RecordId | undefined
  readonly reason: string
}

export interface Selected {
  readonly rows: ReadonlyArray<SelectedRow>
  readonly left: ReadonlyArray<LeftOut>
}

export interface Options {
  readonly source: Source
  readonly params: { readonly [name: string]: Value }
  readonly budget: Budget
  /** What a failing row does: fail the statement (default), or be left out and listed. */
  readonly onFailure?: "fail" | "leaveOut"
}

/** A row on its way through the steps. */
interface Item {
  readonly scope: Scope
  readonly record: RecordId | undefined
  readonly value: Value
  readonly sort: ReadonlyArray<Value>
}

interface Plan {
  /** Runs the query; `given` replaces its sources (graph steps). `left` collects failing rows instead of failing. */
  readonly run: (outer: Scope, left: Array<LeftOut> | undefined, given?: ReadonlyArray<Value>) => Array<SelectedRow>
}

const inner = (outer: Scope, doc: Value): Scope => ({ doc, params: outer.params, parent: outer.doc, source: outer.source, budget: outer.budget })

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
const expand = (out: Array<Item>, outer: Scope, v: Value): void => {
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

/** Keeps what `step` gives; a failing row fails the query or is left out. */
const each = (items: ReadonlyArray<Item>, left: Array<LeftOut> | undefined, step: (item: Item) => Item | undefined): Array<Item> => {
  const out: Array<Item> = []
  for (const item of items) {
    try {
      const next = step(item)
      if (next !== undefined) out.push(next)
    } catch (error) {
      if (left === undefined || !(error instanceof EvalError)) throw error
      spend(item.scope.budget, 1)
      left.push({ record: item.record, reason: error.reason })
    }
  }
  return out
}

/** SPLIT on a path of the document (SELECT VALUE): a row per element, which takes the array's place. */
const docSplitter = (idiom: Idiom) => {
  const read = compileParts(idiom.parts)
  return (item: Item): ReadonlyArray<Item> => {
    const found = read(item.scope.doc, item.scope)
    if (!Array.isArray(found)) return [item]
    return (found as ReadonlyArray<Value>).map((element) => ({ ...item, scope: { ...item.scope, doc: replaceAt(item.scope.doc, idiom.parts, () => element) } }))
  }
}

/** SPLIT on a path of the projected row. */
const rowSplitter = (idiom: Idiom) => {
  const names = aliasNames(idiom), read = atOutput(idiom), steps = compileParts(idiom.parts)
  return (item: Item): ReadonlyArray<Item> => {
    const plain = read(item)
    const found = plain === undefined ? steps(item.value, item.scope) : plain
    if (!Array.isArray(found) || !isObj(item.value)) return [item]
    const row = item.value
    return (found as ReadonlyArray<Value>).map((element) => {
      const copy = copyOf(row)
      setPath(copy, names, element)
      return { ...item, value: copy }
    })
  }
}

const whole = (clause: "LIMIT" | "START", v: Value): number =>
  isInt(v) && v >= 0 ? Number(v) : raise(`Found ${toText(v)} but the ${clause} clause must evaluate to a positive integer`)

interface SortReader {
  /** Looks into the projected row rather than the document. */
  readonly fromRow: boolean
  readonly read: (item: Item) => Value
}

/** Reads a sort value: inside the row where the path starts with an alias, else from the document. */
const sortReader = (select: Select, idiom: Idiom): SortReader => {
  const text = print(idiom)
  if (select.group !== undefined || (select.split.length > 0 && !select.value)) {
    return { fromRow: true, read: select.value ? (item) => item.value : atOutput(idiom) }
  }
  for (const f of select.fields) {
    if (f.kind !== "expr" || f.alias === undefined) continue
    const alias = print(f.alias)
    if (alias === text) return fromDoc(compile(f.expr))
    if (text.startsWith(alias + ".") || text.startsWith(alias + "[")) return { fromRow: true, read: atOutput(idiom) }
  }
  for (const f of select.fields) {
    if (f.kind === "expr" && f.alias === undefined && print(f.expr) !== text && f.expr.kind !== "idiom" && fieldNames(f.expr) === text) return fromDoc(compile(f.expr))
  }
  const steps = compileParts(idiom.parts)
  return { fromRow: false, read: (item) => steps(item.scope.doc, item.scope) }
}

const fromDoc = (value: Compiled): SortReader => ({ fromRow: false, read: (item) => value(item.scope) })

const fieldNames = (e: Expr): string => (e.kind === "call" ? e.name : "")

/** Output rows nest by the names of a path. */
const atOutput = (idiom: Idiom): ((item: Item) => Value) => {
  const names = aliasNames(idiom)
  return (item) => names.reduce<Value>((v, name) => (isObj(v) ? field(v, name) : undefined), item.value)
}

const fetching = (select: Select) => {
  const load = (scope: Scope) => (v: Value): Value => {
    if (Array.isArray(v)) return (v as ReadonlyArray<Value>).map(load(scope))
    const id = recordOf(v)
    if (id === undefined) return v
    spend(scope.budget, 1)
    return scope.source.record(id)
  }
  return (value: Value, scope: Scope): Value => select.fetch.reduce<Value>((row, idiom) => {
    let out = row
    for (let n = 1; n <= idiom.parts.length; n++) if (idiom.parts[n - 1]!.kind === "field" || n === idiom.parts.length) out = replaceAt(out, idiom.parts.slice(0, n), load(scope))
    return out
  }, value)
}

/** Compiles a SELECT once; the plan may be run any number of times. */
export const compileSelect = (select: Select): Plan => {
  const sources = select.from.map(compile)
  const where = select.where && compile(select.where)
  const docSplits = select.value ? select.split.map(docSplitter) : []
  const rowSplits = select.value ? [] : select.split.map(rowSplitter)
  const grouping = select.group === undefined ? undefined : compileGrouping(select, select.group)
  const { project } = grouping === undefined ? compileProjection(select) : { project: undefined }
  const order = select.order.map((term) => ({ ...sortReader(select, term.idiom), compare: compareTerm(term) }))
  const limit = select.limit && compile(select.limit), start = select.start && compile(select.start)
  const fetch = select.fetch.length === 0 ? undefined : fetching(select)
  const filter = where === undefined ? undefined : compileFilter(where)
  // Where nothing but the window decides which rows are shown, only those are projected, so that only those can fail.
  const lazy = grouping === undefined && rowSplits.length === 0 && order.every((o) => !o.fromRow)
  const windowFirst = (outer: Scope, given: ReadonlyArray<Value> | undefined): Array<SelectedRow> => {
    const from = start === undefined ? 0 : whole("START", start(outer))
    const count = limit === undefined ? Infinity : whole("LIMIT", limit(outer))
    let items: Array<Item> = []
    if (given === undefined) for (const source of sources) expand(items, outer, source(outer))
    else for (const v of given) expand(items, outer, v)
    if (filter !== undefined) items = items.filter((item) => filter(item) !== undefined)
    for (const split of docSplits) items = items.flatMap(split)
    if (order.length > 0) items = sorted(items.map((item) => ({ ...item, sort: order.map((o) => o.read(item)) })), order)
    if (from > 0 || count !== Infinity) items = items.slice(from, from + count)
    return items.map((item) => {
      const row = project!(item.scope)
      return { value: fetch === undefined ? row : fetch(row, outer), record: item.record }
    })
  }
  return {
    run: (outer, left, given) => {
      if (lazy && left === undefined) return windowFirst(outer, given)
      let items: Array<Item> = []
      if (given === undefined) for (const source of sources) expand(items, outer, source(outer))
      else for (const v of given) expand(items, outer, v)
      if (filter !== undefined) items = each(items, left, filter)
      for (const split of docSplits) items = items.flatMap(split)
      if (grouping !== undefined) items = grouped(grouping, items, outer, left)
      else items = each(items, left, (item) => ({ ...item, value: project!(item.scope) }))
      for (const split of rowSplits) items = items.flatMap(split)
      if (order.length > 0) items = sorted(each(items, left, (item) => ({ ...item, sort: order.map((o) => o.read(item)) })), order)
      const from = start === undefined ? 0 : whole("START", start(outer))
      const count = limit === undefined ? Infinity : whole("LIMIT", limit(outer))
      if (from > 0 || count !== Infinity) items = items.slice(from, from + count)
      return items.map((item) => ({ value: fetch === undefined ? item.value : fetch(item.value, outer), record: item.record }))
    }
  }
}

const compileFilter = (where: Compiled) => (item: Item): Item | undefined => (isTruthy(where(item.scope)) ? item : undefined)

const grouped = (grouping: ReturnType<typeof compileGrouping>, items: ReadonlyArray<Item>, outer: Scope, left: Array<LeftOut> | undefined): Array<Item> => {
  const keys = new Map<Item, ReadonlyArray<Value>>()
  const kept = each(items, left, (item) => {
    keys.set(item, grouping.key(item.scope))
    return item
  })
  const rows = grouping.rows(kept.map((item) => ({ scope: item.scope, key: keys.get(item)! })), outer)
  return rows.map((value) => ({ scope: inner(outer, value), record: undefined, value, sort: [] }))
}

const sorted = (items: Array<Item>, order: ReadonlyArray<{ readonly compare: (a: Value, b: Value) => number }>): Array<Item> =>
  items.sort((a, b) => {
    for (let i = 0; i < order.length; i++) {
      const c = order[i]!.compare(a.sort[i], b.sort[i])
      if (c !== 0) return c
    }
    return a.record !== undefined && b.record !== undefined ? compareRecords(a.record, b.record) : 0
  })

const value = (select: Select, rows: ReadonlyArray<SelectedRow>): Value => {
  if (!select.only) return rows.map((row) => row.value)
  return rows.length > 1 ? raise("Expected a single result output when using the ONLY keyword") : rows[0]?.value
}

/** A statement as an expression (subqueries). */
export const compileStatement = (statement: Statement): Compiled => {
  if (statement.kind === "return") return compile(statement.value)
  if (statement.kind !== "select") return () => raise("INFO is not allowed here")
  const plan = lazily(() => compileSelect(statement))
  return (scope) => value(statement, plan().run(scope, undefined))
}

/** A SELECT over records that are given (graph steps), in their order. */
export const compileSelectOver = (select: Select): ((records: ReadonlyArray<Value>, scope: Scope) => Value) => {
  const plan = lazily(() => compileSelect(select))
  return (records, scope) => value(select, plan().run(scope, undefined, records))
}

const lazily = <A>(make: () => A): (() => A) => {
  let made: A | undefined
  return () => (made ??= make())
}

const attempt = <A>(body: () => A): Either.Either<A, Failure> => {
  try {
    return Either.right(body())
  } catch (error) {
    if (error instanceof EvalError) return Either.left({ reason: error.reason })
    if (error instanceof RangeError && /call stack/.test(error.message)) return Either.left({ reason: "The query recurses too deep" })
    throw error
  }
}

const scopeOf = (options: Options): Scope => ({ doc: undefined, params: options.params, parent: undefined, source: options.source, budget: options.budget })

/** Runs a SELECT and says for each row which record it comes from. Error: why it failed. */
export const selectRows = (select: Select, options: Options): Either.Either<Selected, Failure> => attempt(() => {
  const left: Array<LeftOut> = []
  const rows = compileSelect(select).run(scopeOf(options), options.onFailure === "leaveOut" ? left : undefined)
  if (select.only && rows.length > 1) raise("Expected a single result output when using the ONLY keyword")
  return { rows, left }
})

/** Runs any statement. Error: why it failed, in the database's words. */
export const evaluate = (statement: Statement, options: Options): Either.Either<Value, Failure> => {
  if (statement.kind === "select") return Either.flatMap(selectRows(statement, options), ({ rows }) => attempt(() => value(statement, rows)))
  return attempt(() => {
    if (statement.kind === "return") return compile(statement.value)(scopeOf(options))
    return statement.kind === "infoDb" ? infoDb(options.source) : infoTable(options.source, statement.table)
  })
}

/** `INFO FOR DB`: the tables by name (D28). */
const infoDb = (source: Source): Value => ({ tables: Object.fromEntries(Array.from(source.tables?.() ?? [], (name) => [name, `DEFINE TABLE ${name} TYPE ANY SCHEMALESS PERMISSIONS NONE`])) })

/** `INFO FOR TABLE`: the known fields as definitions (D28). */
const infoTable = (source: Source, table: string): Value => ({
  events: {}, indexes: {}, lives: {}, tables: {},
  fields: Object.fromEntries(Object.entries(source.fields?.(table) ?? {}).map(([name, type]) => [name, `DEFINE FIELD ${name} ON ${table} TYPE ${type} PERMISSIONS FULL`]))
})
