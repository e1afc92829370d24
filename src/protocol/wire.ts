/**
 * Every resource of the SSP's API, in the specification's order, as Schemas.
 *
 * Declarations only: the server, the client, the OpenAPI document and the tests derive from them. Names are the
 * specification's; additions are marked as extensions.
 */
import { Schema } from "effect"
import * as Examples from "./examples.ts"

/** Option to report all faults of a body, not only the first. */
export const reportAllFaults = { parseOptions: { errors: "all" } } as const

export const text = Schema.String.annotations({ message: () => ({ message: "must be a string", override: true }) })

/** A text that is not empty. An issue names the field by its path. */
export const nonEmptyText = text.pipe(Schema.filter((value) => value !== "" || "must not be empty"))

/** Any JSON object. */
export const JsonObject = Schema.Record({ key: Schema.String, value: Schema.Unknown })
  .pipe(Schema.filter((value) => !Array.isArray(value)))
  .annotations({ message: () => ({ message: "must be an object", override: true }), identifier: "JsonObject" })

export const count = Schema.Int.pipe(Schema.nonNegative())

// Record change

/** `op` in any letter case (D3). */
export const RecordChange = Schema.Struct({
  table: nonEmptyText,
  op: Schema.String.annotations({ description: "CREATE, UPDATE or DELETE" }),
  id: Schema.String.annotations({ description: "<table>:<key>" }),
  record: JsonObject.annotations({ description: "The whole new record; ignored for DELETE" }),
  types: Schema.optional(Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.String }))).annotations({
    description: "Extension (D1): type by path"
  }),
  seq: Schema.optional(Schema.NullOr(count)).annotations({
    description: "Extension (D5): position in the scheduler's log"
  }),
  log_id: Schema.optional(Schema.NullOr(Schema.String)).annotations({ description: "Extension (D5)" }),
  epoch: Schema.optional(Schema.NullOr(count)).annotations({ description: "Extension (D5)" }),
  job_assignee: Schema.optional(Schema.NullOr(Schema.String)).annotations({
    description: "Extension (D5): SSP that runs the job"
  }),
  step_continues: Schema.optional(Schema.NullOr(Schema.Boolean)).annotations({
    description: "Extension (D44): the change at the next position belongs to the same step; views show both at once"
  }),
  traceparent: Schema.optional(Schema.NullOr(Schema.String)).annotations({
    description:
      "Extension: W3C trace context of this change, where a request carries changes of several; one that is malformed is ignored"
  })
}).annotations({ ...reportAllFaults, identifier: "RecordChange", examples: [Examples.change] })

/** One change, or several applied in order as one step (extension, D5). */
export const Ingest = Schema.Union(
  RecordChange,
  Schema.NonEmptyArray(RecordChange).annotations({ examples: [Examples.changes] })
).annotations({ ...reportAllFaults, identifier: "Ingest" })

// View registration

export const formats = ["flat", "tree", "streaming"] as const

export const Format = Schema.Literal(...formats).annotations({
  identifier: "Format",
  message: () => ({ message: `must be one of ${formats.join(", ")}`, override: true })
})

export const isFormat = Schema.is(Format)

/** Format of a stream: a format of results, or `rows` with the changes of each row (D50). */
export const StreamFormat = Schema.Literal(...formats, "rows").annotations({
  identifier: "StreamFormat",
  message: () => ({ message: `must be one of ${formats.join(", ")}, rows`, override: true })
})

/**
 * `ttl`, `lastActiveAt` and `idleMs` are parsed in `ssp/http/HttpRegistration.ts`, which also writes the messages of
 * their faults.
 */
