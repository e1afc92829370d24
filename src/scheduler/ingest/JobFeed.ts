/**
 * Jobs in ingested changes (D35): each pending job is assigned to an SSP before its change is logged, and an ended job
 * is no longer tracked.
 *
 * A change that names no SSP would be run by every SSP that has the table, so a job that waits for an SSP names the
 * empty id.
 */
import { Context, Effect, Either, HashMap, Layer, Stream } from "effect"
import type { Command } from "../../core/cluster/messages.ts"
import * as State from "../../core/cluster/state.ts"
import { isOver, isStatus } from "../../core/job/status.ts"
import { Recent } from "../../core/recent.ts"
import type { Change, Schema } from "../../core/record/change.ts"
import * as Event from "../../core/record/event.ts"
import type { Known } from "../../core/record/version.ts"
import * as Rows from "../../node/jobs/jobRows.ts"
import type { ReplicaRecord } from "../../ports/Replica.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { Upstream } from "../../ports/Upstream.ts"
import { Wal, type WalFailed, type WalShape, startFault as walFault } from "../../ports/Wal.ts"
import { SchedulerConfig } from "../Config.ts"
import { DeclaredTables } from "../pool/DeclaredTables.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"

/** Jobs whose digests are remembered, so that a repeated delivery does not run them again. */
const maxRemembered = 100_000
const maxDigests = 16

/** A change to be logged, and its record before it. */
interface Changing {
  readonly change: Change
  readonly was: Known | undefined
}

interface Assigned {
  /** SSP that the change's event names; undefined: the change is no pending job. */
  readonly to: (change: Change) => string | undefined
  /** Undoes the assignments of changes that were not logged. */
  readonly undo: Effect.Effect<void>
}

export class JobFeed extends Context.Tag("scheduler/jobs/JobFeed")<
  JobFeed,
  {
    /** Every table that holds or has held jobs. */
    readonly tables: () => ReadonlySet<string>
    /** Notes that a table holds jobs. */
    readonly learn: (table: string) => void
    /** Whether this change only delivers a claimed job again, which must not become pending. */
    readonly hasRun: (change: Change, was: Known | undefined) => boolean
    /** Assigns jobs. `from`: log position of the first change. */
    readonly assign: (changes: ReadonlyArray<Changing>, from: number) => Effect.Effect<Assigned>
    /** Called with the records that the replica has just applied. */
    readonly moved: (records: ReadonlyArray<ReplicaRecord>) => Effect.Effect<void>
  }
>() {
  static readonly layer: Layer.Layer<JobFeed, StartFault, Pool | SchedulerConfig | Upstream | Wal | DeclaredTables> =
    Layer.effect(
      JobFeed,
      Effect.gen(function* () {
        const { present } = yield* Upstream
        const taken = new Taken()
        const feed = make(yield* Pool, (yield* SchedulerConfig).jobTables, present ? undefined : taken)
        if (!present && feed.tables().size > 0)
          yield* Effect.mapError(recall(yield* Wal, (yield* DeclaredTables).schema, taken), walFault)
        return feed
      })
    )
}

/** Digests of the latest jobs, one for each claim since their creation. */
class Taken {
  private readonly digests = new Recent<string, ReadonlySet<string>>(maxRemembered)

  /** Keeps earlier digests of a job that a runner or an operator made pending again. */
  remember({ doc, id }: Change, isCreated: boolean): void {
    const known = isCreated ? [] : [...(this.digests.get(id.text) ?? [])]
    this.digests.set(id.text, new Set([...known, Rows.digest(doc)].slice(-maxDigests)))
  }

  forget(id: string): void {
    this.digests.delete(id)
  }

  is({ doc, id }: Change): boolean {
    return this.digests.get(id.text)?.has(Rows.digest(doc)) === true
  }
}

/** Reads the digests from the kept part of the log: a delivery is repeated soon or not at all. */
const recall = (wal: WalShape, schema: Schema, taken: Taken): Effect.Effect<void, WalFailed> =>
  Effect.flatMap(wal.keptAfter, (kept) =>
    Stream.runForEach(wal.read(kept), ({ json }) =>
      Effect.sync(() => {
        if (!json.includes('"job_assignee":')) return
        const read = Event.ofLine(json, schema)
        if (Either.isRight(read) && read.right.change.jobAssignee !== undefined)
          taken.remember(read.right.change, false)
      })
    )
  )

