/**
 * Commands that the pool is given and actions that it asks for, as data.
 *
 * For the author of a shell. Decide one command at a time and carry out its actions in their order. The replica must
 * not advance before the actions are done: `Freeze` means the replica at the position last `Appended`. Persist actions
 * come before the actions that depend on them: wait for those (one batch) before sending. All other actions (`Poll`,
 * `Deliver`, the calls) are started, not awaited; their end comes back as a command. A call that never ends must come
 * back as `unavailable` or `unreachable` by a time-out. `ref` is the shell's own handle of a request.
 */
import type { Answer } from "./deliveryQueue.ts"

/** A view registration; `body` is passed on to the SSP as it came. */
export interface ViewSpec {
  readonly body: unknown
  readonly ttlMs: number
  readonly lastActiveAt: number
}

/**
 * `incarnation`: drawn by the SSP's process at its start (extension); tells an older process with the same id from a
 * newer.
 */
export interface SspIdentity {
  readonly ssp: string
  readonly incarnation: string | undefined
}

export interface SspRegistration extends SspIdentity {
  readonly url: string
  /** Whether the SSP takes arrays on `/ingest` (D5); undefined if it did not say. */
  readonly batch: boolean | undefined
  /** Tables whose jobs the SSP runs; undefined for any (D35). */
  readonly jobTables: ReadonlyArray<string> | undefined
  /** Tables that the SSP follows by the feed (D61), `*` for all; absent if it is sent every event. */
  readonly tables?: ReadonlyArray<string> | undefined
}

/** Position through which an SSP that follows the feed has applied everything of its tables. */
export interface AppliedPosition extends RegisteredSsp {
  readonly seq: number
}

/**
 * How a call to an SSP ended. `unreachable`: 503, other 5xx, time-out, transport; the call may have been carried out,
 * unless the connection was `refused`. `lost`: the connection broke off; `late`: no answer came in time; `secret`: the
 * SSP does not take the scheduler's secret, and has carried out nothing. `tables`: tables that a view reads, if the SSP
 * that took it says so. `quarantined`: the SSP has set the query aside (D48), because `ends` processes ended while they
 * evaluated it. `joining`: records of the view's tables are on their way to the SSP (D61).
 */
export type CallOutcome =
  | { readonly kind: "done"; readonly tables?: ReadonlyArray<string> }
  | { readonly kind: "refused"; readonly details: unknown }
  | { readonly kind: "quarantined"; readonly ends: number }
  | { readonly kind: "joining" }
  | {
      readonly kind: "unreachable"
      readonly refused?: true
      readonly lost?: true
      readonly late?: true
      readonly secret?: true
    }

/** `refused`: the connection was refused, so no process listens there. */
export type Health = "ready" | "bootstrapping" | "failed" | "unreachable" | "refused"

/** A JSON object; the pool only hands it on to be kept. */
type JobResult = { readonly [field: string]: unknown }

