/**
 * Resources of the scheduler alone: assignments, job tracking, metrics, the proxy's queries, as Schemas.
 *
 * Resources that both servers have are in `wire.ts`. Names are the specification's; additions are marked as extensions.
 */
import { Schema } from "effect"
import * as Examples from "./examples.ts"
import { Tasks } from "./progress.ts"
import { SharedLog } from "./sharedLog.ts"
import { count, JsonObject, nonEmptyText, reportAllFaults, text } from "./wire.ts"

export const SchedulerIngested = Schema.Struct({
  seq: count.annotations({ description: "Position of the last change in the log" }),
  delivered: count.annotations({ description: "Ready SSPs that have applied it" })
}).annotations({ identifier: "SchedulerIngested", examples: [Examples.schedulerIngested], description: "D7" })

// Proxy

export const ProxyQuery = Schema.Struct({
  query: text.annotations({
    description:
      "SELECT, INFO FOR DB, INFO FOR TABLE, RETURN; several separated by `;`. Of a table that holds records and is not declared, INFO FOR TABLE answers `declared: false`: its records are typed by what came (D1)"
  }),
  params: Schema.optional(Schema.NullOr(JsonObject)).annotations({ description: "Extension (D20)" })
}).annotations({ ...reportAllFaults, identifier: "ProxyQuery", examples: [Examples.proxyQuery] })

// Views

export const ViewAssignment = Schema.Struct({
  query_id: Schema.String,
  ssp_id: Schema.String,
  assigned_at: Schema.Int.annotations({ description: "Unix time, seconds" })
}).annotations({ identifier: "ViewAssignment", examples: [Examples.viewAssignment] })

/**
 * An operator's request to free the query of this view from quarantine (D48). It contains nothing for the SSPs: the
 * scheduler makes the calls to them.
 */
export const ViewFreed = Schema.Struct({ id: Schema.String.pipe(Schema.minLength(1)) }).annotations({
  identifier: "ViewFreed",
  examples: [Examples.viewUnregistration]
})

/** A plan is the query's text, or the fields of a view registration without `id` (D33). */
export const QueryRegistration = Schema.Struct({
  query_id: nonEmptyText,
  view_plan: Schema.Union(Schema.String, JsonObject).annotations({
    message: () => ({ message: "must be the text of a query or an object", override: true })
  })
}).annotations({ ...reportAllFaults, identifier: "QueryRegistration", examples: [Examples.queryRegistration] })

export const QueryRegistered = Schema.Struct({ ssp_id: Schema.String, ssp_url: Schema.String }).annotations({
  identifier: "QueryRegistered",
  examples: [Examples.queryRegistered],
  description: "D33"
})

// Jobs

export const JobDispatch = Schema.Struct({
  job_id: nonEmptyText,
  table: nonEmptyText,
  payload: Schema.Struct({ path: text, body: JsonObject })
}).annotations({ ...reportAllFaults, identifier: "JobDispatch", examples: [Examples.jobExecution] })

export const jobStatuses = ["pending", "running", "completed", "failed"] as const

export const JobResult = Schema.Struct({
  job_id: nonEmptyText,
  status: Schema.Literal(...jobStatuses).annotations({
    message: () => ({ message: `must be one of ${jobStatuses.join(", ")}`, override: true })
  }),
  result: Schema.optional(Schema.NullOr(JsonObject)),
  error: Schema.optional(Schema.NullOr(text)),
  errors: Schema.optional(Schema.Array(JsonObject)).annotations({
    description: "Extension (D36): every failed attempt"
  }),
  created_seq: Schema.optional(count).annotations({
    description: "Extension (D74): which job of this id, as `/job/execute` or the position of its change named it"
  }),
  ssp_id: Schema.optional(text).annotations({
    description: "Extension (D36): the SSP that reports; an SSP that no longer has the job can only report success"
  })
}).annotations({ ...reportAllFaults, identifier: "JobResult", examples: [Examples.jobResult] })

// Monitoring

export const SchedulerHealthy = Schema.Struct({ status: Schema.Literal("healthy") }).annotations({
  identifier: "SchedulerHealthy",
  examples: [{ status: "healthy" }]
})
export const SchedulerUnavailable = Schema.Struct({ status: Schema.Literal("unavailable") }).annotations({
  identifier: "SchedulerUnavailable",
  examples: [{ status: "unavailable" }]
})

export const SchedulerMetrics = Schema.Struct({
  scheduler: Schema.Struct({
    total_ssps: count,
    ready_ssps: count,
    total_queries: count,
    running_jobs: count,
    uptime_seconds: Schema.Number
  }),
  ssps: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      query_count: count,
      views: count,
      cpu_usage: Schema.Number,
      memory_usage: Schema.Number,
      last_heartbeat_seconds_ago: Schema.Number
    })
  )
}).annotations({ identifier: "SchedulerMetrics", examples: [Examples.schedulerMetrics] })

export const Progress = Schema.Struct({
  state: Schema.String.annotations({
    description: "cloning, ready, frozen or updating (D30); standby: another scheduler leads"
  }),
  seq: count.annotations({ description: "Position through which the log is applied" }),
  tasks: Tasks.annotations({ description: "Long work that goes on now" }),
  clone: Schema.NullOr(
    Schema.Struct({ walk: count, table: Schema.String, compared: count, written: count })
  ).annotations({ description: "While cloning" }),
  ssps: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      status: Schema.String,
      waiting: count.annotations({ description: "Events it lacks" })
    })
  ),
  log: Schema.optional(SharedLog)
}).annotations({ identifier: "Progress", examples: [Examples.schedulerProgress], description: "Extension (D34)" })
