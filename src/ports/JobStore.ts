/**
 * Where jobs are claimed and their state is written: the job records themselves, and the leases that name their
 * runners.
 *
 * Why a port of its own: with a real database the records are the user's tables, and of many runners the database
 * decides which runner wins; without one they are records of this node, changed the way every change is; in a cluster
 * without a database only the scheduler writes. What a runner does is the same on all of them. Every write is bound to
 * the lease: a runner that has lost it writes nothing.
 */
import { Context, Data, type Effect, Layer } from "effect"
import type { Job, JobError } from "../core/job/job.ts"
import type { Holder, Lease } from "../core/job/lease.ts"
import type { Result } from "../core/job/result.ts"
import type { JobEvent, JobStatus } from "../core/job/status.ts"
import type { Datetime, Obj, RecordId } from "../core/surql/values/value.ts"

/** `transient`: the same call may succeed later; else the store will never take it. */
export class JobStoreError extends Data.TaggedError("JobStoreError")<{
  readonly transient: boolean
  readonly message: string
  readonly cause?: unknown
}> {}

/** Where a page of jobs goes on: behind the moment and the id of its last job. */
export interface Place {
  /** Undefined: the record names no moment, and is older than all that do. */
  readonly at: Datetime | undefined
  readonly ref: RecordId
}

export interface StoredJob extends Job {
  readonly ref: RecordId
  /** The runner that holds it, if one does. */
  readonly lease: Lease | undefined
  /** The record's own field, RFC 3339. */
  readonly updatedAt: string | undefined
  /** The kept part of the answer, where the store keeps it. */
  readonly result?: Result
  /** The same as the moment by which it is listed. */
  readonly at: Place["at"]
}

export interface JobWrite {
  readonly ref: RecordId
  readonly event: Extract<JobEvent, "Succeeded" | "AttemptFailed" | "GaveUp" | "Released">
  /** Error to append to the record's `errors`; undefined for none. */
  readonly error: JobError | undefined
  /** The kept part of the answer: in a row of ours, or with the node that is told of the end. */
  readonly result?: Result
}

export type Amended =
  | { readonly kind: "done" }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly status: JobStatus }

export interface JobStoreShape {
  /** Makes our own table where there is none; a user without that right must find it, with the right to write it. */
  readonly prepare: Effect.Effect<void, JobStoreError>
  /**
   * Ids of jobs without a runner: pending, or processing without a live lease; at most `limit`, those that are
   * processing first.
   */
  readonly open: (table: string, limit: number) => Effect.Effect<ReadonlyArray<RecordId>, JobStoreError>
  /**
   * Takes free jobs, each by compare-and-set, and answers those it won. One's own lease may be taken again: that
   * renews it.
   */
  readonly claim: (
    refs: ReadonlyArray<RecordId>,
    by: Holder,
    leaseMs: number
  ) => Effect.Effect<ReadonlyArray<StoredJob>, JobStoreError>
  /** Makes live leases longer; answers the ids (as text) that are still held. */
  readonly renew: (
    refs: ReadonlyArray<RecordId>,
    by: Holder,
    leaseMs: number
  ) => Effect.Effect<ReadonlySet<string>, JobStoreError>
  /**
   * Writes status, errors and `updated_at` where the lease is still held; answers the ids (as text) of those. What is
   * over or released gives up its lease.
   */
  readonly write: (writes: ReadonlyArray<JobWrite>, by: Holder) => Effect.Effect<ReadonlySet<string>, JobStoreError>
  readonly find: (ref: RecordId) => Effect.Effect<StoredJob | undefined, JobStoreError>
  /** Jobs of a table behind `after`, those that changed last first ({@link Place}). */
  readonly list: (
    table: string,
    status: JobStatus | undefined,
    after: Place | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<StoredJob>, JobStoreError>
  /** Retries or cancels a job at an operator's request; takes the lease from its holder. */
  readonly amend: (
    ref: RecordId,
    event: "Retried" | "Cancelled",
    error: JobError
  ) => Effect.Effect<Amended, JobStoreError>
}

/**
 * Assignments of jobs, as a store is told of them where they replace the claim: in a cluster without a database the
 * scheduler decides which runner has a job.
 */
export interface JobAssignments {
  /** The record of a job that was handed over by a call, for as long as its change has not come. */
  readonly expect: (ref: RecordId, doc: Obj) => void
  /** The job is this SSP's, for the first time or again. */
  readonly assigned: (ref: RecordId) => void
  /** No job is this SSP's any more: it has registered anew. */
  readonly disown: () => void
  /** The record is deleted. */
  readonly forget: (ref: RecordId) => void
  /** The record says that it is over: what is still under way for it counts for nothing. */
  readonly ended: (ref: RecordId, status: JobStatus) => void
}

/** Claims jobs and writes their state. A layer of your own passes `conformance.jobStore` of `testing`. */
export class JobStore extends Context.Tag("ports/JobStore")<JobStore, JobStoreShape>() {}

/**
 * The job tables of the database beside this node; undefined where there is none, and the node's own records are all
 * there is.
 */
export class DatabaseJobs extends Context.Tag("ports/DatabaseJobs")<DatabaseJobs, JobStoreShape | undefined>() {
  static readonly layerNone: Layer.Layer<DatabaseJobs> = Layer.succeed(DatabaseJobs, undefined)
}
