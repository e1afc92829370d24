/**
 * GROUP BY and GROUP ALL: rows gathered by key, aggregates over each group.
 *
 * Why so: an aggregate call gets the array of its argument's values over the group; operations around aggregates are
 * evaluated on their results; a group key shows its value, a constant stays single, anything else
 * becomes the array of its values in scan order, as in the database. Groups come sorted by key; numerically equal keys
 * are one group. The work is told apart into columns (per row), calls (over a column) and a build (over the results),
 * so that the engine can keep the first two while rows come and go.
 */
import type { Expr, Field, Idiom, Part, Select } from "../../syntax/ast.ts"
import { print } from "../../syntax/print.ts"
import { rewrite } from "../../syntax/rewrite.ts"
import { compositeKey } from "../../values/key.ts"
import { isNumber, toFloat } from "../../values/number.ts"
import { compare, isTruthy } from "../../values/order.ts"
import type { Value } from "../../values/value.ts"
import { Datetime, Decimal, float } from "../../values/value.ts"
import { bytesOf } from "../charge.ts"
import { canFail, compile, isConstant } from "../evaluate.ts"
import { raise } from "../failure.ts"
import { functions } from "../functions.ts"
import type { Compiled, Scope, Slices } from "../scope.ts"
import { keepBytes, make, spend } from "../scope.ts"
import { outputNames } from "./project.ts"
import { removeAt, setPath } from "./shape.ts"
import { fixed } from "./sources.ts"

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

/** True when an expression contains an aggregate call. */
const isAggregate = (e: Expr): boolean => {
  switch (e.kind) {
    case "call":
      return aggregates.has(e.name) || e.args.some(isAggregate)
    case "binary":
      return isAggregate(e.left) || isAggregate(e.right)
    case "unary":
    case "cast":
      return isAggregate(e.operand)
    case "array":
    case "set":
      return e.items.some(isAggregate)
    case "object":
      return e.entries.some(([, v]) => isAggregate(v))
    case "if":
      return (
        e.branches.some(([c, v]) => isAggregate(c) || isAggregate(v)) ||
        (e.otherwise !== undefined && isAggregate(e.otherwise))
      )
    default:
      return e.kind === "idiom" && e.start !== undefined && isAggregate(e.start)
  }
}

/** What folds and accumulators see of a group: how many rows, and one column of values in scan order. */
export interface GroupRows {
  readonly size: number
  readonly column: (at: number) => ReadonlyArray<Value>
}

/** One aggregate call, or (without a name) the array of a field's values. */
export interface Call {
  readonly name: string
  /** The column of its argument; `undefined` for `count()`. */
  readonly column: number | undefined
  /** It has no other arguments, so that an accumulator may stand for it. */
  readonly alone: boolean
  readonly fold: (rows: GroupRows, outer: Scope) => Value
}

/** Computes one output value from the results of the calls. `first` is the group's first row, where there is one. */
type Output = (results: ReadonlyArray<Value>, outer: Scope, first: Scope | undefined) => Value

/** Over a group these are computed with floats, even from decimals. */
const floats: ReadonlySet<string> = new Set(["math::mean", "math::stddev", "math::variance"])

/** What an aggregate makes of one value: aggregates skip what they cannot add up, as the database does over groups. */
export const usable = (name: string): ((v: Value) => Value) => {
  if (floats.has(name)) return (v) => (v instanceof Decimal ? float(toFloat(v)) : isNumber(v) ? v : undefined)
  return name.startsWith("math::")
    ? (v) => (isNumber(v) ? v : undefined)
    : (v) => (v instanceof Datetime ? v : undefined)
}

const usableItems = (name: string, items: ReadonlyArray<Value>): ReadonlyArray<Value> =>
  name.startsWith("math::") || name.startsWith("time::")
    ? items.map(usable(name)).filter((v) => v !== undefined)
    : items

/** True for a part of a path that means the same whatever row the path is evaluated in. */
const freePart = (p: Part): boolean => {
  switch (p.kind) {
    case "field":
    case "all":
    case "last":
    case "flatten":
    case "optional":
      return true
    case "index":
      return isConstant(p.index)
    case "method":
      return p.args.every(isConstant)
    default:
      return false
  }
}

/** Gathers what the outputs of a grouping need: the columns evaluated per row, and the calls over them. */
class Needs {
  readonly columns: Array<Compiled> = []
  readonly calls: Array<Call> = []
  canFail = false
  looksAtFirst = false
  /** Those whose values are kept as they are. */
  readonly whole: Array<Expr> = []
  private readonly columnAt = new Map<string, number>()
  private readonly callAt = new Map<string, number>()

  column(e: Expr, truth = false): number {
    const text = `${truth} ${print(e)}`
    const known = this.columnAt.get(text)
    if (known !== undefined) return known
    const value = compile(e)
    this.canFail ||= canFail(e)
    if (!truth) this.whole.push(e)
    this.columnAt.set(text, this.columns.length)
    return this.columns.push(truth ? (s) => isTruthy(value(s)) : value) - 1
  }

