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

/** The longest grace, however long a view lives: no more than the shortest time between two sweeps. */
const mostGraceMs = 1_000

/** How long after an activity that is written down another one is not, in milliseconds (D63). */
const graceMs = (ttlMs: number): number => Math.min(ttlMs / 16, mostGraceMs)

/**
 * When a view expires, in Unix milliseconds (D14): its time to live after its last activity, which may be later than
 * the one that is written down, by the grace at most.
 */
export const expiresAtMs = ({ lastActiveAtMs, ttlMs }: ViewTimes): number => lastActiveAtMs + ttlMs + graceMs(ttlMs)

/** How far a time may move, in milliseconds, where the time of day is read as time that goes by: both are rounded. */
const roundingMs = 2

/** Whether an activity is not worth a write: the view expires no earlier without it, and no later than by rounding. */
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

/** `nowMs` stands in for an absent `lastActiveAt`; `idleMs` is time that has gone by since then, and comes first. */
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

/**
 * A time as listings and registrations write it; one beyond what a date can hold (8.64e15 ms on either side of 1970) as
 * the last that can.
 */
export const isoOf = (ms: number): string => new Date(Math.max(-8.64e15, Math.min(8.64e15, ms))).toISOString()
