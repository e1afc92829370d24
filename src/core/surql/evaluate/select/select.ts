/**
 * SELECT as the plain evaluator runs it: source, filter, split, group or project, order, window, fetch.
 *
 * Why so: this is the reference that the engine is tested against, the answer to `/proxy/query`, and the engine's
 * fallback, so it is written for plainness: each step maps a list to a list. A failing row fails the statement, or
 * (D2a) is left out and named. Equal sort keys are ordered by record id; without ORDER BY rows keep the order of their
 * sources. A run is a generator that yields every few hundred rows, so that a host may let other work in between; rows
 * behind the window are not read.
 */
import { Either } from "effect"
import type { Expr, Select, Statement } from "../../syntax/ast.ts"
import { stepsOf } from "../../syntax/print.ts"
import { isTruthy } from "../../values/order.ts"
import { toText } from "../../values/text.ts"
import type { Datetime, Value } from "../../values/value.ts"
import { isInt, type RecordId } from "../../values/value.ts"
import { keepValue } from "../charge.ts"
import { canFail, compile, compileReturn } from "../evaluate.ts"
import type { Failure } from "../failure.ts"
import { EvalError, failureOf, ownText, raise } from "../failure.ts"
import { recordIn } from "../paths.ts"
import type { Budget, Compiled, Scope, Slices, Source } from "../scope.ts"
import { beginRow, drain, endRows, keepBytes, limits, spendBytes, spendSteps } from "../scope.ts"
import type { GroupCollector } from "./group.ts"
import { compileGrouping } from "./group.ts"
import { infoDb, infoTable } from "./info.ts"
import { compileProjection } from "./project.ts"
import { compileFetch, compileSort, docSplitter, rowSplitter, type Sort, sorted } from "./reshape.ts"
import { RowSubqueries, runInRow } from "./rowSubqueries.ts"
import type { Item } from "./sources.ts"
import { compileSources, inKeyOrder, isId, itemOf, rowsOf, scopeIn } from "./sources.ts"

/** A result row and the record it comes from (`undefined` for grouped rows and values that are no record). */
export interface SelectedRow {
  readonly value: Value
  readonly record: RecordId | undefined
  /** The key values of a grouped row. */
  readonly group?: ReadonlyArray<Value>
}

/** A row, or (without a record) a group, left out because an expression failed on it. */
export interface LeftOut {
  readonly record: RecordId | undefined
  readonly failure: Failure
}

interface Selected {
  readonly rows: ReadonlyArray<SelectedRow>
  readonly left: ReadonlyArray<LeftOut>
}

export interface Options {
  readonly source: Source
  readonly params: { readonly [name: string]: Value }
  readonly budget: Budget
  /** Time for `time::now()`; without it such calls fail. */
  readonly now?: Datetime
  /** Most rows of the result; more is a failure that names the setting. */
  readonly maxRows?: number
  /** Treatment of a row that fails: the statement fails (default), or the row is left out and listed. */
  readonly onFailure?: "fail" | "leaveOut"
}

interface Plan {
  /** Runs the query; `given` replaces its sources (graph steps). `left` collects failing rows instead of failing. */
  readonly run: (
    outer: Scope,
    left: Array<LeftOut> | undefined,
    given?: ReadonlyArray<Value>
  ) => Slices<Array<SelectedRow>>
}

/** Most rows, and steps, between two pauses. */
const sliceRows = 256
const sliceSteps = 4096

/** When to pause next: after a number of rows, or sooner if rows are expensive. */
interface Pace {
  rows: number
  mark: number
  readonly budget: Budget
  /** Each row has its own share of the budget; inside another row's evaluation (a subquery) that share applies. */
  readonly outermost: boolean
}

const pace = (budget: Budget): Pace => ({
  rows: sliceRows,
  mark: budget.left - sliceSteps,
  budget,
  outermost: budget.floor === 0
})

/** Counts a new row; answers true if a pause is due before it. */
const due = (p: Pace): boolean => {
  if (p.outermost) beginRow(p.budget)
  if (--p.rows > 0 && p.budget.left > p.mark) return false
  p.rows = sliceRows
  p.mark = p.budget.left - sliceSteps
  return true
}

const done = (p: Pace): void => {
  if (p.outermost) endRows(p.budget)
}

/** A failing row fails the query or is left out. */
const leaveOut = (error: unknown, left: Array<LeftOut> | undefined, record: RecordId | undefined, p: Pace): void => {
  if (left === undefined || !(error instanceof EvalError)) throw error
  done(p)
  spendSteps(p.budget, 1)
  left.push({ record, failure: error })
}

