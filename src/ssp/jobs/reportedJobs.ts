/**
 * Job store in a cluster without a database: this node reads the records and reports to the scheduler, which writes
 * them (D36).
 *
 * The assignment is the claim (D35): the SSP that the change names runs the job, and remembers it as long as the
 * process lives; afterwards the scheduler hands the job to another SSP. A record that is delivered again unchanged does
 * not run again; a deleted job is forgotten, so that the next job of its id is another one. The sweep finds jobs that
 * are assigned here and not begun: no other SSP would run them.
 */
import { Clock, Effect } from "effect"
import { cutReason, type JobError } from "../../core/job/job.ts"
import { type Holder, isHeldBy, isLive, type Lease } from "../../core/job/lease.ts"
import { asResult, isOver, isStatus, type JobStatus, next } from "../../core/job/status.ts"
import type { Obj, RecordId, Value } from "../../core/surql/values/value.ts"
import * as Rows from "../../node/jobs/jobRows.ts"
import type { JobReport, JobReportFailed, JobReportsShape } from "../../ports/JobReports.ts"
import { type JobAssignments, JobStoreError, type JobStoreShape, type StoredJob } from "../../ports/JobStore.ts"
import * as Records from "./recordJobs.ts"

interface Entry {
  readonly lease: Lease | undefined
  readonly status: JobStatus
  readonly errors: ReadonlyArray<Value>
  readonly content: string
  /** Whether the assignment ended while the job ran: the call goes on, and the job is not called again. */
  readonly disowned?: boolean
}

/**
 * A job is reported as running after this time: most end sooner, and each report costs the scheduler a write to its
 * log.
 */
const tellAfterMs = "50 millis"

/** Ended jobs that are remembered, so that they do not run twice. */
const maxRemembered = 100_000

const failure = (error: JobReportFailed): JobStoreError =>
  new JobStoreError({ transient: true, message: error.message, cause: error })

/** Jobs that this process runs or has run. */
class Memory {
  private readonly entries = new Map<string, Entry>()
  private readonly expected = new Map<string, Obj>()
  /** Jobs assigned here that are not over. */
  private readonly mine = new Map<string, RecordId>()

  constructor(private readonly records: Pick<Records.JobRecords, "get">) {}

  get(ref: RecordId): Entry | undefined {
    return this.entries.get(ref.text)
  }

  docOf(ref: RecordId): Obj | undefined {
    return this.records.get(ref) ?? this.expected.get(ref.text)
  }

  readonly expect = (ref: RecordId, doc: Obj): void => void this.expected.set(ref.text, doc)

  readonly forget = (ref: RecordId): void => {
    this.entries.delete(ref.text)
    this.expected.delete(ref.text)
    this.mine.delete(ref.text)
  }

  readonly ended = (ref: RecordId, status: JobStatus): void => {
    const entry = this.entries.get(ref.text)
    if (entry !== undefined && !isOver(entry.status)) this.remember(ref, { ...entry, status, lease: undefined })
    this.expected.delete(ref.text)
    this.mine.delete(ref.text)
  }

  readonly assigned = (ref: RecordId): void => {
    this.mine.set(ref.text, ref)
    const entry = this.entries.get(ref.text)
    if (entry?.disowned === true) this.entries.set(ref.text, { ...entry, disowned: false })
  }

  readonly disown = (): void => {
    this.mine.clear()
    for (const [text, entry] of this.entries)
      if (entry.status === "processing") this.entries.set(text, { ...entry, disowned: true })
  }

  remember(ref: RecordId, entry: Entry): void {
    const { entries } = this
    entries.delete(ref.text)
    entries.set(ref.text, entry)
    if (isOver(entry.status)) {
      this.expected.delete(ref.text)
      this.mine.delete(ref.text)
    }
    if (entries.size <= maxRemembered) return
    for (const [text, { status }] of entries) if (isOver(status)) return void entries.delete(text)
  }

  /** Remembers the outcome, unless the job was deleted meanwhile or another node has ended it. */
  settle(ref: RecordId, by: Holder, after: Entry): void {
    const now = this.get(ref)
    if (now?.status === "processing" && isHeldBy(now.lease, by))
      this.remember(ref, { ...after, disowned: now.disowned ?? false })
  }

  take(ref: RecordId, lease: Lease, nowMs: number): StoredJob | undefined {
    const doc = this.docOf(ref)
    const status = doc?.["status"]
    if (doc === undefined || !isStatus(status)) return undefined
    const known = this.get(ref)
    const content = status === "pending" ? Rows.digest(doc) : (known?.content ?? "")
    const same = known !== undefined && known.content === content
    if (
      isOver(status) ||
      (same && isOver(known.status)) ||
      known?.disowned === true ||
      (isLive(known?.lease, nowMs) && !isHeldBy(known?.lease, lease))
    )
      return undefined
    const errors = same ? known.errors : this.errorsOf(ref, doc)
    this.remember(ref, { lease, status: "processing", errors, content })
    return Rows.toJob(ref, { ...doc, status: "processing", errors }, lease)
  }

