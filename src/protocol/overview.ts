/**
 * Monitoring for operators, as Schemas: pages of views, and an overview of each server that is cheap enough to poll
 * every second (extensions).
 *
 * Counts only grow, so two readings give rates and percentiles of the time in between, and the server keeps no state
 * per reader.
 */
import { Schema } from "effect"
import * as Examples from "./examples.ts"
import { SharedLog } from "./sharedLog.ts"
import { count, Format } from "./wire.ts"

const { Array: list, NullOr, Number: number, String: string, Struct: struct } = Schema

const seconds = number.annotations({ description: "Seconds" })

/** Histogram of the durations of `/ingest` answers, or of steps of the feed, since the start. */
export const Latency = struct({
  bounds_ms: list(number).annotations({
    description: "Upper bounds of the buckets, milliseconds; one more bucket takes the rest"
  }),
  counts: list(count).annotations({ description: "Answers, or steps, per bucket" })
}).annotations({ identifier: "Latency" })

/** Processor time and memory that this process has used; null where unknown. */
export const ResourceUse = NullOr(struct({ cpu_seconds: seconds, memory_megabytes: number })).annotations({
  identifier: "Used"
})

// Views

/** Most views in one page of a listing. */
export const maxListedViews = 500

const limit = Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, maxListedViews)).annotations({
  message: () => ({ message: `must be a whole number from 1 to ${maxListedViews}`, override: true })
})

export const ViewListing = {
  after: Schema.optional(string).annotations({ description: "Id to go on behind" }),
  limit: Schema.optional(limit).annotations({ description: "100 when absent" }),
  search: Schema.optional(string).annotations({
    description: "Part of the id, the client or the query, in any letter case"
  }),
  order: Schema.optional(
    Schema.Literal("id", "cost").annotations({
      description: "`cost`: those whose changes have cost most, most first, one page; by id when absent",
      message: () => ({ message: "must be one of id, cost", override: true })
    })
  )
}

const listed = {
  id: string,
  query: string,
  params: Schema.Unknown,
  format: Format,
  client_id: string,
  ttl_seconds: seconds,
  last_active_at: string
}

/** A view in the list of the SSP that maintains it. */
export const ListedView = struct({
  ...listed,
  rows: count,
  errors: count.annotations({ description: "Rows left out because an expression fails on them" }),
  generation: count,
  last_cost: number.annotations({ description: "Work of the last change that reached it, in rows" }),
  total_cost: number,
  streams: count.annotations({ description: "Streams that follow it now" }),
  incremental: Schema.Boolean
}).annotations({ identifier: "ListedView" })

export const ListedViews = struct({
  views: list(ListedView),
  total: count.annotations({ description: "Of all that are registered" }),
  next: NullOr(string).annotations({ description: "Id to go on behind; null when there are no more" })
}).annotations({ identifier: "ListedViews", examples: [Examples.listedViews] })

/** A view in the scheduler's list. */
export const AssignedView = struct({
  ...listed,
  owner: NullOr(string).annotations({ description: "SSP id; null while it waits for one" }),
  state: Schema.Literal("placed", "moving", "waiting", "suspect", "quarantined").annotations({
    description: "suspect: its SSP refuses connections, and is removed if it still does"
  }),
  assigned_at: count.annotations({ description: "Unix time, seconds" }),
  total_cost: Schema.optional(number).annotations({ description: "As its SSP has it, where that was asked for" })
}).annotations({ identifier: "AssignedView" })

export const AssignedViews = struct({ views: list(AssignedView), total: count, next: NullOr(string) }).annotations({
  identifier: "AssignedViews",
  examples: [Examples.assignedViews]
})

// Overviews

/** Quarantined queries (D48), by the views that have them. */
export const Quarantined = list(
  struct({
    id: string,
    query: NullOr(string).annotations({ description: "Null where no registration of it is stored" }),
    ends: count.annotations({ description: "Processes that ended while they evaluated it" }),
    last: string.annotations({ description: "When the last did" })
  })
).annotations({ identifier: "Quarantined", description: "Set aside until `POST /view/free`" })

const common = {
  id: string,
  version: string,
  status: string,
  uptime_seconds: seconds,
  used: ResourceUse,
  ingest: Latency,
  warnings: list(string).annotations({
    description: "Tables of the database whose views do not follow each write, and a change table that is not taken"
  })
}

export const SspOverview = struct({
  ...common,
  mode: Schema.Literal("standalone", "scheduler"),
  store: string,
  writes: count.annotations({ description: "Record writes since the store was made" }),
  feed: NullOr(Latency).annotations({
    description: "Changes of the scheduler's feed, from when they came until applied; null where changes are sent"
  }),
  seq: NullOr(count).annotations({ description: "Position in the scheduler's log" }),
  views: count,
  max_views: count,
  streams: count,
  max_streams: count,
  records: count,
  record_bytes: count.annotations({ description: "What all records take in memory, about" }),
  tables: list(
    struct({
      table: string,
      records: count,
      bytes: count.annotations({
        description:
          "What its records take in memory, about: of the first 256 each is weighed, of later ones one in 16. Indexes and views come on top"
      })
    })
  ).annotations({ description: "Those that take most, at most 50" }),
  pending: struct({ changes: count, max_changes: count, edges: count, max_edges: count }),
  quarantined: Quarantined,
  jobs: list(
    struct({
      table: string,
      queued: count,
      running: count,
      waiting: count.annotations({ description: "For their next attempt" })
    })
  )
}).annotations({ identifier: "SspOverview", examples: [Examples.sspOverview] })

export const SspSummary = struct({
  id: string,
  url: string,
  state: Schema.Literal("bootstrapping", "replaying", "ready", "suspect", "overflowed"),
  state_seconds: seconds,
  heard_seconds: seconds,
  acked: count.annotations({ description: "Position it is known to have applied" }),
  waiting: count.annotations({ description: "Events it lacks" }),
  in_flight: count,
  failures: count.annotations({ description: "Failed deliveries in a row" }),
  late: Schema.Boolean,
  views: count,
  jobs: count,
  cpu_usage: NullOr(number),
  memory_usage: NullOr(number),
  job_tables: NullOr(list(string)),
  tables: NullOr(list(string)).annotations({
    description:
      "Whose records it holds, or will for a view that it was given (D61); `*`: all of them. Null: it is sent every change, and holds all records"
  })
}).annotations({ identifier: "SspSeen" })

export const SchedulerOverview = struct({
  ...common,
  seq: count.annotations({ description: "Last position of the log" }),
  log: struct({ first: count, events: count, id: string, epoch: count }),
  shared_log: Schema.optional(SharedLog),
  snapshot: NullOr(struct({ seq: count, age_seconds: seconds, owners: list(string) })).annotations({
    description: "Frozen for SSPs that bootstrap; null when no snapshot is"
  }),
  checkpointing: Schema.Boolean,
  clone: NullOr(struct({ walk: count, table: string, compared: count, written: count })),
  max_buffer_per_ssp: count,
  ssps: list(SspSummary),
  views: count,
  views_waiting: count,
  quarantined: Quarantined,
  jobs: count.annotations({ description: "Not finished" }),
  jobs_waiting: count.annotations({ description: "No SSP has been told of them" }),
  job_tables: list(string).annotations({ description: "Configured here or named by an SSP" })
}).annotations({ identifier: "SchedulerOverview", examples: [Examples.schedulerOverview] })
