/**
 * The parts of a SELECT that a store reading in key order can do itself: a range of one table, the number of rows, and
 * skipping rows that surely fail the filter.
 *
 * Why so: an SSP pulls its tables in chunks, and a chunk must cost no more than its own rows. The ranges leave out only
 * rows that the filter would reject, never a row on which the filter would fail first.
 */
import { analyze } from "../../syntax/analyze.ts"
import type { Expr, Select } from "../../syntax/ast.ts"
import { isComposite } from "../../values/order.ts"
import { isInt, type Range, RecordId, RecordRange, Table, type Value } from "../../values/value.ts"
import { canFail, compile } from "../evaluate.ts"
import { EvalError } from "../failure.ts"
import { idOfTable } from "../paths.ts"
import type { Scope } from "../scope.ts"
import { ordersById } from "./select.ts"
import { compileSources, conjuncts, idTerms, inKeyOrder, isSameForAllRows } from "./sources.ts"

/** Rows of one table in key order, exactly the shown ones: after the first `start`, at most `limit`. */
export interface KeyScan {
  readonly table: string
  readonly range: Range | undefined
  readonly start: number
  readonly limit: number
}

/** Undefined if `body` fails; the evaluator then reports the failure. */
const safely = <A>(body: () => A): A | undefined => {
  try {
    return body()
  } catch (error) {
    if (error instanceof EvalError) return undefined
    throw error
  }
}

/** The value of an expression that is the same for every row. */
const valueOf = (e: Expr, scope: Scope): Value => (isSameForAllRows(e) ? compile(e)(scope) : undefined)

/** Whether the filter means exactly its range of keys. */
const isRange = (select: Select, table: string, scope: Scope): boolean => {
  const terms = idTerms(select.where)
  return (
    terms.length === conjuncts(select.where).length &&
    terms.every(({ op, value }) => {
      const bound = idOfTable(value(scope), table)
      return op !== "=" && bound instanceof RecordId && bound.table === table && !isComposite(bound)
    })
  )
}

const count = (e: Expr | undefined, otherwise: number, scope: Scope): number | undefined => {
  if (e === undefined) return otherwise
  const n = valueOf(e, scope)
  return isInt(n) && n >= 0 ? Number(n) : undefined
}

const scanOf = (select: Select, scope: Scope): KeyScan | undefined => {
  const [from, ...others] = select.from
  if (from === undefined || others.length > 0 || select.split.length > 0 || select.group !== undefined) return undefined
  const inOrder = inKeyOrder(select)
  if (!inOrder && !isSameForAllRows(from)) return undefined
  if (select.order.length > 0 && !(inOrder && ordersById(select))) return undefined
  if (select.where !== undefined && (from.kind !== "table" || !isRange(select, from.name, scope))) return undefined
  const source =
    from.kind === "table" ? compileSources(select)[0]!(scope) : inOrder ? compile(from)(scope) : valueOf(from, scope)
  const start = count(select.start, 0, scope),
    limit = count(select.limit, Infinity, scope)
  if (start === undefined || limit === undefined) return undefined
  if (source instanceof Table) return { table: source.name, range: undefined, start, limit }
  return source instanceof RecordRange ? { table: source.table, range: source.range, start, limit } : undefined
}

/** The scan equal to a SELECT, if there is one: only keys decide which rows it shows, and their order. */
export const keyScan = (select: Select, scope: Scope): KeyScan | undefined => safely(() => scanOf(select, scope))

/** Whether the tables of a SELECT are read only for its own rows: a subquery may read the same table whole. */
export const readsOnce = (select: Select): boolean => !analyze(select).subqueries

/** Whether a SELECT shows its rows unchanged: `SELECT *`. */
export const showsAll = ({ fetch, fields, omit, only, value }: Select): boolean =>
  fields.length === 1 && fields[0]!.kind === "all" && !value && !only && omit.length === 0 && fetch.length === 0

type Equality = readonly [field: string, value: string | number | boolean]

/**
 * Fields with the string, int or bool that each must equal for a row to pass, from the parts of the filter that run
 * before any part that can fail.
 */
export const equalities = (select: Select, scope: Scope): ReadonlyArray<Equality> =>
  safely(() => equalitiesOf(select, scope)) ?? []

const equalitiesOf = (select: Select, scope: Scope): ReadonlyArray<Equality> => {
  const [from, ...others] = select.from
  if (from?.kind !== "table" || others.length > 0 || select.where === undefined) return []
  const parts = conjuncts(select.where)
  const first = parts.findIndex((part) => canFail(part))
  return (first < 0 ? parts : parts.slice(0, first)).flatMap((part) => {
    if (part.kind !== "binary" || part.op !== "=") return []
    return [...equality(part.left, part.right, scope), ...equality(part.right, part.left, scope)]
  })
}

const equality = (path: Expr, other: Expr, scope: Scope): ReadonlyArray<Equality> => {
  if (path.kind !== "idiom" || path.start !== undefined || path.parts.length !== 1) return []
  const [part] = path.parts
  if (part?.kind !== "field" || part.name === "id") return []
  const v = valueOf(other, scope)
  return typeof v === "string" || typeof v === "boolean" || (typeof v === "number" && isInt(v)) ? [[part.name, v]] : []
}
