/**
 * The states of a job, in both vocabularies, and what may lead from one to another.
 *
 * The job record and the job result name the same states differently (specification, job status); everything inside
 * speaks the record's words, and only reports are translated. The table is total: a missing cell does not
 * compile.
 */
export type JobStatus = "pending" | "processing" | "success" | "failed"

/** As `/job/result` says it. */
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
 * `Claimed`: a runner holds it now. `AttemptFailed`: a call failed, another comes. `GaveUp`: a call failed, none comes.
 * `Released`: its runner stops before it has called. `Retried`, `Cancelled`: by an operator.
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
  // A claim on one that is processing takes it over from a runner that is gone; whether it is, the lease says.
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

/** Where `event` leads from `status`; undefined where it must not happen. */
export const next = (status: JobStatus, event: JobEvent): JobStatus | undefined => {
  const cell: Cell = table[status][event]
  return cell === "refused" ? undefined : cell
}

/** Whether nothing more happens to it by itself. */
export const isOver = (status: JobStatus): boolean => status === "success" || status === "failed"
