/**
 * Server-sent events: their bytes, their heartbeat, and the word they end with.
 *
 * Why under a test clock: fifteen seconds of silence take none here.
 */

import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream, TestClock } from "effect"
import { bytesOf, type ViewEvent } from "../../../src/node/streams/viewEvent.ts"
import * as HttpStream from "../../../src/ssp/http/HttpStream.ts"

const delta: ViewEvent = { event: "delta", id: "i.1", data: { a: "x\ny" } }
const end: ViewEvent = { event: "end", id: undefined, data: { reason: "expired" } }
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

describe("event stream", () => {
  it("D11 an event is one data line, and end has no id", () => {
    expect(text(bytesOf(delta))).toBe('event: delta\nid: i.1\ndata: {"a":"x\\ny"}\n\n')
    expect(text(bytesOf(end))).toBe('event: end\ndata: {"reason":"expired"}\n\n')
  })
  it.effect("D11 a stop is told as end, shutdown, once", () =>
    Effect.gen(function* () {
      const stopping = yield* Deferred.make<void>()
      const fiber = yield* Effect.fork(
        Stream.runCollect(
          HttpStream.untilStopping(Stream.concat(Stream.make(delta), Stream.never), Deferred.await(stopping))
        )
      )
      yield* Effect.yieldNow()
      yield* Deferred.succeed(stopping, undefined)
      expect([...(yield* Fiber.join(fiber))].map(text)).toEqual([
        text(bytesOf(delta)),
        'event: end\ndata: {"reason":"shutdown"}\n\n'
      ])
    })
  )
  it.effect("D11 a stream that has ended by itself ends once", () =>
    Effect.gen(function* () {
      const pieces = yield* Stream.runCollect(HttpStream.untilStopping(Stream.make(delta, end), Effect.never))
      expect([...pieces].map(text)).toEqual([text(bytesOf(delta)) + text(bytesOf(end))])
    })
  )
  it.effect("D11 a comment goes out at once where there is no event to tell, so that the headers do", () =>
    Effect.gen(function* () {
      const { body } = HttpStream.respond(Stream.never, Effect.never)
      if (body._tag !== "Stream") throw new Error("no stream")
      const fiber = yield* Effect.fork(Stream.runCollect(Stream.take(body.stream, 1)))
      yield* TestClock.adjust("1 millis")
      expect([...(yield* Fiber.join(fiber))].map(text)).toEqual([": open\n\n"])
    })
  )
  it.effect("D11 a comment goes out every 15 s of silence", () =>
    Effect.gen(function* () {
      const { body } = HttpStream.respond(Stream.concat(Stream.make(delta), Stream.never), Effect.never)
      if (body._tag !== "Stream") throw new Error("no stream")
      const fiber = yield* Effect.fork(Stream.runCollect(Stream.take(body.stream, 4)))
      yield* TestClock.adjust("31 seconds")
      expect([...(yield* Fiber.join(fiber))].map((bytes) => text(bytes).slice(0, 6))).toEqual([
        ": open",
        "event:",
        ": stil",
        ": stil"
      ])
    })
  )
})
