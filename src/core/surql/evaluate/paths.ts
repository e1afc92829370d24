/**
 * Paths compiled to closures: each part is a step that gets a value and knows the compiled rest of the path.
 *
 * Why so: most paths are plain fields of the document and become one property read. Everything else follows the
 * database: arrays are mapped, record ids (and, D1, text of one) are followed, a missing thing is NONE and never fails.
 */
import type { Destructured, Idiom, Part } from "../syntax/ast.ts"
import { stepsOf } from "../syntax/print.ts"
import { isNumber, toFloat } from "../values/number.ts"
import { isTruthy } from "../values/order.ts"
import * as RecordIds from "../values/recordId.ts"
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
import { idSteps } from "./charge.ts"
import { compile } from "./evaluate.ts"
import { raise } from "./failure.ts"
import { compileGraph } from "./graph.ts"
import { callMethod } from "./methods.ts"
import { compileRecursion, endsTooEarly, goesOn, withoutDeadEnds } from "./recursion.ts"
import type { Compiled, Scope } from "./scope.ts"
import { detach, lookSteps, make, scopeSteps, spend, withDoc } from "./scope.ts"

/** A step along a path: from a value to the value at the end of the path. */
export type Step = (v: Value, scope: Scope) => Value

const identity: Step = (v) => v

/** Compiles a whole path. */
export const compileIdiom = (idiom: Idiom): Compiled => {
  const first = idiom.parts[0]
  if (idiom.start === undefined && first !== undefined && first.kind === "field")
    return fromField(first.name, idiom.parts.slice(1))
  const steps = compileParts(idiom.parts)
  if (idiom.start === undefined) return (s) => steps(s.doc, s)
  // `@` in front of a recursion is the record of the row, which is known again where it leads to itself.
  const { start: from } = idiom
  if (first?.kind === "recurse" && from.kind === "param" && from.name === "@") return (s) => steps(recordIn(s.doc), s)
  const start = compile(idiom.start)
  return (s) => steps(start(s), s)
}

/** The record a value stands for: a record id, or (D1) text of one. */
export const recordOf = (v: Value): RecordId | undefined =>
  v instanceof RecordId ? v : typeof v === "string" && v.includes(":") ? RecordIds.parse(v) : undefined

/** The same inside an evaluation, which pays for reading the text. */
export const idIn = (v: Value, s: Scope): RecordId | undefined => {
  if (typeof v !== "string") return v instanceof RecordId ? v : undefined
  if (v.length > 64) spend(s.budget, v.length >> 6)
  if (!v.includes(":")) return undefined
  spend(s.budget, lookSteps + idSteps(v))
  return RecordIds.parse(v)
}

/** A text that is the id of a record of a table as that id; any other value unchanged. */
export const idOfTable = (v: Value, table: string): Value => {
  const id = typeof v === "string" ? recordOf(v) : undefined
  return id?.table === table ? id : v
}

/** The record a document says it is. */
export const recordIn = (doc: Value): RecordId | undefined => (isObj(doc) ? recordOf(field(doc, "id")) : undefined)

/** The usual path: a field of the document, then perhaps more. */
const fromField = (name: string, parts: ReadonlyArray<Part>): Compiled => {
  const rest = parts.length === 0 ? identity : compileParts(parts)
  const other = mapped([{ kind: "field", name }, ...parts], (next, away) => fieldStep(name, next, away))
  const inherited = name in {}
  return (s) => {
    const d = s.doc
    if (typeof d !== "object" || d === null || d instanceof Special || Array.isArray(d)) return other(d, s)
    return rest(inherited ? field(d as Obj, name) : (d as Obj)[name], s)
  }
}

/** Compiles parts of a path, from the last to the first. */
export const compileParts = (parts: ReadonlyArray<Part>): Step => {
  const [part, ...rest] = parts
  if (part === undefined) return identity
  switch (part.kind) {
    case "field":
      return mapped(parts, (next, away) => fieldStep(part.name, next, away))
    case "destructure":
      return mapped(parts, (next, away) => destructure(part.entries, next, away))
    case "graph":
      return compileGraph(part, rest, compileParts)
    case "index":
      return index(compile(part.index), compileParts(rest), parts)
    case "all":
      return all(compileParts(rest), rest)
    case "flatten":
      return flatten(compileParts(rest))
    case "last":
      return last(compileParts(rest))
    case "where":
      return where(compile(part.where), stepsOf(part.where), compileParts(rest))
    case "optional":
      return optional(compileParts(rest))
    case "method":
      return method(part.name, part.args.map(compile), compileParts(rest))
    case "recurse":
      return compileRecursion(part, rest, compileParts)
    case "repeat":
      return (v, s) =>
        s.repeat === undefined
          ? raise`Tried to use a \`@\` repeat recurse symbol in a position where it is not supported`
          : s.repeat.below(v, s)
  }
}

/** A step that is applied, with the whole rest of the path, to each element of an array. */
const mapped = (parts: ReadonlyArray<Part>, step: (next: Step, away: Step) => Step): Step => {
  const rest = parts.slice(1),
    next = compileParts(rest),
    direct = step(next, behindLink(rest, next))
  const each: Step = (v, s) => (Array.isArray(v) ? mapItems(v as ReadonlyArray<Value>, each, s) : direct(v, s))
  return each
}

const mapItems = (items: ReadonlyArray<Value>, step: Step, s: Scope): ReadonlyArray<Value> => {
  spend(s.budget, items.length)
  make(s.budget, 8 * items.length)
  return items.map((item) => step(item, s))
}

