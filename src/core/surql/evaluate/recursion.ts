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
import type { Value } from "../values/value.ts"
import { compared, isSmall, walk } from "./charge.ts"
import { compile } from "./evaluate.ts"
import { raise } from "./failure.ts"
import type { Step } from "./paths.ts"
import type { Compiled, Scope } from "./scope.ts"
import { make, scopeSteps, spend } from "./scope.ts"

type Recurse = Extract<Part, { kind: "recurse" }>

const maxDepth = 256

const tooDeep = (): never => raise`Exceeded the idiom recursion limit of 256.`

const isFinal = (v: Value): boolean =>
  v === undefined || v === null || (Array.isArray(v) && (v as ReadonlyArray<Value>).every(isFinal))

/** One level of a walk: nested lists flat, dead ends gone. */
const level = (v: Value, out: Array<Value> = []): ReadonlyArray<Value> => {
  if (Array.isArray(v)) for (const item of v as ReadonlyArray<Value>) level(item, out)
  else if (v !== undefined && v !== null) out.push(v)
  return out
}

/** Lists flat and without dead ends; any other value as it is. */
export const withoutDeadEnds = (v: Value, s: Scope): Value => (Array.isArray(v) ? flat(v, s) : v)

/** A level, paid for before it is made: this function pays for the walk, its caller for rows that it keeps. */
const flat = (v: Value, s: Scope): ReadonlyArray<Value> => {
  const parts = 1 + walk(s.budget, v)
  spend(s.budget, 2 * parts)
  make(s.budget, 16 * parts)
  return level(v)
}

/** A path with one more record, which is a copy. */
const longer = (path: ReadonlyArray<Value>, item: Value, s: Scope): ReadonlyArray<Value> => {
  spend(s.budget, 4 + (path.length >> 3))
  make(s.budget, 32 + 8 * path.length)
  return [...path, item]
}

/** Tells a found value from others; making the key of a list or an object takes more than a look at its parts. */
const keyOf = (v: Value, s: Scope): unknown => {
  spend(s.budget, 8 + (isSmall(v) ? 0 : 24 * walk(s.budget, v)))
  return indexKey(v)
}

const plain =
  (part: Recurse, body: Step): Step =>
  (v, s) => {
    let current = v
    const max = part.max ?? maxDepth
    for (let depth = 1; ; depth++) {
      spend(s.budget, 1)
      const next = withoutDeadEnds(body(current, s), s)
      if (Array.isArray(next)) compared(s.budget, next, current)
      if (isFinal(next) || identical(next, current)) {
        if (depth > part.min) return current
        return Array.isArray(next) ? [] : undefined
      }
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
      for (const found of front.flatMap((item) => flat(body(item, s), s))) {
        const key = keyOf(found, s)
        if (seen.has(key)) continue
        seen.add(key)
        next.push(found)
        if (depth >= part.min) out.push(found)
      }
      front = next
    }
    return out
  }

const paths =
  (part: Recurse, body: Step): Step =>
  (v, s) => {
    const done: Array<ReadonlyArray<Value>> = []
    let open: Array<ReadonlyArray<Value>> = [part.inclusive ? [v] : []]
    for (let depth = 1; depth <= (part.max ?? maxDepth) && open.length > 0; depth++) {
      const next: Array<ReadonlyArray<Value>> = []
      for (const path of open) {
        const found = flat(body(path.length === 0 ? v : path[path.length - 1], s), s)
        spend(s.budget, found.length + 1)
        if (found.length === 0 && depth > part.min) done.push(path)
        for (const item of found) next.push(longer(path, item, s))
      }
      open = next
    }
    return done.concat(open)
  }

const shortest =
  (part: Recurse, body: Step, target: Compiled): Step =>
  (v, s) => {
    const goal = target(s)
    const seen = new Set<unknown>([keyOf(v, s)])
    let open: Array<ReadonlyArray<Value>> = [[v]]
    for (let depth = 1; depth <= (part.max ?? maxDepth) && open.length > 0; depth++) {
      const next: Array<ReadonlyArray<Value>> = []
      for (const path of open) {
        for (const found of flat(body(path[path.length - 1], s), s)) {
          const extended = longer(path, found, s)
          if (!isSmall(found)) compared(s.budget, found, goal)
          if (equal(found, goal)) return part.inclusive ? extended : extended.slice(1)
          const key = keyOf(found, s)
          if (seen.has(key)) continue
          seen.add(key)
          next.push(extended)
        }
      }
      open = next
    }
    return undefined
  }

const hasRepeat = (parts: ReadonlyArray<Part>): boolean =>
  parts.some((p) => p.kind === "repeat" || (p.kind === "destructure" && p.entries.some(goesOn)))

/** Whether a field of `.{ }` holds an `@`, at which a tree goes on. */
export const goesOn = ({ expr }: Destructured): boolean => expr.kind === "idiom" && hasRepeat(expr.parts)

/** Whether the way below a field ends before the least depth: the database answers NONE for the object around it. */
export const endsTooEarly = (found: Value, s: Scope): boolean => s.repeat?.isShallow === true && isFinal(found)

/** A tree: the path goes on below each place marked `@`, down to the largest depth. */
const tree = (part: Recurse, body: Step): Step => {
  const at =
    (depth: number): Step =>
    (v, s) =>
      body(v, {
        ...s,
        repeat: {
          isShallow: depth < part.min,
          below: (inner, scope) => {
            spend(scope.budget, scopeSteps)
            if (Array.isArray(inner)) {
              make(scope.budget, 8 * inner.length)
              return (inner as ReadonlyArray<Value>).map((item) => scope.repeat!.below(item, scope))
            }
            if (depth >= maxDepth) return tooDeep()
            return inner === undefined || inner === null || (part.max !== undefined && depth >= part.max)
              ? inner
              : at(depth + 1)(inner, scope)
          }
        }
      })
  return at(1)
}

/** Compiles a recursion and what follows it. Without a body in parentheses the rest of the path is the body. */
export const compileRecursion = (
  part: Recurse,
  rest: ReadonlyArray<Part>,
  compileParts: (parts: ReadonlyArray<Part>) => Step
): Step => {
  const inline = part.body.length === 0
  const body = compileParts(inline ? rest : part.body)
  const after: Step = inline ? (v) => v : compileParts(rest)
  const repeats = hasRepeat(inline ? rest : part.body)
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
    return v === undefined || v === null ? undefined : after(step(v, s), s)
  }
}