/** A fact or a request that the pool decides about. */
export type Command =
  | { readonly tag: "Cloned" }
  /** The log and the replica hold everything up to `through`. */
  | { readonly tag: "Appended"; readonly through: number }
  /** The log no longer holds positions before `first`. */
  | { readonly tag: "Trimmed"; readonly first: number }
  | { readonly tag: "CheckpointDue" }
  | { readonly tag: "Checkpointed" }
  | { readonly tag: "Register"; readonly ref: number; readonly registration: SspRegistration }
  /** `registration`: number of the registration for which the SSP has pulled its data, once it is ready (extension). */
  | {
      readonly tag: "Heartbeat"
      readonly ref: number
      readonly from: SspIdentity
      readonly registration: number | undefined
      readonly views: number
      readonly cpu: number | undefined
      readonly memory: number | undefined
    }
  /** `calling`: jobs whose backend the SSP is calling at this moment. */
  | {
      readonly tag: "Deregister"
      readonly ref: number
      readonly from: SspIdentity
      readonly calling?: ReadonlyArray<string> | undefined
    }
  | { readonly tag: "Polled"; readonly ssp: string; readonly registration: number; readonly health: Health }
  /** `jitter`: 0 <= x < 1, drawn by the shell. */
  | {
      readonly tag: "Delivered"
      readonly ssp: string
      readonly registration: number
      readonly answer: Answer
      readonly jitter: number
    }
  /** SSPs that follow the feed have applied what they were sent (D61). */
  | { readonly tag: "Applied"; readonly positions: ReadonlyArray<AppliedPosition> }
  /** An SSP has begun to follow these tables. */
  | ({ readonly tag: "Followed"; readonly tables: ReadonlyArray<string> } & RegisteredSsp)
  /** A request that was forwarded to an SSP failed: the connection was refused. */
  | { readonly tag: "Refused"; readonly ssp: string; readonly registration: number }
  /**
   * A call that no action asked for, such as a forwarded request, found that the SSP does not take the scheduler's
   * secret.
   */
  | { readonly tag: "SecretRefused"; readonly ssp: string }
  /** An answer to `/ingest` has waited its whole time for `seq`: SSPs that have not applied `seq` become late. */
  | { readonly tag: "WaitedEnough"; readonly seq: number }
  /** The SSP's root differs from the replica's at the same position (D41). */
  | { readonly tag: "Compared"; readonly ssp: string; readonly registration: number; readonly equal: boolean }
  | { readonly tag: "RegisterView"; readonly ref: number; readonly view: string; readonly spec: ViewSpec }
  /** The view's client is active: has the effect of a registration that repeats the present one. */
  | { readonly tag: "TouchView"; readonly ref: number; readonly view: string }
  | { readonly tag: "UnregisterView"; readonly ref: number; readonly view: string }
  /** An operator frees the query of a view from quarantine (D48). */
  | { readonly tag: "FreeView"; readonly ref: number; readonly view: string }
  /** The database has no rows of the view any more. */
  | { readonly tag: "ViewCleared"; readonly op: number; readonly view: string }
  | {
      readonly tag: "ViewCalled"
      readonly op: number
      readonly view: string
      readonly ssp: string
      readonly registration: number
      readonly outcome: CallOutcome
    }
  /** Last activity of a view: the later of the stored time and the one found in the database (D14). */
  | { readonly tag: "ActivityFound"; readonly view: string; readonly lastActiveAt: number }
  /**
   * A pending job in the ingest path, before its change is logged; the logged change will name the SSP that runs it.
   * `ref`: set if the job was dispatched by request. `stands`: its record exists already and no change will come, so
   * its SSP must be called. `created`: position the change will have in the log; `isNew`: the record was no open job
   * before it.
   */
  | {
      readonly tag: "JobArrived"
      readonly job: string
      readonly table: string
      readonly ref: number | undefined
      readonly stands?: boolean
      readonly created?: number
      readonly isNew?: boolean
    }
  | { readonly tag: "JobCalled"; readonly op: number; readonly job: string; readonly outcome: CallOutcome }
  /** If `created` is given, only the job created at this position is done, not a later one with the same id. */
  | { readonly tag: "JobDone"; readonly job: string; readonly created?: number | undefined }
  /** The SSP that was to run the job gives it back. */
  | { readonly tag: "JobReleased"; readonly job: string }
  /** The stored part of a job's answer; undefined to delete it. `ref` is answered when the change is on disk. */
  | {
      readonly tag: "JobAnswered"
      readonly job: string
      readonly result: JobResult | undefined
      readonly ref: number | undefined
    }
  | { readonly tag: "Tick" }

/** The pool's answer to a request. */
export type Reply =
  | { readonly kind: "registered"; readonly snapshotSeq: number; readonly registration: number }
  | { readonly kind: "ok" }
  /** 503 `SCHEDULER_CLONING`. */
  | { readonly kind: "cloning" }
  /** 503 `OVERLOADED` with `Retry-After`. */
  | { readonly kind: "overloaded"; readonly retryAfterMs: number; readonly reason: string }
  /** 404 `SSP_NOT_REGISTERED`, 409 `BUFFER_OVERFLOW`. */
  | { readonly kind: "unknownSsp" }
  | { readonly kind: "conflict" }
  /** A newer process has this id: the older one must stop. */
  | { readonly kind: "fenced"; readonly url: string }
  | { readonly kind: "assigned"; readonly ssp: string; readonly url: string; readonly assignedAt: number }
  /** 400 of the SSP, passed on. */
  | { readonly kind: "refused"; readonly details: unknown }
  /** 409 `VIEW_QUARANTINED`. */
  | { readonly kind: "quarantined"; readonly ends: number; readonly at: number }
  /** 503 `NO_SSP_AVAILABLE`, 404 `VIEW_NOT_FOUND`. */
  | { readonly kind: "noSsp" }
  | { readonly kind: "unknownView" }

/** An SSP as it is stored. */
export interface MemberRow extends SspRegistration {
  readonly registration: number
  readonly acked: number
}

