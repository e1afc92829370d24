/**
 * Graph steps: `->edge`, `<-edge`, `<->edge`, and chains of them.
 *
 * Why so: a chain of steps gives one flat list of record ids (only parts after the chain are mapped), in edge-key order
 * per step, with duplicates, as the database walks its graph keys. An edge record's own `in` and `out` count as
 * neighbours, so `->edge->table` is two plain steps.
 */
import type { Part } from "../syntax/ast.ts"
import { stepsOf } from "../syntax/print.ts"
import { compareStrings, isTruthy } from "../values/order.ts"
import type { Range, Value } from "../values/value.ts"
import { field, isInt, isObj, type RecordId, RecordRange } from "../values/value.ts"
import { compile } from "./evaluate.ts"
import { raise } from "./failure.ts"
import { continueAfterLink, readsDoc } from "./pathSteps.ts"
import type { Step } from "./paths.ts"
import { chargedRecordOf, fetch, mapItems } from "./paths.ts"
import type { Scope } from "./scope.ts"
import { detach, scopeSteps, spendBytes, spendSteps, withDoc } from "./scope.ts"
import { compileSelectOver } from "./select/select.ts"
import { isInRange } from "./select/sources.ts"

type Graph = Extract<Part, { kind: "graph" }>

/** The record a graph step starts from: an id (or text of one), or a document with an `id`. */
const startOf = (v: Value, s: Scope): RecordId | undefined => chargedRecordOf(isObj(v) ? field(v, "id") : v, s)

/** The record at the far end of an edge record, if it is one. */
const ownEnd = (id: RecordId, direction: "out" | "in", s: Scope): RecordId | undefined => {
  const doc = fetch(id, s)
  if (!isObj(doc)) return undefined
  const from = chargedRecordOf(field(doc, "in"), s),
    to = chargedRecordOf(field(doc, "out"), s)
  return from === undefined || to === undefined ? undefined : direction === "out" ? to : from
}

/**
 * Cost of a graph step: for looking up the edges of a record, in one table or in all, and again for each edge found.
 */
const stepSteps = 40
const edgeSteps = 6

/** Steps of running a step's own SELECT, without its rows. */
const querySteps = 128

const neighbours = (
  id: RecordId,
  direction: "out" | "in",
  tables: ReadonlyArray<string>,
  ranges: ReadonlyArray<Range | undefined>,
  s: Scope
): Array<RecordId> => {
  spendSteps(s.budget, stepSteps)
  const end = ownEnd(id, direction, s)
  const out: Array<RecordId> = []
  if (tables.length > 0) {
    tables.forEach((table, i) => {
      const range = ranges[i]
      spendSteps(s.budget, stepSteps)
      const add = (found: RecordId): void => {
        spendSteps(s.budget, edgeSteps)
        if (range === undefined || isInRange(range, found.key)) out.push(found)
      }
      if (end !== undefined && end.table === table) add(end)
      for (const edge of s.source.edges(id, direction, table)) add(edge)
    })
  } else {
    for (const edge of s.source.edges(id, direction, undefined)) {
      spendSteps(s.budget, edgeSteps)
      out.push(edge)
    }
    if (end !== undefined) {
      const at = out.findIndex((o) => compareStrings(o.table, end.table) > 0)
      out.splice(at < 0 ? out.length : at, 0, end)
    }
  }
  spendBytes(s.budget, 32 + 8 * out.length)
  return out
}