export const ViewRegistration = Schema.Struct({
  id: nonEmptyText.annotations({ description: "incantation:<key>" }),
  surql: nonEmptyText.annotations({ description: "The query to materialize" }),
  clientId: text,
  ttl: text.annotations({ description: "Time to live: 30s, 10m, 1h30m, 1d; units ns us µs ms s m h d w y" }),
  params: Schema.optional(Schema.NullOr(JsonObject)),
  lastActiveAt: Schema.optional(text.annotations({ description: "ISO 8601; absent means now" })),
  format: Schema.optional(Schema.NullOr(Format)).annotations({ description: "flat when absent or null" }),
  idleMs: Schema.optional(Schema.Number).annotations({
    description:
      "Extension: sent by the scheduler, how long ago the view was last active, in milliseconds; counts instead of `lastActiveAt`, because two machines' clocks may differ"
  }),
  assignment: Schema.optional(count).annotations({
    description: "Extension (D21): sent by the scheduler, grows with every move of the view"
  })
}).annotations({ ...reportAllFaults, identifier: "ViewRegistration", examples: [Examples.viewRegistration] })

export const ViewUnregistration = Schema.Struct({
  id: nonEmptyText,
  assignment: Schema.optional(count).annotations({
    description: "Extension (D21): sent by the scheduler; a view held under a later one stays"
  }),
  deleted: Schema.optional(Schema.NullOr(Schema.Boolean)).annotations({
    description: "Extension: the registration has just been deleted in the database, and its row is not to be written"
  }),
  moved: Schema.optional(Schema.Boolean).annotations({
    description: "Extension (D31): another SSP has the view, or will: what a database holds of it stays"
  })
}).annotations({ ...reportAllFaults, identifier: "ViewUnregistration", examples: [Examples.viewUnregistration] })

export const ViewFreeing = Schema.Struct({
  id: nonEmptyText,
  surql: Schema.optional(Schema.String).annotations({
    description: "Extension: sent by the scheduler, which frees a query whatever the view was called; with `params`"
  }),
  params: Schema.optional(Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.Unknown })))
}).annotations({ ...reportAllFaults, identifier: "ViewFreeing", examples: [Examples.viewUnregistration] })

// SSP registration

const incarnation = Schema.optional(Schema.String).annotations({
  description: "Extension: drawn at every process start; tells an older process with the same id from a newer"
})

