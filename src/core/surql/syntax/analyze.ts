/**
 * Facts about a query, found in one walk of its tree: tables, parameters, functions.
 *
 * Why so: the engine routes changes by table, decides by these facts whether rows can be maintained one by one, and
 * refuses calls whose result changes by itself.
 */
import { Either } from "effect"
import { compile, isConstant, run } from "../evaluate/evaluate.ts"
import { functions } from "../evaluate/functions.ts"
import { recordOf } from "../evaluate/paths.ts"
import type { Source } from "../evaluate/scope.ts"
import { makeBudget } from "../evaluate/scope.ts"
import type { Value } from "../values/value.ts"
import { isRecordValue, RecordId, RecordRange, Table } from "../values/value.ts"
import { type Expr, type Idiom, type Part, rowParams, type Select, type Statement } from "./ast.ts"

interface Facts {
  /** Tables named as sources of the query itself. */
  readonly mainTables: ReadonlyArray<string>
  /**
   * Tables named anywhere else: subqueries, graph steps, record constants. Links may lead to further tables, see
   * `reaches`.
   */
  readonly referencedTables: ReadonlyArray<string>
  /** Parameters used, without `this`, `self`, `parent` and closure parameters. */
  readonly params: ReadonlyArray<string>
  /** Some expression may read a record other than its own row (a path through a link, a graph step, a subquery). */
  readonly reaches: boolean
  readonly graph: boolean
  readonly subqueries: boolean
  /** A source is a parameter or another expression, so the tables are known only when the query runs. */
  readonly computedSource: boolean
  /** Functions whose result changes by itself, with their offsets in the text. */
  readonly nonDeterministic: ReadonlyArray<{ readonly name: string; readonly at: number }>
}

interface Walk {
  readonly main: Set<string>
  readonly referenced: Set<string>
  readonly params: Set<string>
  readonly volatile: Array<{ readonly name: string; readonly at: number }>
  reaches: boolean
  graph: boolean
  subqueries: boolean
  computed: boolean
  /** The database-defined function whose body is being walked. */
  inside?: string | undefined
}

const builtin: ReadonlySet<string> = new Set([...rowParams, "parent"])

const value = (w: Walk, v: Value): void => {
  if (isRecordValue(v)) w.referenced.add(v.table)
  else if (v instanceof Table) w.referenced.add(v.name)
  else if (Array.isArray(v)) for (const item of v as ReadonlyArray<Value>) value(w, item)
}

const all = (w: Walk, exprs: ReadonlyArray<Expr | undefined>, bound: ReadonlySet<string>): void => {
  for (const e of exprs) if (e !== undefined) expr(w, e, bound)
}

const expr = (w: Walk, e: Expr, bound: ReadonlySet<string>): void => {
  switch (e.kind) {
    case "literal":
      return value(w, e.value)
    case "param":
      if (!builtin.has(e.name) && !bound.has(e.name)) w.params.add(e.name)
      return
    case "array":
    case "set":
      return all(w, e.items, bound)
    case "object":
      return all(
        w,
        e.entries.map(([, v]) => v),
        bound
      )
    case "record":
      w.referenced.add(e.table)
      return expr(w, e.key, bound)
    case "unary":
    case "cast":
      return expr(w, e.operand, bound)
    case "binary":
      return all(w, [e.left, e.right], bound)
    case "recordRange":
      w.referenced.add(e.table)
      return all(w, [e.from, e.to], bound)
    case "range":
      return all(w, [e.from, e.to], bound)
    case "call":
      return call(w, e, bound)
    case "closure":
      return closure(w, e, bound)
    case "invoke":
      return all(w, [e.fn, ...e.args], bound)
    case "block":
      return block(w, e, bound)
    case "if":
      return all(w, [...e.branches.flat(), e.otherwise], bound)
    case "subquery":
      w.subqueries = w.reaches = true
      return statement(w, e.query, bound)
    case "table":
      w.referenced.add(e.name)
      return
    case "idiom":
      return idiom(w, e, bound)
  }
}

const closure = (w: Walk, e: Extract<Expr, { kind: "closure" }>, bound: ReadonlySet<string>): void => {
  const outer = w.inside
  w.inside = outer ?? e.defined
  expr(w, e.body, new Set([...bound, ...e.params]))
  w.inside = outer
}

/** Each LET is bound in the steps after it. */
const block = (w: Walk, e: Extract<Expr, { kind: "block" }>, bound: ReadonlySet<string>): void => {
  const known = new Set(bound)
  for (const s of e.steps) {
    expr(w, s.value, known)
    if (s.name !== undefined) known.add(s.name)
  }
}

const call = (w: Walk, e: Extract<Expr, { kind: "call" }>, bound: ReadonlySet<string>): void => {
  const fn = functions.get(e.name)
  if (fn !== undefined && (!fn.pure || (fn.pureWithArguments === true && e.args.length === 0)))
    w.volatile.push({ name: e.name + "()" + (w.inside === undefined ? "" : ` in ${w.inside}`), at: e.at })
  if (fn?.reads === true) w.reaches = true
  all(w, e.args, bound)
}

