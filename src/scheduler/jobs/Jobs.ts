/**
 * Jobs at the scheduler: dispatch and result (D36), and the search for jobs without an assignment (D39).
 *
 * Without a database the scheduler alone writes job records, from the reports of runners; each write is an ordinary
 * change that holds only while the record is as it was read, and only for an allowed change of status.
 */
import { Clock, Context, Effect, HashMap, Layer } from "effect"
import type { Command } from "../../core/cluster/messages.ts"
import * as State from "../../core/cluster/state.ts"
import { defaultMaxRetries, failures, jobError } from "../../core/job/job.ts"
import type { Result as JobAnswer } from "../../core/job/result.ts"
import { isOver, isStatus, type JobStatus, next, ofResult } from "../../core/job/status.ts"
import type { Schema } from "../../core/record/change.ts"
import * as Event from "../../core/record/event.ts"
import * as Json from "../../core/surql/values/json.ts"
import * as JsonTypes from "../../core/surql/values/jsonTypes.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import type { Obj, RecordId, RecordKey, Value } from "../../core/surql/values/value.ts"
import { invalidRequest } from "../../node/http/answers.ts"
import * as Rows from "../../node/jobs/jobRows.ts"
import { Serving } from "../../ports/Front.ts"
import type { AmendResult } from "../../ports/JobStore.ts"
import { Replica, type ReplicaError, type ReplicaShape, startFault } from "../../ports/Replica.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { Upstream } from "../../ports/Upstream.ts"
import type { JobDispatch, JobResult } from "../../protocol/schedulerWire.ts"
import * as Errors from "../errors.ts"
import { noSsp } from "../HttpErrors.ts"
import { Ingest, type Refusal } from "../ingest/Ingest.ts"
import { JobFeed } from "../ingest/JobFeed.ts"
import { DeclaredTables } from "../pool/DeclaredTables.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"

type Dispatch = typeof JobDispatch.Type
type Result = typeof JobResult.Type

/** Limit of attempts to write a record that others keep changing. */
const tries = 8
/** Job records read in one step. */
const step = 1000

export class Jobs extends Context.Tag("scheduler/jobs/Jobs")<
  Jobs,
  {
    /** Answers the id of the SSP. */
    readonly dispatch: (
      dispatch: Dispatch
    ) => Effect.Effect<string, ReturnType<typeof noSsp> | ReturnType<typeof invalidRequest> | Refusal>
    readonly result: (result: Result) => Effect.Effect<void, Refusal>
    /** {@link result} of a caller known to be `ssp_id`: counts if that SSP, or none, has the job. */
    readonly resultOfOne: (result: Result) => Effect.Effect<void, Refusal>
    /** Stored part of the backend's answer to a job lately reported as done, by the text of the job's id. */
    readonly resultOf: (id: string) => JobAnswer | undefined
    /** Retries or cancels a job; undefined beside a database, where the SSPs write. */
    readonly amend: ((id: RecordId, event: "Retried" | "Cancelled") => Effect.Effect<AmendResult, Refusal>) | undefined
  }
>() {
  static readonly layer: Layer.Layer<
    Jobs,
    StartFault,
    Pool | JobFeed | Ingest | Replica | Upstream | DeclaredTables | Serving
  > = Layer.scoped(
    Jobs,
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const parts: JobsDependencies = {
        pool: yield* Pool,
        feed: yield* JobFeed,
        ingest: (yield* Ingest).ingest,
        replica: yield* Replica,
        schema: (yield* DeclaredTables).schema,
        upstream,
        writes: !upstream.present
      }
      // Before the first call: ends the tracking of jobs that ended while this scheduler was down.
      if (parts.writes) yield* Effect.mapError(settleTracked(parts), startFault)
      yield* Serving.fork(look(parts))
      return {
        dispatch: (given) => dispatch(parts, given),
        result: (given) => result(parts, given, counts),
        resultOfOne: (given) => result(parts, given, countsOfOne),
        resultOf: parts.pool.resultOf,
        amend: parts.writes ? (id, event) => amend(parts, id, event) : undefined
      }
    })
  )
}

interface JobsDependencies {
  readonly pool: PoolShape
  readonly feed: typeof JobFeed.Service
  readonly ingest: (typeof Ingest.Service)["ingest"]
  readonly replica: ReplicaShape
  readonly schema: Schema
  readonly upstream: typeof Upstream.Service
  /** Whether job records are written here. */
  readonly writes: boolean
}

