/**
 * A query shape: a query without its constants, compiled once for all views that differ only in them.
 *
 * `plan` decides here, per query, whether its result can be maintained row by row; where it cannot, it says why and
 * the engine recomputes that view (law L6). The indexed conjuncts are those `path = constant` parts of the filter
 * that must hold for every matching row; the rest is the residual.
 */
import { Either } from "effect"
import type { Expr, Idiom, Select } from "../surql/ast.ts"
import { analyze, type Facts } from "../surql/analyze.ts"
import { canFail, compile, run } from "../surql/evaluate.ts"
import { compareRecords } from "../surql/order.ts"
import { print } from "../surql/print.ts"
import { compileProjection } from "../surql/project.ts"
import type { Compiled, Scope } from "../surql/scope.ts"
import { compareTerm } from "../surql/sorting.ts"
import type { Value } from "../surql/value.ts"
import { isInt } from "../surql/value.ts"
import type { PlanRow } from "./instance.ts"
import { liftedPrefix } from "./lift.ts"
import type { Path } from "./rowIndex.ts"
import type { Row } from "./store.ts"

export interface SortTerm {
  readonly value: Compiled
  readonly compare: (a: Value, b: Value) => number
}

export interface SortedRow {
  readonly row: Row
  readonly sort: ReadonlyArray<Value>
}

export interface Shape {
  readonly text: string
  readonly table: string
  /** Tables named along the way; a link may lead to others still. */
  readonly otherTables: ReadonlyArray<string>
  /** Indexed paths, and the parameter each must equal. */
  readonly paths: ReadonlyArray<Path>
  readonly argumentNames: ReadonlyArray<string>
  readonly filter: Compiled | undefined
  /** The filter without the indexed conjuncts. */
  readonly residual: Compiled | undefined
  readonly sort: ReadonlyArray<SortTerm>
  readonly compare: (a: SortedRow, b: SortedRow) => number
  readonly windowed: boolean
  readonly project: Compiled
  /** No expression of it can fail. */
  readonly total: boolean
  /** An expression of it may read other records. */
  readonly reaches: boolean
  /** The projection must be evaluated per changed row: it can fail, or shows content of other records. */
  readonly checksProjection: boolean
}

/** Why a query is recomputed instead of maintained. */
export interface Declined {
  readonly reason: string
}

const conjuncts = (expr: Expr | undefined): ReadonlyArray<Expr> =>
  expr === undefined ? [] : expr.kind === "binary" && expr.op === "AND" ? [...conjuncts(expr.left), ...conjuncts(expr.right)] : [expr]

/** The path of an idiom that starts at the record and only names fields. */
const plainPath = (expr: Expr): Path | undefined => {
  if (expr.kind !== "idiom" || expr.start !== undefined || expr.parts.length === 0) return undefined
  const path: Array<string> = []
  for (const part of expr.parts) {
    if (part.kind !== "field") return undefined
    path.push(part.name)
  }
  return path
}

const liftedName = (expr: Expr): string | undefined => (expr.kind === "param" && expr.name.startsWith(liftedPrefix) ? expr.name : undefined)

const indexable = (expr: Expr): { readonly path: Path; readonly name: string } | undefined => {
  if (expr.kind !== "binary" || expr.op !== "=") return undefined
  const [path, name] = liftedName(expr.right) === undefined ? [plainPath(expr.right), liftedName(expr.left)] : [plainPath(expr.left), liftedName(expr.right)]
  return path === undefined || name === undefined ? undefined : { path, name }
}

const conjunction = (parts: ReadonlyArray<Expr>): Expr | undefined =>
  parts.reduce<Expr | undefined>((left, right) => (left === undefined ? right : { kind: "binary", at: right.at, op: "AND", left, right }), undefined)

/** The expression an ORDER BY term stands for: the aliased one it names, else the record's own path. */
const sortExpr = (select: Select, idiom: Idiom): Expr | Declined => {
  const name = print(idiom)
  for (const field of select.fields) {
    if (field.kind !== "expr" || field.alias === undefined) continue
    const alias = print(field.alias)
    if (alias === name) return field.expr
    if (name.startsWith(`${alias}.`) || name.startsWith(`${alias}[`)) return { reason: `ORDER BY ${name} looks inside the alias ${alias}` }
  }
  return idiom
}

