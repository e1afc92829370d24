/**
 * The specification's job table as SurrealQL: fields, defaults and permissions.
 *
 * Printed for the author of the schema. The index on `status` lets the runner find open jobs without reading the whole
 * table; the element of `errors` must be flexible, or the database drops the content of the entries.
 */

import { nameText } from "../surql/values/names.ts"
import type { Definition } from "./surrealSchema.ts"

/**
 * The user that may see and write a job: the author of the record it is assigned to, signed in through the access
 * method `account`.
 */
export const ownerOfJob = "$access = 'account' AND assigned_to.author = $auth.id"

const noUpdate = "PERMISSIONS FOR select, create FULL FOR update NONE"
const hidden = "PERMISSIONS FOR create FULL FOR select, update NONE"

export const jobTable = (name: string): Definition => {
  const table = nameText(name)
  const field = (field: string, type: string, permissions: string, define = "DEFINE FIELD IF NOT EXISTS"): string =>
    `${define} ${field} ON ${table} TYPE ${type} ${permissions}`.trimEnd()
  return {
    why: `Jobs of the outbox in ${name}: a client creates a record, the runner calls the backend and writes status and errors. Signed-in users have to do only with jobs of what is theirs, see no errors and change nothing but max_retries.`,
    statements: [
      `DEFINE TABLE IF NOT EXISTS ${table} TYPE NORMAL SCHEMAFULL PERMISSIONS FOR select, create, update, delete WHERE ${ownerOfJob}`,
      field("assigned_to", "option<record>", noUpdate),
      field("path", "string", noUpdate),
      field("payload", "any", noUpdate),
      field("retries", "int VALUE 0", noUpdate),
      field("max_retries", "int DEFAULT 3", ""),
      field("retry_strategy", "string DEFAULT 'linear' ASSERT $value IN ['linear', 'exponential']", noUpdate),
      field(
        "status",
        "string DEFAULT 'pending' ASSERT $value IN ['pending', 'processing', 'success', 'failed']",
        noUpdate
      ),
      field("errors", "array<object> DEFAULT []", hidden),
      field("errors.*", "object FLEXIBLE", "", "DEFINE FIELD OVERWRITE"),
      field("updated_at", "datetime VALUE time::now()", noUpdate),
      field("created_at", "datetime DEFAULT time::now()", noUpdate),
      `DEFINE INDEX IF NOT EXISTS ${name.replace(/\W/g, "_")}_status ON ${table} FIELDS status`
    ]
  }
}