  get text(): string {
    return [...this.columnAt.keys()].join()
  }

  call(text: string, make: () => Call): Output {
    const at = this.callAt.get(text) ?? this.calls.push(make()) - 1
    this.callAt.set(text, at)
    return (results) => results[at]
  }
}

type CallExpr = Extract<Expr, { kind: "call" }>

/** An argument behind the first: the value of the group's first row, where it depends on the row at all. */
const otherArgument = (needs: Needs, e: Expr): ((rows: GroupRows, outer: Scope) => Value) => {
  const value = compile(e)
  if (fixed(e) || isConstant(e)) return (_, outer) => value(outer)
  const column = needs.column(e)
  return (rows, outer) => (rows.size === 0 ? value({ ...outer, doc: undefined }) : rows.column(column)[0])
}

const aggregateCall = (needs: Needs, e: CallExpr): Output => {
  const { name } = e,
    [first, ...rest] = e.args
  if (name === "count") {
    return needs.call(print(e), () => {
      const column = first && needs.column(first, true)
      return {
        name,
        column,
        alone: true,
        fold: (rows) => (column === undefined ? rows.size : rows.column(column).filter((v) => v === true).length)
      }
    })
  }
  const fn = functions.get(name)!
  if (first === undefined) return () => raise(`Incorrect arguments for function ${name}(). ${fn.arity}`)
  if (isAggregate(first)) {
    const inner = output(needs, first),
      others = rest.map(compile)
    return (results, outer, row) => fn.call([inner(results, outer, row), ...others.map((o) => o(outer))], outer, name)
  }
  return needs.call(print(e), () => {
    const column = needs.column(first),
      others = rest.map((other) => otherArgument(needs, other))
    return {
      name,
      column,
      alone: rest.length === 0,
      fold: (rows, outer) => {
        const items = usableItems(name, rows.column(column))
        // Of equal numbers a group keeps the first, `math::max` of a list the last.
        const taken = name === "math::max" ? items.slice().reverse() : items
        return name === "array::group" ? items : fn.call([taken, ...others.map((o) => o(rows, outer))], outer, name)
      }
    }
  })
}

/** An operation whose operands are parameters, filled with aggregated values. */
const combine = (
  needs: Needs,
  e: Expr,
  operands: ReadonlyArray<Expr>,
  rebuild: (params: ReadonlyArray<Expr>) => Expr
): Output => {
  const inner = operands.map((operand) => output(needs, operand))
  const whole = compile(rebuild(operands.map((_, i) => ({ kind: "param", at: e.at, name: `\u0001${i}` }))))
  return (results, outer, first) => {
    const params: Record<string, Value> = { ...outer.params }
    inner.forEach((f, i) => {
      params[`\u0001${i}`] = f(results, outer, first)
    })
    return whole({ ...(first ?? outer), params })
  }
}

