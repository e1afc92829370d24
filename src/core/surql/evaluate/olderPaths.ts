/**
 * Paths as the database's older evaluator walks them, which runs closures that functions call: for a list, the whole
 * rest of the path is applied to each element.
 */
import type { Part } from "../syntax/ast.ts"
import { stepsOf } from "../syntax/print.ts"
import { isTruthy } from "../values/order.ts"
import type { Value } from "../values/value.ts"
import { isObj, RecordId } from "../values/value.ts"
import { compile } from "./evaluate.ts"
import { compileGraph } from "./graph.ts"
import { continueAfterLink, destructure, fieldStep, indexStep, method } from "./pathSteps.ts"
import type { Step } from "./paths.ts"
import { chargedRecordOf, fetch, mapItems, mapOverArray } from "./paths.ts"
import { compileRecursion, repeatStep } from "./recursion.ts"
import type { Compiled } from "./scope.ts"
import { scopeSteps, spendBytes, spendSteps, withDoc } from "./scope.ts"

/** Compiles parts of a path, from the last to the first. */
export const compileOlder = (parts: ReadonlyArray<Part>): Step => {
  const [part, ...rest] = parts
  if (part === undefined) return (v) => v
  const next = (): Step => compileOlder(rest)
  switch (part.kind) {
    case "field":
      return eachOf(rest, (direct, away) => fieldStep(part.name, direct, away))
    case "destructure":
      return eachOf(rest, (direct, away) => destructure(part.entries, direct, away))
    case "graph":
      return compileGraph(part, rest, compileOlder)
    case "index":
      return index(compile(part.index), next(), rest)
    case "all":
      return all(next(), rest)
    case "flatten":
      return mapOverArray(next())
    case "last":
      return last(next())
    case "where":
      return where(compile(part.where), stepsOf(part.where), next())
    case "optional":
      return optional(next())
    case "method":
      return method(part.name, part.args.map(compile), next())
    case "recurse":
      return compileRecursion(part, rest, compileOlder)
    case "repeat":
      return repeatStep
  }
}

const eachOf = (rest: ReadonlyArray<Part>, step: (next: Step, away: Step) => Step): Step => {
  const next = compileOlder(rest)
  return mapOverArray(step(next, continueAfterLink(rest, next)))
}

/** An index of a record reads its document. */
const index = (at: Compiled, next: Step, rest: ReadonlyArray<Part>): Step => {
  const step: Step = indexStep(at, next, (id, s) =>
    id instanceof RecordId ? away(fetch(id, s), s) : next(undefined, s)
  )
  const away = continueAfterLink(rest, step)
  return step
}

const all = (next: Step, rest: ReadonlyArray<Part>): Step => {
  const away = continueAfterLink(rest, next)
  return (v, s) => {
    if (Array.isArray(v))
      return mapItems(
        v as ReadonlyArray<Value>,
        (item, inner) => (item instanceof RecordId ? away(fetch(item, inner), inner) : next(item, inner)),
        s
      )
    if (isObj(v)) return next(v, s)
    const id = chargedRecordOf(v, s)
    return id === undefined ? next(undefined, s) : away(fetch(id, s), s)
  }
}

const last =
  (next: Step): Step =>
  (v, s) =>
    Array.isArray(v) ? next((v as ReadonlyArray<Value>)[v.length - 1], s) : endsAt(v) ? undefined : next(undefined, s)

/** Objects and records end a path at `[$]` and `[WHERE ..]`; any other value that is no list becomes NONE. */
const endsAt = (v: Value): boolean => isObj(v) || v instanceof RecordId

const where =
  (condition: Compiled, steps: number, next: Step): Step =>
  (v, s) => {
    if (!Array.isArray(v)) return endsAt(v) ? undefined : next(undefined, s)
    spendSteps(s.budget, (scopeSteps + steps) * v.length)
    spendBytes(s.budget, 8 * v.length)
    return next(
      (v as ReadonlyArray<Value>).filter((item) => isTruthy(condition(withDoc(s, item)))),
      s
    )
  }

const optional =
  (next: Step): Step =>
  (v, s) =>
    v === undefined || v === null ? v : next(v, s)
