/**
 * The TypeScript type of a query's rows, from its projection and a schema.
 *
 * Typed are declared fields of the table and of the records it links to, ids, constants, counts and sums, comparisons,
 * objects and subqueries. Everything else is `unknown`, which is never wrong.
 */
import { Either } from "effect"
import type { BinaryOp, Expr, Field, Idiom, Select } from "../core/surql/syntax/ast.ts"
import { aliasNames, nameOf } from "../core/surql/syntax/names.ts"
import { parseSelect } from "../core/surql/syntax/parse.ts"
import {
  declaredIn,
  itemOf,
  known,
  line,
  linkedBy,
  listOf,
  objectOf,
  recordOf,
  type Tables,
  type TsType,
  typed,
  typeOf,
  union,
  unknown
} from "./declaredFields.ts"

/** The table of an expression's record, and the scope of the outer query. */
interface Scope {
  readonly tables: Tables
  readonly table: string | undefined
  readonly parent: Scope | undefined
}

const numbers: ReadonlySet<string> = new Set(["count", "array::len", "string::len"])

/** A sum of decimals is a decimal, which is a string in JSON. */
const callType = (name: string, args: ReadonlyArray<Expr>, scope: Scope): TsType => {
  const isSum = name === "math::sum" && args.length === 1 && exprType(args[0]!, scope).text === "number"
  return numbers.has(name) || isSum ? known("number") : unknown
}

const comparisons: ReadonlySet<BinaryOp> = new Set<BinaryOp>([
  ...(["=", "!=", "*=", "?=", "<", "<=", ">", ">=", "IN", "NOT IN", "CONTAINS", "CONTAINSNOT", "CONTAINSALL"] as const),
  ...(["CONTAINSANY", "CONTAINSNONE", "ALLINSIDE", "ANYINSIDE", "NONEINSIDE", "OUTSIDE", "INTERSECTS"] as const)
])

/** Field names of a path that has nothing else. */
const namesOf = ({ parts }: Idiom): ReadonlyArray<string> | undefined =>
  parts.every((part) => part.kind === "field")
    ? parts.map((part) => (part as { readonly name: string }).name)
    : undefined

const fieldOf = (tables: Tables, table: string | undefined, names: ReadonlyArray<string>): TsType => {
  const [first, ...rest] = names
  if (table === undefined || first === undefined) return unknown
  if (first === "id") return rest.length === 0 ? known(recordOf(table)) : unknown
  let at = tables.get(table)?.below.get(first)
  for (const [n, name] of rest.entries()) {
    const linked = linkedBy(at?.type)
    // The linked record may be deleted.
    if (linked.length === 1) return { ...fieldOf(tables, linked[0], rest.slice(n)), isOptional: true }
    if (at?.type !== undefined && !/^object$/i.test(at.type)) return unknown
    at = at?.below.get(name)
  }
  return at === undefined ? unknown : typeOf(at)
}

const pathType = (idiom: Idiom, scope: Scope): TsType => {
  const names = namesOf(idiom)
  const { start } = idiom
  if (names === undefined) return unknown
  if (start === undefined) return fieldOf(scope.tables, scope.table, names)
  if (start.kind !== "param") return unknown
  if (start.name === "this") return fieldOf(scope.tables, scope.table, names)
  return start.name === "parent" ? fieldOf(scope.tables, scope.parent?.table, names) : unknown
}

const constant = (value: unknown): TsType =>
  typeof value === "string" || typeof value === "boolean"
    ? known(JSON.stringify(value))
    : known(typeof value === "number" ? "number" : value === null ? "null" : "unknown")

const exprType = (expr: Expr, scope: Scope): TsType => {
  switch (expr.kind) {
    case "idiom":
      return pathType(expr, scope)
    case "literal":
      return constant(expr.value)
    case "call":
      return callType(expr.name.toLowerCase(), expr.args, scope)
    case "cast":
      return typed(expr.type)
    case "unary":
      return expr.op === "!" ? known("boolean") : unknown
    case "binary":
      return comparisons.has(expr.op) ? known("boolean") : unknown
    case "array":
      return known(listOf(union(expr.items.map((item) => itemOf(exprType(item, scope))))))
    case "object":
      return known(objectOf(expr.entries.map(([name, value]) => line(name, exprType(value, scope)))))
    case "subquery":
      return expr.query.kind === "select" ? selectType(expr.query, scope) : unknown
    default:
      return unknown
  }
}

