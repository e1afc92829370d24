/** Common parts of all event streams. */
import { Duration } from "effect"
import type * as Wire from "../../protocol/wire.ts"

export type StreamFormat = typeof Wire.StreamFormat.Type

/** Interval of comments: they keep proxies from closing the connection, and show the server which clients have left. */
export const heartbeatEvery = Duration.seconds(15)

const encoder = new TextEncoder()

export const heartbeat: Uint8Array = encoder.encode(": still here\n\n")

/** First bytes of a stream, which make the headers leave at once: a resumed stream may have no event for long. */
export const openingComment: Uint8Array = encoder.encode(": open\n\n")

export const streamHeaders = { "cache-control": "no-store", "x-accel-buffering": "no" } as const
