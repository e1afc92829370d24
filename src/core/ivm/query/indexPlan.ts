/**
 * Which conjuncts of a filter lead from a changed row to the views that it can concern, and the key that files a view.
 *
 * Indexed are `path = argument` (all of them), then one of `path IN list`, an OR of equalities,
 * `path CONTAINS argument`, CONTAINSANY or `?=`, then a range of one path. If a conjunct pins the record id, it is the
 * only one indexed. Indexed conjuncts hold exactly where the keys of row and view meet, so only there the rest of the
 * filter, the residual, is evaluated. Arguments have the last word: a view with an argument without an exact key, or
 * with a container that is no list, is shown every change; a range behind IN makes the view a range view.
 */

import { canFail } from "../../surql/evaluate/evaluate.ts"
import { recordOf } from "../../surql/evaluate/paths.ts"
import type { Expr } from "../../surql/syntax/ast.ts"
import { Geometry, isObj, Range, SetValue, Special, Uuid, type Value } from "../../surql/values/value.ts"
import { type KeySpec, type Keys, keyOfValues, keysOfElements, type Path, unindexable } from "../store/indexKey.ts"
import { type Interval, intersection } from "../store/intervalTree.ts"
import { liftedPrefix, type Params } from "./lift.ts"

type Comparison = "<" | "<=" | ">" | ">="

interface Named {
  readonly path: Path
  /** Name of the parameter. */
  readonly name: string
}

/** The path, or one of its elements, must equal one of several values. */
interface Member {
  readonly kind: "in" | "contains" | "anyEqual"
  readonly path: Path
  /** Parameters with one such value each. */
  readonly values: ReadonlyArray<string>
  /** Parameters with a list of such values each. */
  readonly lists: ReadonlyArray<string>
}

interface Limit extends Named {
  readonly op: Comparison
}

export interface IndexPlan {
  readonly equal: ReadonlyArray<Named>
  readonly member: Member | undefined
  readonly limits: ReadonlyArray<Limit>
  /** The paths of all indexed conjuncts, for `/debug/view`. */
  readonly paths: ReadonlyArray<Path>
  /** Key of the rows, for views without a range behind IN. */
  readonly spec: KeySpec
  /** Key of the rows, for views whose IN has a range. */
  readonly rangeSpec: KeySpec | undefined
  /**
   * The same plan with paths of one step only, for rows where a longer path leaves the record. A hit implies nothing.
   */
  readonly coarse: IndexPlan | undefined
  /** The key is the record id, so the store finds the rows. */
  readonly byId: boolean
  /** A conjunct before an indexed one can fail: the index does not tell whether a row fails. */
  readonly failsFirst: boolean
}

/** The keys that one view is filed under. */
export interface ViewKey {
  /** The keys are those of the shape's `rangeSpec`: an index hit does not decide the filter. */
  readonly inRange: boolean
  readonly keys: Keys
  readonly interval: Interval | undefined
}

/** The path of an idiom that starts at the record and has only field names. */
export const plainPath = (expr: Expr): Path | undefined => {
  if (expr.kind !== "idiom" || expr.start !== undefined || expr.parts.length === 0) return undefined
  const path: Array<string> = []
  for (const part of expr.parts) {
    if (part.kind !== "field") return undefined
    path.push(part.name)
  }
  return path
}

const liftedName = (expr: Expr): string | undefined =>
  expr.kind === "param" && expr.name.startsWith(liftedPrefix) ? expr.name : undefined

interface Sides extends Named {
  readonly pathFirst: boolean
}

const sides = (left: Expr, right: Expr): Sides | undefined => {
  const pathFirst = liftedName(right) !== undefined
  const [path, name] = pathFirst ? [plainPath(left), liftedName(right)] : [plainPath(right), liftedName(left)]
  return path === undefined || name === undefined ? undefined : { path, name, pathFirst }
}

const equalityOf = (expr: Expr): Named | undefined =>
  expr.kind === "binary" && expr.op === "=" ? sides(expr.left, expr.right) : undefined

const flipped: { readonly [op in Comparison]: Comparison } = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" }

const limitOf = (expr: Expr): Limit | undefined => {
  if (expr.kind !== "binary" || (expr.op !== "<" && expr.op !== "<=" && expr.op !== ">" && expr.op !== ">="))
    return undefined
  const found = sides(expr.left, expr.right)
  return found && { path: found.path, name: found.name, op: found.pathFirst ? expr.op : flipped[expr.op] }
}

const pathText = (path: Path): string => JSON.stringify(path)

