/**
 * Paths as the database's default planner walks them: part by part, each over the whole value.
 *
 * Why so: a list is mapped once, where a field, `.*` or `.{ }` meets it and the path continues, or where graph steps
 * meet a list that no graph step made. After that each part gets the whole result of one element: `[0]` the first of a
 * list of lists, graph steps one list of all their targets.
 */
import type { Part } from "../syntax/ast.ts"
import { stepsOf } from "../syntax/print.ts"
import { isTruthy } from "../values/order.ts"
import type { Value } from "../values/value.ts"
import { isObj, isRecordValue, RecordRange } from "../values/value.ts"
import { compile } from "./evaluate.ts"
import { compileChain } from "./graph.ts"
import { destructure, fieldStep, indexStep, method, readsDoc } from "./pathSteps.ts"
import type { Step } from "./paths.ts"
import { chargedRecordOf, compileWhole, fetch, mapItems, mapOverArray } from "./paths.ts"
import { compileRecursion, repeatStep } from "./recursion.ts"
import type { Compiled, Scope } from "./scope.ts"
import { detach, scopeSteps, spendBytes, spendSteps, withDoc } from "./scope.ts"

interface Stage {
  readonly kind: Part["kind"]
  readonly step: Step
  /** More than one graph step. */
  readonly isChain: boolean
  /** A later part reads the document, which is not available after a link. */
  readonly isReadLater: boolean
}

/** Consecutive graph steps are one stage; so is a recursion with the rest of the path that it repeats. */
const stagesOf = (parts: ReadonlyArray<Part>): ReadonlyArray<Stage> => {
  const stages: Array<Stage> = []
  for (let i = 0; i < parts.length; ) {
    const part = parts[i]!
    let end = i + 1
    if (part.kind === "graph") while (parts[end]?.kind === "graph") end++
    if (part.kind === "recurse" && part.body.length === 0) end = parts.length
    const rest = parts.slice(end)
    const step = stepOf(parts.slice(i, end))
    stages.push({ kind: part.kind, step, isChain: end - i > 1, isReadLater: rest.some(readsDoc) })
    i = end
  }
  return stages
}

const identity: Step = (v) => v

const stepOf = ([part, ...rest]: ReadonlyArray<Part>): Step => {
  switch (part!.kind) {
    case "field":
      return mapOverArray(fieldStep(part.name, identity))
    case "destructure":
      return mapOverArray(destructure(part.entries, identity))
    case "graph":
      return compileChain([part, ...rest] as ReadonlyArray<Extract<Part, { kind: "graph" }>>)
    case "index":
      return index(compile(part.index))
    case "all":
      return all
    case "flatten":
      return flatten
    case "last":
      return (v) => (Array.isArray(v) ? (v as ReadonlyArray<Value>)[v.length - 1] : undefined)
    case "where":
      return where(compile(part.where), stepsOf(part.where))
    case "optional":
      return identity
    case "method":
      return method(part.name, part.args.map(compile), identity)
    case "recurse":
      return compileRecursion(part, rest, compileWhole)
    case "repeat":
      return repeatStep
  }
}

/** A path from its beginning: maps the first list. */
export const compilePlanned = (parts: ReadonlyArray<Part>): Step => {
  const stages = stagesOf(parts)
  return (v, s) => through(stages, v, s)
}

/** A path inside another, which maps no list. */
export const compilePlannedWhole = (parts: ReadonlyArray<Part>): Step => {
  const stages = stagesOf(parts)
  return (v, s) => wholly(stages, 0, v, s)
}

