/**
 * Tables whose records are so large that a page of them is longer than the scheduler answers (D20).
 *
 * Why so: 36 records of 1.9 MB were never read, since each attempt asked for the same page again.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { FakeScheduler } from "../../../kit/processes/fakeScheduler.ts"
import { SchedulerError } from "../../../src/ports/SchedulerClient.ts"
import { inTime, startSsp } from "../clusterKit.ts"
import { registration, rows } from "../viewsKit.ts"

const limitOf = (query: string): number => Number(/LIMIT (\d+)/.exec(query)?.[1] ?? 0)

it.scopedLive("D20 a page that the scheduler cannot answer is asked for in smaller ones, each record once", () =>
  inTime((pass) =>
    Effect.gen(function* () {
      const scheduler = new FakeScheduler()
      scheduler.rows = Array.from({ length: 40 }, (_, n) => ({ id: `t:${n}`, n, _svc_rv: n + 1 }))
      const tooLong = new SchedulerError({ reason: "unreachable", message: "the answer is too long", status: 500 })
      scheduler.onQuery = (query) => (limitOf(query) > 16 ? Effect.fail(tooLong) : undefined)
      const { phase, views } = yield* startSsp(pass, scheduler)
      expect(phase()).toBe("ready")
      expect(scheduler.queries.filter((query) => query.includes("FROM t ")).map(limitOf)).toEqual([
        1000, 500, 250, 125, 62, 31, 15, 15, 15
      ])
      yield* views.register(registration("all", "SELECT id FROM t"))
      expect(yield* rows(views, "all")).toHaveLength(40)
    })
  )
)
