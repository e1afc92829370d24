/** The pool's times as times of day, where they are kept: a clock that was set moves no view's end over a restart (D73). */
import { Clock, Effect } from "effect"
import { expect, it } from "vitest"
import { poolOver } from "../../../src/drivers/memoryPool.ts"
import { storedByDay } from "../../../src/scheduler/pool/poolTimes.ts"

const hour = 3_600_000
/** Time that goes by, in milliseconds, and how far the time of day was set ahead of it. */
const clockAt = (ms: number, setMs: number): Clock.Clock =>
  Object.assign(Clock.make(), {
    unsafeCurrentTimeMillis: () => ms + setMs,
    unsafeCurrentTimeNanos: () => BigInt(ms) * 1_000_000n
  })

it("D73 times of views are kept as times of day, and read as time that goes by of the process that reads them", async () => {
  const now = 1e12
  const rows = new Map()
  const before = storedByDay(poolOver(rows), clockAt(now, hour))
  const spec = { body: { id: "v" }, ttlMs: 5, lastActiveAt: now - 7 }
  const row = { view: "v", spec, assignment: 1, assignedAt: now - 9, home: undefined, placed: false, gone: false }
  const aside = { query: "q", view: "v", ends: 2, at: now - 3 }
  const found = await Effect.runPromise(
    Effect.gen(function* () {
      yield* before.open("log")
      yield* before.write([
        { tag: "PersistView", row },
        { tag: "PersistQuarantine", row: aside }
      ])
      const plain = yield* poolOver(rows).open("log")
      // As another process begins: its time that goes by begins at the time of day, and its clock is set later.
      const after = yield* storedByDay(poolOver(rows), clockAt(now + hour, -2 * hour)).open("log")
      return { plain: plain.saved, after: after.saved }
    })
  )
  const timesOf = ({ quarantined, views }: typeof found.plain) => [
    ...views.flatMap((view) => [view.spec.lastActiveAt, view.assignedAt]),
    ...(quarantined ?? []).map(({ at }) => at)
  ]
  const day = [-7, -9, -3].map((ms) => now + hour + ms)
  expect(timesOf(found.plain)).toEqual(day)
  expect(timesOf(found.after)).toEqual(day.map((ms) => ms + 2 * hour))
})
