/**
 * One example of everything on the wire, all of one story: cars, a view of the strongest from Europe, and a mail to be
 * sent.
 *
 * The examples are annotations of the schemas, so that the OpenAPI documents, pages for trying requests and generated
 * clients have them. A test sends each to running nodes and compares the answers with the examples.
 */

export const viewId = "incantation:strong"
export const jobId = "mail_job:1"
export const jobTable = "mail_job"

const surql = "SELECT id, Name, Horsepower FROM cars WHERE Origin = $from ORDER BY Horsepower DESC LIMIT 3"
const params = { from: "Europe" }
const at = "2026-03-01T09:30:00.000Z"
const hash = "161390a6f3f52bbfc149a02e82636fa886d5c74d4b904b1dbece6d069b13a405"

// Changes in

export const change = {
  table: "cars",
  op: "CREATE",
  id: "cars:gt",
  record: { Name: "a fast one", Origin: "Europe", Horsepower: 300 }
} as const

export const changes = [
  { table: "cars", op: "UPDATE", id: "cars:gt", record: { Name: "a fast one", Origin: "Europe", Horsepower: 310 } },
  {
    table: jobTable,
    op: "CREATE",
    id: jobId,
    record: {
      path: "/send",
      payload: { to: "ada@example.com" },
      status: "pending",
      max_retries: 0,
      retries: 0,
      retry_strategy: "linear",
      errors: []
    }
  }
] as const

export const ingested = { views_affected: 1, edges_updated: 1 } as const
export const schedulerIngested = { seq: 42, delivered: 2 } as const
export const logEntry = { message: "deployed", level: "info", data: { by: "ada" } } as const

// Queries and views

export const proxyQuery = { query: "SELECT Name FROM cars WHERE Horsepower > $least", params: { least: 200 } } as const
export const queryResult = [{ Name: "a fast one" }] as const

export const viewRegistration = { id: viewId, surql, clientId: "me", ttl: "1h", params, format: "tree" } as const
export const viewUnregistration = { id: viewId } as const
export const queryRegistration = {
  query_id: viewId,
  view_plan: { surql, params, clientId: "me", ttl: "1h", format: "tree" }
} as const
export const queryRegistered = { ssp_id: "ssp-1", ssp_url: "http://127.0.0.1:8667" } as const
export const viewAssignment = { query_id: viewId, ssp_id: "ssp-1", assigned_at: 1772357400 } as const
export const viewResult = {
  query_id: viewId,
  format: "tree",
  result_hash: "8b84d0314d06935d",
  content_generation: 2,
  result_data: [{ id: "cars:gt", Name: "a fast one", Horsepower: 300 }]
} as const

export const streamDelta = {
  seq: 42,
  additions: [["cars:gtx", 1]],
  updates: [],
  removals: ["cars:old"],
  subqueries: [],
  result_hash: "5f1d7a84db00d2fc"
} as const

export const rowsSnapshot = {
  query_id: viewId,
  part: 0,
  parts: 1,
  rows: [{ id: "cars:gt", Name: "a fast one", Horsepower: 300 }],
  only: false,
  result_hash: "8b84d0314d06935d"
} as const

export const rowsDelta = {
  result_hash: "5f1d7a84db00d2fc",
  remove: [2],
  insert: [[0, { id: "cars:gtx", Name: "a faster one", Horsepower: 320 }]],
  update: [[1, { id: "cars:gt", Name: "the fast one", Horsepower: 300 }]]
} as const

const event = (name: string, id: string | undefined, data: unknown): string =>
  `event: ${name}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`

export const eventStream = [
  event("snapshot", "m1x2-0.2", viewResult),
  event("delta", "m1x2-0.3", streamDelta),
  event("end", undefined, { reason: "moved" })
].join("")

export const rowsStream = [
  event("snapshot", "m1x2-0.2", rowsSnapshot),
  event("delta", "m1x2-0.3", rowsDelta),
  event("end", undefined, { reason: "moved" })
].join("")

export const streamId = "4f1c0b6e8a2d4c7f9b3e5d6a7c8b9e0f"

/** A stream of two views: the first follows, the second does not exist. */
export const multiStream = [
  event("open", undefined, { stream: streamId }),
  `view: 0\n${event("snapshot", "m1x2-0.2", rowsSnapshot)}`,
  `view: 1\n${event("refused", undefined, { code: "VIEW_NOT_FOUND", message: 'no view is registered under "gone"' })}`,
  `view: 0\n${event("delta", "m1x2-0.3", rowsDelta)}`
].join("")

const listed = {
  id: viewId,
  query: surql,
  params,
  format: "tree",
  client_id: "me",
  ttl_seconds: 3600,
  last_active_at: at
} as const
export const listedViews = {
  views: [{ ...listed, rows: 1, errors: 0, generation: 2, last_cost: 1, total_cost: 1, streams: 0, incremental: true }],
  total: 1,
  next: null
} as const
export const assignedViews = {
  views: [{ ...listed, owner: "ssp-1", state: "placed", assigned_at: 1772357400 }],
  total: 1,
  next: null
} as const

const operator = { incremental: true, reason: null, rows: 1, last_cost: 1, total_cost: 1 } as const
export const debugView = {
  view_id: viewId,
  cache_size: 1,
  last_hash: "8b84d0314d06935d",
  format: "tree",
  cache: [{ key: "cars:gt", version: 1, weight: 1 }],
  subquery_tables: [],
  referenced_tables: ["cars"],
  content_generation: 2,
  subquery_cache: {},
  plan: ["source cars", "index Origin", "window", "project"].map((name) => ({ operator: name, ...operator })),
  errors: []
}
export const debugDeps = {
  dependency_map: { cars: [viewId] },
  tables_in_store: ["cars", jobTable],
  view_count: 1,
  shapes: [
    {
      shape: "SELECT id, Name, Horsepower FROM cars WHERE Origin = $`_0` ORDER BY Horsepower DESC LIMIT $`_1`",
      instances: 1
    }
  ]
} as const

