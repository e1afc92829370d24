/**
 * The states of a job, in both vocabularies, and the transitions between them.
 *
 * The job record and the job result name the same states differently (specification, job status); the code uses the
 * record's names, and only reports are translated. The table is total: a missing cell does not compile.
 */
export type JobStatus = "pending" | "processing" | "success" | "failed"

/** Status in `/job/result`. */
export type ResultStatus = "pending" | "running" | "completed" | "failed"

export const statuses = ["pending", "processing", "success", "failed"] as const satisfies ReadonlyArray<JobStatus>

const toResult = {
  pending: "pending",
  processing: "running",
  success: "completed",
  failed: "failed"
} as const satisfies { readonly [status in JobStatus]: ResultStatus }
const fromResult = {
  pending: "pending",
  running: "processing",
  completed: "success",
  failed: "failed"
} as const satisfies { readonly [status in ResultStatus]: JobStatus }

export const asResult = (status: JobStatus): ResultStatus => toResult[status]
export const ofResult = (status: ResultStatus): JobStatus => fromResult[status]

export const isStatus = (text: unknown): text is JobStatus => typeof text === "string" && Object.hasOwn(toResult, text)

/**
 * `Claimed`: a runner has taken it. `AttemptFailed`: a call failed, another follows. `GaveUp`: a call failed, none
 * follows. `Released`: its runner stopped before calling. `Retried`, `Cancelled`: by an operator.
 */
export type JobEvent = "Claimed" | "Succeeded" | "AttemptFailed" | "GaveUp" | "Released" | "Retried" | "Cancelled"

type Cell = JobStatus | "refused"

export const table = {
  pending: {
    Claimed: "processing",
    Succeeded: "refused",
    AttemptFailed: "refused",
    GaveUp: "refused",
    Released: "pending",
    Retried: "refused",
    Cancelled: "failed"
  },
  // A claim of a processing job takes it over from a lost runner; its lease tells whether the runner is lost.
  processing: {
    Claimed: "processing",
    Succeeded: "success",
    AttemptFailed: "processing",
    GaveUp: "failed",
    Released: "pending",
    Retried: "refused",
    Cancelled: "failed"
  },
  success: {
    Claimed: "refused",
    Succeeded: "refused",
    AttemptFailed: "refused",
    GaveUp: "refused",
    Released: "refused",
    Retried: "refused",
    Cancelled: "refused"
  },
  failed: {
    Claimed: "refused",
    Succeeded: "refused",
    AttemptFailed: "refused",
    GaveUp: "refused",
    Released: "refused",
    Retried: "pending",
    Cancelled: "refused"
  }
} as const satisfies { readonly [status in JobStatus]: { readonly [event in JobEvent]: Cell } }

/** Status after `event`; undefined if the event must not happen in `status`. */
export const next = (status: JobStatus, event: JobEvent): JobStatus | undefined => {
  const cell: Cell = table[status][event]
  return cell === "refused" ? undefined : cell
}

/** Whether the job has ended, unless an operator acts. */
export const isOver = (status: JobStatus): boolean => status === "success" || status === "failed"
