/**
 * A view registration from the wire, its times read (D14): the last part of a body that a schema cannot word well.
 *
 * Apart from the handler because it decides and is tested without a server.
 */
import { Either } from "effect"
import * as Ttl from "../core/ttl.ts"
import * as Answers from "../ports/httpAnswers.ts"
import type { ViewRegistration } from "../protocol/wire.ts"
import type { Registration } from "./viewTypes.ts"

/** Date and time with an offset; date alone is midnight UTC. */
const iso = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i

const timestampMs = (text: string): number | undefined => {
  if (!iso.test(text)) return undefined
  const zoned = text.includes("T") || text.includes("t") ? (/(?:Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text}Z`) : text
  const ms = Date.parse(zoned)
  return Number.isNaN(ms) ? undefined : ms
}

/** `nowMs` stands in for an absent `lastActiveAt`. */
export const read = (wire: typeof ViewRegistration.Type, nowMs: number): Either.Either<Registration, ReturnType<typeof Answers.invalidRequest>> => {
  const ttlMs = Ttl.parseMs(wire.ttl)
  const lastActiveAtMs = wire.lastActiveAt === undefined ? nowMs : timestampMs(wire.lastActiveAt)
  const faults: Array<{ path: string; reason: string }> = []
  if (ttlMs === undefined) faults.push({ path: "ttl", reason: `must be a duration such as 30s, 10m, 1h30m or 1d, got ${JSON.stringify(wire.ttl.slice(0, 60))}` })
  if (lastActiveAtMs === undefined) faults.push({ path: "lastActiveAt", reason: `must be an ISO 8601 timestamp, got ${JSON.stringify((wire.lastActiveAt ?? "").slice(0, 60))}` })
  if (ttlMs === undefined || lastActiveAtMs === undefined) return Either.left(Answers.invalidRequest(faults))
  return Either.right({
    id: wire.id, surql: wire.surql, clientId: wire.clientId, ttlMs, params: wire.params ?? null, lastActiveAtMs, format: wire.format ?? "flat",
    ...(wire.assignment === undefined ? {} : { assignment: wire.assignment })
  })
}
