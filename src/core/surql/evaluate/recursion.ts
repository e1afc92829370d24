/**
 * Recursive paths: `{1..3}(->knows->person)`, with `+collect`, `+path` and `+shortest=record`.
 *
 * Why so: a plain recursion repeats the path on its own result and stops at a dead end, at the largest depth, or when
 * nothing changes; the others walk the graph breadth first. Depth is bounded by 256, as in the database; where no bound
 * is written, a plain recursion that goes on fails there.
 */
import type { Destructured, Part } from "../syntax/ast.ts"
import { indexKey } from "../values/key.ts"
import { equal, identical } from "../values/order.ts"
import { shown } from "../values/text.ts"
import type { Value } from "../values/value.ts"
import { isSmall, payComparison, payWalk } from "./charge.ts"
import { compile } from "./evaluate.ts"
import { raise } from "./failure.ts"
import { readsDoc } from "./pathSteps.ts"
import type { Step } from "./paths.ts"
import { chargedRecordOf, mapItems } from "./paths.ts"
import type { Compiled, Scope } from "./scope.ts"
import { scopeSteps, spendBytes, spendSteps } from "./scope.ts"

type Recurse = Extract<Part, { kind: "recurse" }>

const maxDepth = 256

const tooDeep = (): never => raise`Exceeded the idiom recursion limit of 256.`

const isNothing = (v: Value): boolean => v === undefined || v === null

/** Whether a value is a dead end: nothing, or a list of dead ends. */
const isFinal = (v: Value): boolean =>
  isNothing(v) || (Array.isArray(v) && (v as ReadonlyArray<Value>).every(isNothing))

/** Result of a branch that ends too early. */
const finalOf = (v: Value): Value => (Array.isArray(v) ? [] : v === null ? null : undefined)

/** A list without dead ends and with nested lists flattened; any other value unchanged. */
const cleaned = (v: Value, s: Scope): Value => {
  if (!Array.isArray(v)) return v
  const parts = 1 + payWalk(s.budget, v)
  spendSteps(s.budget, 2 * parts)
  spendBytes(s.budget, 16 * parts)
  const out: Array<Value> = []
  for (const item of v as ReadonlyArray<Value>) {
    if (isFinal(item)) continue
    if (!Array.isArray(item)) out.push(item)
    else for (const inner of item as ReadonlyArray<Value>) out.push(inner)
  }
  return out
}

/** Whether a value is a record, or a list that contains one at any depth. */
const isOfRecords = (v: Value, s: Scope): boolean =>
  Array.isArray(v)
    ? (v as ReadonlyArray<Value>).some((item) => isOfRecords(item, s))
    : chargedRecordOf(v, s) !== undefined

/** The planner continues only from records. */
const target = (v: Value, s: Scope): Value => {
  if (s.older === true || isOfRecords(v, s)) return v
  return raise`Expected a record ID during recursive graph traversal, but found \`${shown(v)}\``
}

/** Targets of one step without dead ends. Charged here, except for rows that the caller keeps. */
const found = (v: Value, s: Scope): ReadonlyArray<Value> => {
  const parts = 1 + payWalk(s.budget, v)
  spendSteps(s.budget, 2 * parts)
  spendBytes(s.budget, 16 * parts)
  return listOf(v)
    .filter((item) => !isFinal(item))
    .map((item) => target(item, s))
}

/** A copy of a path with one more record. */
const longer = (path: ReadonlyArray<Value>, item: Value, s: Scope): ReadonlyArray<Value> => {
  spendSteps(s.budget, 4 + (path.length >> 3))
  spendBytes(s.budget, 32 + 8 * path.length)
  return [...path, item]
}

/** Key to recognise a found value; making the key of a list or an object costs more than walking it. */
const keyOf = (v: Value, s: Scope): unknown => {
  spendSteps(s.budget, 8 + (isSmall(v) ? 0 : 24 * payWalk(s.budget, v)))
  return indexKey(v)
}

