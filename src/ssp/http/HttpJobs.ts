/**
 * The job endpoints (extensions): handover by the scheduler; list, read, retry and cancel for operators.
 *
 * Ids come as text and are parsed here; the rest is done by `jobs/Jobs.ts`.
 */
import { Effect } from "effect"
import * as Job from "../../core/job/job.ts"
import type { Result } from "../../core/job/result.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import * as Answers from "../../node/http/answers.ts"
import { routeGroup } from "../../node/http/routes.ts"
import * as Order from "../../node/jobs/jobOrder.ts"
import * as Audit from "../../ports/Audit.ts"
import type { AmendResult, JobListPosition, StoredJob } from "../../ports/JobStore.ts"
import { type JobExecution, JobList, type JobWords, Job as WireJob } from "../../protocol/jobs.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { Jobs } from "../jobs/Jobs.ts"
import type { StoreFailed } from "../viewTypes.ts"
import { mapErrors } from "./HttpErrors.ts"

const defaultLimit = 100
const listed = Answers.jsonOf(JobList)
const shown = Answers.jsonOf(WireJob)

const wire = (
  { errors, id, lease, maxRetries, path, payload, status, strategy, table, updatedAt }: StoredJob,
  result: Result | undefined
): JobWords => ({
  id,
  table,
  status,
  path,
  errors,
  payload: payload ?? null,
  result: result ?? null,
  max_retries: maxRetries,
  retry_strategy: strategy,
  updated_at: updatedAt ?? null,
  holder: lease?.holder ?? null,
  held_until: lease === undefined ? null : new Date(lease.untilMs).toISOString()
})

const notFound = (id: string) => ({
  code: "JOB_NOT_FOUND" as const,
  message: `there is no job ${JSON.stringify(id.slice(0, 200))} in a job table of this SSP`
})

/** Parses an id of one of the job tables. */
const refOf = (tables: ReadonlySet<string>, id: string): RecordId | undefined => {
  const ref = Ids.parseLenient(id)
  return ref !== undefined && tables.has(ref.table) ? ref : undefined
}

/** The position that `after` names: a position as text, or that of a job in its current state. */
const placeOf = (jobs: Jobs["Type"], after: string): Effect.Effect<JobListPosition | undefined, StoreFailed> => {
  const place = Order.parse(after)
  const ref = place === undefined ? refOf(jobs.tables, after) : undefined
  return ref === undefined ? Effect.succeed(place) : jobs.find(ref)
}

const known = (tables: ReadonlySet<string>): string =>
  tables.size === 0 ? "none is configured" : `known: ${[...tables].join(", ")}`

const executed = (
  jobs: Jobs["Type"],
  { created_seq: createdSeq, job_id, payload, table, ...record }: typeof JobExecution.Type,
  traceparent: string | undefined
) =>
  Effect.gen(function* () {
    const ref = Ids.parseLenient(job_id)
    if (!jobs.tables.has(table))
      return yield* Effect.fail(
        Answers.invalidRequest([{ path: "table", reason: `is no job table of this SSP; ${known(jobs.tables)}` }])
      )
    if (ref?.table !== table)
      return yield* Effect.fail(
        Answers.invalidRequest([{ path: "job_id", reason: `must be a record id of table ${JSON.stringify(table)}` }])
      )
    yield* mapErrors(
      jobs.execute(ref, {
        path: payload.path,
        body: payload.body ?? {},
        traceparent: Job.traceparentOf(traceparent),
        createdSeq,
        record
      })
    )
    return { status: "accepted" as const }
  })

const amended = (
  jobs: Jobs["Type"],
  id: string,
  what: string,
  act: (ref: RecordId) => Effect.Effect<AmendResult, StoreFailed>
) =>
  Effect.gen(function* () {
    const ref = refOf(jobs.tables, id)
    const result = ref === undefined ? { kind: "missing" as const } : yield* mapErrors(act(ref))
    if (result.kind === "missing") return yield* Effect.fail(notFound(id))
    if (result.kind === "refused")
      return yield* Effect.fail({
        code: "JOB_STATUS" as const,
        message: `job ${id.slice(0, 200)} is ${result.status} and cannot be ${what}`,
        details: { status: result.status }
      })
    return { status: "ok" as const }
  })

export const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const audited = yield* Audit.make
  return routeGroup(SspApi, "job", {
    execute: { isWhole: true, value: ({ asked, payload }) => executed(jobs, payload, asked.headers["traceparent"]) },
    jobs: {
      response: ({ urlParams: { after, limit = defaultLimit, status, table } }) =>
        Effect.gen(function* () {
          if (!jobs.tables.has(table))
            return yield* Effect.fail(
              Answers.invalidRequest([{ path: "table", reason: `is no job table of this SSP; ${known(jobs.tables)}` }])
            )
          const from = after === undefined ? undefined : yield* mapErrors(placeOf(jobs, after))
          if (after !== undefined && from?.ref.table !== table)
            return yield* Effect.fail(
              Answers.invalidRequest([
                { path: "after", reason: "must be `next` of the page before, or the id of a job of this table" }
              ])
            )
          const found = yield* mapErrors(jobs.list(table, status, from, limit))
          const last = found.at(-1)
          return yield* listed({
            jobs: found.map((job) => wire(job, jobs.resultOf(job))),
            next: found.length < limit || last === undefined ? null : Order.cursor(last)
          })
        })
    },
    job: {
      response: ({ path: { job_id } }) =>
        Effect.gen(function* () {
          const ref = refOf(jobs.tables, job_id)
          const found = ref === undefined ? undefined : yield* mapErrors(jobs.find(ref))
          if (found === undefined) return yield* Effect.fail(notFound(job_id))
          return yield* shown(wire(found, jobs.resultOf(found)))
        })
    },
    retry: {
      isWhole: true,
      value: (call) =>
        audited(call, call.path.job_id)(amended(jobs, call.path.job_id, "retried: only a failed job can", jobs.retry))
    },
    cancel: {
      isWhole: true,
      value: (call) =>
        audited(call, call.path.job_id)(amended(jobs, call.path.job_id, "cancelled: it is over", jobs.cancel))
    }
  })
})