const declined = (select: Select, facts: Facts): string | undefined => {
  if (select.from.length !== 1 || select.from[0]?.kind !== "table") return "the source is not one whole table"
  if (select.group !== undefined) return "GROUP is not maintained yet"
  if (select.split.length > 0) return "SPLIT is not maintained yet"
  if (select.fetch.length > 0) return "FETCH is not maintained yet"
  if (select.only) return "ONLY is not maintained yet"
  if (facts.subqueries) return "subqueries are not maintained yet"
  return undefined
}

/** Compiles a lifted query, or says why it cannot be maintained. */
export const plan = (select: Select): Shape | Declined => {
  const facts = analyze(select)
  const reason = declined(select, facts)
  const source = select.from[0]
  if (reason !== undefined || source?.kind !== "table") return { reason: reason ?? "the source is not one whole table" }
  const sortExprs: Array<Expr> = []
  for (const term of select.order) {
    const expr = sortExpr(select, term.idiom)
    if ("reason" in expr) return expr
    sortExprs.push(expr)
  }
  const parts = conjuncts(select.where)
  const indexed = parts.map(indexable)
  const residual = conjunction(parts.filter((_, i) => indexed[i] === undefined))
  const paths = indexed.filter((part) => part !== undefined)
  const projection = compileProjection(select)
  const sort = sortExprs.map((expr, i): SortTerm => ({ value: compile(expr), compare: compareTerm(select.order[i]!) }))
  const { reaches } = facts
  return {
    text: print(select),
    table: source.name,
    otherTables: facts.referencedTables.filter((table) => table !== source.name),
    paths: paths.map((part) => part.path),
    argumentNames: paths.map((part) => part.name),
    filter: select.where && compile(select.where),
    residual: residual && compile(residual),
    sort,
    compare: comparator(sort),
    windowed: select.limit !== undefined || select.start !== undefined,
    project: projection.project,
    total: !projection.canFail && !(select.where !== undefined && canFail(select.where)) && !sortExprs.some(canFail),
    reaches,
    checksProjection: projection.canFail || reaches
  }
}

const comparator = (sort: ReadonlyArray<SortTerm>) => (a: SortedRow, b: SortedRow): number => {
  for (let i = 0; i < sort.length; i++) {
    const order = sort[i]!.compare(a.sort[i], b.sort[i])
    if (order !== 0) return order
  }
  return compareRecords(a.row.id, b.row.id)
}

/** START and LIMIT of one instance, as the database reads them: whole and not negative. */
export const boundsOf = (select: Select, scope: Scope): Either.Either<{ readonly start: number; readonly limit: number }, string> => {
  const bound = (name: string, expr: Expr | undefined, missing: number): Either.Either<number, string> => {
    if (expr === undefined) return Either.right(missing)
    const value = run(compile(expr), scope)
    if (Either.isLeft(value)) return Either.left(value.left.reason)
    if (!isInt(value.right) || value.right < 0) return Either.left(`${name} must be a non-negative integer`)
    return Either.right(Number(value.right))
  }
  return Either.all({ start: bound("START", select.start, 0), limit: bound("LIMIT", select.limit, Infinity) })
}

/** The operators of a maintained shape, for `/debug/view`. */
export const planOf = (shape: Shape, matching: number, shown: number): ReadonlyArray<PlanRow> => {
  const row = (operator: string, rows: number): PlanRow => ({ operator, incremental: true, reason: null, rows })
  return [
    row(`source ${shape.table}`, matching),
    ...shape.paths.map((path) => row(`index ${path.join(".")}`, matching)),
    ...(shape.residual === undefined ? [] : [row("filter", matching)]),
    ...(shape.windowed ? [row("window", matching)] : shape.sort.length > 0 ? [row("sort when read", matching)] : []),
    row("project", shown)
  ]
}