/** A view as it is stored. */
export interface ViewRow {
  readonly view: string
  readonly spec: ViewSpec
  readonly assignment: number
  readonly assignedAt: number
  readonly home: RegisteredSsp | undefined
  /** The SSP has taken the view; false while that is unknown. */
  readonly placed: boolean
  /** The view was removed; its row is kept until no SSP and no database holds anything of it. */
  readonly gone: boolean
}

/** A quarantined query (D48). */
export interface QuarantineRow {
  /** Parameters as JSON and text of the query. */
  readonly query: string
  /** The view that last had the query. */
  readonly view: string
  /** Number of SSPs that ended while they evaluated the query. */
  readonly ends: number
  /** Unix milliseconds. */
  readonly at: number
}

/** An SSP in one of its registrations: a later registration begins without views and jobs. */
export interface RegisteredSsp {
  readonly ssp: string
  readonly registration: number
}

/** A view that must leave an SSP, and may already have. */
export interface StrayRow extends RegisteredSsp {
  readonly view: string
  readonly assignment: number
}

/** A job as it is stored. */
export interface JobRow {
  readonly job: string
  readonly table: string
  readonly home: RegisteredSsp | undefined
  /** The SSP has been told of the job, by the change or by a call. */
  readonly told: boolean
  /** Position in the log of the change that made the record a job; tells jobs of one id apart; absent: unknown. */
  readonly created?: number | undefined
}

export interface ToSsp extends RegisteredSsp {
  readonly url: string
  /** The SSP implements the specification only, so it is sent no extensions (D77). */
  readonly plain: boolean
}

/** An effect that the pool decided on and the shell carries out. */
export type Action =
  | { readonly tag: "PersistMember"; readonly row: MemberRow }
  /** Delete the SSP's row and its strays. */
  | { readonly tag: "ForgetMember"; readonly ssp: string }
  | { readonly tag: "PersistView"; readonly row: ViewRow }
  | { readonly tag: "ForgetView"; readonly view: string }
  | { readonly tag: "PersistQuarantine"; readonly row: QuarantineRow }
  | { readonly tag: "ForgetQuarantine"; readonly query: string }
  | { readonly tag: "PersistStray"; readonly row: StrayRow }
  | { readonly tag: "ForgetStray"; readonly row: StrayRow }
  | { readonly tag: "PersistJob"; readonly row: JobRow }
  | { readonly tag: "ForgetJob"; readonly job: string }
  /**
   * Stores the result of a job, which is kept after the job itself as long as there is room; undefined deletes the
   * result.
   */
  | { readonly tag: "PersistResult"; readonly job: string; readonly result: JobResult | undefined }
  /** Take, or give up, a read snapshot of the replica. */
  | { readonly tag: "Freeze"; readonly id: number; readonly seq: number }
  | { readonly tag: "Thaw"; readonly id: number }
  /** Sync the replica, then drop the log below `keepFrom`; end with `Trimmed` and `Checkpointed`. */
  | { readonly tag: "Checkpoint"; readonly keepFrom: number }
  | ({ readonly tag: "Poll" } & ToSsp)
  | ({ readonly tag: "Deliver"; readonly from: number; readonly to: number } & ToSsp)
  /** `/view/register` or `/view/unregister` on the SSP, with the assignment (D21). */
  | ({
      readonly tag: "CallRegister"
      readonly op: number
      readonly view: string
      readonly assignment: number
      readonly spec: ViewSpec
    } & ToSsp)
  /**
   * `gone`: the view was unregistered or has expired; otherwise another SSP has it or will get it, and its rows in the
   * database stay.
   */
  | ({
      readonly tag: "CallUnregister"
      readonly op: number
      readonly view: string
      readonly assignment: number
      readonly gone: boolean
    } & ToSsp)
  | ({
      readonly tag: "ExecuteJob"
      readonly op: number
      readonly job: string
      readonly table: string
      readonly created: number | undefined
    } & ToSsp)
  /**
   * Delete all rows that a database holds of the view, of every writer. Answer with `ViewCleared` once done, however
   * long it takes.
   */
  | { readonly tag: "ClearView"; readonly op: number; readonly view: string }
  /** Find the last activity of a view and answer with `ActivityFound`; without a database, with the time given. */
  | { readonly tag: "AskActivity"; readonly view: string; readonly lastActiveAt: number }
  | { readonly tag: "Reply"; readonly ref: number; readonly reply: Reply }
  | { readonly tag: "Log"; readonly level: "info" | "warn" | "error"; readonly message: string }
