/**
 * Whether a window is a page of an ordered index: the key and the order of the index, and the values between which the
 * page lies.
 *
 * A window is a page if every ORDER BY term reads one field of the record. The index decides equal fields, one IN, and
 * a range of the first ORDER BY field; the rest of the filter, which must read only the record and cannot fail, is
 * evaluated for the rows walked over. All other views keep all matching rows in a window of their own; so do views with
 * another indexable condition, since few rows may meet it. Arguments have the last word: without exact keys there is no
 * page.
 */

import { canFail } from "../../surql/evaluate/evaluate.ts"
import { compileSort } from "../../surql/evaluate/select/reshape.ts"
import { isId } from "../../surql/evaluate/select/sources.ts"
import { analyze } from "../../surql/syntax/analyze.ts"
import type { Select } from "../../surql/syntax/ast.ts"
import { print } from "../../surql/syntax/print.ts"
import { isComposite } from "../../surql/values/order.ts"
import { RecordId, type Value } from "../../surql/values/value.ts"
import type { Bounds } from "../operators/window.ts"
import { type FiledKey, plainKey } from "../store/denseMap.ts"
import { type KeySpec, keyOfValues, keysOfElements, type Path, unindexable } from "../store/indexKey.ts"
import type { Interval } from "../store/intervalTree.ts"
import type { Ordering, OrderingTerm } from "../store/ordering.ts"
import { comparesTextAndIds, type IndexPlan, intervalOf, plainPath, valuesOf } from "./indexPlan.ts"
import { type Params, valueKey } from "./lift.ts"

/** Largest LIMIT that is served as a page: a change may shift the whole array, O(LIMIT). */
const maxPage = 1024

/** Largest START of a page under several keys, which counts the rows before it one by one. */
const maxMergedStart = 4096

export interface PagePlan {
  /** Name of the index: equal for equal tables, keys and orders. */
  readonly name: string
  readonly spec: KeySpec
  readonly ordering: Ordering
  /** The first ORDER BY term is descending. */
  readonly descending: boolean
  /** The fields that must equal an argument, in the order of the index key. */
  readonly equal: IndexPlan["equal"]
  /** The list whose elements the last field of the key must be one of. */
  readonly member: IndexPlan["member"]
  /** Limits on the first ORDER BY field. */
  readonly limits: IndexPlan["limits"]
  /** No row can fail, so rows that are not shown need not be evaluated. */
  readonly certain: boolean
  /** The index decides the whole filter. */
  readonly exact: boolean
  /** Text of FROM and WHERE, and its parameters: equal texts and arguments match the same rows. */
  readonly filter: { readonly text: string; readonly names: ReadonlyArray<string> } | undefined
}

/** The keys and the range of one view's page. */
export interface PageKeys {
  readonly keys: ReadonlyArray<FiledKey>
  readonly interval: Interval | undefined
}

const isStep = ({ path }: { readonly path: Path }): boolean => path.length === 1

interface Term extends OrderingTerm {
  readonly text: string
  readonly descending: boolean
  /** Neither COLLATE nor NUMERIC: the term orders values as filters compare them. */
  readonly plain: boolean
}

const termsOf = (select: Select): ReadonlyArray<Term> | undefined => {
  const terms: Array<Term> = []
  for (const term of select.order) {
    const { compare, expr } = compileSort(select, term)
    const path = expr && plainPath(expr)
    // A renamed id is ordered as a value, not as ids of a table are.
    if (path === undefined || path.length !== 1 || (path[0] === "id" && !isId(term.idiom))) return undefined
    const { collate, descending, numeric } = term
    terms.push({
      field: path[0]!,
      compare,
      descending,
      plain: !collate && !numeric,
      text: JSON.stringify([path[0], descending, collate, numeric])
    })
  }
  // A last term `id` in ascending order is dropped: equal rows are ordered by id anyway.
  const last = terms.at(-1)
  if (last?.field === "id" && !last.descending && last.plain) terms.pop()
  return terms
}

/** Whether a subquery cannot fail, whatever its rows are. */
const isCertain = (query: Select): boolean =>
  !query.only &&
  query.group === undefined &&
  query.split.length === 0 &&
  query.fetch.length === 0 &&
  query.from.every(({ kind }) => kind === "table") &&
  [query.limit, query.start].every((bound) => bound === undefined || bound.kind === "literal") &&
  !(query.where !== undefined && canFail(query.where)) &&
  !query.order.some(({ idiom }) => canFail(idiom)) &&
  showsCertainly(query)

