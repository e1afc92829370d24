/**
 * A view's events as `text/event-stream` (D11).
 *
 * Pulled, never pushed: a client that does not read holds one chunk here and lags in the view's own bounded buffer. A
 * comment every 15 s keeps proxies from closing, and lets the server notice who is gone.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Duration, Effect, Schedule, Stream } from "effect"
import type { ViewEvent } from "./viewTypes.ts"

export const heartbeatEvery = Duration.seconds(15)

const encoder = new TextEncoder()

/** One event; JSON has no line breaks, so one `data` line carries it. */
export const encodeEvent = ({ data, event, id }: ViewEvent): Uint8Array =>
  encoder.encode(`event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`)

const shutdown: ViewEvent = { event: "end", id: undefined, data: { reason: "shutdown" } }

/** The events until they end by themselves or the service stops, which is told as `end` too. */
export const untilStopping = (events: Stream.Stream<ViewEvent>, stopping: Effect.Effect<void>): Stream.Stream<ViewEvent> =>
  Stream.suspend(() => {
    let ended = false
    return events.pipe(
      Stream.tap((event) => Effect.sync(() => {
        ended ||= event.event === "end"
      })),
      Stream.interruptWhen(stopping),
      Stream.concat(Stream.suspend(() => (ended ? Stream.empty : Stream.make(shutdown))))
    )
  })

const heartbeats = Stream.map(Stream.fromSchedule(Schedule.spaced(heartbeatEvery)), () => encoder.encode(": still here\n\n"))

export const respond = (events: Stream.Stream<ViewEvent>, stopping: Effect.Effect<void>): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(
    Stream.merge(Stream.map(untilStopping(events, stopping), encodeEvent), heartbeats, { haltStrategy: "left" }),
    { contentType: "text/event-stream", headers: { "cache-control": "no-store", "x-accel-buffering": "no" } }
  )
