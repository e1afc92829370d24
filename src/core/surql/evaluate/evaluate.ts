/**
 * Expressions compiled once to closures, and run any number of times.
 *
 * Why so: a filter runs once per change and candidate row, so nothing is interpreted there: a field is one closure that
 * reads one property, a comparison of two primitives one more. Failing evaluation throws a private exception that
 * {@link run} turns into a value; a compiled closure must therefore only be called under `run` (or where {@link
 * canFail} says it cannot fail).
 */
import { Either } from "effect"
import { type BinaryOp, type Expr, type Idiom, type Return, rowParams } from "../syntax/ast.ts"
import { printClosure, stepsOf } from "../syntax/print.ts"
import { makeObject } from "../values/makeObject.ts"
import { makeSet } from "../values/makeSet.ts"
import { compare, equal, equalWithoutPatterns, isTruthy } from "../values/order.ts"
import * as RecordIds from "../values/recordId.ts"
import { shown } from "../values/text.ts"
import type { RecordKey, Value } from "../values/value.ts"
import { Closure, isInt, isObj, Range, RecordId, RecordRange, setField, Table, Uuid } from "../values/value.ts"
import { add, divide, modulo, multiply, negate, raisePower, subtract } from "./arithmetic.ts"
import { cast } from "./cast.ts"
import * as Charge from "./charge.ts"
import { isSmall, payAddition, payComparison, payContainment, payOrdering, payWalk, sortSteps } from "./charge.ts"
import { coerce } from "./coerce.ts"
import { allEqual, anyEqual, contains, containsAll, containsAny, intersects } from "./containment.ts"
import type { Failure } from "./failure.ts"
import { failureOf, ownText, raise } from "./failure.ts"
import { functions } from "./functions.ts"
import { exactKind } from "./methods.ts"
import { compileIdiom, idOfTable, fetch as loaded } from "./paths.ts"
import type { Budget, Compiled, Scope } from "./scope.ts"
import { spendBytes, spendSteps } from "./scope.ts"
import { compileFetch } from "./select/reshape.ts"
import { compileStatement } from "./select/select.ts"
import { checkSize } from "./weigh.ts"

/** Runs a compiled expression; the error is the reason of the failure. */
export const run = (compiled: Compiled, scope: Scope): Either.Either<Value, Failure> => {
  try {
    return Either.right(compiled(scope))
  } catch (error) {
    return Either.left(failureOf(error))
  }
}

/** Compiles an expression. Cost: once per expression; the result keeps no state. */
export const compile = (expr: Expr): Compiled => {
  switch (expr.kind) {
    case "literal": {
      const { value } = expr
      return () => value
    }
    case "param":
      return param(expr.name)
    case "array":
      return array(expr.items.map(compile))
    case "set": {
      const items = array(expr.items.map(compile))
      return (s) => {
        const list = items(s) as ReadonlyArray<Value>
        spendSteps(s.budget, sortSteps(payWalk(s.budget, list)))
        return makeSet(list)
      }
    }
    case "object":
      return object(expr.entries)
    case "record": {
      const { table } = expr,
        key = compile(expr.key)
      return (s) => RecordIds.make(table, recordKey(key(s)))
    }
    case "unary":
      return unary(expr.op, compile(expr.operand))
    case "binary":
      return expr.double === true
        ? exactly(compile(expr.left), compile(expr.right))
        : binary(expr.op, compile(expr.left), compile(expr.right))
    case "range":
      return range(expr)
    case "recordRange":
      return recordRange(expr)
    case "cast": {
      const { type } = expr,
        operand = compile(expr.operand)
      return (s) => {
        const v = operand(s)
        Charge.payCast(s.budget, type, v)
        return cast(type, v)
      }
    }
    case "call":
      return call(expr.name, expr.args.map(compile))
    case "closure":
      return closure(expr)
    case "invoke":
      return invoke(compile(expr.fn), expr.args.map(compile))
    case "block":
      return block(expr)
    case "if":
      return branch(
        expr.branches.map(([c, v]) => [compile(c), compile(v)] as const),
        expr.otherwise && compile(expr.otherwise)
      )
    case "subquery":
      return expr.query.kind === "return" ? returning(compileReturn(expr.query)) : compileStatement(expr.query)
    case "table": {
      const value = new Table(expr.name)
      return () => value
    }
    case "idiom":
      return compileIdiom(expr)
  }
}

const param = (name: string): Compiled => {
  if (rowParams.has(name)) return (s) => s.doc
  if (name === "parent") return (s) => s.parent
  const builtin = name in {}
  return builtin ? (s) => (Object.hasOwn(s.params, name) ? s.params[name] : undefined) : (s) => s.params[name]
}

