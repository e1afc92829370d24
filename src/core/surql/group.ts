/**
 * GROUP BY and GROUP ALL: rows gathered by key, aggregates over each group.
 *
 * Why so: an aggregate call gets the array of its argument's values over the group; operations around aggregates are evaluated
 * on their results; a group key shows its value; anything else becomes the array of its values in scan order, as in
 * the database. Groups come sorted by key; numerically equal keys are one group.
 */
import type { Expr, Field, Idiom, Select } from "./ast.ts"
import { compile } from "./evaluate.ts"
import { raise } from "./failure.ts"
import { functions } from "./functions.ts"
import { compositeKey } from "./key.ts"
import { isNumber, toFloat } from "./number.ts"
import { compare, isTruthy } from "./order.ts"
import { print } from "./print.ts"
import { outputNames } from "./project.ts"
import type { Compiled, Scope, Slices } from "./scope.ts"
import { spend } from "./scope.ts"
import { removeAt, setPath } from "./shape.ts"
import { Datetime, Decimal, float } from "./value.ts"
import type { Value } from "./value.ts"

/** Computes one output value from the scopes of a group's rows. */
type Aggregate = (rows: ReadonlyArray<Scope>, outer: Scope) => Value

const aggregates: ReadonlySet<string> = new Set([
  "count", "array::distinct", "array::first", "array::flatten", "array::group", "array::last", "array::join", "math::bottom", "math::interquartile", "math::max",
  "math::mean", "math::median", "math::min", "math::mode", "math::nearestrank", "math::percentile", "math::spread", "math::stddev", "math::sum",
  "math::top", "math::trimean", "math::variance", "math::product", "time::max", "time::min"
])

/** True when an expression contains an aggregate call. */
const isAggregate = (e: Expr): boolean => {
  switch (e.kind) {
    case "call": return aggregates.has(e.name) || e.args.some(isAggregate)
    case "binary": return isAggregate(e.left) || isAggregate(e.right)
    case "unary": case "cast": return isAggregate(e.operand)
    case "array": case "set": return e.items.some(isAggregate)
    case "object": return e.entries.some(([, v]) => isAggregate(v))
    case "if": return e.branches.some(([c, v]) => isAggregate(c) || isAggregate(v)) || (e.otherwise !== undefined && isAggregate(e.otherwise))
    default: return e.kind === "idiom" && e.start !== undefined && isAggregate(e.start)
  }
}

const values = (compiled: Compiled, rows: ReadonlyArray<Scope>): Array<Value> => rows.map((row) => compiled(row))

/** Over a group these are computed with floats, even from decimals. */
const floats: ReadonlySet<string> = new Set(["math::mean", "math::stddev", "math::variance"])

/** Aggregates skip what they cannot add up, as the database does over groups. */
const usable = (name: string, items: ReadonlyArray<Value>): ReadonlyArray<Value> =>
  floats.has(name) ? items.filter(isNumber).map((n) => (n instanceof Decimal ? float(toFloat(n)) : n)) : name.startsWith("math::") ? items.filter(isNumber) : name.startsWith("time::") ? items.filter((v) => v instanceof Datetime) : items

const aggregateCall = (e: Extract<Expr, { kind: "call" }>): Aggregate => {
  const [first, ...rest] = e.args
  if (e.name === "count") {
    if (first === undefined) return (rows) => rows.length
    const value = compile(first)
    return (rows) => values(value, rows).filter(isTruthy).length
  }
  const fn = functions.get(e.name)!
  if (first === undefined) return () => raise(`Incorrect arguments for function ${e.name}(). ${fn.arity}`)
  const others = rest.map(compile)
  if (isAggregate(first)) {
    const inner = compileAggregate(first)
    return (rows, outer) => fn.call([inner(rows, outer), ...others.map((o) => o(outer))], outer, e.name)
  }
  const value = compile(first)
  return (rows, outer) => {
    const items = usable(e.name, values(value, rows))
    const scope = rows[0] ?? outer
    if (e.name === "array::group") return items
    return fn.call([items, ...others.map((o) => o(scope))], scope, e.name)
  }
}

/** A copy of an operation whose operands are parameters, to be filled with aggregated values. */
const combine = (e: Expr, operands: ReadonlyArray<Expr>, rebuild: (params: ReadonlyArray<Expr>) => Expr): Aggregate => {
  const inner = operands.map(compileAggregate)
  const whole = compile(rebuild(operands.map((o, i) => ({ kind: "param", at: e.at, name: `\u0001${i}` }))))
  return (rows, outer) => {
    const params: Record<string, Value> = { ...outer.params }
    inner.forEach((f, i) => { params[`\u0001${i}`] = f(rows, outer) })
    return whole({ ...(rows[0] ?? outer), params })
  }
}

