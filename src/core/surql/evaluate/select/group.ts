/**
 * GROUP BY and GROUP ALL: rows gathered by key, aggregates over each group.
 *
 * Why so: an aggregate call gets the array of its argument's values over the group. An expression around aggregates is
 * evaluated once for the group, with a group key as its value and any other path as the array of its values in scan
 * order; one that names no row stays single; any other becomes the array of its values. Groups come sorted by key;
 * numerically equal keys are one group. The work is divided into columns (per row), calls (over a column) and a build
 * (over the results), so that the engine can maintain the first two while rows change.
 */
import { type Expr, type Field, type Idiom, type Part, rowParams, type Select } from "../../syntax/ast.ts"
import { print } from "../../syntax/print.ts"
import { type Replace, rewrite, rewriteRows } from "../../syntax/rewrite.ts"
import { compositeKey } from "../../values/key.ts"
import { isNumber, toFloat } from "../../values/number.ts"
import { compare, compareStored, isTruthy } from "../../values/order.ts"
import type { Value } from "../../values/value.ts"
import { Datetime, Decimal, float } from "../../values/value.ts"
import { bytesOf } from "../charge.ts"
import { canFail, compile } from "../evaluate.ts"
import { EvalError, raise } from "../failure.ts"
import { functions } from "../functions.ts"
import type { Compiled, Scope, Slices } from "../scope.ts"
import { keepBytes, spendBytes, spendSteps } from "../scope.ts"
import { outputNames } from "./project.ts"
import { removeAt, setPath } from "./shape.ts"

const aggregates: ReadonlySet<string> = new Set([
  "count",
  "array::distinct",
  "array::first",
  "array::flatten",
  "array::group",
  "array::last",
  "array::join",
  "math::bottom",
  "math::interquartile",
  "math::max",
  "math::mean",
  "math::median",
  "math::min",
  "math::mode",
  "math::nearestrank",
  "math::percentile",
  "math::spread",
  "math::stddev",
  "math::sum",
  "math::top",
  "math::trimean",
  "math::variance",
  "math::product",
  "time::max",
  "time::min"
])

/** No aggregates of a group key: the default planner answers a list, the older evaluator takes a key for one value. */
const overLists: ReadonlySet<string> = new Set([
  "array::first",
  "array::flatten",
  "array::last",
  "math::bottom",
  "math::interquartile",
  "math::mode",
  "math::nearestrank",
  "math::percentile",
  "math::spread",
  "math::top",
  "math::trimean"
])

/**
 * As {@link rewrite}, for the parts of an expression that see its row, `(RETURN n)` included. Inside a filter, a graph
 * step or a selection of fields the row is another value.
 */
const rewriteSeen = (e: Expr, replace: Replace): Expr =>
  rewrite(e, (inner) => {
    const replaced = replace(inner)
    if (replaced !== undefined) return replaced
    if (inner.kind === "subquery" && inner.query.kind === "return")
      return { ...inner, query: { ...inner.query, value: rewriteSeen(inner.query.value, replace) } }
    if (inner.kind !== "idiom") return undefined
    return {
      ...inner,
      start: inner.start && rewriteSeen(inner.start, replace),
      parts: inner.parts.map(
        (p): Part =>
          p.kind === "index"
            ? { ...p, index: rewriteSeen(p.index, replace) }
            : p.kind === "method"
              ? { ...p, args: p.args.map((arg) => rewriteSeen(arg, replace)) }
              : p
      )
    }
  })

const someSeen = (e: Expr, is: (inner: Expr) => boolean): boolean => {
  let found = false
  rewriteSeen(e, (inner) => {
    found ||= is(inner)
    return found ? inner : undefined
  })
  return found
}

/** True when an expression contains an aggregate call. */
const isAggregate = (e: Expr): boolean => someSeen(e, (inner) => inner.kind === "call" && aggregates.has(inner.name))

const isThis = (e: Expr): boolean => e.kind === "param" && rowParams.has(e.name)

