/**
 * Every metric of the service, declared once: name, type, meaning, unit, labels, buckets (D34).
 *
 * The text at `/metrics`, the points sent over OTLP, the documents, the dashboards and the alert rules are all made
 * from or checked against this table. Labels have values that are fixed here or bounded by the configuration: a label
 * per view or per record would grow without end. Units are base units and end the name; `process_*` are the names every
 * exporter gives them.
 */
import { boundsMs } from "./latency.ts"

type MetricType = "counter" | "gauge" | "histogram"

/** Values of a label: all of them, or a text that says what bounds them. */
type LabelValues = ReadonlyArray<string> | string
type Labels = { readonly [label: string]: LabelValues }

export interface Metric {
  readonly name: string
  readonly type: MetricType
  /** Meaning, in one sentence. */
  readonly help: string
  /** Unit of the values; empty: a plain number. */
  readonly unit: "" | "seconds" | "bytes" | "ratio"
  readonly labels: Labels
  /** The server that has the metric. */
  readonly on: "ssp" | "scheduler" | "both"
  /** Upper bounds of a histogram's buckets, ascending; one more bucket is for values above. */
  readonly buckets?: ReadonlyArray<number>
}

type On = Metric["on"]

const unitOf = (name: string): Metric["unit"] => {
  const unit = /_(seconds|bytes|ratio)(?:_total)?$/.exec(name)?.[1]
  return unit === "seconds" || unit === "bytes" || unit === "ratio" ? unit : ""
}

const none = {} as const

const gauge = <const L extends Labels = typeof none>(on: On, name: string, help: string, labels?: L) =>
  ({
    on,
    name,
    help,
    type: "gauge",
    unit: unitOf(name),
    labels: labels ?? (none as unknown as L)
  }) as const satisfies Metric

const counter = <const L extends Labels = typeof none>(on: On, name: string, help: string, labels?: L) =>
  ({
    on,
    name,
    help,
    type: "counter",
    unit: unitOf(name),
    labels: labels ?? (none as unknown as L)
  }) as const satisfies Metric

/** Buckets in seconds for calls and writes. */
const callBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const
/** Buckets in seconds for jobs and bootstraps, which may take minutes. */
const longBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800] as const

const histogram = <const L extends Labels = typeof none>(
  on: On,
  name: string,
  help: string,
  labels?: L,
  buckets: ReadonlyArray<number> = callBuckets
) =>
  ({
    on,
    name,
    help,
    type: "histogram",
    unit: unitOf(name),
    labels: labels ?? (none as unknown as L),
    buckets
  }) as const satisfies Metric

/** Kinds of long work (`/progress`). */
export const taskKinds = ["restore", "recovery", "clone", "bootstrap", "replay", "reconcile", "catch-up"] as const
export type TaskKind = (typeof taskKinds)[number]

export const signals = ["traces", "metrics", "logs"] as const
export type Signal = (typeof signals)[number]

const ssps = { ssp: "registered SSPs; gone when the SSP is" } as const
const jobTables = "job tables of the configuration"

