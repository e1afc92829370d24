/**
 * `duration::*`: a duration in other units and from them.
 *
 * Why so: all are one division or multiplication of nanoseconds.
 */

import { ownText, raise } from "../../evaluate/failure.ts"
import * as Durations from "../../values/duration.ts"
import { type Duration, int } from "../../values/value.ts"
import type { Fn, Table } from "../define.ts"
import { constant, define } from "../define.ts"

/** Counts of more than 64 bits wrap around, as in the database. */
const unit = (nanos: bigint): Fn =>
  define<[Duration]>(["duration"], ([d]) => int(BigInt.asIntN(64, Durations.toNanos(d) / nanos)))

/** A negative number is read as 64 bits without a sign, as in the database. */
const fromUnit = (nanos: bigint): Fn =>
  define<[number | bigint]>(
    ["int"],
    ([n], _, name) => {
      const count = BigInt.asUintN(64, BigInt(n))
      return (
        Durations.fromNanos(count * nanos) ??
        raise`Failed to compute: "${ownText(name)}(${count})", as the operation results in an arithmetic overflow.`
      )
    },
    { wideInts: true }
  )

const unitNanos: ReadonlyArray<readonly [string, bigint]> = [
  ["nanos", 1n],
  ["micros", 1_000n],
  ["millis", 1_000_000n],
  ["secs", 1_000_000_000n],
  ["mins", 60_000_000_000n],
  ["hours", 3_600_000_000_000n],
  ["days", 86_400_000_000_000n],
  ["weeks", 604_800_000_000_000n],
  ["years", 31_536_000_000_000_000n]
]

export const duration: Table = {
  ...Object.fromEntries(
    unitNanos.flatMap(
      ([name, nanos]) =>
        [
          [`duration::${name}`, unit(nanos)],
          ...(name === "years" ? [] : ([[`duration::from_${name}`, fromUnit(nanos)]] as const))
        ] as const
    )
  ),
  "duration::max": constant(Durations.longest)
}