const array =
  (items: ReadonlyArray<Compiled>): Compiled =>
  (s) => {
    spendSteps(s.budget, items.length)
    spendBytes(s.budget, 16 + 8 * items.length)
    const out: Array<Value> = new Array(items.length)
    for (let i = 0; i < items.length; i++) out[i] = items[i]!(s)
    return out
  }

const object = (entries: ReadonlyArray<readonly [string, Expr]>): Compiled => {
  const compiled = entries.map(([key, e]) => [key, compile(e)] as const)
  return (s) => {
    spendSteps(s.budget, compiled.length)
    spendBytes(s.budget, 32 + 64 * compiled.length)
    return makeObject(compiled.map(([key, e]) => [key, e(s)] as const))
  }
}

/** A value as the key of a record id. */
const recordKey = (v: Value): RecordKey => {
  if (isInt(v) || typeof v === "string" || v instanceof Uuid || Array.isArray(v) || isObj(v)) return v as RecordKey
  return raise`Unable to coerce ${shown(v)} into a record id key`
}

const unary = (op: "-" | "!" | "+", operand: Compiled): Compiled =>
  op === "!" ? (s) => !isTruthy(operand(s)) : op === "-" ? (s) => negate(operand(s)) : operand

/** D1: a text in the form of a record id is that id when it is compared with a record of that table. */
const beside = (v: Value, other: Value): Value => (other instanceof RecordId ? idOfTable(v, other.table) : v)

/** The order that `<`, `<=`, `>` and `>=` compare by. */
const order = (a: Value, b: Value): number =>
  typeof a === "string" || typeof b === "string" ? compare(beside(a, b), beside(b, a)) : compare(a, b)

const comparisons: { readonly [op: string]: (a: Value, b: Value) => Value } = {
  "=": equal,
  "!=": (a, b) => !equal(a, b),
  "*=": allEqual,
  "?=": anyEqual,
  "<": (a, b) => order(a, b) < 0,
  "<=": (a, b) => order(a, b) <= 0,
  ">": (a, b) => order(a, b) > 0,
  ">=": (a, b) => order(a, b) >= 0,
  "+": add,
  "-": subtract,
  "*": multiply,
  "/": divide,
  "%": modulo,
  "**": raisePower,
  IN: (a, b) => contains(b, a),
  "NOT IN": (a, b) => !contains(b, a),
  CONTAINS: contains,
  CONTAINSNOT: (a, b) => !contains(a, b),
  CONTAINSALL: containsAll,
  CONTAINSANY: containsAny,
  CONTAINSNONE: (a, b) => !containsAny(a, b),
  ALLINSIDE: (a, b) => containsAll(b, a),
  ANYINSIDE: (a, b) => containsAny(b, a),
  NONEINSIDE: (a, b) => !containsAny(b, a),
  OUTSIDE: (a, b) => !intersects(a, b),
  INTERSECTS: intersects
}

/** Cost of an operator on values that are not primitive: long strings, and values with parts. */
const chargeOf = (op: BinaryOp): ((b: Budget, left: Value, right: Value) => void) => {
  switch (op) {
    case "+":
      return payAddition
    case "=":
    case "!=":
      return payComparison
    case "<":
    case "<=":
    case ">":
    case ">=":
      return payOrdering
    case "*=":
    case "?=":
      return payContainment
    case "IN":
    case "NOT IN":
    case "ALLINSIDE":
    case "ANYINSIDE":
    case "NONEINSIDE":
      return (b, left, right) => payContainment(b, right, left)
    default:
      return payContainment
  }
}

const binary = (op: BinaryOp, left: Compiled, right: Compiled): Compiled => {
  switch (op) {
    case "AND":
      return (s) => {
        const l = left(s)
        return isTruthy(l) ? right(s) : l
      }
    case "OR":
      return (s) => {
        const l = left(s)
        return isTruthy(l) ? l : right(s)
      }
    case "??":
      return (s) => {
        const l = left(s)
        return l === undefined || l === null ? right(s) : l
      }
    case "?:":
      return (s) => {
        const l = left(s)
        return isTruthy(l) ? l : right(s)
      }
    case "-":
    case "*":
    case "/":
    case "%":
    case "**": {
      const f = comparisons[op]!
      return (s) => f(left(s), right(s))
    }
    default: {
      const f = comparisons[op]!,
        charge = chargeOf(op)
      return (s) => {
        const l = left(s),
          r = right(s)
        if (!isSmall(l) || !isSmall(r)) charge(s.budget, l, r)
        return f(l, r)
      }
    }
  }
}

/** `==`, which does not match text with a pattern. */
const exactly =
  (left: Compiled, right: Compiled): Compiled =>
  (s) => {
    const l = left(s),
      r = right(s)
    if (!isSmall(l) || !isSmall(r)) payComparison(s.budget, l, r)
    return equalWithoutPatterns(l, r)
  }

