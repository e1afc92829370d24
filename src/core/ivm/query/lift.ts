/**
 * Lifting replaces the parts of a query that do not depend on its rows by parameters: `author = user:1`, `author = $u`
 * and `author = $parent.id` become one shape with one argument.
 *
 * Why: all views of one shape share one set of compiled closures and one view index, so the cost of a change grows with
 * the number of shapes and not of views (law L4). Constants are lifted from FROM, WHERE, START and LIMIT only: in the
 * projection their text names the output field. A constant that cannot be evaluated stays in the query and fails row by
 * row, as it does in the database. Regular expressions stay too: equality with one is a match and cannot be indexed.
 */
import { Either } from "effect"
import { partsOf } from "../../surql/evaluate/charge.ts"
import { compile, isConstant, run } from "../../surql/evaluate/evaluate.ts"
import { idOfTable } from "../../surql/evaluate/paths.ts"
import type { Compiled, Scope } from "../../surql/evaluate/scope.ts"
import { isId, scopeIn } from "../../surql/evaluate/select/sources.ts"
import { analyze } from "../../surql/syntax/analyze.ts"
import type { Expr, Select } from "../../surql/syntax/ast.ts"
import { print } from "../../surql/syntax/print.ts"
import { rewriteRows } from "../../surql/syntax/rewrite.ts"
import { encode } from "../../surql/values/encode.ts"
import { field, RecordId, Regex, setField, type Value } from "../../surql/values/value.ts"

export type Params = { readonly [name: string]: Value }

interface Lifted {
  readonly select: Select
  /** Values for evaluating the shape, by parameter name: lifted ones and the user's own parameters that remain. */
  readonly params: Params
}

/** Prefix of lifted parameters; no user parameter can begin with it. */
export const liftedPrefix = "\u0000"
const listName = `${liftedPrefix}list`

const holdsRegex = (value: Value): boolean =>
  value instanceof Regex || (Array.isArray(value) && (value as ReadonlyArray<Value>).some(holdsRegex))

/**
 * Number of parts of the largest constant that is lifted: arguments are written out to compare them, shared parts each
 * time.
 */
const largestArgument = 10_000

/** Whether a constant stays in the query: it is too large to be written out, or contains a regular expression. */
const stays = (value: Value): boolean => partsOf(value, largestArgument) > largestArgument || holdsRegex(value)

type Binary = Extract<Expr, { kind: "binary" }>

const argumentOf = (expr: Expr, ofTable: string | undefined): Compiled => {
  const value = compile(expr)
  return ofTable === undefined ? value : (scope) => idOfTable(value(scope), ofTable)
}

const isLess = ({ op }: Binary): boolean => op === "<" || op === ">"

const isOrder = (op: string): boolean => /^[<>]=?$/.test(op)

/** All operands of a chain of the same operator. */
const operandsOf = (expr: Expr, op: "AND" | "OR"): ReadonlyArray<Expr> =>
  expr.kind === "binary" && expr.op === op ? [...operandsOf(expr.left, op), ...operandsOf(expr.right, op)] : [expr]

/** Whether two comparisons have the same operands. */
const isAlike = (a: Expr, b: Binary): boolean =>
  a.kind === "binary" && a.op === "=" && print(a.left) === print(b.left) && print(a.right) === print(b.right)

/** `at <= $at`, implied by `at < $at OR at = $at AND id < $id`: a page that continues another is an index range. */
const impliedBy = (expr: Expr): Expr | undefined => {
  const parts = operandsOf(expr, "OR")
  const less = parts.find((part): part is Binary => part.kind === "binary" && isLess(part))
  return less !== undefined &&
    parts.length > 1 &&
    parts.every((part) => part === less || operandsOf(part, "AND").some((each) => isAlike(each, less)))
    ? { ...less, op: less.op === "<" ? "<=" : ">=" }
    : undefined
}

const withImplied = (expr: Expr): Expr => {
  if (expr.kind !== "binary" || (expr.op !== "AND" && expr.op !== "OR")) return expr
  if (expr.op === "AND") return { ...expr, left: withImplied(expr.left), right: withImplied(expr.right) }
  const implied = impliedBy(expr)
  return implied === undefined ? expr : { kind: "binary", at: expr.at, op: "AND", left: implied, right: expr }
}