type Columns = Map<string, TsType | Columns>

/** Sets a column below a path; false if the path leads through another column. */
const put = (columns: Columns, [first, ...rest]: ReadonlyArray<string>, type: TsType): boolean => {
  if (first === undefined) return false
  if (rest.length === 0) return columns.set(first, type) !== undefined
  const below = columns.get(first) ?? (new Map() as Columns)
  if (!(below instanceof Map)) return false
  columns.set(first, below)
  return put(below, rest, type)
}

const printed = (columns: Columns): string =>
  objectOf([...columns].map(([name, type]) => line(name, type instanceof Map ? known(printed(type)) : type)))

const tableOf = ({ from }: Select): string | undefined => {
  const [source, ...more] = from
  if (more.length > 0 || source === undefined) return undefined
  if (source.kind === "table") return source.name
  return source.kind === "record" || source.kind === "recordRange" ? source.table : undefined
}

const isKey = (field: Expr, group: ReadonlyArray<Idiom>): boolean =>
  field.kind === "idiom" && group.some((key) => namesOf(key)?.join() === namesOf(field)?.join())

/** With groups, an expression that is neither a key nor a count belongs to many records. */
const columnType = (expr: Expr, { group }: Select, scope: Scope): TsType =>
  group === undefined || expr.kind === "call" || isKey(expr, group) ? exprType(expr, scope) : unknown

const isAll = (field: Field): boolean => field.kind === "all"

/** TypeScript type of one row of a SELECT. */
const rowType = (select: Select, outer: Scope | undefined, tables: Tables): TsType => {
  const scope: Scope = { tables, table: tableOf(select), parent: outer }
  const [only] = select.fields
  if (select.value && only?.kind === "expr") return columnType(only.expr, select, scope)
  const columns: Columns = new Map()
  let isWhole = true
  if (select.fields.some(isAll)) {
    if (scope.table === undefined || select.group !== undefined) return unknown
    columns.set("id", known(recordOf(scope.table)))
    for (const [name, field] of tables.get(scope.table)?.below ?? [])
      if (name !== "id") columns.set(name, typeOf(field))
  }
  for (const field of select.fields)
    if (field.kind === "expr") {
      const names = aliasNames(field.alias ?? nameOf(field.expr))
      isWhole = put(columns, names, columnType(field.expr, select, scope)) && isWhole
    }
  // SPLIT, FETCH and OMIT change the declared type of a field.
  for (const idiom of [...select.split, ...select.fetch, ...select.omit]) {
    const [first, ...rest] = aliasNames(idiom)
    if (first === undefined) return unknown
    if (rest.length === 0 && select.omit.includes(idiom)) columns.delete(first)
    else if (columns.has(first)) columns.set(first, unknown)
  }
  return isWhole ? known(printed(columns)) : unknown
}

const selectType = (select: Select, outer: Scope): TsType => {
  const row = rowType(select, outer, outer.tables)
  return known(select.only ? union([itemOf(row), "null"]) : listOf(itemOf(row)))
}

/** The type of a query's rows, in TypeScript; Left: why the text is no query. */
export const rowTypeOf = (surql: string, tables: Tables): Either.Either<string, string> =>
  Either.mapBoth(parseSelect(surql), {
    onLeft: ({ column, line, message }) => `${message} (line ${line}, column ${column})`,
    onRight: (select) => itemOf(rowType(select, undefined, tables))
  })

/** A file that exports `Rows`: the type of the rows of each view by its name. */
export const written = (queries: ReadonlyArray<readonly [name: string, surql: string | undefined]>, schema: string) => {
  const tables = declaredIn(schema)
  const shown = (name: string, text: string): string => `  ${line(name, { text, isOptional: false })}\n`
  const lines = queries.map(([name, surql]) => {
    if (surql === undefined) return shown(name, "unknown")
    const type = rowTypeOf(surql, tables)
    if (Either.isLeft(type)) throw new Error(`the query of the view ${name} cannot be read: ${type.left}`)
    return shown(name, type.right)
  })
  return `// Written by \`rowTypes\` of surreal-live-sidecar/views. Do not edit.\nexport interface Rows {\n${lines.join("")}}\n`
}