const output = (needs: Needs, e: Expr): Output => {
  if (!isAggregate(e)) {
    if (fixed(e)) {
      const value = compile(e)
      return (_, outer) => value(outer)
    }
    return needs.call(`values ${print(e)}`, () => {
      const column = needs.column(e)
      return { name: "", column, alone: true, fold: (rows) => rows.column(column) }
    })
  }
  switch (e.kind) {
    case "call":
      return aggregates.has(e.name) ? aggregateCall(needs, e) : combine(needs, e, e.args, (args) => ({ ...e, args }))
    case "binary":
      return combine(needs, e, [e.left, e.right], ([left, right]) => ({ ...e, left: left!, right: right! }))
    case "unary":
      return combine(needs, e, [e.operand], ([operand]) => ({ ...e, operand: operand! }))
    case "cast":
      return combine(needs, e, [e.operand], ([operand]) => ({ ...e, operand: operand! }))
    case "array":
      return combine(needs, e, e.items, (items) => ({ ...e, items }))
    case "set":
      return combine(needs, e, e.items, (items) => ({ ...e, items }))
    case "object":
      return combine(
        needs,
        e,
        e.entries.map(([, v]) => v),
        (vs) => ({ ...e, entries: e.entries.map(([k], i) => [k, vs[i]!] as const) })
      )
    case "if":
      return combine(needs, e, [...e.branches.flat(), ...(e.otherwise === undefined ? [] : [e.otherwise])], (vs) => ({
        ...e,
        branches: e.branches.map((_, i) => [vs[2 * i]!, vs[2 * i + 1]!] as const),
        otherwise: e.otherwise === undefined ? undefined : vs[vs.length - 1]
      }))
    case "idiom": {
      needs.looksAtFirst ||= !e.parts.every(freePart)
      return combine(needs, e, [e.start!], ([start]) => ({ ...e, start: start! }))
    }
    default:
      return () => raise("Incorrect selector for aggregate selection")
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

/** What a row brings to its group. */
export interface Contribution {
  readonly key: ReadonlyArray<Value>
  /** One value per column. */
  readonly values: ReadonlyArray<Value>
}

/** The rows of one group: their number, and the columns with a value of each. */
interface Group extends GroupRows {
  readonly key: ReadonlyArray<Value>
  /** The group's first row, where an output looks at it. */
  first: Scope | undefined
  size: number
  readonly columns: ReadonlyArray<Array<Value>>
}

/** Rows on their way into groups. */
export interface Gathering {
  /** Adds a row to its group, which keeps the values of its columns and not the row. Throws when one fails. */
  readonly add: (scope: Scope) => void
  /** Output rows, sorted by key; a group that fails is told and left out. Pauses between groups. */
  readonly rows: (outer: Scope, failed: (error: unknown) => void) => Slices<ReadonlyArray<GroupedRow>>
}

/** An output row and the key of its group: that of the group's first row. */
export interface GroupedRow {
  readonly key: ReadonlyArray<Value>
  readonly value: Value
}

export interface Grouping {
  /** GROUP ALL: one group, even of no rows. */
  readonly all: boolean
  readonly of: (scope: Scope) => Contribution
  /** What `of` evaluates can fail. */
  readonly canFail: boolean
  /** Values of these are columns as they are; of other columns only whether they are true. */
  readonly columns: ReadonlyArray<Expr>
  /** What rows bring, as text: equal texts, equal contributions. */
  readonly text: string
  readonly calls: ReadonlyArray<Call>
  /** Some output looks at the group's first row beyond its columns. */
  readonly looksAtFirst: boolean
  /** The output row, given the results of the calls. */
  readonly build: (
    results: ReadonlyArray<Value>,
    key: ReadonlyArray<Value>,
    outer: Scope,
    first: Scope | undefined
  ) => Value
  readonly gathering: () => Gathering
}

/** Whether an expression speaks of the row it stands in, of which a group has many. */
const namesRow = (e: Expr): boolean => {
  let found = false
  rewrite(e, (inner) => {
    found ||= inner.kind === "param" && (inner.name === "this" || inner.name === "self")
    if (inner.kind !== "idiom") return undefined
    found ||= inner.start !== undefined && namesRow(inner.start)
    return inner
  })
  return found
}

const compileBuild = (select: Select, keyTexts: ReadonlyArray<string>, needs: Needs): Grouping["build"] => {
  const outputs = select.fields.map(
    (
      f
    ): ((
      results: ReadonlyArray<Value>,
      key: ReadonlyArray<Value>,
      outer: Scope,
      first: Scope | undefined
    ) => Value) => {
      if (f.kind === "all")
        return () =>
          raise(
            "Incorrect selector for aggregate selection, expression `*` within in selector cannot be aggregated in a group."
          )
      if (namesRow(f.expr))
        return () =>
          raise("Invalid query: Found a `$this` parameter refering to the document of a group by select statement")
      const at = keyTexts.indexOf(print(f.expr))
      if (at >= 0) return (_, key) => key[at]
      const aggregated = output(needs, f.expr)
      return (results, _, outer, first) => aggregated(results, outer, first)
    }
  )
  if (select.value) return outputs[0]!
  const names = select.fields.map((f) => (f.kind === "all" ? ["*"] : outputNames(f)))
  return (results, key, outer, first) => {
    const row: Record<string, Value> = {}
    outputs.forEach((of, i) => setPath(row, names[i]!, of(results, key, outer, first)))
    return select.omit.reduce<Value>((r, idiom) => removeAt(r, idiom.parts), row)
  }
}

const groupOf = (key: ReadonlyArray<Value>, columns: number): Group => {
  const kept = Array.from({ length: columns }, (): Array<Value> => [])
  return { key, first: undefined, size: 0, columns: kept, column: (at) => kept[at]! }
}

/** Bytes of a group beside its values, and of a place in an array. */
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
  const needs = new Needs()
  const build = compileBuild(select, exprs.map(print), needs)
  const { calls, columns, looksAtFirst } = needs
  const of = (scope: Scope): Contribution => ({ key: keys.map((k) => k(scope)), values: columns.map((c) => c(scope)) })
  const rowOf = (gathered: Group, outer: Scope): GroupedRow => ({
    key: gathered.key,
    value: build(
      calls.map((call) => call.fold(gathered, outer)),
      gathered.key,
      outer,
      gathered.first
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
    for (const gathered of groups.sort((a, b) => compare(a.key, b.key))) {
      spend(outer.budget, gathered.size)
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
    looksAtFirst,
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
          // Values made on the way are let go again; those that the group keeps are paid for.
          keepBytes(budget, bytes, 0)
          make(budget, entered + placeBytes * values.length + bytesOf(values, most))
          const into = found ?? enter(id, key)
          if (looksAtFirst && into.size === 0) into.first = scope
          into.size++
          for (let i = 0; i < values.length; i++) into.columns[i]!.push(values[i])
        },
        rows: (outer, failed) => shown([...groups.values()], outer, failed)
      }
    }
  }
}
