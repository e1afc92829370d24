/**
 * Converts job records and lease rows to values and back, for every store that keeps them.
 *
 * In one place, so that a job reads the same in every store. The lease row has the job's id as its key.
 */
import { blake3 } from "../../core/integrity/blake3.ts"
import * as Job from "../../core/job/job.ts"
import type { Lease } from "../../core/job/lease.ts"
import { toMillis } from "../../core/surql/values/datetime.ts"
import * as Encode from "../../core/surql/values/encode.ts"
import * as Json from "../../core/surql/values/json.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import { Datetime, type Obj, type RecordId, type Value } from "../../core/surql/values/value.ts"
import { jobTable } from "../../core/surreal/surrealSchema.ts"
import type { StoredJob } from "../../ports/JobStore.ts"
import * as Order from "./jobOrder.ts"

export const leaseId = (ref: RecordId): RecordId => Ids.make(jobTable, ref.text)

export const datetime = (ms: number): Datetime => {
  const seconds = Math.floor(ms / 1000)
  return new Datetime(seconds, Math.round((ms - seconds * 1000) * 1_000_000))
}

const millisOf = (value: Value): number | undefined =>
  value instanceof Datetime ? toMillis(value) : typeof value === "number" ? value : undefined

const fields = ["path", "payload", "status", "max_retries", "retry_strategy", "errors", "traceparent"]

/** Undefined: the record's status is none of a job's. */
export const toJob = (ref: RecordId, record: Obj, lease: Lease | undefined): StoredJob | undefined => {
  const plain: { [field: string]: unknown } = {}
  for (const field of fields) if (Object.hasOwn(record, field)) plain[field] = Json.toJson(record[field])
  const job = Job.read(ref.text, ref.table, plain)
  const updated = record["updated_at"]
  return job === undefined
    ? undefined
    : {
        ...job,
        ref,
        lease,
        at: Order.updatedAtOf(updated),
        updatedAt:
          updated instanceof Datetime ? String(Json.toJson(updated)) : typeof updated === "string" ? updated : undefined
      }
}

export const toLease = (row: Value): Lease | undefined => {
  if (typeof row !== "object" || row === null) return undefined
  const { holder, incarnation, until } = row as Obj
  const untilMs = millisOf(until)
  return typeof holder === "string" && typeof incarnation === "string" && untilMs !== undefined
    ? { holder, incarnation, untilMs }
    : undefined
}

export const fromError = (error: Job.JobError): Obj => ({ ...error })

/** Hash of a record's content. */
export const digest = (record: Obj): string => blake3(Encode.encode(record)).slice(0, 32)