/** The document of a record, NONE when it is missing. */
export const fetch = (id: RecordId, s: Scope): Obj | undefined => {
  spend(s.budget, lookSteps)
  return s.source.record(id)
}

/** Whether the value of a part depends on the document that the path began at. */
const readsDoc = (part: Part): boolean => {
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
 * Goes on behind a link or a graph step. The database has no document there: a field in an argument, an index or a
 * closure is NONE.
 */
export const behindLink = (rest: ReadonlyArray<Part>, next: Step): Step =>
  rest.some(readsDoc) ? (v, s) => next(v, s.detached === true ? s : detach(s)) : next

const fieldStep = (name: string, next: Step, away: Step): Step => {
  const step: Step = (v, s) => {
    if (typeof v !== "object" || v === null) {
      const id = idIn(v, s)
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

const destructure = (entries: ReadonlyArray<Destructured>, direct: Step, away: Step): Step => {
  const compiled = entries.map((d) => [d.name, compile(d.expr), goesOn(d)] as const)
  const step: Step = (v, s) => {
    const id = idIn(v, s)
    const doc = id === undefined ? v : fetch(id, s),
      next = id === undefined ? direct : away
    if (!isObj(doc)) return next(undefined, s)
    spend(s.budget, scopeSteps + 8 * compiled.length)
    make(s.budget, 128 + 64 * compiled.length)
    const out: Record<string, Value> = {}
    const inner = withDoc(s, doc)
    for (const [name, read, isBranch] of compiled) {
      const found = isBranch ? withoutDeadEnds(read(inner), s) : read(inner)
      if (isBranch && endsTooEarly(found, s)) return next(undefined, s)
      setField(out, name, found)
    }
    return next(out, s)
  }
  return step
}

/** First and last position a range names, by whole numbers; `undefined` when it names none. */
const positions = (range: Range, length: number): readonly [number, number] | undefined => {
  const { from, to } = range
  if ((from !== undefined && !isInt(from.value)) || (to !== undefined && !isInt(to.value))) return undefined
  const start = from === undefined ? 0 : Number(from.value) + (from.inclusive ? 0 : 1)
  const end = to === undefined ? length : Number(to.value) + (to.inclusive ? 1 : 0)
  return start >= 0 && start <= end && end <= length ? [start, end] : undefined
}

const index = (at: Compiled, next: Step, parts: ReadonlyArray<Part>): Step => {
  const step: Step = (v, s) => {
    const i = at(s)
    if (Array.isArray(v)) {
      if (!(i instanceof Range))
        return next(isNumber(i) ? (v as ReadonlyArray<Value>)[Math.trunc(toFloat(i))] : undefined, s)
      const found = positions(i, v.length)
      if (found !== undefined) make(s.budget, 8 * (found[1] - found[0]))
      if (found !== undefined) spend(s.budget, (found[1] - found[0]) >> 2)
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
    const id = idIn(v, s)
    if (id === undefined) return next(undefined, s)
    // A number counts in the key of the id, where that is a list.
    return isNumber(i) && Array.isArray(id.key)
      ? next((id.key as ReadonlyArray<Value>)[Math.trunc(toFloat(i))], s)
      : away(fetch(id, s), s)
  }
  const away = behindLink(parts, step)
  return step
}

const all = (next: Step, rest: ReadonlyArray<Part>): Step => {
  const away = behindLink(rest, next)
  return (v, s) => {
    if (Array.isArray(v))
      return mapItems(
        v as ReadonlyArray<Value>,
        (item, inner) => (item instanceof RecordId ? away(fetch(item, inner), inner) : next(item, inner)),
        s
      )
    if (isObj(v)) return next(v, s)
    const id = idIn(v, s)
    return id === undefined ? next(undefined, s) : away(fetch(id, s), s)
  }
}

/** `...` flattens between graph steps only; elsewhere the database goes on with each element. */
const flatten =
  (next: Step): Step =>
  (v, s) =>
    Array.isArray(v) ? mapItems(v as ReadonlyArray<Value>, next, s) : next(v, s)

const last =
  (next: Step): Step =>
  (v, s) =>
    Array.isArray(v) ? next((v as ReadonlyArray<Value>)[v.length - 1], s) : endsAt(v) ? undefined : next(undefined, s)

/** Objects and records end a path at `[$]`, in closures at `[WHERE ..]` too; anything else goes on as NONE. */
const endsAt = (v: Value): boolean => isObj(v) || v instanceof RecordId

/**
 * A filter takes a value that is no list as a list of that value alone; a missing value is `[]` if NONE does not pass.
 */
const where =
  (condition: Compiled, steps: number, next: Step): Step =>
  (v, s) => {
    if (s.older === true && !Array.isArray(v)) return endsAt(v) ? undefined : next(undefined, s)
    const items = Array.isArray(v) ? (v as ReadonlyArray<Value>) : [v]
    spend(s.budget, (scopeSteps + steps) * items.length)
    make(s.budget, 8 * items.length)
    return next(
      // A link is not fetched here: its fields are when they are read, and `$this` is the link.
      items.filter((item) => isTruthy(condition(withDoc(s, item)))),
      s
    )
  }

const optional =
  (next: Step): Step =>
  (v, s) =>
    v === undefined || v === null ? undefined : next(v, s)

const method =
  (name: string, args: ReadonlyArray<Compiled>, next: Step): Step =>
  (v, s) => {
    const given = args.map((a) => a(s))
    const held = isObj(v) ? field(v, name) : undefined
    return next(held instanceof Closure ? held.call(given, true) : callMethod(v, name, given, s), s)
  }