// SSPs

export const sspRegistration = { ssp_id: "ssp-9", url: "http://127.0.0.1:8669", batch: true } as const
export const heartbeat = {
  ssp_id: "ssp-9",
  timestamp: 1772357400,
  views: 0,
  cpu_usage: 3.4,
  memory_usage: 146.1
} as const
export const sspApplied = { ssp_id: "ssp-9", registration: 7, seq: 42 } as const
export const feedLines = `{"table":"likes","op":"CREATE","id":"likes:7","record":{"post":"post:1","_svc_rv":1},"seq":43,"log_id":"ae4a2831-2027-47fe-8b53-cf9c97696e8e","epoch":1,"prev":40}
{"through":90,"log_id":"ae4a2831-2027-47fe-8b53-cf9c97696e8e","epoch":1}
`
export const sspDeregistration = { ssp_id: "ssp-9" } as const

// Jobs

export const jobExecution = {
  job_id: "mail_job:2",
  table: jobTable,
  payload: { path: "/send", body: { to: "ada@example.com" } }
} as const
export const jobResult = { job_id: "mail_job:2", status: "completed", result: { sent: true } } as const
export const job = {
  id: jobId,
  table: jobTable,
  status: "failed",
  path: "/send",
  payload: { to: "ada@example.com" },
  max_retries: 0,
  retry_strategy: "linear",
  errors: [{ at, attempt: 1, code: 503, reason: "the backend answered 503" }],
  result: null,
  updated_at: at,
  holder: null,
  held_until: null
} as const
export const jobList = { jobs: [job], next: null } as const

// Monitoring

export const info = [
  { entity: "scheduler", id: "scheduler", status: "ready", views: 1 },
  { entity: "ssp", id: "ssp-1", status: "ready", views: 1 }
] as const

const common = {
  version: "0.1.0",
  status: "ready",
  uptime_seconds: 2.855,
  used: { cpu_seconds: 0.73, memory_megabytes: 142.7 },
  ingest: {
    bounds_ms: [0.1, 0.15, 0.25, 0.4, 0.6, 1, 1.5, 2.5, 4, 6, 10],
    counts: [0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]
  },
  warnings: []
} as const
export const sspOverview = {
  id: "ssp-1",
  ...common,
  mode: "standalone",
  store: "memory:// (nothing is kept)",
  writes: 6,
  feed: null,
  seq: null,
  views: 1,
  max_views: 100_000,
  streams: 0,
  max_streams: 1000,
  records: 2,
  record_bytes: 800,
  tables: [
    { table: "cars", records: 1, bytes: 504 },
    { table: jobTable, records: 1, bytes: 296 }
  ],
  pending: { changes: 0, max_changes: 10_000, edges: 0, max_edges: 200_000 },
  quarantined: [],
  jobs: [{ table: jobTable, queued: 0, running: 0, waiting: 0 }]
} as const
export const schedulerOverview = {
  id: "scheduler",
  ...common,
  seq: 42,
  log: { first: 1, events: 42, id: "ae4a2831-2027-47fe-8b53-cf9c97696e8e", epoch: 1 },
  snapshot: null,
  checkpointing: false,
  clone: null,
  max_buffer_per_ssp: 10_000,
  ssps: [
    {
      id: "ssp-1",
      url: "http://127.0.0.1:8667",
      state: "ready",
      state_seconds: 2.9,
      heard_seconds: 0.1,
      acked: 42,
      waiting: 0,
      in_flight: 0,
      failures: 0,
      late: false,
      views: 1,
      jobs: 0,
      cpu_usage: 3.4,
      memory_usage: 146.1,
      job_tables: [jobTable],
      tables: ["cars", jobTable]
    }
  ],
  views: 1,
  views_waiting: 0,
  quarantined: [],
  jobs: 0,
  jobs_waiting: 0,
  job_tables: [jobTable]
} as const
export const schedulerMetrics = {
  scheduler: { total_ssps: 1, ready_ssps: 1, total_queries: 1, running_jobs: 0, uptime_seconds: 5 },
  ssps: [{ id: "ssp-1", query_count: 1, views: 1, cpu_usage: 3.4, memory_usage: 146.1, last_heartbeat_seconds_ago: 0 }]
} as const
export const prometheus = "# HELP ssp_views Registered views\n# TYPE ssp_views gauge\nssp_views 1\n"
export const sspProgress = { state: "ready", seq: null, tasks: [] } as const
export const schedulerProgress = {
  state: "ready",
  seq: 42,
  tasks: [],
  clone: null,
  ssps: [{ id: "ssp-1", status: "ready", waiting: 0 }]
} as const

// Integrity

export const integrityTables = { seq: null, tables: [{ table: "cars", hash, count: 1 }] } as const
export const integrityNode = {
  seq: null,
  table: "cars",
  level: 0,
  index: 0,
  hash,
  count: 1,
  children: [{ index: 172, hash: "4e91729f528e47ed000973f5193abf3dd0c139421463fddd86e58840bb595c10", count: 1 }]
} as const
export const comparison = {
  tables: ["cars"],
  compared: 406,
  different: 1,
  differences: [{ id: "cars:gt", kind: "different", version: 2, database_version: 1 }]
} as const
export const reconciled = { compared: 406, repaired: ["cars:gt"] } as const
