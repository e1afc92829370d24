/**
 * `value::*`: chaining, the difference of two values, and a value with a difference applied.
 *
 * Why so: any value has these, so they belong to no family of a type; as methods they are found behind those. A patch walks the
 * value once per operation, which is paid for before it starts.
 */
import { diff, patch } from "../patch.ts"
import { spend } from "../scope.ts"
import type { Scope } from "../scope.ts"
import { isObj } from "../value.ts"
import type { Closure, Value } from "../value.ts"
import { define } from "./define.ts"
import type { Table } from "./define.ts"

/** How many values a value is made of. */
const sizeOf = (v: Value): number =>
  Array.isArray(v) ? (v as ReadonlyArray<Value>).reduce<number>((n, item) => n + sizeOf(item), 1) : isObj(v) ? Object.values(v).reduce<number>((n, item) => n + sizeOf(item), 1) : 1

const patched = (v: Value, operations: Value, scope: Scope): Value => {
  const size = sizeOf(v) + sizeOf(operations)
  if (Array.isArray(operations)) spend(scope.budget, size * operations.length)
  return patch(v, operations)
}

export const value: Table = {
  "value::chain": define<[Value, Closure]>(["any", "function"], ([v, f]) => f.call([v])),
  "value::diff": define<[Value, Value]>(["any", "any"], ([a, b]) => diff(a, b)),
  "value::patch": define<[Value, Value]>(["any", "any"], ([v, operations], scope) => patched(v, operations, scope))
}