export const declared = {
  // The process
  buildInfo: gauge("both", "svc_build_info", "Always 1; the labels say what runs.", {
    version: "one value",
    role: ["ssp", "scheduler"]
  }),
  processStart: gauge("both", "process_start_time_seconds", "When the process started, Unix time."),
  processCpu: counter("both", "process_cpu_seconds_total", "Processor time of all threads."),
  processMemory: gauge("both", "process_resident_memory_bytes", "Resident memory."),
  heapUsed: gauge("both", "svc_heap_used_bytes", "Memory that JavaScript values use."),
  memoryUsed: gauge("both", "svc_memory_used_bytes", "Heap in use after the last full collection."),
  memoryLimit: gauge(
    "both",
    "svc_memory_limit_bytes",
    "What the heap may hold; at 85 % of it nothing that grows is taken."
  ),
  memoryFull: gauge("both", "svc_memory_full", "1 while changes that grow and new views are answered 503 OVERLOADED."),
  loopLagP99: gauge(
    "both",
    "svc_event_loop_lag_p99_seconds",
    "How late the event loop ran timers, 99th percentile of the last 10 to 20 s."
  ),
  loopLagMax: gauge(
    "both",
    "svc_event_loop_lag_max_seconds",
    "How late the event loop ran a timer at worst in the last 10 to 20 s."
  ),
  tasksRunning: gauge("both", "svc_tasks_running", "Long work that goes on now; `/progress` says how far it is.", {
    kind: taskKinds
  }),
  taskDuration: histogram(
    "both",
    "svc_task_duration_seconds",
    "How long long work took that came to its end.",
    { kind: taskKinds },
    longBuckets
  ),
  taskFailures: counter("both", "svc_task_failures_total", "Long work that failed or was cut off.", {
    kind: taskKinds
  }),
  exportFailures: counter(
    "both",
    "svc_telemetry_export_failures_total",
    "Batches of telemetry that the collector did not take; their content is lost.",
    { signal: signals }
  ),

  // Changes
  ingestDuration: histogram(
    "both",
    "svc_ingest_duration_seconds",
    "From a whole request of POST /ingest to its answer, of those answered 200.",
    none,
    boundsMs.map((ms) => ms / 1000)
  ),
  feedApply: histogram(
    "ssp",
    "svc_ssp_feed_apply_duration_seconds",
    "From when changes of the scheduler's feed came to when they were applied, a step or several at once; none where changes are sent instead.",
    none,
    boundsMs.map((ms) => ms / 1000)
  ),
  ingestRefused: counter(
    "both",
    "svc_ingest_refused_total",
    "Requests of POST /ingest that were answered with an error, by class of status.",
    { status: ["4xx", "5xx"] }
  ),
  ingestChanges: counter("both", "svc_ingest_changes_total", "Record changes taken in, repeated ones included."),
  ingestPending: gauge("both", "svc_ingest_pending_changes", "Record changes that wait to be made durable."),
  ingestPendingLimit: gauge(
    "both",
    "svc_ingest_pending_changes_limit",
    "SVC_MAX_PENDING_CHANGES: beyond it 503 OVERLOADED."
  ),

  // SSP
  sspStatus: gauge("ssp", "svc_ssp_status", "1 for the state it is in (GET /health), 0 for the others.", {
    status: ["bootstrapping", "ready", "failed"]
  }),
  sspViews: gauge("ssp", "svc_ssp_views", "Registered views."),
  sspViewsLimit: gauge("ssp", "svc_ssp_views_limit", "SVC_MAX_VIEWS: beyond it registration answers 503."),
  viewsQuarantined: gauge(
    "ssp",
    "svc_ssp_views_quarantined",
    "Queries that are set aside, because processes ended while they evaluated them; POST /view/free frees one."
  ),
  sspViewRows: gauge("ssp", "svc_ssp_view_rows", "Rows in the results of all views."),
  sspInstances: gauge(
    "ssp",
    "svc_ssp_instances",
    "Results kept up to date: of views, equal ones once, and of subqueries."
  ),
  sspHeldRows: gauge(
    "ssp",
    "svc_ssp_held_rows",
    "Matching rows these hold, shown or not; of a view that was let go those not yet taken back."
  ),
  sspTombstones: gauge(
    "ssp",
    "svc_ssp_tombstones",
    "Deleted records whose version is remembered; SVC_MAX_TOMBSTONES at most."
  ),
  sspRecords: gauge("ssp", "svc_ssp_records", "Records in memory."),
  sspRecordBytes: gauge(
    "ssp",
    "svc_ssp_record_bytes",
    "What the records in memory take, about; GET /overview has it by table."
  ),
  sspTables: gauge("ssp", "svc_ssp_tables", "Tables with records."),
  sspStreams: gauge("ssp", "svc_ssp_streams", "Open event streams."),
  sspStreamedChars: gauge(
    "ssp",
    "svc_ssp_streamed_row_characters",
    "Characters of the rows that are kept as text for streams in format rows; they count among SVC_VIEW_BYTES_TOTAL."
  ),
  sspStreamsLimit: gauge("ssp", "svc_ssp_streams_limit", "SVC_MAX_STREAMS: beyond it 503."),
  sspViewUpdates: counter(
    "ssp",
    "svc_ssp_view_updates_total",
    "Results changed by record changes, a view once for each request that changes it."
  ),
  sspLogSeq: gauge(
    "ssp",
    "svc_ssp_log_seq",
    "Position of the scheduler's log up to which changes are applied; absent without a scheduler."
  ),
  storeCommit: histogram(
    "ssp",
    "svc_ssp_store_commit_duration_seconds",
    "Commits of the store; none with `memory://`."
  ),
  storeFailures: counter(
    "ssp",
    "svc_ssp_store_commit_failures_total",
    "Commits that the store refused; the changes were answered 500."
  ),
  edgesPending: gauge("ssp", "svc_ssp_edges_pending", "Edges that wait for the database."),
  edgesLimit: gauge("ssp", "svc_ssp_edges_pending_limit", "SVC_MAX_PENDING_EDGES: beyond it POST /ingest answers 503."),
  edgesWritten: counter("ssp", "svc_ssp_edges_written_total", "Edges written to the database.", {
    kind: ["put", "removal"]
  }),
  edgeFlush: histogram("ssp", "svc_ssp_edge_flush_duration_seconds", "Batches of edges, from sent to committed."),
  edgeFailures: counter(
    "ssp",
    "svc_ssp_edge_flush_failures_total",
    "Batches of edges that did not arrive and are tried again."
  ),
  edgesRefused: counter(
    "ssp",
    "svc_ssp_edges_refused_total",
    "Edges that the database has refused, each time that they were tried."
  ),
  edgeViewsLost: counter("ssp", "svc_ssp_edge_views_lost_total", "Views that turned out to be another SSP's."),
  edgeDifferences: counter(
    "ssp",
    "svc_ssp_edge_differences_total",
    "Edges that were to be written after a compare with the database."
  ),
  changeTableRows: counter(
    "both",
    "svc_change_table_rows_total",
    "Rows of the database's change table that were taken: their records are durable here."
  ),
  changeTableRecords: counter(
    "both",
    "svc_change_table_records_total",
    "Records that those rows named, each once per read."
  ),
  changeTableFailures: counter(
    "both",
    "svc_change_table_failures_total",
    "Attempts to read the change table, or to make durable what was read, that failed and are made again."
  ),
  changeTableUnreadable: gauge(
    "both",
    "svc_change_table_unreadable",
    "Rows whose record the database fails to read; tried again every 30 s, views show it as it was."
  ),
  changeTableBehind: gauge(
    "both",
    "svc_change_table_catching_up",
    "1 while more waits in the change table than one read takes: views show it in parts."
  ),
  changeTableWhole: gauge(
    "both",
    "svc_change_table_whole_timestamp_seconds",
    "When a read of the change table last brought all that waited, in seconds since 1970: views are no older than that."
  ),
  jobs: gauge(
    "ssp",
    "svc_ssp_jobs",
    "Jobs that this process knows of: waiting for a slot, running, waiting for their next attempt.",
    { table: jobTables, state: ["queued", "running", "waiting"] }
  ),
  jobCalls: histogram(
    "ssp",
    "svc_ssp_job_call_duration_seconds",
    "Calls of backends, by what they answered; `none`: no HTTP answer.",
    { answer: ["2xx", "3xx", "4xx", "5xx", "none"] },
    longBuckets
  ),
  jobAttempts: counter(
    "ssp",
    "svc_ssp_job_attempts_total",
    "Attempts of jobs, by what followed from each; what is tried again or has failed for good had failed.",
    { table: jobTables, result: ["success", "retry", "failed"] }
  ),
  jobLeasesLost: counter(
    "ssp",
    "svc_ssp_job_leases_lost_total",
    "Jobs that were taken away from this process while it had them: cancelled, or held too long by a process that stood still.",
    { table: jobTables }
  ),
  jobsEnded: counter("ssp", "svc_ssp_jobs_ended_total", "Jobs that are over.", { result: ["success", "failed"] }),
  reconcileDifferences: counter(
    "both",
    "svc_reconcile_differences_total",
    "Records found to differ from the database while serving, and repaired."
  ),
  reconcileAge: gauge(
    "both",
    "svc_reconcile_age_seconds",
    "Since the last compare with the database came to its end; absent before the first and without a database."
  ),

  // Scheduler
  schedulerStatus: gauge("scheduler", "svc_scheduler_status", "1 for the state it is in (D30), 0 for the others.", {
    status: ["cloning", "ready", "frozen", "updating"]
  }),
  schedulerSsps: gauge("scheduler", "svc_scheduler_ssps", "Registered SSPs by state.", {
    state: ["bootstrapping", "replaying", "ready", "suspect", "overflowed"]
  }),
  schedulerViews: gauge("scheduler", "svc_scheduler_views", "Registered views."),
  schedulerViewsWaiting: gauge("scheduler", "svc_scheduler_views_waiting", "Registered views that wait for an SSP."),
  schedulerJobs: gauge("scheduler", "svc_scheduler_jobs", "Jobs that are not finished."),
  schedulerJobsWaiting: gauge("scheduler", "svc_scheduler_jobs_waiting", "Jobs that no SSP has been told of."),
  logSeq: gauge("scheduler", "svc_scheduler_log_seq", "Last position of the log."),
  logEvents: gauge("scheduler", "svc_scheduler_log_events", "Events kept in the log."),
  logRole: gauge(
    "scheduler",
    "svc_scheduler_role",
    "With SVC_LOG_URL: 1 for what this scheduler is to its log, 0 for the other.",
    { role: ["leader", "follower"] }
  ),
  logEpoch: gauge("scheduler", "svc_scheduler_term_epoch", "With SVC_LOG_URL: the term that this scheduler knows of."),
  logTakeOvers: counter("scheduler", "svc_scheduler_takeovers_total", "With SVC_LOG_URL: terms this process began."),
  logDurability: gauge(
    "scheduler",
    "svc_scheduler_log_durability",
    "With SVC_LOG_URL: 1 for where a change is when it is answered, 0 for the others: flushed to a disk, on most of several servers, or neither, so that a crash of one server loses it.",
    { durability: ["flushed", "replicated", "relaxed"] }
  ),
  logLag: gauge(
    "scheduler",
    "svc_scheduler_follower_lag_events",
    "With SVC_LOG_URL: events that the replica of each scheduler lacks.",
    { scheduler: "schedulers of the log" }
  ),
  replicaSeq: gauge(
    "scheduler",
    "svc_scheduler_replica_seq",
    "Position of the log through which the replica is applied."
  ),
  walBytes: gauge("scheduler", "svc_scheduler_wal_bytes", "Size of the log's files; absent where the log is no file."),
  walFree: gauge(
    "scheduler",
    "svc_scheduler_wal_disk_free_bytes",
    "What is free on the disk of the log; absent where the log is no file."
  ),
  walAppend: histogram("scheduler", "svc_scheduler_wal_append_duration_seconds", "Appends to the log, until flushed."),
  walFailures: counter(
    "scheduler",
    "svc_scheduler_wal_append_failures_total",
    "Appends that failed; the changes were answered with an error."
  ),
  replicaCommit: histogram(
    "scheduler",
    "svc_scheduler_replica_commit_duration_seconds",
    "Commits of the replica, and its writes of what they left for later."
  ),
  replicaFailures: counter(
    "scheduler",
    "svc_scheduler_replica_commit_failures_total",
    "Commits that the replica refused; they are tried again."
  ),
  snapshotAge: gauge(
    "scheduler",
    "svc_scheduler_snapshot_age_seconds",
    "Since the replica was last brought to disk and the log cut behind it, or since the start."
  ),
  freezeAge: gauge(
    "scheduler",
    "svc_scheduler_freeze_age_seconds",
    "How long the snapshot for bootstrapping SSPs has stood still; 0 while nothing is frozen."
  ),
  deliveries: histogram(
    "scheduler",
    "svc_scheduler_delivery_duration_seconds",
    "Deliveries of events to an SSP: applied, to be tried again, or refused so that it must bootstrap.",
    { result: ["applied", "retry", "refused"] }
  ),
  registrations: counter(
    "scheduler",
    "svc_scheduler_ssp_registrations_total",
    "Registrations of SSPs: each is a bootstrap."
  ),
  overflows: counter(
    "scheduler",
    "svc_scheduler_ssp_overflows_total",
    "SSPs that must bootstrap again: too far behind, refusing the log, or differing from the replica."
  ),
  integrityCompares: counter(
    "scheduler",
    "svc_scheduler_integrity_compares_total",
    "Compares of an SSP with the replica; `unknown`: it could not be told.",
    { result: ["equal", "different", "unknown"] }
  ),
  sspLag: gauge("scheduler", "svc_scheduler_ssp_lag_events", "Events that an SSP lacks.", ssps),
  sspLagLimit: gauge(
    "scheduler",
    "svc_scheduler_ssp_lag_events_limit",
    "Events that an SSP may lack (max_buffer_per_ssp); beyond it, it must bootstrap again."
  ),
  schedulerQuarantined: gauge(
    "scheduler",
    "svc_scheduler_views_quarantined",
    "Queries that no SSP is given, because SSPs ended while they evaluated them; POST /view/free frees one."
  ),
  sspAssigned: gauge("scheduler", "svc_scheduler_ssp_views", "Views assigned to an SSP.", ssps),
  sspReported: gauge("scheduler", "svc_scheduler_ssp_views_reported", "Views of its last heartbeat.", ssps),
  sspJobs: gauge("scheduler", "svc_scheduler_ssp_jobs", "Jobs it has that are not finished.", ssps),
  sspCpu: gauge("scheduler", "svc_scheduler_ssp_cpu_ratio", "CPU of its last heartbeat, 1 is one core.", ssps),
  sspMemory: gauge("scheduler", "svc_scheduler_ssp_memory_bytes", "Memory of its last heartbeat.", ssps),
  sspHeartbeatAge: gauge("scheduler", "svc_scheduler_ssp_heartbeat_age_seconds", "Since it was last heard of.", ssps)
} as const satisfies { readonly [key: string]: Metric }

export type Declared = typeof declared
export type MetricKey = keyof Declared

/** All metrics as a list, for documents. */
export const metrics: ReadonlyArray<Metric> = Object.values(declared)
