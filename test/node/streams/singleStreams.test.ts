/**
 * Server-sent events of one view: their bytes, their heartbeat, and the word they end with.
 *
 * Why under a test clock: fifteen seconds of silence take none here.
 */

import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Layer, TestClock } from "effect"
import type { EventReceiver } from "../../../src/node/streams/feed.ts"
import { SingleStreams } from "../../../src/node/streams/singleStreams.ts"
import { bytesOf, type EndReason, type ViewEvent } from "../../../src/node/streams/viewEvent.ts"
import { Serving, type SinkEvents } from "../../../src/ports/Front.ts"

const delta: ViewEvent = { event: "delta", id: "i.1", data: { a: "x\ny" } }
const end: ViewEvent = { event: "end", id: undefined, data: { reason: "expired" } }
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** A client that takes all it is given, and a follower that gives it these events. */
const client = () => {
  const got: Array<string> = []
  const now = { isOver: false, closed: 0, on: undefined as SinkEvents | undefined, takes: true }
  const left: Array<ReadonlyArray<ViewEvent>> = []
  let taker: EventReceiver | undefined
  const follow = (given: EventReceiver) => {
    taker = given
    return {
      resume: () => {
        for (const events of left.splice(0)) given.take(events)
      },
      close: () => void now.closed++
    }
  }
  const gone: Array<() => void> = []
  const reply = {
    stream: (_: unknown, on: SinkEvents) => {
      now.on = on
      return {
        write: (bytes: Uint8Array) => {
          got.push(text(bytes))
          return now.takes
        },
        end: () => {
          now.isOver = true
        }
      }
    },
    whenGone: (abandon: () => void) => void gone.push(abandon)
  }
  return { follow, got, left, now, reply, take: (events: ReadonlyArray<ViewEvent>) => taker!.take(events), gone }
}

const run = <A, E>(
  body: (streams: SingleStreams, serving: Serving["Type"]) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    return yield* body(yield* SingleStreams.make, yield* Serving)
  }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Serving.layer)))

describe("event stream", () => {
  it("D11 an event is one data line, and end has no id", () => {
    expect(text(bytesOf(delta))).toBe('event: delta\nid: i.1\ndata: {"a":"x\\ny"}\n\n')
    expect(text(bytesOf(end))).toBe('event: end\ndata: {"reason":"expired"}\n\n')
  })
  it.effect("D11 a stop is told as end, shutdown, once", () =>
    run((streams, { stop }) =>
      Effect.gen(function* () {
        const { follow, got, left, now, reply } = client()
        left.push([delta])
        expect(streams.open(follow, reply)).toBe(true)
        yield* stop
        yield* Effect.repeatN(Effect.yieldNow(), 10)
        expect(got.slice(1)).toEqual([text(bytesOf(delta)), 'event: end\ndata: {"reason":"shutdown"}\n\n'])
        expect([now.isOver, now.closed]).toEqual([true, 1])
      })
    )
  )
  it.effect("D11 a stream that has ended by itself ends once", () =>
    run((streams, { stop }) =>
      Effect.gen(function* () {
        const { follow, got, left, now, reply } = client()
        left.push([delta, end])
        streams.open(follow, reply)
        yield* stop
        yield* Effect.repeatN(Effect.yieldNow(), 10)
        expect(got.slice(1)).toEqual([text(bytesOf(delta)) + text(bytesOf(end))])
        expect(now.isOver).toBe(true)
      })
    )
  )
  it.effect("D11 a comment goes out at once where there is no event to tell, so that the headers do", () =>
    run((streams) =>
      Effect.sync(() => {
        const { follow, got, reply } = client()
        streams.open(follow, reply)
        expect(got).toEqual([": open\n\n"])
      })
    )
  )
  it.effect("D11 a comment goes out every 15 s of silence, to a client that takes its bytes", () =>
    run((streams) =>
      Effect.gen(function* () {
        const { follow, got, left, now, reply } = client()
        left.push([delta])
        streams.open(follow, reply)
        yield* TestClock.adjust("31 seconds")
        expect(got.map((piece) => piece.slice(0, 6))).toEqual([": open", "event:", ": stil", ": stil"])
        now.takes = false
        yield* TestClock.adjust("1 minute")
        expect(got).toHaveLength(5)
      })
    )
  )
  it.effect(
    "D49 what a token opened ends with the reason why the token is over, and not after the client has left",
    () =>
      run((streams) =>
        Effect.gen(function* () {
          const over = yield* Deferred.make<EndReason>()
          const [stays, leaves] = [client(), client()]
          for (const { follow, reply } of [stays, leaves]) streams.open(follow, reply, Deferred.await(over))
          leaves.now.on!.gone()
          for (const abandon of leaves.gone) abandon()
          yield* Deferred.succeed(over, "revoked")
          yield* Effect.repeatN(Effect.yieldNow(), 10)
          expect(stays.got.slice(1)).toEqual(['event: end\ndata: {"reason":"revoked"}\n\n'])
          expect([stays.now.isOver, stays.now.closed, leaves.got.slice(1)]).toEqual([true, 1, []])
        })
      )
  )
  it.effect("D48 a view that is set aside is told by its end alone", () =>
    run((streams) =>
      Effect.sync(() => {
        const { got, now, reply } = client()
        streams.ended("quarantined", reply)
        expect([got.slice(1), now.isOver]).toEqual([['event: end\ndata: {"reason":"quarantined"}\n\n'], true])
      })
    )
  )
})
