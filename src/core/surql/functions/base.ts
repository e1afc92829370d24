/**
 * Functions outside the families: `count`, `not`.
 *
 * Why so: they are called without a path, everything else lives in its family's file.
 */
import { isTruthy } from "../values/order.ts"
import type { Value } from "../values/value.ts"
import type { Table } from "./define.ts"
import { define } from "./define.ts"

const count = (v: Value): number =>
  Array.isArray(v) ? (v as ReadonlyArray<Value>).filter(isTruthy).length : isTruthy(v) ? 1 : 0

export const base: Table = {
  count: define<ReadonlyArray<Value>>(["?any"], (args) => (args.length === 0 ? 1 : count(args[0]))),
  not: define<[Value]>(["any"], ([v]) => !isTruthy(v))
}
