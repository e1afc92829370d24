/**
 * The job service of this SSP: accepts jobs from changes, sweeps and handovers, runs them, and answers `/jobs`.
 *
 * The store follows from where the records are: tables of a database, this node's own records, or the scheduler's (D35,
 * D36). A node without job tables runs none of it.
 */
import { Clock, Context, Effect, Layer, Random, Schedule } from "effect"
import { jobError } from "../../core/job/job.ts"
import { RecentResults, type Result } from "../../core/job/result.ts"
import type { JobStatus } from "../../core/job/status.ts"
import { asResult, isOver, isStatus } from "../../core/job/status.ts"
import type { Change } from "../../core/record/change.ts"
import * as Json from "../../core/surql/values/json.ts"
import type { Obj, RecordId } from "../../core/surql/values/value.ts"
import * as Rows from "../../node/jobs/jobRows.ts"
import * as Metered from "../../node/work/metered.ts"
import { Backend } from "../../ports/Backend.ts"
import { Serving } from "../../ports/Front.ts"
import { JobReports } from "../../ports/JobReports.ts"
import type { JobListPosition } from "../../ports/JobStore.ts"
import {
  type AmendResult,
  DatabaseJobs,
  type JobAssignments,
  type JobStoreError,
  type JobStoreShape,
  type StoredJob
} from "../../ports/JobStore.ts"
import { Meters } from "../../ports/Meters.ts"
import { RetryPolicy } from "../../ports/RetryPolicy.ts"
import { Tracing } from "../../ports/Tracing.ts"
import { SspConfig } from "../Config.ts"
import { Lease } from "../membership/Lease.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Views } from "../views/Views.ts"
import { Overloaded, StoreFailed } from "../viewTypes.ts"
import { JobIntake } from "./JobIntake.ts"
import * as Records from "./recordJobs.ts"
import * as Reported from "./reportedJobs.ts"
import * as Runner from "./runner.ts"
import * as Traced from "./traced.ts"
import * as ViewRecords from "./viewRecords.ts"

/** Jobs of a table that may wait for a slot in this process; the others wait in their records. */
export const maxQueued = 10_000

interface Handover {
  readonly path: string
  readonly body: unknown
  readonly traceparent: string | undefined
  /** Position of the change that created the job (D74); undefined: the scheduler does not send it. */
  readonly createdSeq: number | undefined
  /** Further fields of the job's record, as the sender knows them. */
  readonly record: { readonly [field: string]: unknown }
}

