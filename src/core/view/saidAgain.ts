/**
 * A registration that says again what is known of its view, which most of them do: a client repeats it so that the view
 * lives on (D9).
 */

import * as JsonText from "../jsonText.ts"
import { isText } from "../typeGuards.ts"
import * as ViewTimes from "./viewTimes.ts"

/** A registration, each part in the form in which two are compared. */
export interface Said extends ViewTimes.ViewTimes {
  readonly id: string
  readonly surql: string
  readonly clientId: string
  /** As JSON. */
  readonly params: string
  /** Empty where none is named. */
  readonly format: string
}

const fields: ReadonlySet<string> = new Set(["id", "surql", "clientId", "ttl", "params", "lastActiveAt", "format"])

/** Reads a body; undefined: it is no plain registration, and is for the schema to judge. */
export const read = (json: unknown, nowMs: number): Said | undefined => {
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

/** Whether it says nothing that is not known, and its time is not worth a write (D63). */
export const isAgain = (known: Said, said: Said): boolean =>
  known.id === said.id &&
  known.surql === said.surql &&
  known.params === said.params &&
  known.clientId === said.clientId &&
  known.ttlMs === said.ttlMs &&
  known.format === said.format &&
  ViewTimes.isWithinGrace(known, said.lastActiveAtMs)
