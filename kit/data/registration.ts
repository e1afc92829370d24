/**
 * Bodies of requests as tests and measurements send them: a record change, a view registration.
 *
 * Why apart from the contract rows: a measurement needs the bodies without the test runner.
 */
import type { Body } from "../checks/http.ts"

/** A record change; the table is read off the id. */
export const change = (op: string, id: string, record: unknown = {}): Body => ({
  table: id.slice(0, id.indexOf(":")),
  op,
  id,
  record
})

export const create = (id: string, record: unknown = {}): Body => change("CREATE", id, record)

/** A view registration with everything in it that must be. */
export const registration = (id: string, surql: string, more: Body = {}): Body => ({
  id,
  surql,
  clientId: "client",
  ttl: "1h",
  ...more
})
