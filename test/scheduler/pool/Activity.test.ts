/** When views were last active, as a database says it whose clock may be another than the scheduler's (D14, D73). */
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Command } from "../../../src/core/cluster/messages.ts"
import * as Ids from "../../../src/core/surql/values/recordId.ts"
import { Datetime } from "../../../src/core/surql/values/value.ts"
import { queryTable } from "../../../src/core/surreal/surrealSchema.ts"
import { make as memoryUpstream } from "../../../src/drivers/memoryUpstream.ts"
import { ViewActivity } from "../../../src/scheduler/pool/ViewActivity.ts"

const hour = 3_600_000

/** How long ago the view was active, as the pool is told, where the database's clock is so far ahead. */
const idle = async (databaseAheadMs: number, writtenAgoMs: number, knownAgoMs: number): Promise<number> => {
  const now = Date.now()
  const database = now + databaseAheadMs
  const told: Array<Command> = []
  const id = Ids.make(queryTable, "v")
  const doc = { id, lastActiveAt: new Datetime(Math.floor((database - writtenAgoMs) / 1_000), 0) }
  const upstream = {
    ...memoryUpstream([]),
    find: () => Effect.succeed([{ id, doc, version: undefined }]),
    nowMs: Effect.succeed(database)
  }
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        const started: Array<Effect.Effect<void>> = []
        const activity = new ViewActivity(
          upstream,
          (command) => Effect.sync(() => told.push(command)),
          (effect) => void started.push(effect)
        )
        yield* activity.ask("v", now - knownAgoMs)
        yield* Effect.forkIn(Effect.all(started), scope)
        while (told.length === 0) yield* Effect.sleep(1)
      })
    )
  )
  return Math.round((now - (told[0] as { readonly lastActiveAt: number }).lastActiveAt) / 60_000)
}

it("D73 an activity that a client wrote counts by the database's own clock, whatever the scheduler's is", async () => {
  expect(await idle(0, hour / 2, 2 * hour)).toBe(30)
  expect(await idle(-hour, hour / 2, 2 * hour), "a database an hour behind").toBe(30)
  expect(await idle(-hour, 3 * hour, 2 * hour), "the pool knows of a later one").toBe(120)
})
