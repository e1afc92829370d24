/** A balancing strategy of your own: views go where least memory is used, and none is moved by itself. */
import { Layer } from "effect"
import type { Candidate, Strategy } from "../../../src/core/cluster/balance.ts"
import { Balance } from "../../../src/ports/Balance.ts"

const used = ({ memory }: Candidate): number => memory ?? Infinity

const leastMemory: Strategy = {
  name: "least_memory",
  choose: (candidates) =>
    [...candidates].sort((a, b) => used(a) - used(b) || a.views - b.views || (a.id < b.id ? -1 : 1))[0]?.id,
  measure: (candidates) => new Map(candidates.map((each) => [each.id, used(each)])),
  share: 0
}

export const layer = Layer.succeed(Balance, leastMemory)