/**
 * Replaces constants by parameters. `take` answers the name, or `undefined` to leave the constant. `ofTable`: texts
 * that are ids of this table become ids, because they are compared with such ids.
 */
const withoutConstants = (
  select: Select,
  take: (expr: Expr, ofTable?: string) => string | undefined,
  wholeBounds: boolean
): Select => {
  const [from] = select.from
  const table = select.from.length === 1 && from?.kind === "table" ? from.name : undefined
  const lifted = (expr: Expr, ofTable?: string): Expr | undefined => {
    const name = take(expr, ofTable)
    return name === undefined ? undefined : { kind: "param", at: expr.at, name }
  }
  const walk = (expr: Expr, ofTable?: string): Expr => {
    const param = isConstant(expr) ? lifted(expr, ofTable) : undefined
    if (param !== undefined) return param
    if (expr.kind === "binary") {
      const ids = isOrder(expr.op) && (isId(expr.left) || isId(expr.right)) ? table : undefined
      return { ...expr, left: walk(expr.left, ids), right: walk(expr.right, ids) }
    }
    if (expr.kind === "unary") return { ...expr, operand: walk(expr.operand) }
    return expr
  }
  const bound = (expr: Expr | undefined): Expr | undefined =>
    expr && (wholeBounds || isConstant(expr) ? (lifted(expr) ?? expr) : expr)
  return {
    ...select,
    from: select.from.map((source) => (source.kind === "table" ? source : bound(source)!)),
    where: select.where && walk(withImplied(select.where)),
    limit: bound(select.limit),
    start: bound(select.start)
  }
}

/** Replaces the first subquery behind IN in a conjunct by a parameter. */
const withoutList = (
  select: Select,
  listText: (query: Select) => string | undefined
): { readonly select: Select; readonly list: ListArgument | undefined } => {
  let list: ListArgument | undefined
  const walk = (expr: Expr): Expr => {
    if (expr.kind !== "binary" || list !== undefined) return expr
    if (expr.op === "AND") {
      const left = walk(expr.left)
      return { ...expr, left, right: walk(expr.right) }
    }
    const right = expr.op === "IN" ? expr.right : undefined
    const text = right?.kind === "subquery" && right.query.kind === "select" ? listText(right.query) : undefined
    if (text === undefined || right?.kind !== "subquery" || right.query.kind !== "select") return expr
    list = { name: listName, query: right.query, text }
    return { ...expr, right: { kind: "param", at: right.at, name: listName } }
  }
  const where = select.where && walk(select.where)
  return { select: { ...select, where }, list }
}

const used = (select: Select, given: Params): Params => {
  const params: Record<string, Value> = {}
  for (const name of analyze(select).params) setField(params, name, field(given, name))
  return params
}

/**
 * Lifts one query for the parameters in `scope`: constants that cannot be evaluated stay. The document in scope is not
 * read.
 */
export const lift = (select: Select, scope: Scope): Lifted => {
  const args: Record<string, Value> = {}
  let count = 0
  const lifted = withoutConstants(
    select,
    (expr, ofTable) => {
      const value = run(argumentOf(expr, ofTable), scope)
      if (Either.isLeft(value) || stays(value.right)) return undefined
      const name = `${liftedPrefix}${count++}`
      args[name] = value.right
      return name
    },
    false
  )
  return { select: lifted, params: used(lifted, { ...scope.params, ...args }) }
}

/** A query lifted once for all parameters and, if it is a subquery, for every parent row. */
export interface LiftedOnce {
  readonly select: Select
  /** The query without constants, and the text of the subquery behind IN, if it is a list. */
  readonly text: string
  /** A subquery behind IN whose values are an argument that changes. */
  readonly list: ListArgument | undefined
  /** The subquery depends on its parent row. */
  readonly correlated: boolean
  /** The parameters for one outer scope; undefined if a constant cannot be evaluated and has to stay in the query. */
  readonly params: (outer: Scope) => Params | undefined
  /** Text of such parameters; different parameters have different texts. */
  readonly keyOf: (params: Params) => string
}

export interface ListArgument {
  readonly name: string
  readonly query: Select
  /** Text of the subquery without its constants. */
  readonly text: string
}

interface Argument {
  readonly name: string
  /** Undefined if the value is made in another way: a text that becomes an id. */
  readonly expr: Expr | undefined
  readonly value: Compiled
}

