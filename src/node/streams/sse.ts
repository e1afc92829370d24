/** What event streams have in common, whichever server they come from. */
import { Duration } from "effect"
import type * as Wire from "../../protocol/wire.ts"

export type StreamFormat = typeof Wire.StreamFormat.Type

/** A comment keeps proxies from closing, and lets the server notice clients that are gone. */
export const heartbeatEvery = Duration.seconds(15)

const encoder = new TextEncoder()

export const heartbeat: Uint8Array = encoder.encode(": still here\n\n")

/** Headers leave with the first bytes, and a stream that is resumed may have no event to tell for long. */
export const opening: Uint8Array = encoder.encode(": open\n\n")

export const streamHeaders = { "cache-control": "no-store", "x-accel-buffering": "no" } as const