const isParent = (e: Expr): boolean => e.kind === "param" && e.name === "parent"

/** True for a subquery that depends on the row around it. */
const isCorrelated = (query: Select): boolean => {
  const around = [...query.from, query.limit, query.start]
  if (around.some((e) => e !== undefined && (namesRow(e) || someSeen(e, isParent)))) return true
  let found = false
  rewriteRows(query, (e) => {
    found ||= isParent(e)
    return undefined
  })
  return found
}

/** True for an expression whose value depends on the row. */
const namesRow = (e: Expr): boolean =>
  someSeen(
    e,
    (inner) =>
      (inner.kind === "idiom" && inner.start === undefined) ||
      isThis(inner) ||
      (inner.kind === "subquery" && inner.query.kind === "select" && isCorrelated(inner.query))
  )

/** A group as folds and accumulators see it: the number of rows, and one column of values in scan order. */
export interface GroupRows {
  readonly size: number
  readonly column: (at: number) => ReadonlyArray<Value>
}

/** One aggregate call, or (without a name) the array of a field's values. */
export interface AggregateCall {
  readonly name: string
  /** The column of its argument; `undefined` for `count()`. */
  readonly column: number | undefined
  /** Whether the call has no other arguments, so that an accumulator may replace it. */
  readonly alone: boolean
  readonly fold: (rows: GroupRows, outer: Scope) => Value
}

/** Computes one output value from the results of the calls and the key. */
type Output = (results: ReadonlyArray<Value>, key: ReadonlyArray<Value>, outer: Scope) => Value

/** Over a group these are computed with floats, even from decimals. */
const floats: ReadonlySet<string> = new Set(["math::mean", "math::stddev", "math::variance"])

/** The part of a value that an aggregate uses; undefined for a value that it skips, as the database does. */
export const aggregatedPart = (name: string): ((v: Value) => Value) => {
  if (floats.has(name)) return (v) => (v instanceof Decimal ? float(toFloat(v)) : isNumber(v) ? v : undefined)
  return name.startsWith("math::")
    ? (v) => (isNumber(v) ? v : undefined)
    : (v) => (v instanceof Datetime ? v : undefined)
}

const usableItems = (name: string, items: ReadonlyArray<Value>): ReadonlyArray<Value> =>
  name.startsWith("math::") || name.startsWith("time::")
    ? items.map(aggregatedPart(name)).filter((v) => v !== undefined)
    : items

/** Whether the planner lets a failure of this expression fail the whole query. */
const failsAsWhole = (e: Expr): boolean =>
  someSeen(
    e,
    (inner) => inner.kind === "cast" || (inner.kind === "idiom" && inner.parts.some(({ kind }) => kind === "method"))
  )

/** NONE if a row fails, except for lack of steps or bytes. */
const orNone =
  (value: Compiled): Compiled =>
  (scope) => {
    try {
      return value(scope)
    } catch (error) {
      const { budget } = scope
      if (!(error instanceof EvalError) || budget.left < budget.floor || budget.bytes < 0) throw error
      return undefined
    }
  }

type Param = Extract<Expr, { kind: "param" }>

/** Collects the needs of a grouping's outputs: the columns evaluated per row, and the calls over them. */
class Needs {
  readonly columns: Array<Compiled> = []
  readonly calls: Array<AggregateCall> = []
  canFail = false
  /** Expressions whose values are kept whole. */
  readonly whole: Array<Expr> = []
  private readonly columnAt = new Map<string, number>()
  private readonly callAt = new Map<string, number>()
  /** Texts of the grouping paths. */
  private readonly keys: ReadonlyArray<string>

  constructor(group: ReadonlyArray<Idiom>) {
    this.keys = group.map(print)
  }

