/** How a compare reads the database: in stretches that fit, whatever the records are. */
import { Effect, Either, Logger } from "effect"
import { expect, test } from "vitest"
import type { Found } from "../../../src/core/record/reconcile.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { makeFailureLog, readStretches, roomToCompare } from "../../../src/node/database/liveCompare.ts"
import { unwatchedHeap } from "../../../src/ports/ProcessFigures.ts"

const records = (count: number, letters: number): ReadonlyArray<Found> =>
  Array.from({ length: count }, (_, n) => {
    const id = Ids.make("t", n)
    return { id, doc: { id, text: "x".repeat(letters) }, version: undefined }
  })

/** How many records each read of a table brought. */
const sizes = async (all: ReadonlyArray<Found>, most: number): Promise<ReadonlyArray<number>> => {
  const read: Array<number> = []
  const count = await Effect.runPromise(
    readStretches(
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

test("D43 a compare reads while the heap has room for what is on its way, and says below what it goes on", async () => {
  const mebibytes = 2 ** 20
  let usedBytes = 900 * mebibytes
  const memory = () => ({ usedBytes, limitBytes: 1_024 * mebibytes, isFull: true })
  const room = roomToCompare({ ...unwatchedHeap, memory }, (message) => message)
  expect(await Effect.runPromise(Effect.either(room))).toEqual(Either.right(undefined))
  usedBytes = 940 * mebibytes
  expect(await Effect.runPromise(Effect.flip(room))).toMatch(
    /^940 MiB of memory are in use, a compare goes on below 930 MiB \(the heap's limit is 1024 MiB, SVC_MAX_MEMORY\)$/
  )
})

test("D43 that memory is short is said once until a compare has come to its end, other failures each time", async () => {
  const lines: Array<string> = []
  const failed = makeFailureLog()
  const short = { _tag: "Overloaded", message: "no room" }
  const away = { _tag: "UpstreamError", message: "away" }
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  const said = [failed.say(short), failed.say(short), failed.say(away), failed.say(away, " in 1 s"), failed.say(short)]
  await Effect.runPromise(
    Effect.provide(Effect.all([...said, failed.over, failed.say(short)]), Logger.replace(Logger.defaultLogger, logger))
  )
  expect(lines.map((line) => /failed: (.*); trying again(.*)$/.exec(line)?.slice(1).join("|"))).toEqual([
    "no room|",
    "away|",
    "away| in 1 s",
    "no room|",
    "no room|"
  ])
})