const failedReading = (error: ReplicaError): Refusal =>
  new Errors.ReplicaFailed({ message: `the replica cannot be read: ${error.message}` })

const find = (
  { replica }: JobsDependencies,
  id: RecordId
): Effect.Effect<{ readonly version: number; readonly doc: Obj | undefined } | undefined, Refusal> =>
  Effect.mapBoth(replica.current([id]), { onSuccess: (found) => found.get(id.text), onFailure: failedReading })

/**
 * Makes one change through ingest, if the record still has this version and `still` agrees; answers whether it did,
 * once the change is durable: an SSP that reports a job holds a slot until then.
 */
const write = (
  { ingest, schema }: JobsDependencies,
  id: RecordId,
  op: "CREATE" | "UPDATE",
  raw: Pick<Event.RawChange, "record" | "types">,
  version: number | undefined,
  still: () => boolean = () => true
): Effect.Effect<boolean, Refusal> =>
  Effect.suspend(() => {
    const whole: Event.RawChange = { table: id.table, id: id.text, ...raw }
    let held = false
    return Effect.map(
      ingest([Event.fromRaw(whole, op, schema)], {
        holds: (_, known) =>
          (held =
            still() &&
            (version === undefined ? known?.doc === undefined : known?.doc !== undefined && known.version === version)),
        answers: "durable"
      }),
      () => held
    )
  })

const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms).toISOString())

/** A new record with the table's defaults (specification, job record). */
const newRecord = ({ payload }: Dispatch, at: string): Pick<Event.RawChange, "record" | "types"> => ({
  record: {
    path: payload.path,
    payload: payload.body,
    retries: 0,
    max_retries: defaultMaxRetries,
    retry_strategy: "linear",
    status: "pending",
    errors: [],
    created_at: at,
    updated_at: at
  },
  types: { created_at: "datetime", updated_at: "datetime" }
})

const notAJob = (id: string, status: unknown) =>
  invalidRequest([
    {
      path: "job_id",
      reason: isStatus(status)
        ? `is ${status}: a job that is over is not run again`
        : `names a record whose status is none of a job's: ${JSON.stringify(id.slice(0, 200))}`
    }
  ])

/**
 * Checks that the job is a record of the database: one written only here could not be claimed, and the next compare
 * would delete it.
 */
const inDatabase = (
  { upstream }: JobsDependencies,
  id: RecordId
): Effect.Effect<void, ReturnType<typeof invalidRequest> | Refusal> =>
  Effect.flatMap(
    Effect.mapError(
      upstream.find([id]),
      ({ message }) =>
        new Errors.Overloaded({ message: `the database cannot be asked for the job: ${message}`, retryAfterSecs: 1 })
    ),
    (found) =>
      found.length > 0
        ? Effect.void
        : Effect.fail(
            invalidRequest([
              {
                path: "job_id",
                reason:
                  "names no record of the database: beside a database a job is created there, and its event brings it here"
              }
            ])
          )
  )

const dispatch = (
  parts: JobsDependencies,
  given: Dispatch
): Effect.Effect<string, ReturnType<typeof noSsp> | ReturnType<typeof invalidRequest> | Refusal> =>
  Effect.gen(function* () {
    const { feed, pool } = parts
    const id = Ids.parseLenient(given.job_id)
    if (id?.table !== given.table)
      return yield* Effect.fail(
        invalidRequest([{ path: "job_id", reason: `must be a record id of table ${JSON.stringify(given.table)}` }])
      )
    const doc = (yield* find(parts, id))?.doc
    const status = doc?.["status"]
    if (doc !== undefined && (!isStatus(status) || isOver(status))) return yield* Effect.fail(notAJob(id.text, status))
    const creates = doc === undefined && parts.writes
    if (doc === undefined && !creates) yield* inDatabase(parts, id)
    feed.learn(id.table)
    const reply = yield* pool.ask((ref) => ({
      tag: "JobArrived",
      ref,
      job: id.text,
      table: id.table,
      stands: !creates
    }))
    if (reply.kind !== "assigned")
      return yield* Effect.fail(noSsp(pool.state(), ` and run jobs of table ${JSON.stringify(id.table)}`))
    if (creates) {
      yield* Effect.tapError(write(parts, id, "CREATE", newRecord(given, yield* now), undefined), () =>
        pool.tell({ tag: "JobDone", job: id.text })
      )
    }
    return reply.ssp
  })