const range = (expr: Extract<Expr, { kind: "range" }>): Compiled => {
  const from = expr.from && compile(expr.from),
    to = expr.to && compile(expr.to)
  const { fromInclusive, toInclusive } = expr
  return (s) =>
    new Range(from && { value: from(s), inclusive: fromInclusive }, to && { value: to(s), inclusive: toInclusive })
}

const recordRange = (expr: Extract<Expr, { kind: "recordRange" }>): Compiled => {
  const from = expr.from && compile(expr.from),
    to = expr.to && compile(expr.to)
  const { table, fromInclusive, toInclusive } = expr
  return (s) =>
    new RecordRange(
      table,
      new Range(
        from && { value: recordKey(from(s)) as Value, inclusive: fromInclusive },
        to && { value: recordKey(to(s)) as Value, inclusive: toInclusive }
      )
    )
}

const call = (name: string, args: ReadonlyArray<Compiled>): Compiled => {
  const fn = functions.get(name)
  if (fn === undefined) return () => raise`The function '${ownText(name)}' does not exist`
  if (fn.constant !== undefined) {
    const { constant } = fn
    return () => constant
  }
  const wrong = args.length < fn.min || args.length > fn.max
  if (wrong) return () => raise`Incorrect arguments for function ${ownText(name)}(). ${ownText(fn.arity)}`
  const [first, second] = args
  if (args.length === 1) return (s) => fn.call([first!(s)], s, name)
  if (args.length === 2) return (s) => fn.call([first!(s), second!(s)], s, name)
  return (s) =>
    fn.call(
      args.map((a) => a(s)),
      s,
      name
    )
}

/** Steps of calling a closure, without those of its body. */
const callSteps = 16

/** Steps of measuring a value with parts; its size is cached. */
const weighSteps = 32

const closure = (expr: Extract<Expr, { kind: "closure" }>): Compiled => {
  const body = compile(expr.body)
  const text = printClosure(expr),
    { defined, result, types } = expr
  const name = defined ?? "ANONYMOUS"
  const steps = stepsOf(expr.body)
  const given = (args: ReadonlyArray<Value>, i: number): Value => {
    const type = types[i]
    if (type === undefined) return args[i]
    const parameter = ownText(expr.params[i]!)
    return coerce(type, args[i], (why) =>
      defined === undefined
        ? raise`Incorrect arguments for function ${ownText(name)}(). Expected a value of type '${ownText(type)}' for argument $${parameter}`
        : raise`Incorrect arguments for function ${ownText(name)}(). Failed to coerce argument \`$${parameter}\`: ${why}`
    )
  }
  return (s) => {
    const price = callSteps + steps + widthOf(s)
    return new Closure(
      expr.params.length,
      (args, directly) => {
        spendSteps(s.budget, price)
        const params: Record<string, Value> = { ...s.params }
        for (let i = 0; i < expr.params.length; i++) setField(params, expr.params[i]!, given(args, i))
        const out = checkSize(body({ ...s, params, older: s.older === true || directly !== true }))
        if (typeof out === "object" && out !== null) spendSteps(s.budget, weighSteps)
        return result === undefined
          ? out
          : coerce(result, out, (why) => raise`Couldn't coerce return value from function \`${ownText(name)}\`: ${why}`)
      },
      text
    )
  }
}

/** Number of parameters in a scope; a call copies them. */
const widthOf = ({ params }: Scope): number => {
  let n = 0
  for (const _ in params) n++
  return n
}

const invoke =
  (fn: Compiled, args: ReadonlyArray<Compiled>): Compiled =>
  (s) => {
    const f = fn(s)
    return f instanceof Closure
      ? f.call(
          args.map((a) => a(s)),
          true
        )
      : raise`There was a problem running the ANONYMOUS() function. '${exactKind(f)}' is not a function`
  }

/** Carries the value of a RETURN to the block that catches it. The parser guarantees that there is one. */
class Returned {
  constructor(readonly value: Value) {}
}

const returning =
  (value: Compiled): Compiled =>
  (s) => {
    throw new Returned(value(s))
  }

const block = (expr: Extract<Expr, { kind: "block" }>): Compiled => {
  const steps = expr.steps.map((s) => ({ ...s, value: compile(s.value) }))
  if (expr.catches) {
    const { value } = steps[0]!
    return (s) => {
      try {
        return value(s)
      } catch (error) {
        if (error instanceof Returned) return error.value
        throw error
      }
    }
  }
  return (outer) => {
    let s = outer,
      last: Value
    for (const { name, type, value } of steps) {
      const v = name === undefined ? value(s) : checkSize(value(s))
      last = name === undefined ? v : undefined
      spendSteps(s.budget, 1 + (widthOf(s) >> 2))
      if (name !== undefined)
        s = {
          ...s,
          params: {
            ...s.params,
            [name]:
              type === undefined
                ? v
                : coerce(type, v, (why) => raise`Tried to set \`$${ownText(name)}\`, but couldn't coerce value: ${why}`)
          }
        }
    }
    return last
  }
}

