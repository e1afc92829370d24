/**
 * A query shape: a query without its constants, compiled once for all views that differ only in them.
 *
 * `plan` decides here, per query, whether its result can be maintained row by row; where it cannot, it says why and the
 * engine recomputes that view (law L6). The indexed conjuncts are parts of the filter that must hold for every matching
 * row (indexPlan.ts chooses them); the rest is the residual. Subqueries shown as fields are the shape's children: a row
 * holds their results, shows them, and changes with them.
 */
import { Either } from "effect"
import { canFail, compile, run } from "../../surql/evaluate/evaluate.ts"
import type { Compiled, Scope } from "../../surql/evaluate/scope.ts"
import { compileGrouping } from "../../surql/evaluate/select/group.ts"
import { compileProjection, outputNames } from "../../surql/evaluate/select/project.ts"
import { compileFetch, compileSort } from "../../surql/evaluate/select/reshape.ts"
import { ordersById } from "../../surql/evaluate/select/select.ts"
import { analyze } from "../../surql/syntax/analyze.ts"
import type { Expr, Field, Idiom, Select } from "../../surql/syntax/ast.ts"
import { aliasNames } from "../../surql/syntax/names.ts"
import { rewriteRows } from "../../surql/syntax/rewrite.ts"
import { compareRecords } from "../../surql/values/order.ts"
import type { Value } from "../../surql/values/value.ts"
import { field, isInt } from "../../surql/values/value.ts"
import { type GroupPlan, groupPlan } from "../operators/groups.ts"
import type { RowKind } from "../operators/resultSet.ts"
import { compileSplitting, piecesKind, type Splitting } from "../operators/split.ts"
import { noSort, type ViewRow, viewRowHash } from "../operators/viewRow.ts"
import type { Bounds } from "../operators/window.ts"
import { chooseIndexPlan, type IndexPlan } from "./indexPlan.ts"
import { type ListArgument, shapeText } from "./lift.ts"
import { type MembersPlan, membersPlanOf } from "./membersPlan.ts"
import { type PagePlan, pagePlanOf } from "./pagePlan.ts"

interface SortTerm {
  readonly value: Compiled
  readonly compare: (a: Value, b: Value) => number
}

/** A subquery shown as a field of its own. */
export interface ChildField {
  readonly alias: string
  readonly query: Select
  /** Evaluates the field without a maintained result. */
  readonly value: Compiled
}

export interface Shape {
  readonly text: string
  /** The whole table it reads, if that is its only source; undefined if parameters name the source. */
  readonly table: string | undefined
  /** The sources after FROM: tables and parameters. */
  readonly sources: ReadonlyArray<Expr>
  /** Tables that the query names elsewhere; links may lead to further tables. */
  readonly otherTables: ReadonlyArray<string>
  /** The indexed conjuncts; undefined if none lead from a changed row to views. */
  readonly access: IndexPlan | undefined
  readonly filter: Compiled | undefined
  /** The filter without the indexed conjuncts. */
  readonly residual: Compiled | undefined
  readonly sort: ReadonlyArray<SortTerm>
  readonly kind: RowKind<ViewRow>
  /** How groups are maintained; undefined without GROUP. */
  readonly groups: GroupPlan | undefined
  /** How a row is split; undefined without SPLIT. */
  readonly splitting: Splitting | undefined
  readonly windowed: boolean
  /** The ordered index of a window that is a page; undefined for other queries. */
  readonly page: PagePlan | undefined
  /** The window holds all matching rows, so no other list does. */
  readonly heldByWindow: boolean
  /** Rows of one source are read in the order of the result, so reading ends at a full window. */
  readonly readInOrder: boolean
  readonly only: boolean
  readonly limit: Expr | undefined
  readonly start: Expr | undefined
  /** Evaluates the whole row as it is shown. */
  readonly project: Compiled
  /** Evaluates the row without its children. */
  readonly own: Compiled
  readonly children: ReadonlyArray<ChildField>
  readonly aliases: ReadonlyArray<string>
  /** Children are shown unchanged: if only children change, the row stays the same row with other children. */
  readonly onlyShows: boolean
  /** All subqueries, by alias or by the clause that has them. */
  readonly subqueries: ReadonlyArray<{ readonly name: string; readonly query: Select }>
  /** No expression of the query can fail. */
  readonly total: boolean
  /** An expression of the query may read other records. */
  readonly reaches: boolean
  /** Each changed row has to be projected: the projection can fail, or shows content of other records. */
  readonly checksProjection: boolean
  /** Showing a row, or a group, can fail. */
  readonly projectionCanFail: boolean
  /** The subquery whose values are an argument that changes, and its parameter. */
  readonly list: ListArgument | undefined
  /** Nesting depth of subqueries: inner strata are settled first. */
  readonly stratum: number
  /** Plan for sharing rows with other views of the same filter; undefined if there is nothing to share. */
  readonly members: MembersPlan | undefined
}