/** `errors` after a report: the runner's own list, or the lone error appended (D36). */
const errorsAfter = (doc: Obj, { error, errors, status }: Result, nowMs: number): ReadonlyArray<Value> => {
  const before = Array.isArray(doc["errors"]) ? (doc["errors"] as ReadonlyArray<Value>) : []
  if (errors !== undefined) return Json.fromJsonTyped(errors, {}, "plain") as ReadonlyArray<Value>
  if (status !== "failed" || error === undefined || error === null) return before
  return [...before, { ...jobError(failures(before) + 1, 0, error, nowMs) }]
}

/** Brings the record to the reported status, unless the job is over or its id belongs to another job. */
const record = (
  parts: JobsDependencies,
  id: RecordId,
  status: JobStatus,
  given: Result,
  { created }: State.Job
): Effect.Effect<void, Refusal> =>
  Effect.gen(function* () {
    const still = (): boolean => State.job(parts.pool.state(), id.text)?.created === created
    for (let i = 0; i < tries && still(); i++) {
      const known = yield* find(parts, id)
      const doc = known?.doc
      if (doc === undefined || !isStatus(doc["status"]) || isOver(doc["status"])) return
      const nowMs = yield* Clock.currentTimeMillis
      const { json, types } = JsonTypes.jsonWithTypes({
        ...doc,
        status,
        errors: errorsAfter(doc, given, nowMs),
        updated_at: Rows.datetime(nowMs)
      })
      if (yield* write(parts, id, "UPDATE", { record: json, types }, known?.version, still)) return
    }
    if (!still()) return
    return yield* new Errors.Overloaded({
      message: `the record of ${id.text} changes all the time; try again`,
      retryAfterSecs: 1
    })
  })

/** The SSP that has a job. After its deregistration it keeps the jobs that it is calling until the calls have ended. */
const holderOf = ({ pool }: JobsDependencies, job: State.Job): string | undefined => {
  const state = pool.state()
  return HashMap.has(state.endingJobs, job.job) ? job.home?.ssp : State.memberAt(state, job.home)?.ssp
}

/** Whether a report counts: from the current owner always, from a former owner only `completed`. */
const counts = (parts: JobsDependencies, job: State.Job, { ssp_id, status }: Result): boolean =>
  status === "completed" || ssp_id === undefined || holderOf(parts, job) === ssp_id

/** Whether a result belongs to the job that has the id now, and not to a deleted one. */
const isOfThis = (job: State.Job, { created_seq: created }: Result): boolean =>
  created === undefined || job.created === undefined || created === job.created

/** One SSP cannot decide the jobs of another, not even with `completed`. */
const countsOfOne: typeof counts = (parts, job, { ssp_id }) => {
  const holder = holderOf(parts, job)
  return holder === undefined || holder === ssp_id
}

/** Stores the result before the report is answered and the job is over: later questions are answered from the store. */
const keep = ({ pool }: JobsDependencies, job: string, answer: JobAnswer | undefined): Effect.Effect<void> =>
  answer === undefined && pool.resultOf(job) === undefined
    ? Effect.void
    : Effect.asVoid(pool.ask((ref) => ({ tag: "JobAnswered", ref, job, result: answer })))

const result = (parts: JobsDependencies, given: Result, isHeard: typeof counts): Effect.Effect<void, Refusal> =>
  Effect.gen(function* () {
    const id = Ids.parseLenient(given.job_id)
    const job = State.job(parts.pool.state(), id?.text ?? given.job_id)
    if (id === undefined || job === undefined || !isOfThis(job, given) || !isHeard(parts, job, given)) return
    const status = ofResult(given.status)
    yield* keep(parts, id.text, status === "success" ? (given.result ?? undefined) : undefined)
    if (parts.writes) yield* record(parts, id, status, given, job)
    if (isOver(status)) yield* parts.pool.tell({ tag: "JobDone", job: id.text, created: job.created })
    else if (status === "pending") yield* parts.pool.tell({ tag: "JobReleased", job: id.text })
  })

/**
 * Retries or cancels a job for an operator, as an ordinary change: a retried job is pending and is assigned as any
 * other.
 */