  /** Position of a column. `truth`: whether the value is true; `lenient`: NONE if it fails. */
  column(e: Expr, as?: "truth" | "lenient"): number {
    const kind = as === "lenient" && !canFail(e) ? undefined : as
    const text = `${kind ?? ""} ${print(e)}`
    const known = this.columnAt.get(text)
    if (known !== undefined) return known
    const value = compile(e)
    if (kind !== "lenient") this.canFail ||= canFail(e)
    if (kind !== "truth") this.whole.push(e)
    this.columnAt.set(text, this.columns.length)
    return (
      this.columns.push(kind === "truth" ? (s) => isTruthy(value(s)) : kind === "lenient" ? orNone(value) : value) - 1
    )
  }

  get text(): string {
    return [...this.columnAt.keys()].join()
  }

  /** Position of a path or an expression among the keys. */
  keyAt(e: Expr): number {
    return this.keys.indexOf(print(e))
  }

  /** Position of the call's result. */
  call(text: string, make: () => AggregateCall): number {
    const at = this.callAt.get(text) ?? this.calls.push(make()) - 1
    this.callAt.set(text, at)
    return at
  }

  /** Position of the array of an expression's values. */
  list(e: Expr, as?: "lenient"): number {
    return this.call(`values ${as} ${print(e)}`, () => {
      const column = this.column(e, as)
      return { name: "", column, alone: true, fold: (rows) => rows.column(column) }
    })
  }
}

type CallExpr = Extract<Expr, { kind: "call" }>

const resultName = "\u0001"
const keyName = "\u0002"
const paramOf = ({ at }: Expr, name: string, index: number): Param => ({ kind: "param", at, name: name + index })

/** The parameter that replaces an aggregate call; `undefined` if the function itself is called over the group. */
const aggregateCall = (needs: Needs, e: CallExpr): Expr | undefined => {
  const { name } = e,
    [first, ...rest] = e.args
  if (name === "count") {
    const at = needs.call(print(e), () => {
      const column = first && needs.column(first, "truth")
      return {
        name,
        column,
        alone: true,
        fold: (rows) => (column === undefined ? rows.size : rows.column(column).filter((v) => v === true).length)
      }
    })
    return paramOf(e, resultName, at)
  }
  if (first === undefined || isAggregate(first)) return undefined
  if (overLists.has(name) && (!namesRow(first) || needs.keyAt(first) >= 0)) return undefined
  const text = rest.length === 0 ? print(e) : `${name} of ${print(first)}`
  const at = needs.call(text, () => {
    const column = needs.column(first)
    return {
      name,
      column,
      alone: rest.length === 0,
      fold: (rows, outer) => {
        const items = usableItems(name, rows.column(column))
        if (rest.length > 0 || name === "array::group") return items
        // Of equal numbers a group keeps the first, but `math::max` of a list the last.
        return functions.get(name)!.call([name === "math::max" ? items.slice().reverse() : items], outer, name)
      }
    }
  })
  const result = paramOf(e, resultName, at)
  return rest.length === 0 ? result : { ...e, args: [result, ...rest.map((arg) => overGroup(needs, arg))] }
}

const pathPrefix = ({ parts }: Idiom): number => {
  const end = parts.findIndex(({ kind }) => kind !== "field")
  return end < 0 ? parts.length : end
}

/** An expression over the group: parameters replace aggregates, keys, and arrays of the values of paths. */
const overGroup = (needs: Needs, e: Expr): Expr =>
  rewriteSeen(e, (inner) => {
    if (inner.kind === "call" && aggregates.has(inner.name)) return aggregateCall(needs, inner)
    if (inner.kind === "subquery" && inner.query.kind === "select" && isCorrelated(inner.query))
      return paramOf(inner, resultName, needs.list(inner))
    if (inner.kind !== "idiom" || inner.start !== undefined) return undefined
    const key = needs.keyAt(inner)
    if (key >= 0) return paramOf(inner, keyName, key)
    const length = pathPrefix(inner) || inner.parts.length
    const start = paramOf(inner, resultName, needs.list({ ...inner, parts: inner.parts.slice(0, length) }))
    return length === inner.parts.length
      ? start
      : overGroup(needs, { ...inner, start, parts: inner.parts.slice(length) })
  })