const through = (stages: ReadonlyArray<Stage>, begin: Value, s: Scope): Value => {
  let v = begin,
    scope = s,
    isOfGraph = false
  for (let i = 0; i < stages.length; i++) {
    const { kind, isChain } = stages[i]!
    const isLast = i + 1 === stages.length
    if (Array.isArray(v) && !isLast && (kind === "field" || kind === "all" || kind === "destructure"))
      return mapItems(
        v as ReadonlyArray<Value>,
        // `.*` fetches records; for other elements of a list the next part applies.
        (item) => wholly(stages, kind === "all" && !isRecordValue(item) ? i + 1 : i, item, scope),
        scope
      )
    if (Array.isArray(v) && kind === "graph" && (!isLast || isChain) && !isGraph(stages[i - 1])) {
      const found = mapItems(v as ReadonlyArray<Value>, (item) => wholly(stages, i, item, scope), scope)
      return isOfGraph ? flatten(found, scope) : found
    }
    if (kind === "optional") return wholly(stages, i, v, scope)
    const next = behind(stages[i]!, v, scope)
    v = stages[i]!.step(v, scope)
    scope = next
    if (!isGraph(stages[i])) isOfGraph = isOfGraph && kind === "where"
    else if (Array.isArray(v)) isOfGraph = true
  }
  return v
}

const isGraph = (stage: Stage | undefined): boolean => stage?.kind === "graph" || stage?.kind === "flatten"

const wholly = (stages: ReadonlyArray<Stage>, from: number, begin: Value, s: Scope): Value => {
  let v = begin,
    scope = s
  for (let i = from; i < stages.length; i++) {
    const stage = stages[i]!
    if (stage.kind === "optional" && (v === undefined || v === null)) return v
    const next = behind(stage, v, scope)
    v = stage.step(v, scope)
    scope = next
  }
  return v
}

/** The scope after a stage: without the document if the stage follows a link. */
const behind = (stage: Stage, v: Value, s: Scope): Scope =>
  stage.isReadLater &&
  s.detached !== true &&
  (stage.kind === "graph" ||
    (stage.kind !== "method" && (Array.isArray(v) ? (v as ReadonlyArray<Value>) : [v]).some((item) => isLink(item, s))))
    ? detach(s)
    : s

const isLink = (v: Value, s: Scope): boolean => chargedRecordOf(v, s) !== undefined

/** Indexes read the row's document, after links too; a record has none. */
const index = (at: Compiled): Step => {
  const step = indexStep(at, identity, () => undefined)
  return (v, s) => step(v, s.detached === true ? withDoc(s, s.row) : s)
}

const all: Step = (v, s) => {
  if (Array.isArray(v))
    return (v as ReadonlyArray<Value>).some(isRecordValue) ? mapItems(v as ReadonlyArray<Value>, allOfItem, s) : v
  return isObj(v) ? v : recordAt(v, s)
}

/** Beside records an element that is none stays as it is, as in the older evaluator. */
const allOfItem: Step = (v, s) => (v instanceof RecordRange || isLink(v, s) ? recordAt(v, s) : v)

const recordAt: Step = (v, s) => {
  const id = chargedRecordOf(v, s)
  return id === undefined ? undefined : fetch(id, s)
}

/** Replaces lists in a list by their elements. */
const flatten: Step = (v, s) => {
  if (!Array.isArray(v)) return v
  const out: Array<Value> = []
  for (const item of v as ReadonlyArray<Value>) {
    const items = Array.isArray(item) ? (item as ReadonlyArray<Value>) : [item]
    spendSteps(s.budget, 1 + (items.length >> 2))
    spendBytes(s.budget, 8 * items.length)
    for (const one of items) out.push(one)
  }
  return out
}

/** Treats a value that is no list as a list with one element; a missing value is `[]` unless NONE passes. */
const where =
  (condition: Compiled, steps: number): Step =>
  (v, s) => {
    const items = Array.isArray(v) ? (v as ReadonlyArray<Value>) : [v]
    spendSteps(s.budget, (scopeSteps + steps) * items.length)
    spendBytes(s.budget, 8 * items.length)
    // A link is not fetched here: its fields are fetched when they are read, and `$this` is the link.
    return items.filter((item) => isTruthy(condition(withDoc(s, item))))
  }
