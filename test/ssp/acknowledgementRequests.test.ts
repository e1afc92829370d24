/**
 * How an SSP says what it has applied (D61): by a request of its own until one for many words is admitted, and again
 * where words may be lost.
 *
 * In virtual time, with a scheduler whose requests end when a test says.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option, Queue } from "effect"
import { FakeScheduler } from "../../kit/processes/fakeScheduler.ts"
import type { AckRequest, AckRequestEnd } from "../../src/ports/SchedulerClient.ts"
import { inTime, startSsp } from "./clusterKit.ts"
import { registration } from "./viewsKit.ts"

const line = (seq: number): string =>
  `${JSON.stringify({ table: "t", op: "CREATE", id: `t:${seq}`, record: { id: `t:${seq}` }, seq })}\n`

class Request implements AckRequest {
  isAdmitted = false
  isClosed = false
  ends = 0
  readonly said: Array<number> = []
  readonly over: (how: AckRequestEnd) => void

  constructor(over: (how: AckRequestEnd) => void) {
    this.over = over
  }

  readonly send: AckRequest["send"] = ({ seq }) => {
    if (this.isAdmitted) this.said.push(seq)
    return this.isAdmitted
  }

  readonly end = (): void => {
    this.ends++
  }

  readonly close = (): void => {
    this.isClosed = true
  }
}

/** An SSP that follows table `t` and has applied all that came. */
const following = (pass: (ms: number) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const scheduler = new FakeScheduler()
    const pieces = yield* Queue.unbounded<string | undefined>()
    const requests: Array<Request> = []
    const single: Array<number> = []
    scheduler.rows = [{ id: "t:1", _svc_rv: 1 }]
    scheduler.onRegister = () =>
      Effect.succeed({ snapshot_seq: 10, registration: 1, log_id: "log", epoch: 1, feed: true })
    scheduler.feed = {
      // It breaks off where a test puts nothing into the queue.
      feed: () =>
        Effect.succeed(
          Effect.flatMap(Queue.take(pieces), (piece) =>
            piece === undefined ? Effect.fail(Option.none()) : Effect.succeed(piece)
          )
        ),
      applied: ({ seq }) => Effect.sync(() => void single.push(seq)),
      openAcks: (over) => {
        const request = new Request(over)
        requests.push(request)
        return request
      }
    }
    const { views } = yield* startSsp(pass, scheduler, { SVC_CLUSTER_FEED: "pull" })
    yield* Effect.fork(views.register(registration("all", "SELECT id FROM t")))
    yield* pass(100)
    yield* Effect.zipRight(Queue.offer(pieces, '{"through":10,"log_id":"log","epoch":1}\n'), pass(0))
    const came = (seq: number) => Effect.zipRight(Queue.offer(pieces, line(seq)), pass(0))
    return { came, breaksOff: Effect.zipRight(Queue.offer(pieces, undefined), pass(1000)), requests, single }
  })

describe("D61 words of what is applied", () => {
  it.scopedLive("come by single requests until one for many is admitted, and then by that", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const { came, requests, single } = yield* following(pass)
        yield* came(11)
        expect([single.at(-1), requests.at(-1)!.said]).toEqual([11, []])
        requests.at(-1)!.isAdmitted = true
        yield* came(12)
        yield* came(13)
        expect([single.at(-1), requests.at(-1)!.said]).toEqual([11, [12, 13]])
        const { length } = requests
        yield* pass(10_000)
        expect(requests.at(-1)!.ends).toBe(1)
        requests.at(-1)!.isAdmitted = false
        requests.at(-1)!.over("read")
        yield* pass(0)
        expect([single.at(-1), requests.length]).toEqual([13, length + 1])
      })
    )
  )
  it.scopedLive("are said again where a request was cut, and the next one waits a second", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const { came, requests, single } = yield* following(pass)
        requests.at(-1)!.isAdmitted = true
        yield* came(11)
        expect([single.at(-1), requests.at(-1)!.said]).toEqual([10, [11]])
        const { length } = requests
        requests.at(-1)!.over("cut")
        yield* pass(0)
        yield* came(12)
        expect([single.slice(-2), requests.length]).toEqual([[11, 12], length])
        yield* pass(1000)
        yield* came(13)
        expect([single.at(-1), requests.length]).toEqual([13, length + 1])
      })
    )
  )
  it.scopedLive("a scheduler that refuses is asked again after a minute, another feed asks at once", () =>
    inTime((pass) =>
      Effect.gen(function* () {
        const { breaksOff, came, requests, single } = yield* following(pass)
        requests.at(-1)!.over("refused")
        const { length } = requests
        yield* pass(50_000)
        yield* came(11)
        expect([single.at(-1), requests.length]).toEqual([11, length])
        yield* pass(10_000)
        yield* came(12)
        expect([single.at(-1), requests.length]).toEqual([12, length + 1])
        const open = requests.at(-1)!
        open.isAdmitted = true
        yield* came(13)
        expect(open.said).toEqual([13])
        yield* breaksOff
        expect([open.isClosed, single.at(-1), requests.length]).toEqual([true, 13, length + 2])
        open.over("cut")
        expect(requests).toHaveLength(length + 2)
      })
    )
  )
})