/**
 * Values of the parameters `free` for one scope. Subqueries ask for them row by row, so a literal, or a parameter taken
 * from the parent row, is not evaluated again.
 */
const parametersOf = (
  parents: ReadonlyArray<Argument>,
  args: ReadonlyArray<Argument>,
  free: ReadonlyArray<string>
): LiftedOnce["params"] => {
  const placeOf = (list: ReadonlyArray<Argument>, wanted: string): number =>
    list.findIndex(({ name }) => name === wanted)
  const known = args.map(({ expr, value }) => ({
    value,
    literal: expr?.kind === "literal" && !stays(expr.value) ? expr : undefined,
    parent: expr?.kind === "param" ? placeOf(parents, expr.name) : -1
  }))
  const names = free.map((name) => ({ name, argument: placeOf(args, name), parent: placeOf(parents, name) }))
  return (outer) => {
    const context = scopeIn(outer, outer.doc)
    const ofParents = parents.map(({ value }) => value(context))
    let scope: Scope | undefined
    const values: Array<Value> = []
    for (const { literal, parent, value } of known) {
      if (literal !== undefined) values.push(literal.value)
      else {
        const found = parent >= 0 ? undefined : run(value, (scope ??= withParents(context, parents, ofParents)))
        if (found !== undefined && Either.isLeft(found)) return undefined
        const argument = found === undefined ? ofParents[parent] : found.right
        if (stays(argument)) return undefined
        values.push(argument)
      }
    }
    const params: Record<string, Value> = {}
    for (const { argument, name, parent } of names)
      setField(
        params,
        name,
        argument >= 0 ? values[argument] : parent >= 0 ? ofParents[parent] : field(outer.params, name)
      )
    return params
  }
}

const withParents = (context: Scope, parents: ReadonlyArray<Argument>, values: ReadonlyArray<Value>): Scope => {
  if (parents.length === 0) return context
  const params: Record<string, Value> = { ...context.params }
  parents.forEach(({ name }, i) => {
    params[name] = values[i]
  })
  return { ...context, params }
}

const isParent = (expr: Expr): boolean => expr.kind === "param" && expr.name === "parent"

/** Key of a shape. Lifting took the list of `IN` out of the query, so its text is appended. */
export const shapeText = (select: Select, list: ListArgument | undefined): string =>
  list === undefined ? print(select) : `${print(select)}\n${list.text}`

/**
 * Lifts a query, or with `inside` a subquery, whose arguments include what it takes from its parent row. `listText`
 * answers the text of a subquery whose values can be a list.
 */
export const liftOnce = (
  query: Select,
  inside: boolean,
  listText: (query: Select) => string | undefined
): LiftedOnce => {
  const parents: Array<Argument> = []
  const args: Array<Argument> = []
  const argument = (list: Array<Argument>, prefix: string, expr: Expr, ofTable?: string): string => {
    const name = `${prefix}${list.length}`
    list.push({ name, expr: ofTable === undefined ? expr : undefined, value: argumentOf(expr, ofTable) })
    return name
  }
  const rows = !inside
    ? query
    : rewriteRows(query, (expr) => {
        const whole =
          isParent(expr) ||
          (expr.kind === "idiom" &&
            expr.start !== undefined &&
            isParent(expr.start) &&
            expr.parts.every((part) => part.kind === "field"))
        return whole ? { kind: "param", at: expr.at, name: argument(parents, `${liftedPrefix}p`, expr) } : undefined
      })
  let correlated = parents.length > 0
  const constant = withoutConstants(
    rows,
    (expr, ofTable) => {
      correlated ||= !isConstant(expr)
      return argument(args, liftedPrefix, expr, ofTable)
    },
    inside
  )
  const { list, select } = withoutList(constant, listText)
  const free = analyze(select).params.filter((name) => name !== list?.name)
  return {
    select,
    text: shapeText(select, list),
    list,
    correlated,
    params: parametersOf(parents, args, free),
    keyOf:
      free.length === 1
        ? (params) => valueKey(params[free[0]!])
        : (params) => free.map((name) => valueKey(params[name])).join("\n")
  }
}

/** Text of a value. Most subqueries depend on one record id: its own text, marked, is cheaper than `encode`. */
export const valueKey = (value: Value): string => (value instanceof RecordId ? `\u0002${value.text}` : encode(value))
