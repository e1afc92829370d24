/**
 * A registration that repeats a known one, as most do: clients repeat it so that the view lives on (D9).
 */

import * as JsonText from "../jsonText.ts"
import { isText } from "../typeGuards.ts"
import * as ViewTimes from "./viewTimes.ts"

/** The body of a registration, parsed into a form in which two bodies can be compared field by field. */
export interface ParsedRegistration extends ViewTimes.ViewTimes {
  readonly id: string
  readonly surql: string
  readonly clientId: string
  /** The parameters as JSON text; `null` without any. */
  readonly params: string
  /** The format of results; empty if the body names none. */
  readonly format: string
}

const fields: ReadonlySet<string> = new Set(["id", "surql", "clientId", "ttl", "params", "lastActiveAt", "format"])

/** Parses a body. Undefined for anything but a plain registration; the schema then reports the faults. */
export const read = (json: unknown, nowMs: number): ParsedRegistration | undefined => {
  if (typeof json !== "object" || json === null || !Object.keys(json).every((name) => fields.has(name)))
    return undefined
  const { clientId, format, id, lastActiveAt, params, surql, ttl } = json as { readonly [name: string]: unknown }
  if (!isText(id) || !isText(surql) || !isText(clientId) || !isText(ttl) || typeof (params ?? null) !== "object")
    return undefined
  if (!isText(format ?? "") || !(lastActiveAt === undefined || isText(lastActiveAt))) return undefined
  const times = ViewTimes.read({ ttl, lastActiveAt }, nowMs)
  if (times._tag === "Left") return undefined
  return {
    id,
    surql,
    clientId,
    params: JsonText.write(params ?? null),
    format: isText(format) ? format : "",
    ...times.right
  }
}

/** Whether `next` changes nothing of `known`, and its activity is not worth a write (D63). */
export const isRepeat = (known: ParsedRegistration, next: ParsedRegistration): boolean =>
  known.id === next.id &&
  known.surql === next.surql &&
  known.params === next.params &&
  known.clientId === next.clientId &&
  known.ttlMs === next.ttlMs &&
  known.format === next.format &&
  ViewTimes.isWithinGrace(known, next.lastActiveAtMs)