/** `RETURN e FETCH a`: the value of a RETURN, with the documents of its links. */
export const compileReturn = (statement: Return): Compiled => {
  const value = compile(statement.value)
  if (statement.fetch.length === 0) return value
  const fetch = compileFetch(statement)
  const fetched = (v: Value, s: Scope): Value => {
    if (Array.isArray(v)) return (v as ReadonlyArray<Value>).map((item) => fetched(item, s))
    return fetch(v instanceof RecordId ? loaded(v, s) : v, s)
  }
  return (s) => fetched(value(s), s)
}

const branch =
  (branches: ReadonlyArray<readonly [Compiled, Compiled]>, otherwise: Compiled | undefined): Compiled =>
  (s) => {
    for (const [condition, value] of branches) if (isTruthy(condition(s))) return value(s)
    return otherwise === undefined ? undefined : otherwise(s)
  }

const safeOps: ReadonlySet<BinaryOp> = new Set<BinaryOp>([
  "OR",
  "AND",
  "??",
  "?:",
  "=",
  "!=",
  "*=",
  "?=",
  "<",
  "<=",
  ">",
  ">=",
  "IN",
  "NOT IN",
  "CONTAINS",
  "CONTAINSNOT",
  "CONTAINSALL",
  "CONTAINSANY",
  "CONTAINSNONE",
  "ALLINSIDE",
  "ANYINSIDE",
  "NONEINSIDE",
  "OUTSIDE",
  "INTERSECTS",
  "/"
])

const children = (expr: Expr): ReadonlyArray<Expr> => {
  switch (expr.kind) {
    case "array":
    case "set":
      return expr.items
    case "object":
      return expr.entries.map(([, e]) => e)
    case "record":
      return [expr.key]
    case "unary":
    case "cast":
      return [expr.operand]
    case "binary":
      return [expr.left, expr.right]
    case "range":
    case "recordRange":
      return [expr.from, expr.to].filter((e) => e !== undefined)
    case "call":
      return expr.args
    case "if":
      return [...expr.branches.flat(), ...(expr.otherwise === undefined ? [] : [expr.otherwise])]
    default:
      return []
  }
}

/** Longer paths may fan out over nested lists of links, and use up the budget. */
const maxCertain = 2

const pathCanFail = (idiom: Idiom): boolean =>
  idiom.parts.length > maxCertain ||
  (idiom.start !== undefined && canFail(idiom.start)) ||
  idiom.parts.some((p) => {
    switch (p.kind) {
      case "field":
      case "all":
      case "last":
      case "flatten":
      case "optional":
        return false
      case "index":
        return canFail(p.index)
      case "where":
        return canFail(p.where)
      default:
        return true
    }
  })

/**
 * False if evaluation cannot fail on any document, except for lack of steps or bytes. Paths, comparisons, logic and
 * literals cannot.
 */
export const canFail = (expr: Expr): boolean => {
  switch (expr.kind) {
    case "record":
    case "recordRange":
    case "call":
    case "cast":
    case "closure":
    case "invoke":
    case "block":
    case "subquery":
      return expr.kind !== "call" || functions.get(expr.name)?.constant === undefined
    case "idiom":
      return pathCanFail(expr)
    case "unary":
      return expr.op === "-" || canFail(expr.operand)
    case "binary":
      return !safeOps.has(expr.op) || canFail(expr.left) || canFail(expr.right)
    default:
      return children(expr).some(canFail)
  }
}

/** True if the value depends on parameters at most: not on the document, other records, or the time. */
export const isConstant = (expr: Expr): boolean => {
  switch (expr.kind) {
    case "literal":
      return true
    case "param":
      return !rowParams.has(expr.name) && expr.name !== "parent"
    case "call": {
      const fn = functions.get(expr.name)
      return (
        fn?.pure === true &&
        !fn.reads &&
        (expr.args.length > 0 || fn.pureWithArguments !== true) &&
        expr.args.every(isConstant)
      )
    }
    case "closure":
    case "invoke":
    case "block":
    case "subquery":
    case "table":
      return false
    case "idiom":
      return (
        expr.start !== undefined &&
        expr.start.kind !== "param" &&
        isConstant(expr.start) &&
        expr.parts.every(
          (p) =>
            p.kind === "all" || p.kind === "last" || p.kind === "flatten" || (p.kind === "index" && isConstant(p.index))
        )
      )
    default:
      return children(expr).every(isConstant)
  }
}
