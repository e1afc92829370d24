/**
 * Paths compiled to closures.
 *
 * Why so: most paths are plain fields of the document and become one property read. Everything else follows the
 * database: arrays are mapped, record ids (and, D1, text of one) are followed, a missing thing is NONE and never fails.
 * The database's two evaluators treat lists differently (plannedPaths.ts, olderPaths.ts): the older one runs closures
 * that functions call, the planner everything else.
 */
import type { Idiom, Part } from "../syntax/ast.ts"
import * as RecordIds from "../values/recordId.ts"
import type { Obj, Value } from "../values/value.ts"
import { field, isObj, RecordId, Special } from "../values/value.ts"
import { idSteps } from "./charge.ts"
import { compile } from "./evaluate.ts"
import { compileOlder } from "./olderPaths.ts"
import { fieldStep } from "./pathSteps.ts"
import { compilePlanned, compilePlannedWhole } from "./plannedPaths.ts"
import type { Compiled, Scope } from "./scope.ts"
import { recordReadSteps, spendBytes, spendSteps } from "./scope.ts"

/** A step along a path: from a value to the value at the end of the path. */
export type Step = (v: Value, scope: Scope) => Value

/** Compiles a whole path. */
export const compileIdiom = (idiom: Idiom): Compiled => {
  const first = idiom.parts[0]
  if (idiom.start === undefined && first !== undefined && first.kind === "field")
    return fromField(first.name, idiom.parts.slice(1))
  const steps = compileParts(idiom.parts)
  if (idiom.start === undefined) return (s) => steps(s.doc, s)
  const { start: from } = idiom
  const start = from.kind === "param" && from.name === "@" ? atRecord(first) : compile(from)
  return (s) => steps(start(s), s)
}

/** `@` is the record of the row. If the path reads its document, the document in scope is used. */
const atRecord = (first: Part | undefined): Compiled => {
  const readsDoc = first !== undefined && ["field", "all", "destructure", "graph"].includes(first.kind)
  return (s) => {
    // In a filter the element of a list may itself be a list.
    if (Array.isArray(s.doc)) return s.doc
    const id = isObj(s.doc) ? recordIn(s.doc) : chargedRecordOf(s.doc, s)
    return readsDoc && id !== undefined ? s.doc : id
  }
}

/** The record that a value refers to: a record id, or (D1) text of one. */
export const recordOf = (v: Value): RecordId | undefined =>
  v instanceof RecordId ? v : typeof v === "string" && v.includes(":") ? RecordIds.parse(v) : undefined

/** As {@link recordOf}, inside an evaluation, which pays for parsing the text. */
export const chargedRecordOf = (v: Value, s: Scope): RecordId | undefined => {
  if (typeof v !== "string") return v instanceof RecordId ? v : undefined
  if (v.length > 64) spendSteps(s.budget, v.length >> 6)
  if (!v.includes(":")) return undefined
  spendSteps(s.budget, recordReadSteps + idSteps(v))
  return RecordIds.parse(v)
}

/** A text that is an id of the table, as that id; any other value unchanged. */
export const idOfTable = (v: Value, table: string): Value => {
  const id = typeof v === "string" ? recordOf(v) : undefined
  return id?.table === table ? id : v
}

/** The record id in a document. */
export const recordIn = (doc: Value): RecordId | undefined => (isObj(doc) ? recordOf(field(doc, "id")) : undefined)

/** The usual path: a field of the document, perhaps with more parts. */
const fromField = (name: string, parts: ReadonlyArray<Part>): Compiled => {
  const rest = compileParts(parts),
    other = compileParts([{ kind: "field", name }, ...parts])
  const inherited = name in {}
  return (s) => {
    const d = s.doc
    if (typeof d !== "object" || d === null || d instanceof Special || Array.isArray(d)) return other(d, s)
    return rest(inherited ? field(d as Obj, name) : (d as Obj)[name], s)
  }
}

const identity: Step = (v) => v

/** Compiles parts of a path; lists are mapped where the database maps them. */
export const compileParts = (parts: ReadonlyArray<Part>): Step => inBothWays(parts, compilePlanned)

/**
 * As {@link compileParts}, for a path inside another (a body of a recursion, a field of `.{ }`), whose parts get whole
 * lists.
 */
export const compileWhole = (parts: ReadonlyArray<Part>): Step => inBothWays(parts, compilePlannedWhole)

const inBothWays = (parts: ReadonlyArray<Part>, plan: (parts: ReadonlyArray<Part>) => Step): Step => {
  // For a path of fields both evaluators do the same.
  if (parts.every((part) => part.kind === "field"))
    return parts.reduceRight((next, part) => mapOverArray(fieldStep((part as { name: string }).name, next)), identity)
  const usual = plan(parts)
  // Made on first use by a closure: otherwise nested paths would be compiled twice at each level.
  let older: Step | undefined
  return (v, s) => (s.older === true ? (older ??= compileOlder(parts))(v, s) : usual(v, s))
}

/** Applies a step, with the whole rest of the path, to each element of an array. */
export const mapOverArray = (direct: Step): Step => {
  const each: Step = (v, s) => (Array.isArray(v) ? mapItems(v as ReadonlyArray<Value>, each, s) : direct(v, s))
  return each
}

export const mapItems = (items: ReadonlyArray<Value>, step: Step, s: Scope): ReadonlyArray<Value> => {
  spendSteps(s.budget, items.length)
  spendBytes(s.budget, 8 * items.length)
  return items.map((item) => step(item, s))
}

/** The document of a record, NONE when it is missing. */
export const fetch = (id: RecordId, s: Scope): Obj | undefined => {
  spendSteps(s.budget, recordReadSteps)
  return s.source.record(id)
}