/** An OR of equalities and INs on one path, combined into one IN. */
const alternatives = (expr: Expr): Member | undefined => {
  if (expr.kind !== "binary") return undefined
  if (expr.op === "OR") {
    const left = alternatives(expr.left),
      right = alternatives(expr.right)
    if (left?.kind !== "in" || right?.kind !== "in" || pathText(left.path) !== pathText(right.path)) return undefined
    return { ...left, values: [...left.values, ...right.values], lists: [...left.lists, ...right.lists] }
  }
  const found = sides(expr.left, expr.right)
  if (found === undefined) return undefined
  const { name, path, pathFirst } = found
  if (expr.op === "=") return { kind: "in", path, values: [name], lists: [] }
  return (expr.op === "IN" && pathFirst) || (expr.op === "CONTAINS" && !pathFirst)
    ? { kind: "in", path, values: [], lists: [name] }
    : undefined
}

const memberOf = (expr: Expr): Member | undefined => {
  if (expr.kind !== "binary" || expr.op === "=") return undefined
  const alternative = alternatives(expr)
  if (alternative !== undefined) return alternative
  const found = sides(expr.left, expr.right)
  if (found === undefined) return undefined
  const { name, path, pathFirst } = found
  if (pathFirst ? expr.op === "CONTAINS" : expr.op === "IN")
    return { kind: "contains", path, values: [name], lists: [] }
  if (pathFirst ? expr.op === "CONTAINSANY" : expr.op === "ANYINSIDE")
    return { kind: "contains", path, values: [], lists: [name] }
  return expr.op === "?=" && pathFirst ? { kind: "anyEqual", path, values: [name], lists: [] } : undefined
}

const isId = (path: Path): boolean => path.length === 1 && path[0] === "id"
const isLower = (op: Comparison): boolean => op === ">" || op === ">="

/** The limits to index: of the first path with both a lower and an upper limit, else of the first path. */
const rangeOf = (limits: ReadonlyArray<Limit>): ReadonlyArray<Limit> => {
  const byPath = new Map<string, Array<Limit>>()
  for (const limit of limits) {
    const known = byPath.get(pathText(limit.path))
    if (known === undefined) byPath.set(pathText(limit.path), [limit])
    else known.push(limit)
  }
  const ranges = [...byPath.values()]
  return (
    ranges.find((range) => range.some(({ op }) => isLower(op)) && range.some(({ op }) => !isLower(op))) ??
    ranges[0] ??
    []
  )
}

type Parts = Pick<IndexPlan, "equal" | "member" | "limits">

/** The indexable conjuncts by kind, and the ones chosen. */
const choose = (parts: ReadonlyArray<Expr>): { readonly parts: Parts; readonly used: ReadonlySet<Expr> } => {
  const equal = new Map<Expr, Named>(),
    members = new Map<Expr, Member>(),
    limits = new Map<Expr, Limit>()
  for (const part of parts) {
    const equality = equalityOf(part),
      member = memberOf(part),
      limit = limitOf(part)
    if (equality !== undefined) equal.set(part, equality)
    else if (member !== undefined) members.set(part, member)
    else if (limit !== undefined) limits.set(part, limit)
  }
  for (const [part, { name, path }] of equal)
    if (isId(path)) return { parts: { equal: [{ path, name }], member: undefined, limits: [] }, used: new Set([part]) }
  const inside = [...members].filter(([, { kind }]) => kind === "in")
  for (const [part, member] of inside)
    if (isId(member.path)) return { parts: { equal: [], member, limits: [] }, used: new Set([part]) }
  const [memberPart, member] = inside[0] ?? [...members][0] ?? []
  const range = rangeOf([...limits.values()])
  const used = new Set([
    ...equal.keys(),
    ...(memberPart === undefined ? [] : [memberPart]),
    ...[...limits].filter(([, limit]) => range.includes(limit)).map(([part]) => part)
  ])
  return { parts: { equal: [...equal.values()], member, limits: range }, used }
}

interface Chosen {
  readonly access: IndexPlan | undefined
  /** The conjuncts that an index hit does not decide. */
  readonly residual: ReadonlyArray<Expr>
}

/** Chooses the conjuncts to index among those of a filter. */
export const chooseIndexPlan = (conjuncts: ReadonlyArray<Expr>): Chosen => {
  const { parts, used } = choose(conjuncts)
  if (used.size === 0) return { access: undefined, residual: conjuncts }
  const failsFirst = conjuncts.some(
    (part, i) => canFail(part) && conjuncts.some((other, j) => j > i && used.has(other))
  )
  return { access: accessOf(parts, failsFirst), residual: conjuncts.filter((part) => !used.has(part)) }
}

