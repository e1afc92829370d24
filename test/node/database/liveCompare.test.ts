/** How a compare reads the database: in stretches that fit, whatever the records are. */
import { Effect } from "effect"
import { expect, test } from "vitest"
import type { Found } from "../../../src/core/record/reconcile.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { eachStretch } from "../../../src/node/database/liveCompare.ts"

const records = (count: number, letters: number): ReadonlyArray<Found> =>
  Array.from({ length: count }, (_, n) => {
    const id = Ids.make("t", n)
    return { id, doc: { id, text: "x".repeat(letters) }, version: undefined }
  })

/** How many records each read of a table brought. */
const sizes = async (all: ReadonlyArray<Found>, most: number): Promise<ReadonlyArray<number>> => {
  const read: Array<number> = []
  const count = await Effect.runPromise(
    eachStretch(
      ["t"],
      most,
      (_, after, size) => {
        const from = after === undefined ? 0 : Number(after) + 1
        return Effect.succeed(all.slice(from, from + size))
      },
      ({ found }) => Effect.sync(() => void read.push(found.length))
    )
  )
  expect(count).toBe(all.length)
  return read
}

test("D43 a stretch of a table is about a mebibyte of text at most, whatever its records are", async () => {
  expect(await sizes(records(2_500, 10), 1_000)).toEqual([100, 1_000, 1_000, 400])
  const large = await sizes(records(150, 300_000), 1_000)
  expect(large).toEqual([100, ...Array.from({ length: 16 }, () => 3), 2])
  expect(await sizes(records(102, 1_200_000), 1_000), "one at least").toEqual([100, 1, 1, 0])
  expect(await sizes(records(25, 10), 10)).toEqual([10, 10, 5])
  expect(await sizes([], 10)).toEqual([0])
})