/** Why a query is recomputed instead of maintained. */
export interface Declined {
  readonly reason: string
}

const conjuncts = (expr: Expr | undefined): ReadonlyArray<Expr> =>
  expr === undefined
    ? []
    : expr.kind === "binary" && expr.op === "AND"
      ? [...conjuncts(expr.left), ...conjuncts(expr.right)]
      : [expr]

const conjunction = (parts: ReadonlyArray<Expr>): Expr | undefined =>
  parts.reduce<Expr | undefined>(
    (left, right) => (left === undefined ? right : { kind: "binary", at: right.at, op: "AND", left, right }),
    undefined
  )

const declined = (select: Select): string | undefined => {
  if (select.from.some((source) => source.kind !== "table" && source.kind !== "param"))
    return "a source is computed from data"
  if (
    [select.limit, select.start].some(
      (bound) => bound !== undefined && bound.kind !== "param" && bound.kind !== "literal"
    )
  )
    return "START or LIMIT is computed from data"
  if (select.group !== undefined && select.fetch.length > 0) return "FETCH of grouped rows is not maintained"
  return undefined
}

/** The subqueries shown as fields, if no later clause looks inside them. */
const childFields = (select: Select): ReadonlyArray<Field> =>
  select.value ||
  select.group !== undefined ||
  select.split.length > 0 ||
  select.omit.length > 0 ||
  select.fetch.length > 0
    ? []
    : select.fields.filter((f) => f.kind === "expr" && f.expr.kind === "subquery" && f.expr.query.kind === "select")

const childOf = (field: Field): ReadonlyArray<ChildField> =>
  field.kind === "expr" && field.expr.kind === "subquery" && field.expr.query.kind === "select"
    ? [{ alias: outputNames(field).join("."), query: field.expr.query, value: compile(field.expr) }]
    : []

/** Whether a path begins with the name that a field is shown under. */
const startsAlike = (field: Field, idiom: Idiom): boolean =>
  field.kind === "expr" && outputNames(field)[0] === aliasNames(idiom)[0]

/** The subqueries of the clauses that see rows, without those nested in them. */
const subqueriesOf = (select: Select): Shape["subqueries"] => {
  const found: Array<{ readonly name: string; readonly query: Select }> = []
  const look = (name: string, clauses: Select): void =>
    void rewriteRows(clauses, (e) => {
      if (e.kind === "subquery" && e.query.kind === "select") found.push({ name, query: e.query })
      return undefined
    })
  const bare: Select = { ...select, fields: [], where: undefined, order: [], group: undefined, split: [] }
  for (const field of select.fields)
    if (field.kind === "expr") look(outputNames(field).join("."), { ...bare, fields: [field] })
  if (select.where !== undefined) look("in the filter", { ...bare, where: select.where })
  return found
}

/** Nesting depth of subqueries in a syntax tree. */
const nesting = (node: unknown): number => {
  if (typeof node !== "object" || node === null) return 0
  const inside = Object.values(node).reduce<number>((deepest, value) => Math.max(deepest, nesting(value)), 0)
  return "kind" in node && node.kind === "subquery" ? inside + 1 : inside
}

/** Sort values are read before FETCH replaces links. */
const sortTerms = (select: Select, project: Compiled): ReadonlyArray<SortTerm> =>
  select.order.map((term) => {
    const { compare, fromDoc, read } = compileSort(select, term)
    return {
      value: fromDoc ?? ((scope) => read({ scope, record: undefined, sort: noSort, value: project(scope) })),
      compare
    }
  })

