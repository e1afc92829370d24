/**
 * What views of a shape have in common with all views of the same FROM and WHERE: the rows that match.
 *
 * A row that shows its record and nothing else is the same row whatever is projected from it and however it is ordered
 * when it is read. So views without LIMIT, GROUP or SPLIT differ in how they are read alone, where showing a row cannot
 * fail and looks at no other record. Groups need no rows of their own where what a row brings to them depends on its
 * record alone. The filter may fail and look elsewhere.
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
  /** FROM and WHERE as a query of its own, which shows whole records. */
  readonly select: Select
  readonly text: string
  /** The parameters in it. */
  readonly names: ReadonlyArray<string>
  /** Views of the shape may have the same members and yet be different. */
  readonly varies: boolean
  /** A view of the shape keeps its members as all others can read them: nothing but the filter decides about them. */
  readonly lends: boolean
  /** Of groups: what is asked of each row, equal where that is the same; undefined where parameters say it. */
  readonly asks: string | undefined
}

/**
 * Whether what a row brings to its group can be told from its record at any time, and takes no room while it is in it:
 * then no row has to be kept for it.
 */
const bringsPlainly = ({ folded, grouping }: GroupPlan): boolean =>
  folded.length === 0 && grouping.columns.every((e) => plainPath(e) !== undefined || isConstant(e))

const showsPlainly = (select: Select, { projectionCanFail, windowed }: Omit<Shape, "members">): boolean =>
  !windowed && !projectionCanFail && !select.order.some(({ idiom }) => canFail(idiom))

/** Parameters stand in more than sources, filter and bounds. */
const hasFreeParams = (select: Select): boolean =>
  analyze({ ...select, from: [], where: undefined, limit: undefined, start: undefined }).params.length > 0

/** The members plan of a lifted query that is maintained; undefined where its views share nothing. */
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
  // Where the filter looks elsewhere, a row is projected and its order read as well, for which there may be no room.
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

/** Tells apart the views of one plan by what they match. */
export const membersKey = ({ names }: MembersPlan, params: Params): string =>
  names.length === 1 ? valueKey(params[names[0]!]) : names.map((name) => valueKey(params[name])).join("\n")