const output = (needs: Needs, e: Expr): Output => {
  if (!isAggregate(e) && namesRow(e)) {
    const at = needs.list(e, failsAsWhole(e) ? undefined : "lenient")
    return (results) => results[at]
  }
  const rewritten = overGroup(needs, e)
  const whole = compile(rewritten)
  if (rewritten.kind === "param" && rewritten.name.startsWith(resultName)) {
    const at = Number(rewritten.name.slice(1))
    return (results) => results[at]
  }
  const names = new Set<string>()
  rewriteSeen(rewritten, (inner) => {
    if (inner.kind === "param" && (inner.name.startsWith(resultName) || inner.name.startsWith(keyName)))
      names.add(inner.name)
    return undefined
  })
  if (names.size === 0) return (_, __, outer) => whole(outer)
  return (results, key, outer) => {
    const params: Record<string, Value> = { ...outer.params }
    for (const name of names) params[name] = (name.startsWith(keyName) ? key : results)[Number(name.slice(1))]
    return whole({ ...outer, params })
  }
}

/** The expression a group key stands for: the field with that alias, else the document's own path. */
const keyExpr = (idiom: Idiom, fields: ReadonlyArray<Field>): Expr => {
  const text = print(idiom)
  for (const f of fields) if (f.kind === "expr" && f.alias !== undefined && print(f.alias) === text) return f.expr
  for (const f of fields)
    if (f.kind === "expr" && f.alias === undefined && f.expr.kind !== "idiom" && outputNames(f).join(".") === text)
      return f.expr
  return idiom
}

/** Rows between two pauses. */
const sliceRows = 512

/** Contribution of a row to its group. */
export interface Contribution {
  readonly key: ReadonlyArray<Value>
  /** One value per column. */
  readonly values: ReadonlyArray<Value>
}

/** Orders groups by key; equal values of different record ids are different groups. */
export const compareGroups = (a: ReadonlyArray<Value>, b: ReadonlyArray<Value>): number =>
  compare(a, b) || compareStored(a, b)

/** The rows of one group: their number, and the columns with a value of each. */
interface Group extends GroupRows {
  readonly key: ReadonlyArray<Value>
  size: number
  readonly columns: ReadonlyArray<Array<Value>>
}

/** Collects rows into groups. */
export interface GroupCollector {
  /** Adds a row to its group, which keeps the values of its columns and not the row. Throws if one fails. */
  readonly add: (scope: Scope) => void
  /** Output rows, sorted by key; a failing group is passed to `failed` and left out. Pauses between groups. */
  readonly rows: (outer: Scope, failed: (error: unknown) => void) => Slices<ReadonlyArray<GroupedRow>>
}

/** An output row, and its group's key as the first row has it. */
interface GroupedRow {
  readonly key: ReadonlyArray<Value>
  readonly value: Value
}

export interface Grouping {
  /** GROUP ALL: one group, even of no rows. */
  readonly all: boolean
  readonly of: (scope: Scope) => Contribution
  /** Whether an expression that `of` evaluates can fail. */
  readonly canFail: boolean
  /** Columns whose values are kept whole; of other columns only whether they are true. */
  readonly columns: ReadonlyArray<Expr>
  /** Text of the columns and keys: equal texts have equal contributions. */
  readonly text: string
  readonly calls: ReadonlyArray<AggregateCall>
  /** The output row, given the results of the calls. */
  readonly build: Output
  readonly gathering: () => GroupCollector
}

/** Whether an expression refers to its own row, of which a group has many. */
const namesThis = (e: Expr): boolean => someSeen(e, isThis)