/** Whether projecting a row cannot fail. */
const showsCertainly = ({ fetch, fields }: Select): boolean =>
  fetch.length === 0 &&
  fields.every(
    (shown) =>
      shown.kind !== "expr" ||
      (shown.expr.kind === "subquery" && shown.expr.query.kind === "select"
        ? isCertain(shown.expr.query)
        : !canFail(shown.expr))
  )

/** Whether the filter reads only the record and cannot fail. */
const isPlainFilter = (select: Select): boolean =>
  select.where === undefined ||
  (!canFail(select.where) &&
    !analyze({ ...select, fields: [], order: [], group: undefined, split: [], fetch: [], omit: [] }).reaches)

/**
 * The page plan of a window over one whole table; undefined if it has none. `exact`: the index plan decides the whole
 * filter.
 */
export const pagePlanOf = (
  select: Select,
  table: string,
  access: IndexPlan | undefined,
  exact: boolean
): PagePlan | undefined => {
  const { equal = [], limits = [], member } = access ?? {}
  if (access?.byId === true || !equal.every(isStep) || !limits.every(isStep)) return undefined
  if (member !== undefined && (member.kind !== "in" || !isStep(member))) return undefined
  if (!exact && !isPlainFilter(select)) return undefined
  const terms = termsOf(select)
  if (terms === undefined) return undefined
  const [first] = terms
  if (limits.length > 0 && (first?.plain !== true || limits[0]!.path[0] !== first.field)) return undefined
  const inOrder = [...equal].sort((a, b) => (a.path[0]! < b.path[0]! ? -1 : 1))
  const paths = [...inOrder, ...(member === undefined ? [] : [member])].map(({ path }) => path)
  const text = terms.map((term) => term.text).join()
  return {
    name: JSON.stringify([table, paths, text]),
    spec: { paths, each: undefined, range: undefined },
    ordering: { terms, lead: first, text },
    descending: first?.descending === true,
    equal: inOrder,
    member,
    limits,
    certain: showsCertainly(select),
    exact,
    filter: exact && member === undefined ? undefined : filterOf(select)
  }
}

const filterOf = (select: Select): PagePlan["filter"] => {
  const filter: Select = {
    ...select,
    fields: [{ kind: "all", at: select.at }],
    value: false,
    omit: [],
    order: [],
    limit: undefined,
    start: undefined,
    fetch: []
  }
  return { text: print(filter), names: analyze(filter).params }
}

/** Text of the arguments of the filter, to tell apart the views that read one index. */
export const filterKey = ({ filter }: PagePlan, params: Params): string =>
  filter === undefined ? "" : [filter.text, ...filter.names.map((name) => valueKey(params[name]))].join("\n")

/**
 * The keys of one view's page; undefined if an argument has no exact key, or if the view is no page. `failsAsWhole`:
 * the database does not project rows before the page.
 */
export const pageKeysOf = (
  { certain, equal, exact, limits, member }: PagePlan,
  params: Params,
  { limit, start }: Bounds,
  failsAsWhole: boolean
): PageKeys | undefined => {
  if (limit < 1 || limit > maxPage || !(start === 0 || certain || failsAsWhole)) return undefined
  if (!exact && start > maxPage) return undefined
  const values = equal.map(({ name }) => params[name])
  const items = member && valuesOf(member, params)
  if (items === unindexable) return undefined
  const found = items === undefined ? keyOfValues(values) : keysOfElements(values, items)
  if (found === unindexable) return undefined
  // The index orders composite ids, and text beside ids, differently from how the filter compares them.
  if (
    comparesTextAndIds(limits, params) ||
    limits.some(({ name, path }) => path[0] === "id" && isCompositeId(params[name]))
  )
    return undefined
  const keys: ReadonlyArray<FiledKey> = Array.isArray(found) ? distinct(found) : [found]
  return keys.length > 1 && start > maxMergedStart ? undefined : { keys, interval: intervalOf(limits, params) }
}

const isCompositeId = (v: Value): boolean => v instanceof RecordId && isComposite(v)

const distinct = (keys: ReadonlyArray<FiledKey>): ReadonlyArray<FiledKey> => [
  ...new Map(keys.map((key) => [plainKey(key), key])).values()
]