  /** Errors so far: from the record or from the handover call, whichever has more. */
  private errorsOf(ref: RecordId, doc: Obj): ReadonlyArray<Value> {
    const [here = [], told = []] = [doc, this.expected.get(ref.text)].map((known) =>
      Array.isArray(known?.["errors"]) ? (known["errors"] as ReadonlyArray<Value>) : []
    )
    return told.length > here.length ? told : here
  }

  /** Jobs of a table that are assigned here and not begun. */
  open(table: string, limit: number, nowMs: number): ReadonlyArray<RecordId> {
    const found: Array<RecordId> = []
    for (const ref of this.mine.values()) {
      if (found.length === limit) break
      if (ref.table === table && !isGone(this.docOf(ref)) && !isLive(this.get(ref)?.lease, nowMs)) found.push(ref)
    }
    return found
  }

  /** Reports for the jobs that still run. */
  running(jobs: ReadonlyArray<StoredJob>): ReadonlyArray<JobReport> {
    return jobs.flatMap(({ id, ref }) =>
      this.get(ref)?.status === "processing" ? [{ job_id: id, status: "running", error: null }] : []
    )
  }

  /** Report of the outcome, for a record that was delivered again in its state before the run. */
  outcomeOf(ref: RecordId): JobReport | undefined {
    const known = this.get(ref)
    const doc = this.docOf(ref)
    return known !== undefined &&
      isOver(known.status) &&
      doc?.["status"] === "pending" &&
      Rows.digest(doc) === known.content
      ? reported(ref, known, undefined)
      : undefined
  }
}

const reported = (ref: RecordId, { errors, status }: Entry, error: JobError | undefined): JobReport => ({
  job_id: ref.text,
  status: asResult(status),
  error: error === undefined ? null : cutReason(error.reason),
  ...(errors.length === 0 ? {} : { errors })
})

export const make = (
  records: Pick<Records.JobRecords, "get" | "chunk">,
  reports: JobReportsShape
): JobStoreShape & JobAssignments => {
  const memory = new Memory(records)
  const { assigned, disown, ended, expect, forget } = memory
  const read = Records.make({
    ...records,
    put: () =>
      Effect.fail(
        new JobStoreError({ transient: false, message: "jobs of this cluster are written by the scheduler; ask there" })
      )
  })
  return {
    ...read,
    assigned,
    disown,
    ended,
    expect,
    forget,
    open: (table, limit) => Effect.map(Clock.currentTimeMillis, (nowMs) => memory.open(table, limit, nowMs)),
    claim: (refs, by, leaseMs) =>
      Effect.gen(function* () {
        const nowMs = yield* Clock.currentTimeMillis
        const held = new Set(refs.flatMap((ref) => (isHeldBy(memory.get(ref)?.lease, by) ? [ref.text] : [])))
        const over = refs.flatMap((ref) => memory.outcomeOf(ref) ?? [])
        const jobs = refs.flatMap((ref) => memory.take(ref, { ...by, untilMs: nowMs + leaseMs }, nowMs) ?? [])
        const begun = jobs.filter(({ id }) => !held.has(id))
        const tell = (told: ReadonlyArray<JobReport>) =>
          Effect.forEach(told, (report) => Effect.ignore(reports.report(report)), { concurrency: 16, discard: true })
        yield* Effect.forkDaemon(tell(over))
        // For tracking only, so the job does not wait for this report. A job that has ended by then is reported with
        // its end.
        if (begun.length > 0)
          yield* Effect.suspend(() => tell(memory.running(begun))).pipe(Effect.delay(tellAfterMs), Effect.forkDaemon)
        return jobs
      }),
    renew: (refs, by, leaseMs) =>
      Effect.map(
        Clock.currentTimeMillis,
        (nowMs) =>
          new Set(
            refs.flatMap((ref) => {
              const entry = memory.get(ref)
              if (entry?.status !== "processing" || !isHeldBy(entry.lease, by) || isGone(memory.docOf(ref))) return []
              memory.remember(ref, { ...entry, lease: { ...by, untilMs: nowMs + leaseMs } })
              return [ref.text]
            })
          )
      ),
    write: (writes, by) =>
      Effect.map(
        Effect.forEach(
          writes,
          ({ error, event, ref, result }) =>
            Effect.gen(function* () {
              const entry = memory.get(ref)
              const status = next("processing", event)
              if (entry?.status !== "processing" || status === undefined || !isHeldBy(entry.lease, by)) return []
              const after: Entry = {
                ...entry,
                status,
                errors: error === undefined ? entry.errors : [...entry.errors, Rows.fromError(error)],
                lease: status === "processing" ? entry.lease : undefined
              }
              // A failed attempt is reported too: the next SSP must not count attempts from 0.
              yield* Effect.mapError(
                reports.report({ ...reported(ref, after, error), ...(result === undefined ? {} : { result }) }),
                failure
              )
              memory.settle(ref, by, after)
              return [ref.text]
            }),
          { concurrency: "unbounded" }
        ),
        (texts) => new Set(texts.flat())
      )
  }
}

/** Whether the job's record was deleted, or the scheduler has ended the job. */
const isGone = (doc: Obj | undefined): boolean => {
  const status = doc?.["status"]
  return status === "success" || status === "failed" || doc === undefined
}
