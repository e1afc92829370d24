/**
 * Bodies that `POST /ingest` refuses with 400, as rows: what both servers refuse alike.
 */
import { faultAt, type Row } from "../checks/contract.ts"
import type { Body } from "../checks/http.ts"
import { create } from "./registration.ts"

/** `path`: what a fault of an INVALID_REQUEST names. */
export const bad = (name: string, body: unknown, path: string, code = "INVALID_REQUEST"): Row => ({
  name: `POST /ingest 400 ${code} ${name}`,
  ask: "POST /ingest",
  body,
  status: 400,
  code,
  ...(code === "INVALID_REQUEST" ? { check: faultAt(path) } : {})
})

/** A change that is fine but for a key that it lacks. */
export const without = (key: string): Body =>
  Object.fromEntries(Object.entries(create("x:1")).filter(([name]) => name !== key))
