/**
 * The layers of `Replica`, each through the conformance suite, and what only one of them can do.
 *
 * Frozen states, damage and positions are what SSPs depend on, so they are tried on every layer that has them.
 */
import { expect, test } from "vitest"
import { ReplicaError, startFault } from "../../src/ports/Replica.ts"

test("a replica that is damaged or newer ends a start with 3, anything else with 1", () => {
  const codes = (["damaged", "newer", "locked", "failed", "full"] as const).map((reason) => startFault(new ReplicaError({ reason, message: reason })).exitCode)
  expect(codes).toEqual([3, 3, 1, 1, 1])
})