const plain =
  (part: Recurse, body: Step): Step =>
  (v, s) => {
    let current = v
    const max = part.max ?? maxDepth
    for (let depth = 1; ; depth++) {
      spendSteps(s.budget, 1)
      const next = cleaned(body(current, s), s)
      if (Array.isArray(next)) payComparison(s.budget, next, current)
      if (isFinal(next) || identical(next, current)) {
        return depth > part.min ? current : finalOf(next)
      }
      target(next, s)
      if (depth >= max) return part.max === undefined ? tooDeep() : next
      current = next
    }
  }

const collect =
  (part: Recurse, body: Step): Step =>
  (v, s) => {
    const seen = new Set<unknown>(part.inclusive ? [keyOf(v, s)] : [])
    const out: Array<Value> = part.inclusive ? [v] : []
    let front: ReadonlyArray<Value> = [v]
    for (let depth = 1; depth <= (part.max ?? maxDepth) && front.length > 0; depth++) {
      const next: Array<Value> = []
      for (const start of front) {
        const ends = body(start, s)
        for (const end of found(s.older === true ? cleaned(ends, s) : ends, s)) {
          const key = keyOf(end, s)
          if (seen.has(key)) continue
          seen.add(key)
          next.push(end)
          if (depth >= part.min) out.push(end)
        }
      }
      front = next
    }
    return out
  }

/**
 * Paths as the older evaluator lists them: finished ones in the order of the walk, with NULL and NONE among their
 * records. Each element of a list begins a path, and a record that leads to itself ends its path.
 */
const olderPaths =
  (part: Recurse, body: Step): Step =>
  (v, s) => {
    const done: Array<ReadonlyArray<Value>> = []
    spendBytes(s.budget, 64 * listOf(v).length)
    let open = listOf(v).map(listOf)
    for (let depth = 1; open.length > 0; depth++) {
      if (depth > maxDepth) return tooDeep()
      const next = depth === part.max ? done : []
      for (const path of open) {
        if (path.length === 0) continue
        const last = path[path.length - 1]
        const ends = body(last, s)
        spendSteps(s.budget, 2 + payWalk(s.budget, ends))
        if (!isSmall(ends)) payComparison(s.budget, ends, last)
        if (isFinal(ends) || identical(ends, last)) {
          if (depth >= part.min && (depth > 1 || part.inclusive)) done.push(path)
        } else for (const end of listOf(ends)) next.push(longer(depth > 1 || part.inclusive ? path : [], end, s))
      }
      open = next === done ? [] : next
    }
    return done
  }

const listOf = (v: Value): ReadonlyArray<Value> => (Array.isArray(v) ? (v as ReadonlyArray<Value>) : [v])

const paths = (part: Recurse, body: Step): Step => {
  const older = olderPaths(part, body),
    planned = plannedPaths(part, body)
  return (v, s) => (s.older === true ? older : planned)(v, s)
}

const plannedPaths =
  (part: Recurse, body: Step): Step =>
  (v, s) => {
    const done: Array<ReadonlyArray<Value>> = []
    let open: Array<ReadonlyArray<Value>> = [part.inclusive ? [v] : []]
    for (let depth = 1; depth <= (part.max ?? maxDepth) && open.length > 0; depth++) {
      const next: Array<ReadonlyArray<Value>> = []
      for (const path of open) {
        const ends = found(body(path.length === 0 ? v : path[path.length - 1], s), s)
        spendSteps(s.budget, ends.length + 1)
        if (ends.length === 0 && depth > part.min) done.push(path)
        for (const end of ends) next.push(longer(path, end, s))
      }
      open = next
    }
    return done.concat(open.filter((path) => path.length > 0))
  }

