/**
 * How long changes of a scheduler's feed took (D61): from the piece of it that brought the first of a step until the
 * step is applied.
 *
 * In virtual time, with a feed whose pieces are cut where a test says: a step over several of them, the beginning of
 * the next one behind it, and pieces that bring no change.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { FakeScheduler } from "../../kit/processes/fakeScheduler.ts"
import type { IngestTimesShape } from "../../src/ports/IngestTimes.ts"
import { inTime, startSsp } from "./clusterKit.ts"
import { registration, rows } from "./viewsKit.ts"

/** How many changes or steps were counted, and how long all of them took. */
const counted = ({ fed }: IngestTimesShape) => [fed.counts.reduce((sum, n) => sum + n, 0), Math.round(fed.sum)]

/** The line of an event; `continues`: its step goes on. */
const event = (seq: number, continues = false): string =>
  `${JSON.stringify({
    table: "t",
    op: "CREATE",
    id: `t:${seq}`,
    record: { id: `t:${seq}` },
    seq,
    ...(continues ? { step_continues: true } : {})
  })}\n`

const through = (seq: number): string => `{"through":${seq},"log_id":"log","epoch":1}\n`

/** An SSP that follows table `t`, whose feed is what a test puts into the queue. */
const following = (pass: (ms: number) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const scheduler = new FakeScheduler()
    const pieces = yield* Queue.unbounded<string>()
    scheduler.rows = [{ id: "t:1", _svc_rv: 1 }]
    scheduler.onRegister = () =>
      Effect.succeed({ snapshot_seq: 10, registration: 1, log_id: "log", epoch: 1, feed: true })
    scheduler.feed = { feed: () => Effect.succeed(Queue.take(pieces)), applied: () => Effect.void }
    const { phase, times, views } = yield* startSsp(pass, scheduler, { SVC_CLUSTER_FEED: "pull" })
    expect(phase()).toBe("ready")
    const registered = yield* Effect.fork(views.register(registration("all", "SELECT id FROM t")))
    const came = (piece: string) => Effect.zipRight(Queue.offer(pieces, piece), pass(0))
    yield* pass(100)
    yield* came(through(10))
    yield* Fiber.join(registered)
    return { came, times, shown: Effect.map(rows(views, "all"), (found) => (found as ReadonlyArray<unknown>).length) }
  })

describe("D61 the times of a feed", () => {
  it.scopedLive("a step counts from its first piece, not from the table that joined or the lines without changes", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const { came, shown, times } = yield* following(pass)
        yield* came(through(11))
        expect([yield* shown, counted(times)]).toEqual([1, [0, 0]])
        yield* pass(1000)
        yield* came(event(12))
        expect([yield* shown, counted(times)]).toEqual([2, [1, 0]])
        yield* pass(1000)
        yield* came(event(13, true))
        yield* pass(300)
        yield* came(event(14, true))
        yield* pass(400)
        expect([yield* shown, counted(times)]).toEqual([2, [1, 0]])
        yield* came(event(15))
        expect([yield* shown, counted(times)]).toEqual([5, [2, 700]])
      })
    )
  )
  it.scopedLive("a step that begins in the piece which ends another counts from there, however long this goes on", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const { came, shown, times } = yield* following(pass)
        yield* came(event(11, true))
        for (let seq = 12; seq < 32; seq += 2) {
          yield* pass(100)
          yield* came(event(seq) + event(seq + 1, true))
        }
        expect([yield* shown, counted(times)]).toEqual([21, [10, 1000]])
        yield* pass(50)
        yield* came(through(40))
        expect([yield* shown, counted(times)]).toEqual([22, [11, 1050]])
      })
    )
  )
  it.scopedLive("half a line is no change yet: it counts from the piece that ends it", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const { came, times } = yield* following(pass)
        const line = event(11)
        yield* came(line.slice(0, 10))
        yield* pass(500)
        yield* came(line.slice(10))
        expect(counted(times)).toEqual([1, 0])
      })
    )
  )
})