/** Calls `step` for each item, and collects its results. */
function* each<A>(
  items: ReadonlyArray<Item>,
  outer: Scope,
  left: Array<LeftOut> | undefined,
  step: (item: Item) => A
): Slices<Array<A>> {
  const out: Array<A> = []
  const p = pace(outer.budget)
  const row = new RowSubqueries(outer.budget)
  const attempt = (item: Item): void => {
    try {
      out.push(step(item))
    } catch (error) {
      leaveOut(error, left, item.record, p)
    }
  }
  for (let i = 0; i < items.length; i++) {
    if (due(p)) yield
    const rest = row.evaluate(() => attempt(items[i]!))
    if (rest !== undefined) yield* rest
  }
  done(p)
  return out
}

/** Bytes that evaluating a row may allocate before the bytes that it keeps are measured. */
const lightRow = 1024

/** As {@link lightRow}, for records that are read for this query alone: less than any such record takes. */
const lightRead = 256

interface Reading {
  readonly filter: Compiled | undefined
  /** Number of steps that reading and filtering one row costs. */
  readonly steps: number
  readonly left: Array<LeftOut> | undefined
  /** Stops after this many rows have passed. */
  readonly most: number
}

/** Reads rows and passes on those that match. One scope serves all rows as long as they are only filtered. */
function* read(
  values: ReadonlyArray<Value>,
  outer: Scope,
  { filter, left, most, steps }: Reading,
  take: (item: Item) => void
): Slices<void> {
  let taken = 0
  const p = pace(outer.budget)
  const row: { -readonly [K in keyof Scope]: Scope[K] } = scopeIn(outer, undefined)
  const passes = (doc: Value): boolean => {
    spendSteps(outer.budget, steps)
    if (filter === undefined) return true
    row.doc = doc
    const { bytes } = outer.budget
    try {
      const passed = isTruthy(filter(row))
      keepBytes(outer.budget, bytes, 0)
      return passed
    } catch (error) {
      leaveOut(error, left, recordIn(doc), p)
      return false
    }
  }
  const attempt = (item: Item): void => {
    try {
      take(item)
    } catch (error) {
      leaveOut(error, left, item.record, p)
    }
  }
  const subqueries = new RowSubqueries(outer.budget)
  if (most > 0) {
    reading: for (const v of values) {
      for (const doc of rowsOf(outer, v)) {
        if (due(p)) yield
        let passed = false
        const rest = subqueries.evaluate(() => {
          passed = passes(doc)
          if (passed) attempt(itemOf(outer, doc))
        })
        if (rest !== undefined) yield* rest
        if (passed && ++taken >= most) break reading
      }
    }
  }
  done(p)
}

/** A window up to this size holds little more than its rows while reading, and is sorted without a pause. */
const smallWindow = 512
const pruneAfter = 64

/** Held rows; rows that were read only for this query are paid for as long as they are held. */
class Held {
  items: Array<Item> = []
  /** Bytes paid for each row. */
  private readonly paid = new WeakMap<Item, number>()

  constructor(private readonly outer: Scope) {}

  add(item: Item): void {
    spendBytes(this.outer.budget, this.bytesOf(item))
    this.items.push(item)
  }

  /** Adds a row with its sort values; now and then drops the rows that cannot be among the first `most`. */
  addSorted(item: Item, withSort: (item: Item) => Item, order: ReadonlyArray<Sort>, most: number): void {
    const { budget } = this.outer,
      { bytes } = budget
    spendBytes(budget, this.bytesOf(item))
    const sortable = withSort(item)
    this.paid.set(sortable, bytes - budget.bytes)
    if (this.items.push(sortable) < 2 * most + pruneAfter) return
    const before = this.paidForAll()
    this.items = drain(sorted(this.items, order, budget)).slice(0, most)
    budget.bytes += before - this.paidForAll()
  }

  private paidForAll(): number {
    let sum = 0
    for (const item of this.items) sum += this.paid.get(item) ?? 0
    return sum
  }

  private bytesOf({ record }: Item): number {
    return record === undefined ? 0 : (this.outer.source.bytesOf?.(record) ?? 0)
  }
}

/** Replaces each row by its pieces. */
function* split(
  items: ReadonlyArray<Item>,
  outer: Scope,
  pieces: (item: Item) => ReadonlyArray<Item>
): Slices<Array<Item>> {
  const out: Array<Item> = []
  const p = pace(outer.budget)
  for (const item of items) {
    if (due(p)) yield
    const found = pieces(item)
    for (const piece of found) out.push(piece)
  }
  done(p)
  return out
}

const whole = (clause: "LIMIT" | "START", v: Value): number =>
  isInt(v) && v >= 0
    ? Number(v)
    : raise`Found ${toText(v)} but the ${ownText(clause)} clause must evaluate to a positive integer`