const none: Assigned = { to: () => undefined, undo: Effect.void }

/**
 * The SSP to name in the change of a job; empty if no change has told an SSP of the job, so that the SSP must be
 * called.
 */
const sspOfJob = (state: State.State, id: string): string =>
  State.job(state, id)?.told === true ? (State.assigneeOf(state, id) ?? "") : ""

/** Command for a pending job. It is a new job if its record did not exist or was over. */
const arrival = ({ id }: Change, was: Known | undefined, at: number): Command & { readonly tag: "JobArrived" } => {
  const status = was?.doc?.["status"]
  return {
    tag: "JobArrived",
    job: id.text,
    table: id.table,
    ref: undefined,
    created: at,
    isNew: !isStatus(status) || isOver(status)
  }
}

const end = (pool: PoolShape, ids: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(
    ids.filter((id) => State.job(pool.state(), id) !== undefined),
    (job) => pool.tell({ tag: "JobDone", job }),
    { discard: true }
  )

/**
 * Restores the tracking of these jobs. A job whose id another job had taken is handed over by a call, since no change
 * tells its SSP.
 */
const restore = (pool: PoolShape, before: ReadonlyMap<string, State.Job | undefined>): Effect.Effect<void> =>
  Effect.forEach(
    before,
    ([job, was]) => {
      if (was === undefined) return end(pool, [job])
      const { created, table } = was
      return created === undefined || State.job(pool.state(), job)?.created === created
        ? Effect.void
        : pool.tell({ tag: "JobArrived", job, table, ref: undefined, created, isNew: true, stands: true })
    },
    { discard: true }
  )

/** `taken`: digests of claimed jobs; undefined beside a database, whose records are decisive. */
const make = (pool: PoolShape, configured: ReadonlySet<string>, taken: Taken | undefined): typeof JobFeed.Service => {
  const known = new Set(configured)
  for (const { table } of HashMap.values(pool.state().jobs)) known.add(table)
  const tables = (): ReadonlySet<string> => {
    for (const { jobTables } of HashMap.values(pool.state().members))
      for (const table of jobTables ?? []) known.add(table)
    return known
  }
  const isPending = ({ doc, id, op }: Change): boolean =>
    op !== "DELETE" && doc["status"] === "pending" && known.has(id.table)
  return {
    tables,
    learn: (table) => void known.add(table),
    hasRun: (change, was) =>
      taken !== undefined &&
      change.version === undefined &&
      isPending(change) &&
      was?.doc !== undefined &&
      was.doc["status"] !== "pending" &&
      isStatus(was.doc["status"]) &&
      taken.is(change),
    assign: (changes, from) =>
      Effect.suspend(() => {
        tables()
        const jobs = changes.flatMap(({ change, was }, i) =>
          isPending(change) ? [arrival(change, was, from + i)] : []
        )
        if (jobs.length === 0) return Effect.succeed(none)
        const before = new Map(jobs.map(({ job }) => [job, State.job(pool.state(), job)]))
        const to = new Map<string, string>()
        const read = Effect.sync(() => {
          for (const { job } of jobs) to.set(job, sspOfJob(pool.state(), job))
          return undefined
        })
        return Effect.forEach(jobs, pool.tell, { discard: true }).pipe(
          Effect.zipRight(pool.alone(read)),
          Effect.map(() => {
            for (const { change, was } of changes)
              if (isPending(change)) taken?.remember(change, was?.doc === undefined)
            return {
              to: (change: Change) => (isPending(change) ? to.get(change.id.text) : undefined),
              undo: restore(pool, before)
            }
          })
        )
      }),
    moved: (records) =>
      Effect.suspend(() => {
        if (known.size === 0) return Effect.void
        const last = new Map(records.filter(({ id }) => known.has(id.table)).map(({ doc, id }) => [id.text, doc]))
        const gone = [...last].flatMap(([id, doc]) => (doc === undefined ? [id] : []))
        for (const id of gone) taken?.forget(id)
        const forget = Effect.forEach(
          gone.filter((id) => pool.resultOf(id) !== undefined),
          (job) => pool.tell({ tag: "JobAnswered", ref: undefined, job, result: undefined }),
          { discard: true }
        )
        return Effect.zipRight(
          forget,
          end(
            pool,
            [...last].flatMap(([id, doc]) =>
              doc === undefined || (isStatus(doc["status"]) && isOver(doc["status"])) ? [id] : []
            )
          )
        )
      })
  }
}