export const SspRegistration = Schema.Struct({
  ssp_id: nonEmptyText,
  url: text.pipe(Schema.pattern(/^https?:\/\//)),
  batch: Schema.optional(Schema.Boolean).annotations({ description: "Extension (D5): takes arrays on /ingest" }),
  job_tables: Schema.optional(Schema.Array(Schema.String)).annotations({ description: "Extension (D35)" }),
  tables: Schema.optional(Schema.Array(Schema.String)).annotations({
    description: "Extension (D61): it follows `GET /feed`, at first of these tables; absent: it is sent every event"
  }),
  incarnation
}).annotations({ ...reportAllFaults, identifier: "SspRegistration", examples: [Examples.sspRegistration] })

export const SspRegistered = Schema.Struct({
  snapshot_seq: count,
  registration: Schema.optional(count).annotations({
    description: "Extension: grows with every registration; heartbeats and calls name it"
  }),
  log_id: Schema.optional(Schema.String).annotations({ description: "Extension (D5)" }),
  epoch: Schema.optional(count).annotations({ description: "Extension (D5)" }),
  bootstrap_chunk_size: Schema.optional(count).annotations({
    description: "Extension: records the scheduler wants to be asked for at once"
  }),
  heartbeat_timeout_ms: Schema.optional(count).annotations({
    description: "Extension (D21): after which silence the scheduler gives this SSP up"
  }),
  feed: Schema.optional(Schema.Boolean).annotations({
    description: "Extension (D61): this SSP is sent no events, it follows `GET /feed`"
  })
}).annotations({
  identifier: "SspRegistered",
  examples: [
    {
      snapshot_seq: 42,
      registration: 1,
      log_id: "ae4a2831-2027-47fe-8b53-cf9c97696e8e",
      epoch: 1,
      bootstrap_chunk_size: 1000,
      heartbeat_timeout_ms: 15_000
    }
  ]
})

/**
 * Extension: header of every POST of the scheduler to an SSP, with the SSP's registration; an SSP that is in another
 * registration answers 503.
 */
export const registrationHeader = "svc-registration"

/** Extension (D20): header of every answer of `/proxy/query`, with the position of the data read. */
export const snapshotSeqHeader = "svc-snapshot-seq"

/** Extension: media type of a `/proxy/query` with lossless parameters and answer (`core/surql/values/encode.ts`). */
export const exactType = "application/vnd.svc+json"

/** Extension (D31): an SSP leaves the pool. */
export const SspDeregistration = Schema.Struct({
  ssp_id: nonEmptyText,
  incarnation,
  calling: Schema.optional(Schema.Array(nonEmptyText)).annotations({
    description:
      "Extension: jobs whose calls are under way; another SSP is given them when they are reported, or after 20 s (fixed)"
  })
}).annotations({
  ...reportAllFaults,
  identifier: "SspDeregistration",
  examples: [Examples.sspDeregistration]
})

// Feed

/** Extension (D61): positions that an SSP has applied. */
export const SspApplied = Schema.Struct({
  ssp_id: nonEmptyText,
  registration: count,
  seq: count.annotations({ description: "Everything of its tables up to here is applied" })
}).annotations({ ...reportAllFaults, identifier: "SspApplied", examples: [Examples.sspApplied] })

/** Extension (D61): an SSP's request of a feed. */
export const FeedQuery = Schema.Struct({
  after: Schema.NumberFromString.pipe(Schema.int(), Schema.nonNegative()).annotations({
    description: "Position behind which the events begin",
    message: () => ({ message: "must be a position of the log", override: true })
  }),
  tables: Schema.String.annotations({
    description: "Names with commas between them, each percent-encoded; `*` for all",
    examples: ["likes,post"]
  }),
  registration: Schema.NumberFromString.pipe(Schema.int(), Schema.nonNegative()).annotations({
    description: "Of the SSP that asks",
    message: () => ({ message: "must be the number of a registration", override: true })
  })
})

/** Media type of a feed. */
export const feedType = "application/x-ndjson"

// Heartbeat

export const Heartbeat = Schema.Struct({
  ssp_id: nonEmptyText,
  timestamp: Schema.Number.annotations({ description: "Unix time, seconds" }),
  views: count,
  cpu_usage: Schema.optional(Schema.Number).annotations({
    description: "Percent of one core since the last heartbeat"
  }),
  memory_usage: Schema.optional(Schema.Number).annotations({ description: "Resident megabytes" }),
  incarnation,
  registration: Schema.optional(count).annotations({
    description: "Extension: the registration whose data it has pulled; absent while it pulls"
  }),
  unheard: Schema.optional(Schema.Boolean).annotations({
    description: "Extension: the heartbeat before this one is not answered"
  })
}).annotations({ ...reportAllFaults, identifier: "Heartbeat", examples: [Examples.heartbeat] })

// Log entry

export const logLevels = ["error", "warn", "info", "debug", "trace"] as const

export const LogEntry = Schema.Struct({
  message: text,
  level: Schema.optional(
    Schema.Literal(...logLevels).annotations({
      message: () => ({ message: `must be one of ${logLevels.join(", ")}`, override: true })
    })
  ),
  data: Schema.optional(JsonObject)
}).annotations({ ...reportAllFaults, identifier: "LogEntry", examples: [Examples.logEntry] })

// Monitoring

export const Healthy = Schema.Struct({ status: Schema.Literal("ready") }).annotations({
  identifier: "Healthy",
  examples: [{ status: "ready" }]
})
export const Unhealthy = Schema.Struct({ status: Schema.Literal("bootstrapping", "failed") }).annotations({
  identifier: "Unhealthy",
  examples: [{ status: "bootstrapping" }]
})

export const Version = Schema.Struct({
  version: Schema.String,
  mode: Schema.Literal("standalone", "scheduler")
}).annotations({ identifier: "Version", examples: [{ version: "0.1.0", mode: "standalone" }] })

export const Info = Schema.Array(
  Schema.Struct({
    entity: Schema.Literal("ssp", "scheduler"),
    id: Schema.String,
    status: Schema.String,
    views: count,
    fault: Schema.optional(Schema.String).annotations({
      description: "Extension: why this SSP is given nothing; absent where it is well"
    })
  })
).annotations({ identifier: "Info", examples: [Examples.info] })

export const RowError = Schema.Struct({ id: Schema.String, reason: Schema.String })

const warnings = Schema.optional(Schema.Array(Schema.String)).annotations({
  description: "Extension (D57): why the view does not follow each write"
})

export const DebugView = Schema.Struct({
  view_id: Schema.String,
  cache_size: count,
  last_hash: Schema.String,
  format: Schema.NullOr(Schema.String),
  cache: Schema.Array(Schema.Struct({ key: Schema.String, version: Schema.Number, weight: Schema.Number })),
  subquery_tables: Schema.Array(Schema.String),
  referenced_tables: Schema.Array(Schema.String),
  content_generation: count,
  subquery_cache: Schema.Record({
    key: Schema.String,
    value: Schema.Record({ key: Schema.String, value: Schema.Array(Schema.String) })
  }),
  plan: Schema.Array(
    Schema.Struct({
      operator: Schema.String,
      incremental: Schema.Boolean,
      reason: Schema.NullOr(Schema.String),
      rows: Schema.Number,
      last_cost: Schema.Number,
      total_cost: Schema.Number
    })
  ).annotations({ description: "Extension (D13): operators, and why one is recomputed" }),
  errors: Schema.Array(RowError).annotations({ description: "Extension (D2a): rows left out" }),
  warnings,
  edges_refused: Schema.optional(Schema.Struct({ count, edge: Schema.String, reason: Schema.String })).annotations({
    description:
      "Extension (D21): edges that the database has refused, the record of one of them and why; they are tried again"
  }),
  quarantined: Schema.optional(Schema.Struct({ ends: count, last: Schema.String })).annotations({
    description: "Extension (D48): the view is set aside, nothing of it is held"
  })
}).annotations({ identifier: "DebugView", examples: [Examples.debugView] })

export const DebugDeps = Schema.Struct({
  dependency_map: Schema.Record({ key: Schema.String, value: Schema.Array(Schema.String) }),
  tables_in_store: Schema.Array(Schema.String),
  view_count: count,
  shapes: Schema.Array(Schema.Struct({ shape: Schema.String, instances: count })).annotations({
    description: "Extension"
  })
}).annotations({ identifier: "DebugDeps", examples: [Examples.debugDeps] })

// Success bodies the specification leaves open

export const Ingested = Schema.Struct({ views_affected: count, edges_updated: count }).annotations({
  identifier: "Ingested",
  examples: [Examples.ingested],
  description: "D7"
})

export const Ok = Schema.Struct({ status: Schema.Literal("ok") }).annotations({
  identifier: "Ok",
  examples: [{ status: "ok" }],
  description: "D7"
})

const shown = { query_id: Schema.String, format: Format, result_hash: Schema.String, content_generation: count }

export const ViewPlaced = Schema.Struct({
  ...shown,
  tables: Schema.optional(Schema.Array(Schema.String)).annotations({
    description: "Tables that the view has read, those behind links among them (D65)"
  })
}).annotations({
  identifier: "ViewPlaced",
  description:
    "Extension (D21): of a registration with `assignment`. The scheduler reads no results, so that none is sent, however large"
})

export const ViewResult = Schema.Struct({
  ...shown,
  result_data: Schema.Unknown,
  errors: Schema.optional(Schema.Array(RowError)).annotations({ description: "Extension (D2a): rows left out" }),
  warnings
}).annotations({
  identifier: "ViewResult",
  examples: [Examples.viewResult],
  description: "D8. flat, streaming: [[record id, version], ...]; tree: the rows"
})
