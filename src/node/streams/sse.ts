/** What event streams have in common, whichever server they come from. */
import { Duration } from "effect"
import type * as Wire from "../../protocol/wire.ts"

export type StreamFormat = typeof Wire.StreamFormat.Type

/** A comment keeps proxies from closing, and lets the server notice clients that are gone. */
export const heartbeatEvery = Duration.seconds(15)

export const heartbeat: Uint8Array = new TextEncoder().encode(": still here\n\n")

export const streamHeaders = { "cache-control": "no-store", "x-accel-buffering": "no" } as const
