/**
 * The matching rows, which the views of a shape share with all views of the same FROM and WHERE.
 *
 * A row that only shows its record is the same row under any projection and any order applied on reading. So views
 * without LIMIT, GROUP or SPLIT differ only in how they are read, as long as showing a row cannot fail and reads no
 * other record. Groups need no rows of their own if a row's entry depends on its record alone. The filter may fail and
 * read other records.
 */
import { canFail, isConstant } from "../../surql/evaluate/evaluate.ts"
import { analyze } from "../../surql/syntax/analyze.ts"
import type { Select } from "../../surql/syntax/ast.ts"
import { print } from "../../surql/syntax/print.ts"
import type { GroupPlan } from "../operators/groups.ts"
import { plainPath } from "./indexPlan.ts"
import { type Params, valueKey } from "./lift.ts"
import type { Shape } from "./shape.ts"

export interface MembersPlan {
  /** FROM and WHERE as a query of its own that shows whole records. */
  readonly select: Select
  readonly text: string
  /** The parameters of `select`. */
  readonly names: ReadonlyArray<string>
  /** Views of the shape may differ although they have the same members. */
  readonly varies: boolean
  /** Only the filter decides about the members, so a view of the shape can lend its rows to the others. */
  readonly lends: boolean
  /** For groups: text of what is evaluated per row, equal for equal questions; undefined with parameters in it. */
  readonly asks: string | undefined
}

/**
 * Whether a row's entry in its group can be computed from its record at any time and takes no memory: then no row has
 * to be kept for it.
 */
const bringsPlainly = ({ folded, grouping }: GroupPlan): boolean =>
  folded.length === 0 && grouping.columns.every((e) => plainPath(e) !== undefined || isConstant(e))

const showsPlainly = (select: Select, { projectionCanFail, windowed }: Omit<Shape, "members">): boolean =>
  !windowed && !projectionCanFail && !select.order.some(({ idiom }) => canFail(idiom))

/** Whether parameters occur outside sources, filter and bounds. */
const hasFreeParams = (select: Select): boolean =>
  analyze({ ...select, from: [], where: undefined, limit: undefined, start: undefined }).params.length > 0

/** The members plan of a lifted, maintained query; undefined if its views share nothing. */
export const membersPlanOf = (select: Select, shape: Omit<Shape, "members">): MembersPlan | undefined => {
  const { groups, list, only, reaches, splitting } = shape
  if (only || splitting !== undefined || list !== undefined) return undefined
  if (!(groups === undefined ? showsPlainly(select, shape) : bringsPlainly(groups))) return undefined
  if (analyze({ ...select, where: undefined }).reaches) return undefined
  const members: Select = {
    ...select,
    fields: [{ kind: "all", at: select.at }],
    value: false,
    omit: [],
    group: undefined,
    order: [],
    limit: undefined,
    start: undefined
  }
  const { params: names } = analyze(members)
  // With a filter that reads other records, projection and order are evaluated too, and that needs memory which may be
  // lacking.
  const isBare = !reaches || (select.order.length === 0 && select.fields.every(({ kind }) => kind === "all"))
  return {
    select: members,
    text: print(members),
    names,
    varies: analyze(select).params.length > names.length,
    lends: groups === undefined && isBare,
    asks: hasFreeParams(select) ? undefined : groups?.grouping.text
  }
}

/** Text of the arguments of FROM and WHERE: equal for views with the same matching rows. */
export const membersKey = ({ names }: MembersPlan, params: Params): string =>
  names.length === 1 ? valueKey(params[names[0]!]) : names.map((name) => valueKey(params[name])).join("\n")
