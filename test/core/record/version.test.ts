/**
 * D4: which version a change leaves its record with, as the scheduler and as the engine's store decide it.
 *
 * Why both in one test: each applies the rule to records of its own, and a cluster is wrong where they differ.
 */
import { Either, FastCheck } from "effect"
import { expect, test } from "vitest"
import { Store } from "../../../src/core/ivm/store/store.ts"
import { decodeChange } from "../../../src/core/record/change.ts"
import * as Version from "../../../src/core/record/version.ts"

const step = FastCheck.record({
  op: FastCheck.constantFrom("CREATE", "UPDATE", "DELETE"),
  n: FastCheck.nat(2),
  given: FastCheck.option(FastCheck.nat(9), { nil: undefined }),
  alone: FastCheck.boolean()
})

test("D4 versions that are counted never fall, and the store and the scheduler agree", () => {
  let counted = 0
  FastCheck.assert(
    FastCheck.property(FastCheck.array(step, { maxLength: 30 }), (steps) => {
      const store = new Store()
      let known: Version.Known | undefined
      let batch: Array<ReturnType<typeof decoded>> = []
      const decoded = ({ given, n, op }: (typeof steps)[number]) =>
        Either.getOrThrow(
          decodeChange({
            table: "t",
            op,
            id: "t:1",
            record: op === "DELETE" ? {} : { n, ...(given === undefined ? {} : { _svc_rv: given }) }
          })
        )
      for (const one of steps) {
        if (known === undefined && one.op === "DELETE") continue
        const last: number = known?.version ?? 0
        const change = decoded(one)
        known = Version.after(known, change) ?? known
        if (one.given === undefined && one.op !== "DELETE") {
          counted++
          expect(known?.version).toBeGreaterThanOrEqual(last)
        }
        batch.push(change)
        if (!one.alone) continue
        for (const write of store.plan(batch)) if (write !== undefined) store.apply(write)
        batch = []
        const place = store.slotOf(change.id)
        expect([place.version, place.doc?.["n"]]).toEqual([known?.version, known?.doc?.["n"]])
      }
    }),
    { numRuns: 500 }
  )
  expect(counted).toBeGreaterThan(100)
})
