/**
 * SELECT as the plain evaluator runs it: source, filter, split, group or project, order, window, fetch.
 *
 * Why so: this is the law the engine is tested against, the answer to `/proxy/query`, and the engine's fallback, so it is
 * written for plainness: each step is a list to a list. A failing row fails the statement, or (D2a) is left out and named.
 * Equal sort keys are ordered by record id; without ORDER BY rows keep the order of their sources. A run is a generator that
 * yields every few hundred rows, so that a host may let other work in between.
 */
import { Either } from "effect"
import type { Select, Statement } from "./ast.ts"
import { compile } from "./evaluate.ts"
import { EvalError, raise } from "./failure.ts"
import type { Failure } from "./failure.ts"
import { compileGrouping } from "./group.ts"
import type { Grouping } from "./group.ts"
import { isTruthy } from "./order.ts"
import { compileProjection } from "./project.ts"
import { compileSort, docSplitter, fetching, rowSplitter, sorted } from "./reshape.ts"
import type { Budget, Compiled, Scope, Source } from "./scope.ts"
import { spend } from "./scope.ts"
import { compileSources, expand, inner } from "./sources.ts"
import type { Item } from "./sources.ts"
import { toText } from "./text.ts"
import { RecordId, isInt } from "./value.ts"
import type { Datetime, Value } from "./value.ts"

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
  /** The present, for `time::now()`; without it such calls fail. */
  readonly now?: Datetime
  /** What a failing row does: fail the statement (default), or be left out and listed. */
  readonly onFailure?: "fail" | "leaveOut"
}

/** A run that pauses: yields between slices of rows, returns its result. */
export type Slices<A> = Generator<undefined, A, void>

interface Plan {
  /** Runs the query; `given` replaces its sources (graph steps). `left` collects failing rows instead of failing. */
  readonly run: (outer: Scope, left: Array<LeftOut> | undefined, given?: ReadonlyArray<Value>) => Slices<Array<SelectedRow>>
}

/** Rows between two pauses. */
const sliceRows = 256

/** Runs to the end without pausing. */
const drain = <A>(slices: Slices<A>): A => {
  for (;;) {
    const step = slices.next()
    if (step.done === true) return step.value
  }
}