const isStep = ({ path }: { readonly path: Path }): boolean => path.length === 1

const coarseOf = ({ equal, limits, member }: Parts, failsFirst: boolean): IndexPlan | undefined => {
  const steps: Parts = {
    equal: equal.filter(isStep),
    member: member !== undefined && isStep(member) ? member : undefined,
    limits: limits.filter(isStep)
  }
  const same = steps.equal.length === equal.length && steps.member === member && steps.limits.length === limits.length
  return same || (steps.equal.length === 0 && steps.member === undefined && steps.limits.length === 0)
    ? undefined
    : accessOf(steps, failsFirst)
}

const accessOf = (parts: Parts, failsFirst: boolean): IndexPlan => {
  const { equal, limits, member } = parts
  const equalPaths = equal.map(({ path }) => path)
  const inPath = member?.kind === "in" ? [member.path] : []
  const ordered = limits[0] === undefined ? [] : [limits[0].path]
  return {
    ...parts,
    paths: [...equalPaths, ...(member === undefined ? [] : [member.path]), ...ordered],
    spec: {
      paths: [...equalPaths, ...inPath],
      each:
        member === undefined || member.kind === "in"
          ? undefined
          : { path: member.path, orSelf: member.kind === "anyEqual" },
      range: ordered[0]
    },
    rangeSpec: inPath[0] && { paths: equalPaths, each: undefined, range: inPath[0] },
    byId: equalPaths.length + inPath.length === 1 && isId([...equalPaths, ...inPath][0]!) && limits.length === 0,
    coarse: coarseOf(parts, failsFirst),
    failsFirst
  }
}

const itemsOf = (value: Value): ReadonlyArray<Value> | undefined =>
  Array.isArray(value) ? (value as ReadonlyArray<Value>) : value instanceof SetValue ? value.items : undefined

/**
 * Containers that hold other things than elements (substrings, keys, points). Only lists and ranges hold just elements.
 */
const holdsMore = (value: Value): boolean =>
  typeof value === "string" ||
  value instanceof Uuid ||
  value instanceof Geometry ||
  (isObj(value) && !(value instanceof Special))

/** The values that a member conjunct allows; `dynamic` if they cannot be listed. */
export const valuesOf = ({ lists, values }: Member, params: Params): ReadonlyArray<Value> | typeof unindexable => {
  const all = values.map((name) => params[name])
  for (const name of lists) {
    const items = itemsOf(params[name])
    // One by one: a call takes no more arguments than the stack holds.
    if (items !== undefined) for (const item of items) all.push(item)
    else if (holdsMore(params[name]) || params[name] instanceof Range) return unindexable
  }
  return all
}

const openInterval: Interval = { from: undefined, to: undefined }

/** Whether a limit is a text that compares as text with text and as an id with records (D1): no interval is both. */
export const comparesTextAndIds = (limits: ReadonlyArray<Limit>, params: Params): boolean =>
  limits.some(({ name }) => typeof params[name] === "string" && recordOf(params[name]) !== undefined)

export const intervalOf = (limits: ReadonlyArray<Limit>, params: Params): Interval | undefined =>
  limits.length === 0
    ? undefined
    : limits.reduce((interval, { name, op }) => {
        const bound = { value: params[name], inclusive: op === "<=" || op === ">=" }
        return intersection(interval, isLower(op) ? { from: bound, to: undefined } : { from: undefined, to: bound })
      }, openInterval)

/**
 * The keys of a view with these arguments; undefined if it is shown every change. A subquery list gives several keys.
 */
export const viewKeyOf = (
  { equal, limits, member, rangeSpec }: IndexPlan,
  params: Params,
  live = false
): ViewKey | undefined => {
  if (comparesTextAndIds(limits, params)) return undefined
  const values = equal.map(({ name }) => params[name])
  if (rangeSpec !== undefined && member!.lists.length === 1 && member!.values.length === 0) {
    const range = params[member!.lists[0]!]
    if (range instanceof Range) {
      const keys = keyOfValues(values)
      return keys === unindexable ? undefined : { inRange: true, keys, interval: range }
    }
  }
  const items = member === undefined ? undefined : valuesOf(member, params)
  const keys =
    items === undefined ? keyOfValues(values) : items === unindexable ? unindexable : keysOfElements(values, items)
  return keys === unindexable
    ? undefined
    : { inRange: false, keys: live && !Array.isArray(keys) ? [keys] : keys, interval: intervalOf(limits, params) }
}
