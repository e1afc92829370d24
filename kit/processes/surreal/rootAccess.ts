/** The access that a test's server gives its root user: namespace `n`, database `d`, both created at the first use. */
import { Redacted } from "effect"
import type { Access } from "../../../src/host/surreal/SurrealLink.ts"

export const rootAccess = {
  namespace: "n",
  database: "d",
  user: "root",
  pass: Redacted.make("root"),
  authLevel: undefined,
  absent: "create"
} as const satisfies Access