/** Keeps what `step` gives; a failing row fails the query or is left out. */
function* each(items: ReadonlyArray<Item>, left: Array<LeftOut> | undefined, step: (item: Item) => Item | undefined): Slices<Array<Item>> {
  const out: Array<Item> = []
  for (let i = 0; i < items.length; i++) {
    if (i % sliceRows === sliceRows - 1) yield
    const item = items[i]!
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

const whole = (clause: "LIMIT" | "START", v: Value): number =>
  isInt(v) && v >= 0 ? Number(v) : raise(`Found ${toText(v)} but the ${clause} clause must evaluate to a positive integer`)

const filterStep = (where: Compiled) => (item: Item): Item | undefined => (isTruthy(where(item.scope)) ? item : undefined)

function* grouped(grouping: Grouping, items: ReadonlyArray<Item>, outer: Scope, left: Array<LeftOut> | undefined): Slices<Array<Item>> {
  const keys = new Map<Item, ReadonlyArray<Value>>()
  const kept = yield* each(items, left, (item) => {
    keys.set(item, grouping.key(item.scope))
    return item
  })
  const rows = grouping.rows(kept.map((item) => ({ scope: item.scope, key: keys.get(item)! })), outer)
  return rows.map((value) => ({ scope: inner(outer, value), record: undefined, value, sort: [] }))
}

/** Compiles a SELECT once; the plan may be run any number of times. */
export const compileSelect = (select: Select): Plan => {
  const sources = compileSources(select)
  const filter = select.where && filterStep(compile(select.where))
  const docSplits = select.value ? select.split.map(docSplitter) : []
  const rowSplits = select.value ? [] : select.split.map(rowSplitter)
  const grouping = select.group === undefined ? undefined : compileGrouping(select, select.group)
  const { project } = grouping === undefined ? compileProjection(select) : { project: undefined }
  const order = select.order.map((term) => compileSort(select, term))
  const limit = select.limit && compile(select.limit), start = select.start && compile(select.start)
  const fetch = select.fetch.length === 0 ? undefined : fetching(select)
  const projected = (item: Item): Item => ({ ...item, value: project!(item.scope) })
  const withSort = (item: Item): Item => ({ ...item, sort: order.map((o) => o.read(item)) })
  const window = (items: Array<Item>, outer: Scope): Array<Item> => {
    const from = start === undefined ? 0 : whole("START", start(outer))
    const count = limit === undefined ? Infinity : whole("LIMIT", limit(outer))
    return from > 0 || count !== Infinity ? items.slice(from, from + count) : items
  }
  // Where nothing but the window decides which rows are shown, only those are projected, so that only those can fail.
  const windowFirst = grouping === undefined && rowSplits.length === 0 && order.every((o) => !o.fromRow)
  return {
    run: function* (outer, left, given) {
      let items: Array<Item> = []
      // Sources and bounds of a subquery see the row around it, as `$this` and as `$parent`.
      const around = outer.parent === outer.doc ? outer : inner(outer, outer.doc)
      for (const v of given ?? sources(around)) expand(items, outer, v)
      if (filter !== undefined) items = yield* each(items, left, filter)
      for (const split of docSplits) items = items.flatMap(split)
      const late = windowFirst && left === undefined
      if (grouping !== undefined) items = yield* grouped(grouping, items, outer, left)
      else if (!late) items = yield* each(items, left, projected)
      for (const split of rowSplits) items = items.flatMap(split)
      if (order.length > 0) items = sorted(yield* each(items, left, withSort), order)
      items = window(items, around)
      if (late) items = yield* each(items, left, projected)
      return items.map((item) => ({ value: fetch === undefined ? item.value : fetch(item.value, outer), record: item.record }))
    }
  }
}

const value = (select: Select, rows: ReadonlyArray<SelectedRow>): Value => {
  if (!select.only) return rows.map((row) => row.value)
  return rows.length > 1 ? raise("Expected a single result output when using the ONLY keyword") : rows[0]?.value
}

/** A statement as an expression (subqueries). */
export const compileStatement = (statement: Statement): Compiled => {
  if (statement.kind === "return") return compile(statement.value)
  if (statement.kind !== "select") return () => raise("INFO is not allowed here")
  const plan = lazily(() => compileSelect(statement))
  return (scope) => value(statement, drain(plan().run(scope, undefined)))
}

/** A SELECT over records that are given (graph steps), in their order. */
export const compileSelectOver = (select: Select): ((records: ReadonlyArray<Value>, scope: Scope) => Value) => {
  const plan = lazily(() => compileSelect(select))
  return (records, scope) => value(select, drain(plan().run(scope, undefined, records)))
}

const lazily = <A>(make: () => A): (() => A) => {
  let made: A | undefined
  return () => (made ??= make())
}

function* attempt<A>(body: () => Slices<A>): Slices<Either.Either<A, Failure>> {
  try {
    return Either.right(yield* body())
  } catch (error) {
    if (error instanceof EvalError) return Either.left({ reason: error.reason })
    if (error instanceof RangeError && /call stack/.test(error.message)) return Either.left({ reason: "The query recurses too deep" })
    throw error
  }
}

const scopeOf = (options: Options): Scope => ({
  doc: undefined, params: options.params, parent: undefined, source: options.source, budget: options.budget, ...(options.now === undefined ? {} : { now: options.now })
})

/** {@link selectRows}, pausing between slices of rows. */
export const selectRowsSliced = (select: Select, options: Options): Slices<Either.Either<Selected, Failure>> => attempt(function* () {
  const left: Array<LeftOut> = []
  const rows = yield* compileSelect(select).run(scopeOf(options), options.onFailure === "leaveOut" ? left : undefined)
  if (select.only && rows.length > 1) raise("Expected a single result output when using the ONLY keyword")
  return { rows, left }
})

/** Runs a SELECT and says for each row which record it comes from. Error: why it failed. */
export const selectRows = (select: Select, options: Options): Either.Either<Selected, Failure> => drain(selectRowsSliced(select, options))

/** {@link evaluate}, pausing between slices of rows, so that the host may do other work in between. */
export const evaluateSliced = (statement: Statement, options: Options): Slices<Either.Either<Value, Failure>> => attempt(function* () {
  switch (statement.kind) {
    case "select": return value(statement, yield* compileSelect(statement).run(scopeOf(options), options.onFailure === "leaveOut" ? [] : undefined))
    case "return": return compile(statement.value)(scopeOf(options))
    case "infoDb": return infoDb(options.source)
    case "infoTable": return infoTable(options.source, statement.table)
  }
})

/** Runs any statement. Error: why it failed, in the database's words. */
export const evaluate = (statement: Statement, options: Options): Either.Either<Value, Failure> => drain(evaluateSliced(statement, options))

/** `INFO FOR DB`: the tables by name (D28). */
const infoDb = (source: Source): Value => ({ tables: Object.fromEntries(Array.from(source.tables?.() ?? [], (name) => [name, `DEFINE TABLE ${name} TYPE ANY SCHEMALESS PERMISSIONS NONE`])) })

/** `INFO FOR TABLE`: the known fields as definitions (D28). */
const infoTable = (source: Source, table: string): Value => ({
  events: {}, indexes: {}, lives: {}, tables: {},
  fields: Object.fromEntries(Object.entries(source.fields?.(table) ?? {}).map(([name, type]) => [name, `DEFINE FIELD ${name} ON ${table} TYPE ${type} PERMISSIONS FULL`]))
})
