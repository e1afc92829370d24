/**
 * The times of a view registration (D14): its time to live and its last activity, read with faults that name their
 * place.
 */
import { Either } from "effect"
import * as Ttl from "./ttl.ts"

export interface ViewTimes {
  readonly ttlMs: number
  /** Unix milliseconds. */
  readonly lastActiveAtMs: number
}

interface TimeFault {
  readonly path: string
  readonly reason: string
}

/** Longest grace, however long a view lives: the shortest time between two sweeps. */
const mostGraceMs = 1_000

/** Milliseconds after a stored activity within which another one is not stored (D63). */
const graceMs = (ttlMs: number): number => Math.min(ttlMs / 16, mostGraceMs)

/**
 * When a view expires, in Unix milliseconds (D14): its time to live after its last activity, which may be later than
 * the stored one by the grace.
 */
export const expiresAtMs = ({ lastActiveAtMs, ttlMs }: ViewTimes): number => lastActiveAtMs + ttlMs + graceMs(ttlMs)

/** Rounding error in milliseconds when the time of day is converted to the steady clock. */
const roundingMs = 2

/** Whether an activity is not worth a write: without it the view expires no earlier, but for rounding. */
export const isWithinGrace = ({ lastActiveAtMs, ttlMs }: ViewTimes, activeAtMs: number): boolean =>
  activeAtMs >= lastActiveAtMs - roundingMs && activeAtMs <= lastActiveAtMs + graceMs(ttlMs)

/** Date and time with an offset; date alone is midnight UTC. */
const iso = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i

const timestampMs = (text: string): number | undefined => {
  if (!iso.test(text)) return undefined
  const zoned =
    text.includes("T") || text.includes("t") ? (/(?:Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text}Z`) : text
  const ms = Date.parse(zoned)
  return Number.isNaN(ms) ? undefined : ms
}

/** `nowMs` replaces an absent `lastActiveAt`; `idleMs`, the time since the last activity, has precedence. */
export const read = (
  wire: { readonly ttl: string; readonly lastActiveAt?: string | undefined; readonly idleMs?: number | undefined },
  nowMs: number
): Either.Either<ViewTimes, ReadonlyArray<TimeFault>> => {
  const ttlMs = Ttl.parseMs(wire.ttl)
  const activeAtMs = wire.lastActiveAt === undefined ? nowMs : timestampMs(wire.lastActiveAt)
  const lastActiveAtMs = wire.idleMs === undefined ? activeAtMs : nowMs - wire.idleMs
  const faults: Array<TimeFault> = []
  if (ttlMs === undefined)
    faults.push({
      path: "ttl",
      reason: `must be a duration such as 30s, 10m, 1h30m or 1d, got ${JSON.stringify(wire.ttl.slice(0, 60))}`
    })
  if (lastActiveAtMs === undefined)
    faults.push({
      path: "lastActiveAt",
      reason: `must be an ISO 8601 timestamp, got ${JSON.stringify((wire.lastActiveAt ?? "").slice(0, 60))}`
    })
  return ttlMs === undefined || lastActiveAtMs === undefined
    ? Either.left(faults)
    : Either.right({ ttlMs, lastActiveAtMs })
}

/** A time as listings and registrations write it, clamped to the range of dates (8.64e15 ms on either side of 1970). */
export const isoOf = (ms: number): string => new Date(Math.max(-8.64e15, Math.min(8.64e15, ms))).toISOString()