const compileBuild = (select: Select, needs: Needs): Output => {
  const outputs = select.fields.map((f): Output => {
    if (f.kind === "all")
      return () =>
        raise`Incorrect selector for aggregate selection, expression \`*\` within in selector cannot be aggregated in a group.`
    if (namesThis(f.expr))
      return () =>
        raise`Invalid query: Found a \`$this\` parameter refering to the document of a group by select statement`
    const named = f.alias === undefined ? -1 : needs.keyAt(f.alias),
      at = named >= 0 ? named : needs.keyAt(f.expr)
    return at >= 0 ? (_, key) => key[at] : output(needs, f.expr)
  })
  if (select.value) return outputs[0]!
  const names = select.fields.map((f) => (f.kind === "all" ? ["*"] : outputNames(f)))
  return (results, key, outer) => {
    const row: Record<string, Value> = {}
    outputs.forEach((of, i) => setPath(row, names[i]!, of(results, key, outer)))
    return select.omit.reduce<Value>((r, idiom) => removeAt(r, idiom.parts), row)
  }
}

const groupOf = (key: ReadonlyArray<Value>, columns: number): Group => {
  const kept = Array.from({ length: columns }, (): Array<Value> => [])
  return { key, size: 0, columns: kept, column: (at) => kept[at]! }
}

/** Bytes of a group without its values, and of an array element. */
const groupBytes = 256
const placeBytes = 8

const askedOf = (keys: ReadonlyArray<Expr>, { text, whole }: Needs): Pick<Grouping, "columns" | "text"> => ({
  columns: whole,
  text: `${keys.map(print).join()}: ${text}`
})

/** Compiles the grouping of a SELECT that has one. */
export const compileGrouping = (select: Select, group: ReadonlyArray<Idiom>): Grouping => {
  const exprs = group.map((g) => keyExpr(g, select.fields))
  const keys = exprs.map(compile)
  const needs = new Needs(group)
  const build = compileBuild(select, needs)
  const { calls, columns } = needs
  const of = (scope: Scope): Contribution => ({ key: keys.map((k) => k(scope)), values: columns.map((c) => c(scope)) })
  const rowOf = (gathered: Group, outer: Scope): GroupedRow => ({
    key: gathered.key,
    value: build(
      calls.map((call) => call.fold(gathered, outer)),
      gathered.key,
      outer
    )
  })
  function* shown(
    groups: Array<Group>,
    outer: Scope,
    failed: (error: unknown) => void
  ): Slices<ReadonlyArray<GroupedRow>> {
    const out: Array<GroupedRow> = []
    const show = (gathered: Group): void => {
      try {
        out.push(rowOf(gathered, outer))
      } catch (error) {
        failed(error)
      }
    }
    let built = 0
    for (const gathered of groups.sort((a, b) => compareGroups(a.key, b.key))) {
      spendSteps(outer.budget, gathered.size)
      show(gathered)
      built += gathered.size
      if (built < sliceRows) continue
      built = 0
      yield
    }
    return out
  }
  return {
    all: group.length === 0,
    of,
    calls,
    build,
    canFail: needs.canFail || exprs.some(canFail),
    ...askedOf(exprs, needs),
    gathering: () => {
      const groups = new Map<unknown, Group>()
      const enter = (id: unknown, key: ReadonlyArray<Value>): Group => {
        const made = groupOf(key, columns.length)
        groups.set(id, made)
        return made
      }
      // GROUP ALL has its group without rows too.
      if (group.length === 0) enter(compositeKey([]), [])
      return {
        add: (scope) => {
          const { budget } = scope,
            { bytes } = budget
          const { key, values } = of(scope)
          const id = compositeKey(key)
          const found = groups.get(id)
          const most = budget.bytes
          const entered = found === undefined ? groupBytes + placeBytes * key.length + bytesOf(key, most) : 0
          // Gives back all bytes made meanwhile; the group pays for what it keeps.
          keepBytes(budget, bytes, 0)
          spendBytes(budget, entered + placeBytes * values.length + bytesOf(values, most))
          const into = found ?? enter(id, key)
          into.size++
          for (let i = 0; i < values.length; i++) into.columns[i]!.push(values[i])
        },
        rows: (outer, failed) => shown([...groups.values()], outer, failed)
      }
    }
  }
}
