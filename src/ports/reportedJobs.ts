/**
 * Jobs of a cluster without a database: this node only reads their records, and tells the scheduler, which writes them (D36).
 *
 * The assignment is the claim (D35): whoever is named runs it, and what is known of it lives as long as the process; after
 * that the scheduler hands the job to another. A record that is delivered again as it was does not run again.
 */
import { Clock, Effect } from "effect"
import { cutReason, type JobError } from "../core/job/job.ts"
import { isHeldBy, isLive, type Lease } from "../core/job/lease.ts"
import { asResult, isOver, isStatus, type JobStatus, next } from "../core/job/status.ts"
import type { Obj, RecordId, Value } from "../core/surql/value.ts"
import { type JobReport, type JobReportFailed, type JobReportsShape } from "./JobReports.ts"
import * as Rows from "./jobRows.ts"
import { JobStoreError, type JobStoreShape, type StoredJob } from "./JobStore.ts"
import * as Records from "./recordJobs.ts"

interface Entry {
  readonly lease: Lease | undefined
  readonly status: JobStatus
  readonly errors: ReadonlyArray<Value>
  readonly content: string
}

/** Jobs that ended and are remembered, so that they do not run twice. */
const maxRemembered = 100_000

const failure = (error: JobReportFailed): JobStoreError => new JobStoreError({ transient: true, message: error.message, cause: error })

export const make = (records: Pick<Records.JobRecords, "get" | "chunk">, reports: JobReportsShape): JobStoreShape => {
  const entries = new Map<string, Entry>()
  const expected = new Map<string, Obj>()
  const remember = (ref: RecordId, entry: Entry): void => {
    entries.delete(ref.text)
    entries.set(ref.text, entry)
    if (isOver(entry.status)) expected.delete(ref.text)
    if (entries.size <= maxRemembered) return
    for (const [text, { status }] of entries) if (isOver(status)) return void entries.delete(text)
  }
  const docOf = (ref: RecordId): Obj | undefined => records.get(ref) ?? expected.get(ref.text)
  const read = Records.make({ ...records, put: () => Effect.fail(new JobStoreError({ transient: false, message: "jobs of this cluster are written by the scheduler; ask there" })) })

  const taken = (ref: RecordId, lease: Lease, nowMs: number): StoredJob | undefined => {
    const doc = docOf(ref)
    const status = doc?.["status"]
    if (doc === undefined || !isStatus(status)) return undefined
    const known = entries.get(ref.text)
    const content = status === "pending" ? Rows.digest(doc) : known?.content ?? ""
    const same = known !== undefined && known.content === content
    if (isOver(status) || (same && isOver(known.status)) || (isLive(known?.lease, nowMs) && !isHeldBy(known?.lease, lease))) return undefined
    const errors = same ? known.errors : Array.isArray(doc["errors"]) ? doc["errors"] as ReadonlyArray<Value> : []
    remember(ref, { lease, status: "processing", errors, content })
    return Rows.toJob(ref, { ...doc, status: "processing", errors }, lease)
  }

  const reported = (ref: RecordId, { errors, status }: Entry, error: JobError | undefined): JobReport => ({
    job_id: ref.text, status: asResult(status), error: error === undefined ? null : cutReason(error.reason), ...(errors.length === 0 ? {} : { errors })
  })

  return {
    ...read,
    open: () => Effect.succeed([]),
    expect: (ref, doc) => void expected.set(ref.text, doc),
    claim: (refs, by, leaseMs) =>
      Effect.gen(function*() {
        const nowMs = yield* Clock.currentTimeMillis
        const jobs = refs.flatMap((ref) => taken(ref, { ...by, untilMs: nowMs + leaseMs }, nowMs) ?? [])
        // Tracking only: the job runs whether the scheduler hears of it now or not.
        yield* Effect.forEach(jobs, ({ id }) => Effect.ignore(reports.report({ job_id: id, status: "running", error: null })), { concurrency: 16, discard: true })
        return jobs
      }),
    renew: (refs, by, leaseMs) =>
      Effect.map(Clock.currentTimeMillis, (nowMs) => new Set(refs.flatMap((ref) => {
        const entry = entries.get(ref.text)
        if (entry?.status !== "processing" || !isHeldBy(entry.lease, by) || isGone(docOf(ref))) return []
        remember(ref, { ...entry, lease: { ...by, untilMs: nowMs + leaseMs } })
        return [ref.text]
      }))),
    write: (writes, by) =>
      Effect.map(
        Effect.forEach(writes, ({ error, event, ref }) =>
          Effect.gen(function*() {
            const entry = entries.get(ref.text)
            const status = next("processing", event)
            if (entry?.status !== "processing" || status === undefined || !isHeldBy(entry.lease, by)) return []
            const after: Entry = { ...entry, status, errors: error === undefined ? entry.errors : [...entry.errors, Rows.fromError(error)], lease: status === "processing" ? entry.lease : undefined }
            if (status !== "processing") yield* Effect.mapError(reports.report(reported(ref, after, error)), failure)
            remember(ref, after)
            return [ref.text]
          }), { concurrency: 16 }),
        (texts) => new Set(texts.flat())
      )
  }
}

/** Taken out of the records, or ended by the scheduler. */
const isGone = (doc: Obj | undefined): boolean => {
  const status = doc?.["status"]
  return status === "success" || status === "failed" || doc === undefined
}
