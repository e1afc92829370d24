/**
 * Random queries that are made to explode: functions and operators in each other, with arguments that are large, shared
 * or growing.
 *
 * Why random: the table of `queries.ts` has what somebody thought of; what is left is found where two things meet that are
 * harmless alone.
 */

import type { Rng } from "../../../kit/data/random.ts"
import { functions } from "../../../src/core/surql/evaluate/functions.ts"
import * as Calls from "../../core/surql/scalarCalls.ts"
import * as Values from "../../core/surql/scalarValues.ts"

const sizes = [0, 1, 7, 100, 5_000, 100_000, 1_000_000, 4_294_967_296, 9_007_199_254_740_993] as const

const size = (random: Rng): string => String(random.pick(sizes))

const names = Calls.names.filter((name) => functions.get(name)!.constant === undefined)

/** An expression, nested so many levels at most. */
export const expression = (random: Rng, depth: number): string => {
  if (depth === 0) return random.chance(0.5) ? Values.any(random) : `array::range(0, ${size(random)})`
  const inner = (): string => expression(random, depth - 1)
  return random.pick<() => string>([
    () => `array::repeat(${inner()}, ${size(random)})`,
    () => `string::repeat(<string> ${inner()}, ${size(random)})`,
    () => `array::range(${size(random)}, ${size(random)})`,
    () =>
      `array::fold(array::range(0, ${size(random)}), ${inner()}, |$a, $b| ${random.pick(["$a + $a", "[$a, $a]", "array::concat($a, $a)", "array::flatten([$a, $a])", "<string> $a + <string> $a"])})`,
    () => `(${inner()}).map(|$v| ${random.pick(["$v", "[$v, $v]", inner()])})`,
    () => `array::windows(${inner()}, ${size(random)})`,
    () => `array::combine(${inner()}, ${inner()})`,
    () => `<${random.pick(Calls.casts)}> (${inner()})`,
    () => `(${inner()}) ${random.pick(Calls.operators)} (${inner()})`,
    () => `{ LET $x = ${inner()}; RETURN [$x, $x, $x] }`,
    () => `${random.pick(names)}(${Array.from({ length: 1 + random.below(3) }, inner).join(", ")})`,
    () => `${random.pick(names)}(${Array.from({ length: 1 + random.below(2) }, inner).join(", ")})`,
    () => Calls.call(random, random.pick(names)),
    () => `(SELECT VALUE ${inner()} FROM t)`
  ])()
}

/** A statement for `/proxy/query`. */
export const query = (random: Rng): string =>
  random.pick<() => string>([
    () => `RETURN ${expression(random, 1 + random.below(4))}`,
    () => `SELECT ${expression(random, 1 + random.below(3))} AS w FROM t`,
    () => `SELECT * FROM t WHERE ${expression(random, 2)} ORDER BY n LIMIT ${random.below(5)}`
  ])()