function* grouped(gathering: GroupCollector, outer: Scope, left: Array<LeftOut> | undefined): Slices<Array<Item>> {
  const all = yield* gathering.rows(outer, (error) => leaveOut(error, left, undefined, pace(outer.budget)))
  return all.map(({ key, value }) => ({ scope: scopeIn(outer, value), record: undefined, value, sort: [], group: key }))
}

const shown = ({ group, record, value }: Item): SelectedRow =>
  group === undefined ? { value, record } : { value, record, group }

/** Whether the order is `ORDER BY id` alone, for rows that come in that order anyway. */
export const ordersById = ({ fields, order: [first, ...others] }: Select): boolean =>
  first !== undefined &&
  others.length === 0 &&
  !first.descending &&
  isId(first.idiom) &&
  !fields.some((f) => f.kind === "expr" && f.alias !== undefined && isId(f.alias))

/** Whether the source of a `FROM ONLY` can never be a row: NONE, NULL or an empty list. */
const isOnlyNothing = ({ from: [first, ...others], group, only }: Select): boolean =>
  only &&
  group === undefined &&
  first !== undefined &&
  others.length === 0 &&
  ((first.kind === "literal" &&
    (first.value === undefined || first.value === null || (Array.isArray(first.value) && first.value.length === 0))) ||
    (first.kind === "array" && first.items.length === 0))

type Step = (item: Item) => Item

const projecting =
  (project: Compiled): Step =>
  (item) => {
    const { budget } = item.scope,
      { bytes } = budget
    const value = project(item.scope)
    // Intermediate values are given back; shown ones are kept.
    const light = item.scope.source.bytesOf === undefined ? lightRow : lightRead
    if (bytes - budget.bytes > light) keepValue(budget, bytes, value)
    return { scope: item.scope, record: item.record, value, sort: item.sort }
  }

/** Adds sort values to a row. */
const sorting =
  (order: ReadonlyArray<Sort>): Step =>
  (item) => {
    const { budget } = item.scope,
      { bytes } = budget
    spendSteps(budget, order.length)
    const sort = order.map((o) => o.read(item))
    keepValue(budget, bytes, sort)
    spendBytes(budget, 8 * (order.length - 1))
    return item.group === undefined
      ? { scope: item.scope, record: item.record, value: item.value, sort }
      : { ...item, sort }
  }

/** Compiles a SELECT once; the plan may be run any number of times. */
export const compileSelect = (select: Select): Plan => {
  const sources = compileSources(select).map((compiled, i) => source(compiled, select.from[i]!))
  const filter = select.where && compile(select.where),
    steps = select.where === undefined ? 1 : stepsOf(select.where)
  const docSplits = select.value ? select.split.map(docSplitter) : []
  const rowSplits = select.value ? [] : select.split.map(rowSplitter)
  const grouping = select.group === undefined ? undefined : compileGrouping(select, select.group)
  const projection = grouping === undefined ? compileProjection(select) : undefined
  const order = select.order.map((term) => compileSort(select, term))
  const limit = select.limit && compile(select.limit),
    start = select.start && compile(select.start)
  const fetch = select.fetch.length === 0 ? undefined : compileFetch(select)
  const project = projection && projecting(projection.project),
    withSort = sorting(order)
  // If the window alone decides which rows are shown, only those are projected, so that no other row can fail.
  const windowFirst = grouping === undefined && rowSplits.length === 0 && order.every((o) => o.fromDoc !== undefined)
  const ordered = order.length === 0 || (inKeyOrder(select) && ordersById(select))
  const cannotFail = projection?.canFail === false && !(select.where !== undefined && canFail(select.where))
  return {
    run: function* (outer, left, given) {
      if (isOnlyNothing(select)) raise`Expected a single result output when using the ONLY keyword`
      // Sources and bounds of a subquery see the outer row, as `$this` and as `$parent`.
      const around = outer.parent === outer.doc ? outer : scopeIn(outer, outer.doc)
      const values: Array<Value> = []
      if (given === undefined) for (const each of sources) values.push(yield* each(around))
      const from = start === undefined ? 0 : whole("START", start(around))
      const to = limit === undefined ? Infinity : from + whole("LIMIT", limit(around))
      const late = windowFirst && left === undefined
      const sortless = given === undefined ? ordered : order.length === 0
      // Rows behind the window are not read, unless failing ones have to be listed.
      const most =
        sortless && windowFirst && select.split.length === 0 && (left === undefined || cannotFail) ? to : Infinity
      const held = new Held(outer)
      const gathering = grouping?.gathering()
      const whileRead = docSplits.length === 0
      const prunes = whileRead && late && !sortless && to <= smallWindow
      const take = (item: Item): void => {
        if (gathering !== undefined && whileRead) return gathering.add(item.scope)
        if (prunes) held.addSorted(item, withSort, order, to)
        else held.add(item)
      }
      yield* read(given ?? values, outer, { filter, steps, left, most }, take)
      let { items } = held
      for (const pieces of docSplits) items = yield* split(items, outer, pieces)
      if (gathering !== undefined) {
        if (!whileRead) yield* each(items, outer, left, (item) => gathering.add(item.scope))
        items = yield* grouped(gathering, around, left)
      } else if (!late) items = yield* each(items, outer, left, project!)
      for (const pieces of rowSplits) items = yield* split(items, outer, pieces)
      if (!sortless)
        items = yield* sorted(prunes ? items : yield* each(items, outer, left, withSort), order, outer.budget)
      if (from > 0 || to < items.length) items = items.slice(from, to)
      if (late) items = yield* each(items, outer, left, project!)
      return fetch === undefined
        ? items.map(shown)
        : yield* each(items, outer, undefined, (item) => shown({ ...item, value: fetch(item.value, outer) }))
    }
  }
}