/** A compiled step from one record: ids, or rows where the step has its own SELECT. */
const compileStep = (part: Graph): ((id: RecordId, s: Scope) => ReadonlyArray<Value>) => {
  const directions: ReadonlyArray<"in" | "out"> = part.direction === "both" ? ["in", "out"] : [part.direction]
  const limits = part.ranges.map((r) => r && compile(r))
  const rangeOf = (v: Value): Range | undefined => (v instanceof RecordRange ? v.range : undefined)
  const walk = (id: RecordId, s: Scope): ReadonlyArray<RecordId> => {
    const ranges = limits.map((l) => l && rangeOf(l(s)))
    const found = directions.flatMap((d) => neighbours(id, d, part.tables, ranges, s))
    // The planner does not check that a record exists.
    return s.older === true ? found.filter((target) => fetch(target, s) !== undefined) : found
  }
  if (part.query !== undefined) {
    const select = compileSelectOver(part.query)
    return (id, s) => {
      spendSteps(s.budget, querySteps)
      const rows = select(walk(id, s), s)
      return Array.isArray(rows) ? (rows as ReadonlyArray<Value>) : [rows]
    }
  }
  const steps = part.where === undefined ? 0 : stepsOf(part.where)
  const where = part.where && compile(part.where),
    limit = part.limit && compile(part.limit),
    start = part.start && compile(part.start)
  if (where === undefined && limit === undefined && start === undefined) return walk
  return (id, s) => {
    const kept =
      where === undefined
        ? walk(id, s)
        : walk(id, s).filter((target) => {
            spendSteps(s.budget, scopeSteps + steps)
            const doc = fetch(target, s)
            return doc !== undefined && isTruthy(where(withDoc(s, doc)))
          })
    const from = start === undefined ? 0 : whole(start(s)),
      count = limit === undefined ? kept.length : whole(limit(s))
    return kept.slice(from, from + count)
  }
}

const whole = (v: Value): number =>
  isInt(v) && v >= 0 ? Number(v) : raise`Expected a positive whole number for LIMIT or START`

/**
 * Compiles consecutive graph steps. The result is one flat list, also for a list of records; elements that are no
 * records become NONE.
 */
export const compileChain = (parts: ReadonlyArray<Graph>): Step => {
  const [first, ...others] = parts.map(compileStep)
  const isDetached = parts.some(readsDoc)
  const along = (id: RecordId, s: Scope): ReadonlyArray<Value> => {
    let found = first!(id, s)
    for (const walk of others) {
      spendSteps(s.budget, 4 * found.length)
      found = found.flatMap((item) => {
        const next = startOf(item, s)
        return next === undefined ? [] : walk(next, s)
      })
    }
    return found
  }
  const step: Step = (v, s) => {
    if (Array.isArray(v)) {
      spendSteps(s.budget, 4 * v.length)
      spendBytes(s.budget, 8 * v.length)
      return (v as ReadonlyArray<Value>).flatMap((item) => step(item, s))
    }
    const id = startOf(v, s)
    if (id === undefined) return isObj(v) ? [] : undefined
    return along(id, isDetached && s.detached !== true ? detach(s) : s)
  }
  return step
}

/** Compiles a graph step and the rest of the path, for the older evaluator: a list for each element of a list. */
export const compileGraph = (
  part: Graph,
  rest: ReadonlyArray<Part>,
  compileParts: (parts: ReadonlyArray<Part>) => Step
): Step => {
  const walk = compileStep(part)
  const after = chain(rest, compileParts),
    otherwise = compileParts(rest)
  const along = continueAfterLink([part, ...rest], (id, s) => after(walk(id as RecordId, s), s))
  const step: Step = (v, s) => {
    if (Array.isArray(v)) return mapItems(v as ReadonlyArray<Value>, step, s)
    const id = startOf(v, s)
    return id === undefined ? otherwise(undefined, s) : along(id, s)
  }
  return step
}

/**
 * Compiles the parts after a graph step, for its flat list: further steps and filters keep the list flat, any other
 * part is an ordinary path.
 */
const chain = (rest: ReadonlyArray<Part>, compileParts: (parts: ReadonlyArray<Part>) => Step): Step => {
  const [part, ...others] = rest
  if (part === undefined) return (v) => v
  if (part.kind === "flatten") return chain(others, compileParts)
  if (part.kind === "where") {
    const condition = compile(part.where),
      after = chain(others, compileParts)
    const steps = stepsOf(part.where)
    return (v, s) =>
      after(
        (v as ReadonlyArray<Value>).filter(
          (item) => spendSteps(s.budget, scopeSteps + steps) === undefined && isTruthy(condition(withDoc(s, item)))
        ),
        s
      )
  }
  if (part.kind !== "graph") return compileParts(rest)
  const walk = compileStep(part)
  const after = chain(others, compileParts)
  return (v, s) => {
    spendSteps(s.budget, 4 * (v as ReadonlyArray<Value>).length)
    return after(
      (v as ReadonlyArray<Value>).flatMap((item) => {
        const id = startOf(item, s)
        return id === undefined ? [] : walk(id, s)
      }),
      s
    )
  }
}
