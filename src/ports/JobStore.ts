/**
 * Where jobs are claimed and their state is written: the job records themselves, and the leases that name their
 * runners.
 *
 * Why a port of its own: with a real database the records are in the user's tables, and the database decides which of
 * many runners wins; without one they are records of this node, changed like any other; in a cluster without a database
 * only the scheduler writes. Runners work the same way on all of them. Every write is bound to the lease: a runner that
 * has lost it writes nothing.
 */
import { Context, Data, type Effect, Layer } from "effect"
import type { Job, JobError } from "../core/job/job.ts"
import type { Holder, Lease } from "../core/job/lease.ts"
import type { Result } from "../core/job/result.ts"
import type { JobEvent, JobStatus } from "../core/job/status.ts"
import type { Datetime, Obj, RecordId } from "../core/surql/values/value.ts"

/** `transient`: the same call may succeed later; otherwise it never will. */
export class JobStoreError extends Data.TaggedError("JobStoreError")<{
  readonly transient: boolean
  readonly message: string
  readonly cause?: unknown
}> {}

/** Position in the list of jobs, after which a page begins: moment and id of the last job listed before. */
export interface JobListPosition {
  /** Undefined: the record has no moment, and is listed after all that have one. */
  readonly at: Datetime | undefined
  readonly ref: RecordId
}

/** A job as its record and its lease say. */
export interface StoredJob extends Job {
  readonly ref: RecordId
  /** Lease of the present runner, if there is one. */
  readonly lease: Lease | undefined
  /** The record's own field, RFC 3339 text. */
  readonly updatedAt: string | undefined
  /** The stored part of the answer, if the store keeps it. */
  readonly result?: Result
  /** The moment by which the job is listed. */
  readonly at: JobListPosition["at"]
}

/** A change of a job's record by its runner. */
export interface JobWrite {
  readonly ref: RecordId
  readonly event: Extract<JobEvent, "Succeeded" | "AttemptFailed" | "GaveUp" | "Released">
  /** Error to append to the record's `errors`; undefined for none. */
  readonly error: JobError | undefined
  /** The stored part of the answer: kept in a row of the service's table, or by the node that gets the report. */
  readonly result?: Result
}

/** Result of an operator's retry or cancel. */
export type AmendResult =
  | { readonly kind: "done" }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly status: JobStatus }

/** Methods fail with a {@link JobStoreError}, whose `transient` says whether to try again. */
export interface JobStoreShape {
  /** Makes the service's own table if it is missing; without the right to define it, it must exist and be writable. */
  readonly prepare: Effect.Effect<void, JobStoreError>
  /**
   * Ids of jobs without a runner (pending, or processing without a live lease), at most `limit`, those that are
   * processing first.
   */
  readonly open: (table: string, limit: number) => Effect.Effect<ReadonlyArray<RecordId>, JobStoreError>
  /**
   * Claims jobs without a runner, each by compare-and-set; answers the claimed ones. Claiming under the holder's own
   * live lease renews it.
   */
  readonly claim: (
    refs: ReadonlyArray<RecordId>,
    by: Holder,
    leaseMs: number
  ) => Effect.Effect<ReadonlyArray<StoredJob>, JobStoreError>
  /** Extends live leases; answers the ids (as text) whose lease is still held. */
  readonly renew: (
    refs: ReadonlyArray<RecordId>,
    by: Holder,
    leaseMs: number
  ) => Effect.Effect<ReadonlySet<string>, JobStoreError>
  /**
   * Writes status, errors and `updated_at` of jobs whose lease is still held; answers their ids (as text). A job that
   * has ended or is released gives up its lease.
   */
  readonly write: (writes: ReadonlyArray<JobWrite>, by: Holder) => Effect.Effect<ReadonlySet<string>, JobStoreError>
  readonly find: (ref: RecordId) => Effect.Effect<StoredJob | undefined, JobStoreError>
  /** Jobs of a table after a position, the last changed first ({@link JobListPosition}). */
  readonly list: (
    table: string,
    status: JobStatus | undefined,
    after: JobListPosition | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<StoredJob>, JobStoreError>
  /** Retries or cancels a job at an operator's request; takes the lease from its holder. */
  readonly amend: (
    ref: RecordId,
    event: "Retried" | "Cancelled",
    error: JobError
  ) => Effect.Effect<AmendResult, JobStoreError>
}

/**
 * Assignments of jobs to this SSP, which replace claims in a cluster without a database: there the scheduler decides
 * which runner has a job.
 */
export interface JobAssignments {
  /** Stores the record of a job that was assigned by a call, until its change arrives. */
  readonly expect: (ref: RecordId, doc: Obj) => void
  /** Notes that the job is assigned to this SSP, for the first time or again. */
  readonly assigned: (ref: RecordId) => void
  /** Drops all assignments: the SSP has registered again. */
  readonly disown: () => void
  /** Forgets a job whose record was deleted. */
  readonly forget: (ref: RecordId) => void
  /** Notes a final status of the record: a call still in flight for the job no longer counts. */
  readonly ended: (ref: RecordId, status: JobStatus) => void
}

/** Claims jobs and writes their state. A layer of your own passes `conformance.jobStore` of `testing`. */
export class JobStore extends Context.Tag("ports/JobStore")<JobStore, JobStoreShape>() {}

/**
 * The job tables of the database beside this node; undefined without a database: then jobs are the node's own records.
 */
export class DatabaseJobs extends Context.Tag("ports/DatabaseJobs")<DatabaseJobs, JobStoreShape | undefined>() {
  static readonly layerNone: Layer.Layer<DatabaseJobs> = Layer.succeed(DatabaseJobs, undefined)
}