/** A source; one that is a query of its own pauses too. */
const source = (compiled: Compiled, from: Expr): ((around: Scope) => Slices<Value>) => {
  const query = from.kind === "subquery" && from.query.kind === "select" ? from.query : undefined
  const plan = query && lazily(() => compileSelect(query))
  return function* (around) {
    return query === undefined || plan === undefined || around.source.subquery !== undefined
      ? compiled(around)
      : value(query, yield* plan().run(around, undefined))
  }
}

const value = (select: Select, rows: ReadonlyArray<SelectedRow>): Value => {
  if (!select.only) return rows.map((row) => row.value)
  return rows.length > 1 ? raise`Expected a single result output when using the ONLY keyword` : rows[0]?.value
}

/** A statement as an expression (a subquery). */
export const compileStatement = (statement: Statement): Compiled => {
  if (statement.kind === "return") return compileReturn(statement)
  if (statement.kind !== "select") return () => raise`INFO is not allowed here`
  const plan = lazily(() => compileSelect(statement))
  const plain: Compiled = (scope) => value(statement, runInRow(scope.budget, plan().run(scope, undefined)))
  return (scope) =>
    scope.source.subquery === undefined ? plain(scope) : scope.source.subquery(statement, scope, plain)
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
    return Either.left(failureOf(error))
  }
}

const scopeOf = (options: Options): Scope => ({
  doc: undefined,
  params: options.params,
  parent: undefined,
  source: options.source,
  budget: options.budget,
  ...(options.now === undefined ? {} : { now: options.now })
})

/** {@link selectRows}, pausing between slices of rows. */
export const selectRowsSliced = (select: Select, options: Options): Slices<Either.Either<Selected, Failure>> =>
  attempt(function* () {
    const left: Array<LeftOut> = []
    const rows = bounded(
      yield* compileSelect(select).run(scopeOf(options), options.onFailure === "leaveOut" ? left : undefined),
      options
    )
    if (select.only && rows.length > 1) raise`Expected a single result output when using the ONLY keyword`
    return { rows, left }
  })

/** Runs a SELECT; the result names the record of each row. Left: why it failed. */
export const selectRows = (select: Select, options: Options): Either.Either<Selected, Failure> =>
  drain(selectRowsSliced(select, options))

/** {@link evaluate}, pausing between slices of rows, so that the host may do other work in between. */
export const evaluateSliced = (statement: Statement, options: Options): Slices<Either.Either<Value, Failure>> =>
  attempt(function* () {
    const scope = scopeOf(options),
      { budget, source } = options
    switch (statement.kind) {
      case "select":
        return value(
          statement,
          bounded(
            yield* compileSelect(statement).run(scope, options.onFailure === "leaveOut" ? [] : undefined),
            options
          )
        )
      case "return": {
        const { value: returned } = statement
        if (returned.kind === "subquery" && returned.query.kind === "select" && statement.fetch.length === 0)
          return value(returned.query, bounded(yield* compileSelect(returned.query).run(scope, undefined), options))
        // An expression is evaluated without a pause, like a row.
        beginRow(budget)
        return compileReturn(statement)(scope)
      }
      case "infoDb":
        return infoDb(source)
      case "infoTable":
        return infoTable(source, statement.table)
    }
  })

const bounded = <A>(rows: ReadonlyArray<A>, { maxRows = Infinity }: Options): ReadonlyArray<A> =>
  rows.length > maxRows
    ? raise`The query gives more than ${ownText(maxRows)} rows; raise ${ownText(limits.queryRows.setting)} to allow it`
    : rows

/** Runs any statement. Left: why it failed, in the database's words. */
export const evaluate = (statement: Statement, options: Options): Either.Either<Value, Failure> =>
  drain(evaluateSliced(statement, options))