const idiom = (w: Walk, i: Idiom, bound: ReadonlySet<string>): void => {
  if (i.start !== undefined) expr(w, i.start, bound)
  // A second part may follow a link, depending on the data.
  if (i.parts.length > 1 || (i.start !== undefined && i.parts.length > 0)) w.reaches = true
  for (const p of i.parts) part(w, p, bound)
}

const part = (w: Walk, p: Part, bound: ReadonlySet<string>): void => {
  switch (p.kind) {
    case "index":
      return expr(w, p.index, bound)
    case "where":
      return expr(w, p.where, bound)
    case "method":
      return all(w, p.args, bound)
    case "destructure":
      return all(
        w,
        p.entries.map((d) => d.expr),
        bound
      )
    case "graph":
      w.graph = w.reaches = true
      for (const table of p.tables) w.referenced.add(table)
      all(w, [...p.ranges, p.where, p.limit, p.start], bound)
      if (p.query !== undefined) clauses(w, p.query, bound)
      return
    case "recurse":
      w.reaches = true
      if (p.target !== undefined) expr(w, p.target, bound)
      for (const b of p.body) part(w, b, bound)
      return
    default:
  }
}

/** Walks a SELECT without its sources. */
const clauses = (w: Walk, s: Select, bound: ReadonlySet<string>): void => {
  for (const f of s.fields) if (f.kind === "expr") expr(w, f.expr, bound)
  all(w, [s.where, s.limit, s.start], bound)
  for (const o of s.order) idiom(w, o.idiom, bound)
  for (const g of s.group ?? []) idiom(w, g, bound)
  for (const i of s.split) idiom(w, i, bound)
  if (s.fetch.length > 0) w.reaches = true
}

const statement = (w: Walk, s: Statement, bound: ReadonlySet<string>): void => {
  if (s.kind === "return") {
    if (s.fetch.length > 0) w.reaches = true
    return expr(w, s.value, bound)
  }
  if (s.kind !== "select") return
  all(w, s.from, bound)
  clauses(w, s, bound)
}

const source = (w: Walk, e: Expr): void => {
  if (e.kind === "table") w.main.add(e.name)
  else if (e.kind === "literal" && isRecordValue(e.value)) w.main.add(e.value.table)
  else if (e.kind === "literal" && Array.isArray(e.value))
    for (const v of e.value as ReadonlyArray<Value>) {
      if (v instanceof RecordId) w.main.add(v.table)
    }
  else if (e.kind === "array") for (const item of e.items) source(w, item)
  else if (e.kind === "recordRange") {
    w.main.add(e.table)
    all(w, [e.from, e.to], new Set())
  } else if (e.kind === "record") {
    w.main.add(e.table)
    expr(w, e.key, new Set())
  } else {
    w.computed = true
    expr(w, e, new Set())
  }
}

/** The tables of a source value; `undefined` if it is no source. */
const tablesOf = (v: Value): ReadonlyArray<string> | undefined => {
  if (v instanceof Table) return [v.name]
  if (v instanceof RecordRange) return [v.table]
  if (!Array.isArray(v)) {
    const id = recordOf(v)
    return id === undefined ? undefined : [id.table]
  }
  const all = (v as ReadonlyArray<Value>).map(tablesOf)
  return all.every((t) => t !== undefined) ? all.flat() : undefined
}

/** A source that depends on parameters only, resolved with them: `FROM $id`, `FROM type::record('user', $u)`. */
const resolved = (w: Walk, e: Expr, params: { readonly [name: string]: Value }): boolean => {
  if (!isConstant(e)) return false
  const v = run(compile(e), {
    doc: undefined,
    params,
    parent: undefined,
    source: nowhere,
    budget: makeBudget(10_000, "SVC_QUERY_STEPS")
  })
  const tables = Either.isRight(v) ? tablesOf(v.right) : undefined
  for (const table of tables ?? []) w.main.add(table)
  if (tables !== undefined) expr(w, e, new Set())
  return tables !== undefined
}

const nowhere: Source = { record: () => undefined, rows: () => [], edges: () => [] }

/** Walks a query. `params` resolve the sources that depend only on them to tables. Cost: the size of the query. */
export const analyze = (select: Select, params?: { readonly [name: string]: Value }): Facts => {
  const w: Walk = {
    main: new Set(),
    referenced: new Set(),
    params: new Set(),
    volatile: [],
    reaches: false,
    graph: false,
    subqueries: false,
    computed: false
  }
  for (const e of select.from)
    if (params === undefined || e.kind === "table" || e.kind === "literal" || !resolved(w, e, params)) source(w, e)
  clauses(w, select, new Set())
  return {
    mainTables: [...w.main],
    referencedTables: [...w.referenced],
    params: [...w.params],
    reaches: w.reaches,
    graph: w.graph,
    subqueries: w.subqueries,
    computedSource: w.computed,
    nonDeterministic: w.volatile
  }
}