const amend = (
  parts: JobsDependencies,
  id: RecordId,
  event: "Retried" | "Cancelled"
): Effect.Effect<AmendResult, Refusal> =>
  Effect.gen(function* () {
    for (let i = 0; i < tries; i++) {
      const known = yield* find(parts, id)
      const doc = known?.doc
      if (doc === undefined || !isStatus(doc["status"])) return { kind: "missing" }
      const status = next(doc["status"], event)
      if (status === undefined) return { kind: "refused", status: doc["status"] }
      const nowMs = yield* Clock.currentTimeMillis
      const before = Array.isArray(doc["errors"]) ? (doc["errors"] as ReadonlyArray<Value>) : []
      const error = jobError(0, 0, event === "Retried" ? "retried by an operator" : "cancelled by an operator", nowMs)
      const { json, types } = JsonTypes.jsonWithTypes({
        ...doc,
        status,
        errors: [...before, Rows.fromError(error)],
        updated_at: Rows.datetime(nowMs)
      })
      if (!(yield* write(parts, id, "UPDATE", { record: json, types }, known?.version))) continue
      if (event === "Cancelled") yield* parts.pool.tell({ tag: "JobDone", job: id.text })
      return { kind: "done" }
    }
    return yield* new Errors.Overloaded({
      message: `the record of ${id.text} changes all the time; try again`,
      retryAfterSecs: 1
    })
  })

/** Ends the tracking of jobs whose records are over or gone. */
const settle = ({ pool, replica }: JobsDependencies, jobs: ReadonlyArray<string>): Effect.Effect<void, ReplicaError> =>
  Effect.gen(function* () {
    const ids = jobs.flatMap((job) => Ids.parseLenient(job) ?? [])
    const created = new Map(ids.map(({ text }) => [text, State.job(pool.state(), text)?.created]))
    const found = yield* replica.current(ids)
    for (const { text } of ids) {
      const status = found.get(text)?.doc?.["status"]
      if (!isStatus(status) || isOver(status))
        yield* pool.tell({ tag: "JobDone", job: text, created: created.get(text) })
    }
  })

const settleTracked = (parts: JobsDependencies): Effect.Effect<void, ReplicaError> =>
  Effect.gen(function* () {
    const tracked = [...HashMap.keys(parts.pool.state().jobs)]
    for (let i = 0; i < tracked.length; i += step) yield* settle(parts, tracked.slice(i, i + step))
  })

/** Assigns open jobs of a table that have no SSP: the table's jobs were not known before, or a database was cloned. */
const adopt = (parts: JobsDependencies, table: string): Effect.Effect<void, ReplicaError> =>
  Effect.gen(function* () {
    const { pool, replica } = parts
    for (let after: RecordKey | undefined; ; ) {
      const records = yield* replica.records(table, after, step)
      const open = records
        .filter(({ doc }) => isStatus(doc?.["status"]) && !isOver(doc["status"]))
        .map(({ id }) => id.text)
      const fresh = open.filter((job) => State.job(pool.state(), job) === undefined)
      yield* Effect.forEach(
        fresh,
        (job): Effect.Effect<void> =>
          pool.tell({ tag: "JobArrived", job, table, ref: undefined, stands: true } satisfies Command),
        { discard: true }
      )
      // Ends the tracking of jobs that ended since they were read: no command moves the replica meanwhile, and later
      // ends are noticed.
      yield* pool.alone(Effect.as(settle(parts, fresh), undefined))
      if (records.length < step) return
      after = records.at(-1)!.id.key
    }
  })

/** Adopts the jobs of every job table once it is known and the replica is complete. */
const look = (parts: JobsDependencies): Effect.Effect<never> => {
  const seen = new Set<string>()
  return Effect.forever(
    Effect.gen(function* () {
      if (parts.pool.state().phase !== "Cloning") {
        for (const table of parts.feed.tables()) {
          if (seen.has(table)) continue
          if (!parts.writes && seen.size === 0) yield* noted(settleTracked(parts))
          if (yield* noted(adopt(parts, table))) seen.add(table)
        }
      }
      yield* Effect.sleep("200 millis")
    })
  )
}

const noted = (effect: Effect.Effect<void, ReplicaError>): Effect.Effect<boolean> =>
  effect.pipe(
    Effect.as(true),
    Effect.catchAll((error) =>
      Effect.as(Effect.logError(`open jobs cannot be looked for: ${error.message}; trying again`), false)
    )
  )
