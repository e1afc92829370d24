/**
 * The SSP's own states: the table says what the specification and D18 say.
 *
 * Why a walk over the whole table: totality is the compiler's business, meaning is not.
 */
import { describe, expect, it } from "vitest"
import * as Phase from "../../../src/core/cluster/phase.ts"

const after = (...events: ReadonlyArray<Phase.PhaseEvent>): Phase.Phase =>
  events.reduce<Phase.Phase>((phase, event) => Phase.next(phase, event).state, "bootstrapping")

describe("D18 phase", () => {
  it("D18 loading makes ready; exhausted attempts make failed; success after all makes ready", () => {
    expect([after(), after("Loaded"), after("AttemptsExhausted"), after("AttemptsExhausted", "Loaded")]).toEqual([
      "bootstrapping",
      "ready",
      "failed",
      "ready"
    ])
  })
  it("losing the data makes bootstrapping, but never hides that attempts failed", () => {
    expect([
      after("Loaded", "DataLost"),
      after("AttemptsExhausted", "DataLost"),
      after("Loaded", "AttemptsExhausted")
    ]).toEqual(["bootstrapping", "failed", "ready"])
  })
  it("says whether anything changed, and refuses nothing", () => {
    for (const [phase, row] of Object.entries(Phase.table)) {
      for (const event of Object.keys(row)) {
        const step = Phase.next(phase as Phase.Phase, event as Phase.PhaseEvent)
        expect([step.changed, step.refused]).toEqual([step.state !== phase, false])
      }
    }
  })
})