const shortest =
  (part: Recurse, body: Step, wanted: Compiled): Step =>
  (v, s) => {
    const goal = wanted(s)
    const shownPath = (path: ReadonlyArray<Value>): ReadonlyArray<Value> => (part.inclusive ? path : path.slice(1))
    const seen = new Set<unknown>([keyOf(v, s)])
    let open: Array<ReadonlyArray<Value>> = [[v]]
    for (let depth = 1; depth <= (part.max ?? maxDepth) && open.length > 0; depth++) {
      const next: Array<ReadonlyArray<Value>> = []
      for (const path of open) {
        for (const end of found(body(path[path.length - 1], s), s)) {
          const extended = longer(path, end, s)
          if (!isSmall(end)) payComparison(s.budget, end, goal)
          if (depth >= part.min && equal(end, goal)) return shownPath(extended)
          const key = keyOf(end, s)
          if (seen.has(key)) continue
          seen.add(key)
          next.push(extended)
        }
      }
      open = next
    }
    return open.length === 0 || open[0]!.length === 1 ? undefined : open.map(shownPath)
  }

const hasRepeat = (parts: ReadonlyArray<Part>): boolean =>
  parts.some((p) => p.kind === "repeat" || (p.kind === "destructure" && p.entries.some(goesOn)))

/** Whether a field of `.{ }` contains an `@`, where a tree continues. */
const goesOn = ({ expr }: Destructured): boolean => expr.kind === "idiom" && hasRepeat(expr.parts)

/** `@` in a tree. A branch that ends here before the least depth makes the whole tree NONE. */
export const repeatStep: Step = (v, s) => {
  const { repeat: tree } = s
  if (tree === undefined)
    return raise`Tried to use a \`@\` repeat recurse symbol in a position where it is not supported`
  spendSteps(s.budget, scopeSteps)
  const branches = Array.isArray(v) ? cleaned(mapItems(v as ReadonlyArray<Value>, tree.below, s), s) : tree.below(v, s)
  if (tree.isShallow && isFinal(branches)) tree.hasEnded = true
  return branches
}

/** A tree: the path is repeated below each `@`, down to the largest depth. */
const tree = (part: Recurse, body: Step): Step => {
  const at =
    (depth: number): Step =>
    (v, s) => {
      const below: Step = (inner, scope) => {
        if (isFinal(inner)) return scope.older === true ? finalOf(inner) : undefined
        if (depth >= maxDepth) return tooDeep()
        target(inner, scope)
        if (part.max !== undefined && depth >= part.max) return inner
        const branch = at(depth + 1)(inner, scope)
        // For the older evaluator a missing record is a branch of its own.
        return scope.older === true && depth >= part.min && isFinal(branch) ? inner : branch
      }
      const repeats = { below, isShallow: depth < part.min, hasEnded: false }
      const made = body(v, { ...s, repeat: repeats })
      return repeats.hasEnded ? undefined : made
    }
  return at(1)
}

/** A recursion has no row: a field in an index or an argument is NONE. */
const withoutRow = (s: Scope): Scope => ({ ...s, doc: undefined, row: undefined, detached: true })

/** Compiles a recursion and the rest of the path, which is its body if there is none in parentheses. */
export const compileRecursion = (
  part: Recurse,
  rest: ReadonlyArray<Part>,
  compileParts: (parts: ReadonlyArray<Part>) => Step
): Step => {
  const inline = part.body.length === 0
  const repeated = inline ? rest : part.body
  const body = compileParts(repeated)
  const after: Step = inline ? (v) => v : compileParts(rest)
  const repeats = hasRepeat(repeated),
    isRowRead = repeated.some(readsDoc)
  const step = repeats
    ? tree(part, body)
    : part.mode === "plain"
      ? plain(part, body)
      : part.mode === "collect"
        ? collect(part, body)
        : part.mode === "path"
          ? paths(part, body)
          : shortest(part, body, compile(part.target!))
  return (v: Value, s: Scope) => {
    if (part.min === 0) return raise`Found 0 for bound but expected at least 1.`
    if (repeats && part.mode !== "plain")
      return raise`Cannot construct a recursion plan when an instruction is provided`
    return after(repeats && isFinal(v) ? finalOf(v) : step(v, isRowRead ? withoutRow(s) : s), s)
  }
}