/** Compiles a lifted query, or says why it cannot be maintained. */
export const plan = (select: Select, list?: ListArgument): Shape | Declined => {
  const facts = analyze(select)
  const reason = declined(select)
  if (reason !== undefined) return { reason }
  const parts = conjuncts(select.where)
  const [only] = select.from
  const table = select.from.length === 1 && only?.kind === "table" ? only.name : undefined
  const { access, residual: rest } =
    table === undefined ? { access: undefined, residual: parts } : chooseIndexPlan(parts)
  const residual = conjunction(rest)
  const grouping = select.group && compileGrouping(select, select.group)
  const projection =
    grouping === undefined ? compileProjection(select) : { project: () => undefined, canFail: grouping.canFail }
  const fetch = select.fetch.length === 0 ? undefined : compileFetch(select)
  const project: Compiled =
    fetch === undefined ? projection.project : (scope) => fetch(projection.project(scope), scope)
  const children = childFields(select)
  const fields = children.flatMap(childOf)
  const own =
    children.length === 0
      ? project
      : compileProjection({ ...select, fields: select.fields.filter((field) => !children.includes(field)) }).project
  const sort = sortTerms(select, projection.project)
  const windowed = select.limit !== undefined || select.start !== undefined
  const heldByWindow = windowed && grouping === undefined && select.split.length === 0
  const subqueries = facts.subqueries ? subqueriesOf(select) : []
  const shape: Omit<Shape, "members"> = {
    text: shapeText(select, list),
    table,
    sources: select.from,
    otherTables: facts.referencedTables.filter((name) => name !== table),
    access,
    filter: select.where && compile(select.where),
    residual: residual && compile(residual),
    sort,
    kind: select.split.length > 0 ? piecesKind(byTerms(sort)) : kindOf(sort),
    groups:
      grouping &&
      groupPlan(
        grouping,
        select.order.map((term) => compileSort(select, term))
      ),
    splitting: select.split.length > 0 ? compileSplitting(select) : undefined,
    windowed,
    page:
      heldByWindow && table !== undefined && list === undefined && !select.only
        ? pagePlanOf(select, table, access, residual === undefined)
        : undefined,
    heldByWindow,
    readInOrder: select.order.length === 0 || ordersById(select),
    only: select.only,
    limit: select.limit,
    start: select.start,
    project,
    own,
    children: fields,
    aliases: fields.map(({ alias }) => alias),
    onlyShows:
      subqueries.length === children.length &&
      !select.order.some((term) => children.some((child) => startsAlike(child, term.idiom))),
    subqueries,
    total:
      !projection.canFail &&
      !(select.where !== undefined && canFail(select.where)) &&
      !select.order.some((term) => canFail(term.idiom)),
    reaches: facts.reaches,
    checksProjection: projection.canFail || facts.reaches,
    projectionCanFail: projection.canFail,
    list,
    stratum: Math.max(nesting(select), list === undefined ? 0 : nesting(list.query) + 1)
  }
  return { ...shape, members: membersPlanOf(select, shape) }
}

/** Most queries have one term with numbers or text. */
const byOneTerm =
  ({ compare }: SortTerm) =>
  (a: ViewRow, b: ViewRow): number => {
    const order = compare(a.lead, b.lead)
    return order !== 0 || a.slot === b.slot ? order : compareRecords(a.slot.id, b.slot.id)
  }

const leadOf = ({ lead }: ViewRow): Value => lead

const kindOf = (sort: ReadonlyArray<SortTerm>): RowKind<ViewRow> =>
  sort.length === 1
    ? { compare: byOneTerm(sort[0]!), lead: leadOf, compareLeads: sort[0]!.compare, hash: viewRowHash }
    : { compare: byTerms(sort), hash: viewRowHash }

const byTerms =
  (sort: ReadonlyArray<SortTerm>) =>
  (a: ViewRow, b: ViewRow): number => {
    for (let i = 0; i < sort.length; i++) {
      const order = sort[i]!.compare(a.sort[i], b.sort[i])
      if (order !== 0) return order
    }
    // Without ORDER BY, rows are in the order of their sources; then, and between equal rows, by record.
    return sort.length === 0 && a.sourceIndex !== b.sourceIndex
      ? a.sourceIndex - b.sourceIndex
      : compareRecords(a.slot.id, b.slot.id)
  }

/** START and LIMIT of one view, which must be whole and not negative, as in the database. */
export const boundsOf = (select: Pick<Select, "limit" | "start">, scope: Scope): Either.Either<Bounds, string> => {
  const bound = (name: string, expr: Expr | undefined, missing: number): Either.Either<number, string> => {
    if (expr === undefined) return Either.right(missing)
    // Lifted bounds are parameters: subqueries have one view for each parent row, so nothing is compiled here.
    const value = expr.kind === "param" ? Either.right(field(scope.params, expr.name)) : run(compile(expr), scope)
    if (Either.isLeft(value)) return Either.left(value.left.kind)
    if (!isInt(value.right) || value.right < 0) return Either.left(`${name} must be a non-negative integer`)
    return Either.right(Number(value.right))
  }
  const start = bound("START", select.start, 0)
  if (Either.isLeft(start)) return Either.left(start.left)
  const limit = bound("LIMIT", select.limit, Infinity)
  return Either.isLeft(limit) ? Either.left(limit.left) : Either.right({ start: start.right, limit: limit.right })
}

export const unsorted: Pick<ViewRow, "lead" | "sort"> = { lead: undefined, sort: noSort }

/** The values of the ORDER BY terms of one row. */
export const sortValues = ({ sort }: Shape, read: (value: Compiled) => Value): Pick<ViewRow, "lead" | "sort"> =>
  sort.length === 1
    ? { lead: read(sort[0]!.value), sort: noSort }
    : { lead: undefined, sort: sort.map((term) => read(term.value)) }