export class Jobs extends Context.Tag("ssp/Jobs")<
  Jobs,
  {
    readonly tables: ReadonlySet<string>
    /** Accepts a job that was handed to this SSP (`/job/execute`). */
    readonly execute: (ref: RecordId, handover: Handover) => Effect.Effect<void, Overloaded>
    readonly find: (ref: RecordId) => Effect.Effect<StoredJob | undefined, StoreFailed>
    readonly list: (
      table: string,
      status: JobStatus | undefined,
      after: JobListPosition | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<StoredJob>, StoreFailed>
    /** Runs a failed job again and counts its attempts anew. */
    readonly retry: (ref: RecordId) => Effect.Effect<AmendResult, StoreFailed>
    /** Ends an open job; its call is interrupted if this process runs it. */
    readonly cancel: (ref: RecordId) => Effect.Effect<AmendResult, StoreFailed>
    /**
     * Stored part of the backend's answer to a successful job: from the store, or from this process's recent results.
     */
    readonly resultOf: (job: StoredJob) => Result | undefined
    readonly figures: () => ReadonlyArray<Runner.Figures>
  }
>() {
  /**
   * Runs jobs while its scope lives. Closing the scope waits for running calls up to a limit and releases the other
   * jobs.
   */
  static readonly layer: Layer.Layer<
    Jobs,
    never,
    SspConfig | Views | JobIntake | Lifecycle | Lease | DatabaseJobs | Backend | JobReports | Serving
  > = Layer.scoped(
    Jobs,
    Effect.gen(function* () {
      const config = yield* SspConfig
      const views = yield* Views
      const intake = yield* JobIntake
      const { loaded } = yield* Lifecycle
      const lease = yield* Lease
      const meters = yield* Meters
      const database = yield* DatabaseJobs
      const created = new Created()
      const reports = signed(yield* JobReports, config.sspId, created)
      const records = ViewRecords.make(views)
      const by = { holder: config.sspId, incarnation: yield* incarnation }
      const alone = views.exclusive ? Records.isOfEarlierProcess(by) : undefined
      const own = database === undefined && config.mode === "standalone"
      const reported = database === undefined && !own ? Reported.make(records, reports) : undefined
      const store = reported ?? database ?? Records.make(records, alone)
      const assignments = reported ?? noAssignments
      const results = new RecentResults()
      const runner = yield* Runner.make({
        store,
        maxQueued,
        sweepMs: Runner.sweepMs,
        backend: Metered.backend(Traced.backend(yield* Backend, yield* Tracing), {
          meters,
          clock: yield* Effect.clock
        }),
        tables: config.jobTables,
        by,
        policy: { baseMs: config.jobRetryBaseMs, maxRetries: config.jobMaxRetries },
        retries: yield* RetryPolicy,
        resultBytes: config.jobResultBytes,
        mayClaim: lease.held,
        report: keeping(
          own ? undefined : results,
          counting(meters.jobsEnded, database !== undefined && reports.present ? telling(reports) : () => Effect.void)
        )
      })
      if (config.jobTables.length > 0) {
        intake.attach({
          changed: (change) => {
            const status = change.doc["status"]
            if (!isStatus(status) || isOver(status)) created.forget(change.id)
            if (change.op === "DELETE") {
              results.put(change.id.text, undefined)
              assignments.forget(change.id)
              runner.deleted(change.id)
            } else if (isStatus(status) && isOver(status)) assignments.ended(change.id, status)
            else if (isMine(change, config.sspId)) {
              created.announced(change)
              assignments.assigned(change.id)
              // A trace in the record wins: the author of the job set it.
              runner.offer(change.id, typeof change.doc["traceparent"] === "string" ? undefined : change.traceparent)
            }
          },
          replaced: () => {
            // After a new registration the assigned jobs belong to other SSPs, or are assigned again.
            created.clear()
            if (reported === undefined) return
            reported.disown()
            runner.forget()
          },
          ...(own ? { deletes: ({ id }) => ViewRecords.deletion(Rows.leaseId(id)) } : {})
        })
        yield* Serving.fork(loaded.pipe(Effect.zipRight(prepareStore(store)), Effect.zipRight(runner.run)))
        lease.atEnd(() => runner.close())
        yield* Effect.addFinalizer(() => runner.stop)
      }
      return service(intake.tables, store, { assignments, created }, runner, results)
    })
  )
}

/** Used where a claim decides which SSP runs a job. */
const noAssignments: JobAssignments = {
  expect: () => {},
  assigned: () => {},
  disown: () => {},
  forget: () => {},
  ended: () => {}
}

/**
 * Position of the change that created each open job of this SSP; it tells jobs of one id apart (D74). The scheduler
 * keeps the same positions from the same changes.
 */
class Created {
  private readonly at = new Map<string, number>()

  announced({ id, position }: Change): void {
    if (position !== undefined && !this.at.has(id.text)) this.at.set(id.text, position.seq)
  }

  /** Notes the position from a handover call, which may arrive after the change that creates a later job of this id. */
  told(ref: RecordId, seq: number): void {
    this.at.set(ref.text, Math.max(seq, this.at.get(ref.text) ?? 0))
  }

  get(id: string): number | undefined {
    return this.at.get(id)
  }

  forget({ text }: RecordId): void {
    this.at.delete(text)
  }

  clear(): void {
    this.at.clear()
  }
}

/**
 * Adds the SSP and the job's position to each report: the scheduler ignores reports of an SSP that no longer has the
 * job (D36), and of a job that was deleted (D74).
 */
const signed = (reports: JobReports["Type"], ssp_id: string, created: Created): JobReports["Type"] => ({
  ...reports,
  report: (report) => {
    const seq = created.get(report.job_id)
    return reports.report({ ...report, ssp_id, ...(seq === undefined ? {} : { created_seq: seq }) })
  }
})

/** Random name of this start of the process. */
export const incarnation: Effect.Effect<string> = Effect.map(
  Effect.all(Array.from({ length: 4 }, () => Random.nextIntBetween(0, 2 ** 31))),
  (parts) => parts.map((part) => part.toString(36)).join("")
)

const isMine = ({ doc, jobAssignee, op }: Change, sspId: string): boolean =>
  op !== "DELETE" && doc["status"] === "pending" && (jobAssignee === undefined || jobAssignee === sspId)

/** Prepares the store; waits for a database that is not reachable yet. */
export const prepareStore = (store: JobStoreShape): Effect.Effect<void> =>
  store.prepare.pipe(
    Effect.tapError((error) =>
      Effect.logWarning(`the table of job leases cannot be made: ${error.message}; trying again`)
    ),
    Effect.retry(Schedule.spaced("5 seconds")),
    Effect.orDie
  )

/** Remembers results of jobs. `results` undefined: the store keeps them itself. */
const keeping =
  (results: RecentResults | undefined, report: Runner.RunnerOptions["report"]): Runner.RunnerOptions["report"] =>
  (job, decision, result) => {
    results?.put(job.id, result)
    return report(job, decision, result)
  }

const counting =
  (
    ended: (typeof Meters.Service)["jobsEnded"],
    report: Runner.RunnerOptions["report"]
  ): Runner.RunnerOptions["report"] =>
  (job, decision, result) => {
    if (decision !== "begun" && decision.kind !== "retry") ended[decision.kind].add()
    return report(job, decision, result)
  }

/**
 * Reports to a scheduler that does not write the job's record: a few tries are enough, because a scheduler without a
 * report asks for the job's state.
 */
const telling =
  (reports: JobReports["Type"]): Runner.RunnerOptions["report"] =>
  (job, decision, result) => {
    const status: JobStatus = decision === "begun" ? "processing" : decision.kind === "success" ? "success" : "failed"
    const error = decision === "begun" || decision.kind === "success" ? undefined : decision.error
    const errors = error === undefined ? job.errors : [...job.errors, error]
    return reports
      .report({
        job_id: job.id,
        status: asResult(status),
        error: error?.reason ?? null,
        ...(errors.length === 0 ? {} : { errors }),
        ...(result === undefined ? {} : { result })
      })
      .pipe(
        Effect.retry({ times: status === "processing" ? 0 : 8, schedule: Schedule.exponential("100 millis") }),
        Effect.catchAll(({ message }) =>
          Effect.logWarning(`job ${job.id}: the scheduler could not be told that it is ${asResult(status)}: ${message}`)
        ),
        Effect.forkDaemon,
        Effect.asVoid
      )
  }

const failed = (error: JobStoreError): StoreFailed => new StoreFailed({ message: error.message, cause: error })

const service = (
  tables: ReadonlySet<string>,
  store: JobStoreShape,
  { assignments, created }: { readonly assignments: JobAssignments; readonly created: Created },
  runner: Runner.Runner,
  results: RecentResults
): Jobs["Type"] => {
  const amend = (
    ref: RecordId,
    event: "Retried" | "Cancelled",
    reason: string
  ): Effect.Effect<AmendResult, StoreFailed> =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
      Effect.mapError(store.amend(ref, event, jobError(0, 0, reason, nowMs)), failed)
    )
  return {
    tables,
    execute: (ref, { body, createdSeq, path, record, traceparent }) =>
      Effect.suspend(() => {
        if (createdSeq !== undefined) created.told(ref, createdSeq)
        assignments.assigned(ref)
        const rest = Json.fromJsonTyped(record, {}, "plain") as Obj
        assignments.expect(ref, { ...rest, id: ref, path, payload: Json.fromJson(body), status: "pending" } as Obj)
        return runner.offer(ref, traceparent)
          ? Effect.void
          : Effect.fail(
              new Overloaded({
                message: `${maxQueued} jobs of ${ref.table} wait for a slot here, the limit (fixed, no setting)`,
                retryAfterSecs: 5
              })
            )
      }),
    find: (ref) => Effect.mapError(store.find(ref), failed),
    list: (table, status, after, limit) => Effect.mapError(store.list(table, status, after, limit), failed),
    retry: (ref) =>
      Effect.tap(amend(ref, "Retried", "retried by an operator"), ({ kind }) =>
        Effect.sync(() => kind === "done" && runner.offer(ref))
      ),
    cancel: (ref) =>
      Effect.tap(amend(ref, "Cancelled", "cancelled by an operator"), ({ kind }) =>
        kind === "done" ? runner.drop(ref) : Effect.void
      ),
    resultOf: ({ id, result, status }) => (status === "success" ? (result ?? results.get(id)) : undefined),
    figures: () => runner.figures()
  }
}
