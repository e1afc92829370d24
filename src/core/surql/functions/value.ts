/**
 * `value::*`: chaining, the difference of two values, and a value with a difference applied.
 *
 * Why so: any value has these, so they belong to no type's family; as methods they are looked up after the family's. A
 * patch walks the value once per operation, which is paid for before it starts.
 */

import type { Closure, Value } from "../values/value.ts"
import type { Table } from "./define.ts"
import { define } from "./define.ts"
import { diff, patch } from "./patch.ts"

export const value: Table = {
  "value::chain": define<[Value, Closure]>(["any", "function"], ([v, f]) => f.call([v])),
  "value::diff": define<[Value, Value]>(["any", "any"], ([a, b]) => diff(a, b)),
  "value::patch": define<[Value, Value]>(["any", "any"], ([v, operations]) => patch(v, operations))
}