const compileAggregate = (e: Expr): Aggregate => {
  if (!isAggregate(e)) {
    if (e.kind === "literal" || e.kind === "param") { const value = compile(e); return (_, outer) => value(outer) }
    const value = compile(e)
    return (rows) => values(value, rows)
  }
  switch (e.kind) {
    case "call": return aggregates.has(e.name) ? aggregateCall(e) : combine(e, e.args, (args) => ({ ...e, args }))
    case "binary": return combine(e, [e.left, e.right], ([left, right]) => ({ ...e, left: left!, right: right! }))
    case "unary": return combine(e, [e.operand], ([operand]) => ({ ...e, operand: operand! }))
    case "cast": return combine(e, [e.operand], ([operand]) => ({ ...e, operand: operand! }))
    case "array": return combine(e, e.items, (items) => ({ ...e, items }))
    case "set": return combine(e, e.items, (items) => ({ ...e, items }))
    case "object": return combine(e, e.entries.map(([, v]) => v), (vs) => ({ ...e, entries: e.entries.map(([k], i) => [k, vs[i]!] as const) }))
    case "if": return combine(e, [...e.branches.flat(), ...(e.otherwise === undefined ? [] : [e.otherwise])], (vs) => ({
      ...e, branches: e.branches.map((_, i) => [vs[2 * i]!, vs[2 * i + 1]!] as const), otherwise: e.otherwise === undefined ? undefined : vs[vs.length - 1]
    }))
    case "idiom": return combine(e, [e.start!], ([start]) => ({ ...e, start: start! }))
    default: return () => raise("Incorrect selector for aggregate selection")
  }
}

/** The expression a group key stands for: the field with that alias, else the document's own path. */
const keyExpr = (idiom: Idiom, fields: ReadonlyArray<Field>): Expr => {
  const text = print(idiom)
  for (const f of fields) if (f.kind === "expr" && f.alias !== undefined && print(f.alias) === text) return f.expr
  for (const f of fields) if (f.kind === "expr" && f.alias === undefined && f.expr.kind !== "idiom" && outputNames(f).join(".") === text) return f.expr
  return idiom
}

/** Rows between two pauses. */
const sliceRows = 512

export interface Grouping {
  /** The key values of one row. */
  readonly key: (scope: Scope) => ReadonlyArray<Value>
  /** Output rows for the gathered rows, sorted by key; pauses between rows and between groups. */
  readonly rows: (members: ReadonlyArray<{ readonly scope: Scope; readonly key: ReadonlyArray<Value> }>, outer: Scope) => Slices<ReadonlyArray<Value>>
}

/** Compiles the grouping of a SELECT that has one. */
export const compileGrouping = (select: Select, group: ReadonlyArray<Idiom>): Grouping => {
  const exprs = group.map((g) => keyExpr(g, select.fields))
  const keyTexts = exprs.map(print)
  const keys = exprs.map(compile)
  const outputs = select.fields.map((f): ((rows: ReadonlyArray<Scope>, key: ReadonlyArray<Value>, outer: Scope) => Value) => {
    if (f.kind === "all") return () => raise("Incorrect selector for aggregate selection, expression `*` within in selector cannot be aggregated in a group.")
    const at = keyTexts.indexOf(print(f.expr))
    if (at >= 0) return (_, key) => key[at]
    const aggregate = compileAggregate(f.expr)
    return (rows, _, outer) => aggregate(rows, outer)
  })
  const names = select.fields.map((f) => (f.kind === "all" ? ["*"] : outputNames(f)))
  const build = (rows: ReadonlyArray<Scope>, key: ReadonlyArray<Value>, outer: Scope): Value => {
    if (select.value) return outputs[0]!(rows, key, outer)
    const row: Record<string, Value> = {}
    outputs.forEach((output, i) => setPath(row, names[i]!, output(rows, key, outer)))
    return select.omit.reduce<Value>((r, idiom) => removeAt(r, idiom.parts), row)
  }
  return {
    key: (scope) => keys.map((k) => k(scope)),
    rows: function* (members, outer) {
      if (group.length === 0) return [build(members.map((m) => m.scope), [], outer)]
      const groups = new Map<unknown, { readonly key: ReadonlyArray<Value>; readonly rows: Array<Scope> }>()
      spend(outer.budget, members.length)
      for (let i = 0; i < members.length; i++) {
        if (i % sliceRows === sliceRows - 1) yield
        const m = members[i]!
        const id = compositeKey(m.key)
        const found = groups.get(id)
        if (found === undefined) groups.set(id, { key: m.key, rows: [m.scope] })
        else found.rows.push(m.scope)
      }
      const out: Array<Value> = []
      let built = 0
      for (const g of [...groups.values()].sort((a, b) => compare(a.key, b.key))) {
        out.push(build(g.rows, g.key, outer))
        built += g.rows.length
        if (built < sliceRows) continue
        built = 0
        yield
      }
      return out
    }
  }
}
