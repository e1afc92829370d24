/**
 * A view's events as `text/event-stream` (D11), for servers that serve the declared route; the hot one is in
 * `HttpReads.ts`.
 *
 * Pulled, never pushed: a client that does not read holds a piece or two here and lags in the view's own bounded
 * buffer. Whole pieces go through, not single events: the way of an element through a stream costs far more than its
 * bytes. The headers leave with the first chunk, so a comment comes first: a stream that is resumed may have no event
 * to tell for long. A comment every 15 s keeps proxies from closing, and lets the server notice clients that are gone.
 */

import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Chunk, Effect, Schedule, Stream } from "effect"
import { heartbeat, heartbeatEvery, opening, streamHeaders } from "../../node/streams/sse.ts"
import { bytesOf, type EndReason, endOf, joined, type ViewEvent } from "../../node/streams/viewEvent.ts"

/** The events, as pieces, until they end by themselves or the service stops, which is told as `end` too. */
export const untilStopping = (
  events: Stream.Stream<ViewEvent>,
  stopping: Effect.Effect<void>
): Stream.Stream<Uint8Array> =>
  Stream.suspend(() => {
    let ended = false
    return events.pipe(
      Stream.mapChunks((chunk) => {
        if (Chunk.isEmpty(chunk)) return Chunk.empty()
        ended ||= Chunk.some(chunk, ({ event }) => event === "end")
        return Chunk.of(joined(Chunk.toReadonlyArray(chunk)))
      }),
      Stream.interruptWhen(stopping),
      Stream.concat(Stream.suspend(() => (ended ? Stream.empty : Stream.make(bytesOf(endOf("shutdown"))))))
    )
  })

/** Events until the caller's token expires or is revoked; then one `end` event with that reason. */
export const untilLapsed = (
  events: Stream.Stream<ViewEvent>,
  lapse: Effect.Effect<EndReason>
): Stream.Stream<ViewEvent> =>
  Stream.suspend(() => {
    let why: EndReason | undefined
    const lapsed = Effect.map(lapse, (reason) => {
      why = reason
    })
    return events.pipe(
      Stream.interruptWhen(lapsed),
      Stream.concat(Stream.suspend(() => (why === undefined ? Stream.empty : Stream.make(endOf(why)))))
    )
  })

const heartbeats = Stream.map(Stream.fromSchedule(Schedule.spaced(heartbeatEvery)), () => heartbeat)

export const respond = (
  events: Stream.Stream<ViewEvent>,
  stopping: Effect.Effect<void>
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(
    Stream.concat(
      Stream.make(opening),
      Stream.merge(untilStopping(events, stopping), heartbeats, { haltStrategy: "left" })
    ),
    { contentType: "text/event-stream", headers: streamHeaders }
  )
