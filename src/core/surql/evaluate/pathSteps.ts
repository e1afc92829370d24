/**
 * Single steps of a path, the same in both evaluators of the database: applied to one value that is no list.
 */
import type { Destructured, Part } from "../syntax/ast.ts"
import { isNumber, toFloat } from "../values/number.ts"
import type { Obj, Value } from "../values/value.ts"
import {
  Closure,
  field,
  Geometry,
  isInt,
  isObj,
  Range,
  RecordId,
  SetValue,
  Special,
  setField
} from "../values/value.ts"
import { compile } from "./evaluate.ts"
import { callMethod } from "./methods.ts"
import type { Step } from "./paths.ts"
import { chargedRecordOf, compileWhole, fetch } from "./paths.ts"
import type { Compiled, Scope } from "./scope.ts"
import { detach, scopeSteps, spendBytes, spendSteps, withDoc } from "./scope.ts"

/** Whether the value of a part depends on the document that the path began at. */
export const readsDoc = (part: Part): boolean => {
  switch (part.kind) {
    case "method":
      return part.args.length > 0
    case "index":
      return part.index.kind !== "literal"
    case "graph":
      return [part.query, part.limit, part.start, ...part.ranges].some((own) => own !== undefined)
    default:
      return part.kind === "recurse"
  }
}

/**
 * Continues after a link or a graph step. The database has no document there: a field in an argument or a closure is
 * NONE, and for the older evaluator also in an index.
 */
export const continueAfterLink = (rest: ReadonlyArray<Part>, next: Step): Step =>
  rest.some(readsDoc) ? (v, s) => next(v, s.detached === true ? s : detach(s)) : next

/** A field; `away` is the rest of the path after a link. */
export const fieldStep = (name: string, next: Step, away: Step = next): Step => {
  const step: Step = (v, s) => {
    if (typeof v !== "object" || v === null) {
      const id = chargedRecordOf(v, s)
      return id === undefined ? next(undefined, s) : step(id, s)
    }
    if (v instanceof RecordId) {
      const doc = fetch(v, s)
      return away(doc === undefined ? undefined : field(doc, name), s)
    }
    if (v instanceof Geometry)
      return next(
        name === "type" || name === "coordinates" || name === "geometries" ? field(v.value, name) : undefined,
        s
      )
    if (v instanceof Special || Array.isArray(v)) return next(undefined, s)
    return next(field(v as Obj, name), s)
  }
  return step
}

/** A field of `.{ }`, whose path begins at the object and not at the row. */
interface Entry {
  readonly name: string
  readonly read: Compiled
  /** `name.*`: for the planner all fields of an object, and nothing of any other value. */
  readonly isAll: boolean
}

const entryOf = ({ aliased, expr, name }: Destructured): Entry => {
  if (expr.kind !== "idiom" || expr.start !== undefined) return { name, read: compile(expr), isAll: false }
  const read = compileWhole(expr.parts)
  return { name, read: (s) => read(s.doc, s), isAll: !aliased && expr.parts[1]?.kind === "all" }
}

/** `.{ }`; `away` is the rest of the path after a link. */
export const destructure = (entries: ReadonlyArray<Destructured>, direct: Step, away: Step = direct): Step => {
  const compiled = entries.map(entryOf)
  const step: Step = (v, s) => {
    const id = chargedRecordOf(v, s)
    const doc = id === undefined ? v : fetch(id, s),
      next = id === undefined ? direct : away
    if (!isObj(doc)) return next(undefined, s)
    spendSteps(s.budget, scopeSteps + 8 * compiled.length)
    spendBytes(s.budget, 128 + 64 * compiled.length)
    const out: Record<string, Value> = {}
    const inner = withDoc(s, doc)
    for (const { isAll, name, read } of compiled)
      if (isAll && s.older !== true) takeAll(out, field(doc, name), s)
      else setField(out, name, read(inner))
    return next(out, s)
  }
  return step
}

const takeAll = (out: Record<string, Value>, nested: Value, s: Scope): void => {
  if (!isObj(nested)) return
  const names = Object.keys(nested)
  spendSteps(s.budget, names.length)
  spendBytes(s.budget, 64 * names.length)
  for (const name of names) setField(out, name, nested[name])
}

/** First and last position of a range of whole numbers; `undefined` for any other range. */
const positions = (range: Range, length: number): readonly [number, number] | undefined => {
  const { from, to } = range
  if ((from !== undefined && !isInt(from.value)) || (to !== undefined && !isInt(to.value))) return undefined
  const start = from === undefined ? 0 : Number(from.value) + (from.inclusive ? 0 : 1)
  const end = to === undefined ? length : Number(to.value) + (to.inclusive ? 1 : 0)
  return start >= 0 && start <= end && end <= length ? [start, end] : undefined
}

/** The element at `[i]` of a list, a set or an object, or of a record whose key is a list; `other` handles all else. */
export const indexStep =
  (at: Compiled, next: Step, other: Step): Step =>
  (v, s) => {
    const i = at(s)
    if (Array.isArray(v)) {
      if (!(i instanceof Range))
        return next(isNumber(i) ? (v as ReadonlyArray<Value>)[Math.trunc(toFloat(i))] : undefined, s)
      const found = positions(i, v.length)
      if (found !== undefined) spendBytes(s.budget, 8 * (found[1] - found[0]))
      if (found !== undefined) spendSteps(s.budget, (found[1] - found[0]) >> 2)
      return next(found && (v as ReadonlyArray<Value>).slice(...found), s)
    }
    if (v instanceof SetValue) return next(isNumber(i) ? v.items[Math.trunc(toFloat(i))] : undefined, s)
    if (isObj(v))
      return next(
        typeof i === "string"
          ? field(v, i)
          : i instanceof RecordId
            ? field(v, i.text)
            : isNumber(i)
              ? field(v, String(toFloat(i)))
              : undefined,
        s
      )
    const id = chargedRecordOf(v, s)
    return id !== undefined && isNumber(i) && Array.isArray(id.key)
      ? next((id.key as ReadonlyArray<Value>)[Math.trunc(toFloat(i))], s)
      : other(id, s)
  }

export const method =
  (name: string, args: ReadonlyArray<Compiled>, next: Step): Step =>
  (v, s) => {
    const given = args.map((a) => a(s))
    const held = isObj(v) ? field(v, name) : undefined
    return next(held instanceof Closure ? held.call(given, true) : callMethod(v, name, given, s), s)
  }
