/**
 * Jobs on the wire: assigning one to an SSP, and operating on jobs that have failed (extensions).
 */
import { Schema } from "effect"
import { statuses } from "../core/job/status.ts"
import * as Examples from "./examples.ts"

const every = { parseOptions: { errors: "all" } } as const

const text = Schema.String.annotations({ message: () => ({ message: "must be a string", override: true }) })

/** The body of the scheduler's job dispatch (specification). */
export const JobExecution = Schema.Struct({
  job_id: text.annotations({ description: "Job record id" }),
  table: text,
  payload: Schema.Struct({ path: text, body: Schema.optional(Schema.Unknown) }),
  created_seq: Schema.optional(Schema.NonNegativeInt).annotations({
    description: "Which job of this id (D74): position in the log of the change that made it; reports name it"
  }),
  max_retries: Schema.optional(Schema.Unknown).annotations({ description: "As the record has it" }),
  retry_strategy: Schema.optional(Schema.Unknown).annotations({ description: "As the record has it" }),
  errors: Schema.optional(Schema.Unknown).annotations({
    description: "Failed attempts so far, which count and may say when the next one is due (D38)"
  })
}).annotations({ ...every, identifier: "JobExecution", examples: [Examples.jobExecution] })

export const JobAccepted = Schema.Struct({ status: Schema.Literal("accepted") }).annotations({
  identifier: "JobAccepted",
  examples: [{ status: "accepted" }]
})

export const JobStatus = Schema.Literal(...statuses).annotations({
  identifier: "JobStatus",
  message: () => ({ message: `must be one of ${statuses.join(", ")}`, override: true })
})

export const Job = Schema.Struct({
  id: Schema.String,
  table: Schema.String,
  status: JobStatus,
  path: Schema.String,
  payload: Schema.Unknown,
  result: Schema.Unknown.annotations({
    description: "What the backend answered, an object; null where that is not known (any more), or was no JSON"
  }),
  max_retries: Schema.Number,
  retry_strategy: Schema.Literal("linear", "exponential"),
  errors: Schema.Array(Schema.Unknown),
  updated_at: Schema.NullOr(Schema.String),
  holder: Schema.NullOr(Schema.String).annotations({
    description: "The SSP that runs it, or did when it was last written"
  }),
  held_until: Schema.NullOr(Schema.String)
}).annotations({ identifier: "Job", examples: [Examples.job] })

/** Jobs that changed last come first. `next`: `after` of the page that follows; null when there is none. */
export const JobList = Schema.Struct({
  jobs: Schema.Array(Job),
  next: Schema.NullOr(Schema.String).annotations({
    description: "`after` of the page that follows; null when there is none"
  })
}).annotations({ identifier: "JobList", examples: [Examples.jobList] })

/** Most jobs in one page of a listing. */
export const maxListed = 1000

export const JobListing = Schema.Struct({
  table: Schema.String.annotations({ examples: [Examples.jobTable] }),
  status: Schema.optional(JobStatus),
  after: Schema.optional(Schema.String).annotations({ description: "`next` of the page before, or a job's id" }),
  limit: Schema.optional(
    Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, maxListed)).annotations({
      message: () => ({ message: `must be a whole number from 1 to ${maxListed}`, override: true })
    })
  )
})

export type JobWords = typeof Job.Type
