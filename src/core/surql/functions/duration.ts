/**
 * `duration::*`: a duration in other units and from them.
 *
 * Why so: all are one division or multiplication of nanoseconds.
 */
import * as Durations from "../duration.ts"
import { raise } from "../failure.ts"
import { Duration, int } from "../value.ts"
import { constant, define } from "./define.ts"
import type { Fn, Table } from "./define.ts"

const unit = (nanos: bigint): Fn => define<[Duration]>(["duration"], ([d]) => int(Durations.toNanos(d) / nanos))

const fromUnit = (nanos: bigint): Fn => define<[number | bigint]>(["int"], ([n], _, name) =>
  Durations.fromNanos(BigInt(n) * nanos) ?? raise(`Incorrect arguments for function ${name}(). The argument is not a valid duration`), { wideInts: true })

const unitNanos: ReadonlyArray<readonly [string, bigint]> = [
  ["nanos", 1n], ["micros", 1_000n], ["millis", 1_000_000n], ["secs", 1_000_000_000n], ["mins", 60_000_000_000n], ["hours", 3_600_000_000_000n],
  ["days", 86_400_000_000_000n], ["weeks", 604_800_000_000_000n], ["years", 31_536_000_000_000_000n]
]

export const duration: Table = {
  ...Object.fromEntries(unitNanos.flatMap(([name, nanos]) => [[`duration::${name}`, unit(nanos)], ...(name === "years" ? [] : [[`duration::from_${name}`, fromUnit(nanos)]] as const)] as const)),
  "duration::max": constant(new Duration(9007199254740991, 999_999_999))
}
