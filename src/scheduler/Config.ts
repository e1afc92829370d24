/**
 * Every setting of the scheduler: file key, environment variable, default, unit, meaning, and the values allowed.
 *
 * A service, as the SSP's, so that a test gives values without an environment; `--help` and the reference are printed
 * from this table. A value of the file is read as its variable would be; the environment wins.
 */
import { Context, Effect, Layer, type Redacted } from "effect"
import * as Hosts from "../core/access/hosts.ts"
import * as ScopedSecrets from "../core/access/scopedSecrets.ts"
import { defaultStrategy, strategyNames } from "../core/cluster/balance.ts"
import * as Address from "../core/settings/address.ts"
import * as LogUrl from "../core/settings/logUrl.ts"
import * as Settings from "../core/settings/settings.ts"
import * as SnapshotUrl from "../core/settings/snapshotUrl.ts"
import { limits } from "../core/surql/evaluate/scope.ts"
import * as Configuration from "../node/config/configuration.ts"
import { type Reloaded, Secrets } from "../node/config/secrets.ts"
import * as Tls from "../node/config/tls.ts"
import { ConfigSource, type ConfigSourceShape } from "../ports/ConfigSource.ts"
import type { StartFault } from "../ports/StartFault.ts"
import { logKnobs } from "./logSettings.ts"
import { openKnobs } from "./openSettings.ts"

const hour = 3_600_000

const url = (text: string): string | undefined => {
  const found = Address.store(text)
  return found?.kind === "server" ? found.url : undefined
}

export const knobs = {
  dbUrl: Settings.text("SVC_SCHEDULER_DB_URL", {
    meaning: "Database to clone from; file key `db.url`.",
    defaultText: "localhost:8000/rpc",
    allowed: "host:port or a ws://, wss://, http:// or https:// address",
    read: url
  }),
  dbNamespace: Settings.text("SVC_SCHEDULER_DB_NAMESPACE", {
    meaning: "Its namespace; without namespace and database nothing is cloned. File key `db.namespace`."
  }),
  dbDatabase: Settings.text("SVC_SCHEDULER_DB_DATABASE", { meaning: "Its database; file key `db.database`." }),
  dbUsername: Settings.text("SVC_SCHEDULER_DB_USERNAME", { meaning: "Its user; file key `db.username`." }),
  dbPassword: Settings.password("SVC_SCHEDULER_DB_PASSWORD", {
    meaning: "Its user's password; file key `db.password`."
  }),
  storeAuthLevel: Settings.choice("STORE_AUTH_LEVEL", ["root", "namespace", "database"], undefined, {
    meaning: "Level the database user is defined at.",
    defaultText: "tried in that order"
  }),
  loadBalance: Settings.choice("SVC_SCHEDULER_LOAD_BALANCE", strategyNames, defaultStrategy, {
    meaning: "How an SSP is chosen for a view; file key `load_balance`."
  }),
  heartbeatIntervalMs: Settings.integer("SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS", 5000, [10, hour], {
    unit: "ms",
    meaning: "Longest time between two looks for SSPs that are silent; file key `heartbeat_interval_ms`."
  }),
  heartbeatTimeoutMs: Settings.integer("SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS", 15_000, [20, hour], {
    unit: "ms",
    meaning: "Silence after which an SSP is removed and its views move; file key `heartbeat_timeout_ms`."
  }),
  bootstrapChunkSize: Settings.integer("SVC_SCHEDULER_BOOTSTRAP_CHUNK_SIZE", 1000, [1, 100_000], {
    unit: "records",
    meaning:
      "Records read at once when the database is cloned, and asked for at once by SSPs that bootstrap; file key `bootstrap_chunk_size`."
  }),
  bootstrapTimeoutSecs: Settings.integer("SVC_SCHEDULER_BOOTSTRAP_TIMEOUT_SECS", 120, [1, 86_400], {
    unit: "s",
    meaning: "Time an SSP has to bootstrap; file key `bootstrap_timeout_secs`."
  }),
  ingestHost: Settings.text("SVC_SCHEDULER_INGEST_HOST", {
    meaning: "Address to listen on; file key `ingest_host`.",
    defaultText: "0.0.0.0",
    allowed: "a host name or an IP address",
    read: (text) => Address.parse(text.includes(":") && !text.startsWith("[") ? `[${text}]:1` : `${text}:1`)?.host
  }),
  ingestPort: Settings.integer("SVC_SCHEDULER_INGEST_PORT", 9667, [0, 65_535], {
    unit: "",
    meaning: "Port to listen on, 0 takes a free one; file key `ingest_port`."
  }),
  replicaDbPath: Settings.text("SVC_SCHEDULER_REPLICA_DB_PATH", {
    meaning: "Folder of the replica and of the pool; file key `replica_db_path`.",
    defaultText: "./data/replica",
    allowed: "a path"
  }),
  walPath: Settings.text("SVC_SCHEDULER_WAL_PATH", {
    meaning: "The log; complete pieces lie beside it. File key `wal_path`.",
    defaultText: "./data/event_wal.log",
    allowed: "a path"
  }),
  ...logKnobs,
  sspPollIntervalMs: Settings.integer("SVC_SCHEDULER_SSP_POLL_INTERVAL_MS", 3000, [10, hour], {
    unit: "ms",
    meaning: "Interval at which a bootstrapping SSP's `/health` is asked; file key `ssp_poll_interval_ms`."
  }),
  sspProbeIntervalMs: Settings.integer("SVC_SCHEDULER_SSP_PROBE_INTERVAL_MS", 1000, [0, hour], {
    unit: "ms",
    meaning:
      "Interval at which the `/health` of an SSP that has its data and applies nothing is asked: where two connections in a row are refused, its process is gone, and its views move at once. 0 for never; calls that are made anyway find out too."
  }),
  maxBufferPerSsp: Settings.integer("SVC_SCHEDULER_MAX_BUFFER_PER_SSP", 10_000, [1, 100_000_000], {
    unit: "events",
    meaning:
      "Most events that wait for one SSP; beyond it must bootstrap again, and then what comes during that bootstrap does not count. File key `max_buffer_per_ssp`."
  }),
  snapshotUpdateIntervalSecs: Settings.integer("SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS", 300, [1, 86_400], {
    unit: "s",
    meaning: "Interval of checkpoints: replica synced, log cut; file key `snapshot_update_interval_secs`."
  }),
  reconcileIntervalSecs: Settings.reconcileIntervalSecs,
  databaseLeaseSecs: Settings.databaseLeaseSecs,
  changesPerRead: Settings.changesPerRead,
  changesBehindSecs: Settings.changesBehindSecs,
  schemaIntervalMs: Settings.schemaIntervalMs,
  defineEvents: Settings.defineEvents,
  integrityIntervalSecs: Settings.integer("SVC_SCHEDULER_INTEGRITY_INTERVAL_SECS", 60, [0, 86_400], {
    unit: "s",
    meaning:
      "Pause between two compares of the SSPs' records with the replica's, by hashes; an SSP that differs bootstraps again. 0 for none."
  }),
  integrityQuietSecs: Settings.integer("SVC_INTEGRITY_QUIET_SECS", 5, [0, 3600], {
    unit: "s",
    meaning:
      "How long a table must be quiet before the hashes of its records are written to the database that is cloned; 0 writes none."
  }),
  deliveryWaitMs: Settings.integer("SVC_SCHEDULER_DELIVERY_WAIT_MS", 250, [0, 60_000], {
    unit: "ms",
    meaning: "Longest time an answer of `/ingest` waits for the ready SSPs."
  }),
  jobResults: Settings.integer("SVC_SCHEDULER_JOB_RESULTS", 10_000, [0, 100_000], {
    unit: "results",
    meaning:
      "Most results of jobs that are kept for `/jobs`, in memory and over restarts; the oldest make room, and all together they are at most 16 MiB long."
  }),
  sspUrlAllow: Settings.text("SVC_SCHEDULER_SSP_URL_ALLOW", {
    meaning:
      "Hosts that SSPs may register with, which also may be sent the secret; separated by commas, `*.domain` for all below it.",
    defaultText: "any host; the secret only to loopback and private addresses",
    allowed: "hosts separated by commas",
    read: (text) => (Hosts.parseList(text) === undefined ? undefined : text)
  }),
  ...openKnobs,
  schedulerId: Settings.text("SCHEDULER_ID", {
    meaning: "Name of this scheduler.",
    defaultText: "scheduler-<uuid>",
    allowed: Settings.nodeNameAllowed,
    read: (text) => (Settings.nodeName.test(text) ? text : undefined)
  }),
  authSecret: Settings.secret("SVC_AUTH_SECRET", {
    meaning:
      "Secret sent to SSPs as bearer, but to those that have one of their own in SVC_AUTH_SECRETS; unset, they answer 401."
  }),
  schedulerAuthSecret: Settings.secret("SVC_SCHEDULER_AUTH_SECRET", {
    meaning:
      "Bearer secret that every endpoint but `/health`, `/livez`, `/readyz` and the static pages asks for, from SSPs too; unset, none does."
  }),
  schedulerAuthSecretPrevious: Settings.secrets("SVC_SCHEDULER_AUTH_SECRET_PREVIOUS", {
    meaning: "Secrets that are let in too while SVC_SCHEDULER_AUTH_SECRET is being replaced."
  }),
  authSecrets: ScopedSecrets.knob,
  configPath: Settings.text("SVC_CONFIG_PATH", {
    meaning: "Configuration file.",
    defaultText: "./svc.yml if it is there",
    allowed: "the path of a YAML file"
  }),
  maxBodyBytes: Settings.maxBodyBytes("Deliveries of several events to an SSP are kept below it."),
  maxPendingChanges: Settings.integer("SVC_MAX_PENDING_CHANGES", 10_000, [1, 10_000_000], {
    unit: "changes",
    meaning: "Most record changes that may wait for the log; beyond it 503 OVERLOADED."
  }),
  ...Settings.server,
  ...Settings.browser,
  queryRowSteps: Settings.integer(limits.rowSteps.setting, limits.rowSteps.value, [1000, 1e12], {
    unit: "steps",
    meaning: "Most work for one row of a query, in steps (a row read, an element touched)."
  }),
  querySteps: Settings.integer(limits.querySteps.setting, limits.querySteps.value, [1000, 1e12], {
    unit: "steps",
    meaning: "Most work for one query of `/proxy/query`, in steps."
  }),
  queryBytes: Settings.integer(limits.queryBytes.setting, limits.queryBytes.value, [65_536, 1e12], {
    unit: "bytes",
    meaning:
      "Most memory that one query of `/proxy/query` may make, charged before it is made, and beside it the longest answer."
  }),
  queryBytesTotal: Settings.integer("SVC_QUERY_BYTES_TOTAL", 0, [0, 1e12], {
    unit: "bytes",
    meaning:
      "Most memory that queries of `/proxy/query` may take that run at once, each counted with SVC_QUERY_BYTES; 256 may wait. As much again for answers until they are sent. Beyond it 503 OVERLOADED. One always runs. 0 for a quarter of the heap."
  }),
  queryRows: Settings.integer(limits.queryRows.setting, limits.queryRows.value, [1, 1e9], {
    unit: "rows",
    meaning: "Most rows that a query of `/proxy/query` may answer."
  }),
  ...Settings.logging
}

/** Key of each setting in the file. */
export const fileKeys: { readonly [N in keyof typeof knobs]?: string } = {
  dbUrl: "db.url",
  dbNamespace: "db.namespace",
  dbDatabase: "db.database",
  dbUsername: "db.username",
  dbPassword: "db.password",
  loadBalance: "load_balance",
  heartbeatIntervalMs: "heartbeat_interval_ms",
  heartbeatTimeoutMs: "heartbeat_timeout_ms",
  bootstrapChunkSize: "bootstrap_chunk_size",
  bootstrapTimeoutSecs: "bootstrap_timeout_secs",
  ingestHost: "ingest_host",
  ingestPort: "ingest_port",
  replicaDbPath: "replica_db_path",
  walPath: "wal_path",
  sspPollIntervalMs: "ssp_poll_interval_ms",
  maxBufferPerSsp: "max_buffer_per_ssp",
  snapshotUpdateIntervalSecs: "snapshot_update_interval_secs"
}

/** Settings of the SSP that a shared environment may hold. */
const sspNames = [
  "STORE_ADDR",
  "STORE_USER",
  "STORE_PASS",
  "STORE_PASS_FILE",
  "STORE_NS",
  "STORE_DB",
  "STORE_SERVICE_USER",
  "STORE_SERVICE_PASS",
  "STORE_SERVICE_PASS_FILE",
  "SVC_CLUSTER_FEED",
  "SVC_TABLE_GRACE_SECS",
  "SVC_DATA_DIR",
  "SVC_STATE_DEBOUNCE_MS",
  "SVC_MAX_VIEWS",
  "SVC_MAX_STREAMS",
  "SVC_SLOW_EVALUATION_MS",
  "SVC_JOB_RETRY_BASE_MS",
  "SVC_JOB_MAX_RETRIES",
  "SVC_JOB_RESULT_BYTES",
  "SVC_AUTH_SECRET_PREVIOUS",
  "SVC_AUTH_SECRET_PREVIOUS_FILE"
]

type Read = Settings.Values<typeof knobs>

/** The database that is cloned (D25). */
interface SourceDatabase {
  readonly url: string
  readonly namespace: string
  readonly name: string
  readonly username: string | undefined
  /** Getter: the current value; SIGHUP replaces it. */
  readonly password: Redacted.Redacted<string> | undefined
  readonly authLevel: Read["storeAuthLevel"]
}

type Plain = Omit<
  Read,
  | "dbUrl"
  | "dbNamespace"
  | "dbDatabase"
  | "dbUsername"
  | "dbPassword"
  | "storeAuthLevel"
  | "ingestHost"
  | "sspUrlAllow"
  | "hosts"
  | "authSecret"
  | "authSecrets"
  | "schedulerAuthSecret"
  | "schedulerAuthSecretPrevious"
  | "corsOrigins"
  | "browserOrigins"
  | "schedulerId"
  | "logLevel"
  | "loadBalance"
  | "replicaDbPath"
  | "walPath"
  | "logUrl"
  | "logDurability"
  | "advertise"
  | "snapshotUrl"
  | keyof Tls.TlsSettings
>

export interface SchedulerConfigShape extends Plain {
  /** Undefined: nothing is cloned, the replica grows from `/ingest` alone. */
  readonly database: SourceDatabase | undefined
  readonly loadBalance: NonNullable<Read["loadBalance"]>
  readonly listen: Address.HostPort
  /** Undefined: plain HTTP. */
  readonly tls: Tls.Tls | undefined
  readonly replicaDbPath: string
  readonly walPath: string
  /** Undefined: the log is the file at `walPath`. */
  readonly logUrl: Redacted.Redacted<string> | undefined
  /** Undefined: the durability that the log's server gives by default. */
  readonly logDurability: Read["logDurability"]
  /** Name of the log for people, without a password. */
  readonly logName: string
  /** URL at which the other schedulers of the log reach this one, given its port. */
  readonly advertisedUrl: (port: number) => string
  readonly snapshotSource: SnapshotUrl.SnapshotUrl
  /** Secret for calls to the other schedulers of the log; undefined: they ask for none. */
  readonly peerSecret: () => Redacted.Redacted<string> | undefined
  readonly allowedHosts: ReadonlyArray<string> | undefined
  /** Host names under which an open server may be asked. */
  readonly hosts: ReadonlyArray<string> | undefined
  /** Secret for calls to an SSP: the one with its name and the scope `ssp` (D54), else the common one. */
  readonly sspSecret: (ssp: string) => Redacted.Redacted<string> | undefined
  /** Secrets that are accepted now; undefined: no secret is asked for. */
  readonly bearers: (() => ReadonlyArray<ScopedSecrets.KnownSecret>) | undefined
  /** Secrets of view routes, which also sign tokens: {@link bearers}, else the secret that the SSPs ask for. */
  readonly viewSecrets: () => ReadonlyArray<ScopedSecrets.KnownSecret>
  /** Reads the files that hold secrets again. */
  readonly reloadSecrets: () => ReadonlyArray<Reloaded>
  readonly corsOrigins: ReadonlyArray<string>
  readonly browserOrigins: ReadonlyArray<string>
  readonly schedulerId: string
  readonly logLevel: NonNullable<Read["logLevel"]>
  readonly jobTables: ReadonlySet<string>
  /** Warnings to log once at the start. */
  readonly warnings: ReadonlyArray<string>
}

const paths: ReadonlySet<string> = new Set(["replica_db_path", "wal_path"])

const at = (content: unknown, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (found, key) =>
        typeof found === "object" && found !== null && Object.hasOwn(found, key)
          ? (found as { readonly [key: string]: unknown })[key]
          : undefined,
      content
    )

/** Settings of the file as environment text; invalid values are reported as faults here, where their key is known. */
const fromFile = (
  content: unknown,
  source: ConfigSourceShape,
  faults: Array<string>
): { readonly [name: string]: string } => {
  const texts: { [name: string]: string } = {}
  const where = source.file?.path ?? ""
  for (const [name, key] of Object.entries(fileKeys)) {
    const knob: Settings.Knob<unknown> = knobs[name as keyof typeof knobs]
    const value = at(content, key)
    const overridden =
      (source.env[knob.env] ?? "") !== "" || (knob.secret && (source.env[`${knob.env}_FILE`] ?? "") !== "")
    if (value === undefined || value === null || overridden) continue
    const text = typeof value === "string" ? value : typeof value === "number" ? String(value) : ""
    if (text !== "" && knob.read(text) !== undefined)
      texts[knob.env] = paths.has(key) ? Configuration.relativeTo(where, text) : text
    else
      faults.push(
        `${where}: ${key} is ${knob.secret ? "a value that is not shown" : JSON.stringify(value)}; must be ${knob.allowed}`
      )
  }
  return texts
}

const together = (values: Read, faults: Array<string>): void => {
  if ((values.dbNamespace === undefined) !== (values.dbDatabase === undefined)) {
    const [has, lacks] =
      values.dbNamespace === undefined ? ["db.database", "db.namespace"] : ["db.namespace", "db.database"]
    faults.push(`${has} is set and ${lacks} is not; must be both, to clone a database, or neither`)
  }
  if (values.heartbeatTimeoutMs <= values.heartbeatIntervalMs) {
    faults.push(
      `heartbeat_timeout_ms is ${values.heartbeatTimeoutMs}; must be above heartbeat_interval_ms, which is ${values.heartbeatIntervalMs}`
    )
  }
  if (values.snapshotUrl === "log:" && LogUrl.parse(values.logUrl ?? "")?.engine !== "nats") {
    faults.push("SVC_SNAPSHOT_URL is log:, and SVC_LOG_URL names no log on NATS; must be file:///folder or peer: here")
  }
}

const databaseOf = (values: Read, password: () => string | undefined): SourceDatabase | undefined =>
  values.dbNamespace === undefined || values.dbDatabase === undefined
    ? undefined
    : {
        url: values.dbUrl ?? "ws://localhost:8000/rpc",
        namespace: values.dbNamespace,
        name: values.dbDatabase,
        username: values.dbUsername,
        authLevel: values.storeAuthLevel,
        get password() {
          return Configuration.redacted(password())
        }
      }

const warningsOf = (source: ConfigSourceShape, values: Read): ReadonlyArray<string> => {
  const warnings = [...Settings.unknownNames(source.env, knobs, sspNames)]
  if (values.authSecret === undefined && values.authSecrets?.some(({ scopes }) => scopes.includes("ssp")) !== true)
    warnings.push(
      "SVC_AUTH_SECRET is not set: SSPs will answer 401 to what this scheduler sends them; set it to the secret they have"
    )
  if (values.schedulerAuthSecret === undefined && values.schedulerAuthSecretPrevious !== undefined)
    warnings.push(
      "SVC_SCHEDULER_AUTH_SECRET_PREVIOUS is set without SVC_SCHEDULER_AUTH_SECRET: no caller is asked for a secret"
    )
  const host = values.ingestHost ?? "0.0.0.0"
  const isOpen = values.schedulerAuthSecret === undefined && values.authSecrets === undefined
  if (values.openTo === "anybody")
    warnings.push(
      isOpen
        ? `SVC_SCHEDULER_OPEN_TO=anybody: everybody who reaches port ${values.ingestPort}, and every web page that such a person opens under a name that leads there, reads and writes every record`
        : "SVC_SCHEDULER_OPEN_TO=anybody changes nothing: this scheduler asks for a secret"
    )
  else if (isOpen && (host === "0.0.0.0" || host === "::"))
    warnings.push(
      `listening on all interfaces without SVC_SCHEDULER_AUTH_SECRET: anyone who reaches port ${values.ingestPort} from a loopback or private address reads and writes every record; set it here and on the SSPs, or SVC_SCHEDULER_INGEST_HOST=127.0.0.1, or keep the port in a network of its own`
    )
  return warnings
}

const logOf = ({ logDurability, logUrl, snapshotUrl, walPath = "./data/event_wal.log" }: Read) => ({
  walPath,
  logUrl: Configuration.redacted(logUrl),
  logDurability,
  logName: LogUrl.parse(logUrl ?? "")?.shown ?? walPath,
  snapshotSource: SnapshotUrl.parse(snapshotUrl ?? "") ?? { kind: "peer" as const }
})

/** All settings, or every fault. `id`: of a scheduler that has no name. */
export const read = (source: ConfigSourceShape, id: string): Effect.Effect<SchedulerConfigShape, StartFault> =>
  Effect.suspend(() => {
    const faults: Array<string> = []
    const { content, read: file } = Configuration.readFile(source, faults)
    const given = Object.fromEntries(Object.entries(source.env).filter(([, text]) => text !== ""))
    const values = Settings.readAll(
      knobs,
      { env: { ...fromFile(content, source, faults), ...given }, readText: source.readText },
      faults
    )
    together(values, faults)
    faults.push(
      ...Configuration.sameSecretFaults(
        values.authSecrets,
        [values.schedulerAuthSecret, ...(values.schedulerAuthSecretPrevious ?? [])],
        "SVC_SCHEDULER_AUTH_SECRET or SVC_SCHEDULER_AUTH_SECRET_PREVIOUS"
      )
    )
    const secrets = new Secrets(source)
    const tlsWarnings: Array<string> = []
    const tls = Tls.loadTls(values, source, secrets, faults, tlsWarnings)
    if (faults.length > 0) return Effect.fail(Configuration.configFault(faults))
    const {
      advertise = "",
      authSecret,
      authSecrets,
      browserOrigins,
      corsOrigins,
      schedulerAuthSecret,
      schedulerAuthSecretPrevious,
      snapshotUrl: _s,
      dbDatabase: _d,
      dbNamespace: _n,
      dbPassword: _p,
      dbUrl: _u,
      dbUsername: _us,
      hosts,
      ingestHost = "0.0.0.0",
      sspUrlAllow,
      storeAuthLevel: _l,
      tlsCaFile: _ca,
      tlsCertFile: _cert,
      tlsKeyFile: _key,
      ...rest
    } = values
    const toSsp = secrets.hold(knobs.authSecret, authSecret)
    const current = secrets.hold(knobs.schedulerAuthSecret, schedulerAuthSecret)
    const previous = secrets.hold(knobs.schedulerAuthSecretPrevious, schedulerAuthSecretPrevious)
    const scoped = secrets.hold(knobs.authSecrets, authSecrets)
    const asks = schedulerAuthSecret !== undefined || authSecrets !== undefined
    const bearers = asks
      ? secrets.derive(() => Configuration.acceptedSecrets(current(), previous(), scoped()))
      : undefined
    return Effect.succeed({
      ...rest,
      tls,
      database: databaseOf(values, secrets.hold(knobs.dbPassword, values.dbPassword)),
      loadBalance: values.loadBalance ?? defaultStrategy,
      listen: { host: ingestHost, port: values.ingestPort },
      advertisedUrl: (port: number) =>
        Address.advertised(advertise, tls === undefined ? "http" : "https") ??
        Address.reachable({ host: ingestHost, port }, port, source.hostName, tls === undefined ? "http" : "https"),
      replicaDbPath: values.replicaDbPath ?? "./data/replica",
      ...logOf(values),
      peerSecret: () => Configuration.redacted(current()),
      allowedHosts: sspUrlAllow === undefined ? undefined : Hosts.parseList(sspUrlAllow),
      hosts: hosts === undefined ? undefined : Hosts.parseList(hosts),
      sspSecret: (ssp) => Configuration.redacted(ScopedSecrets.secretOfSsp(scoped() ?? [], ssp) ?? toSsp()),
      bearers,
      viewSecrets: bearers ?? secrets.derive(() => Configuration.acceptedSecrets(toSsp(), undefined, undefined)),
      reloadSecrets: () => secrets.reload(),
      corsOrigins: corsOrigins ?? [],
      browserOrigins: browserOrigins ?? [],
      schedulerId: values.schedulerId ?? `scheduler-${id}`,
      logLevel: values.logLevel ?? "info",
      jobTables: new Set([...file.jobTables.map(({ table }) => table), ...file.tablesWithoutBackend]),
      warnings: [...warningsOf(source, values), ...tlsWarnings]
    })
  })

/** The settings of a scheduler: `layerEnv` reads them, `layerOf` takes them as text by name. */
export class SchedulerConfig extends Context.Tag("scheduler/Config")<SchedulerConfig, SchedulerConfigShape>() {
  /** Environment and configuration file; the environment wins. */
  static readonly layerEnv: Layer.Layer<SchedulerConfig, StartFault, ConfigSource> = Layer.effect(
    SchedulerConfig,
    Effect.gen(function* () {
      return yield* read(yield* ConfigSource, yield* Configuration.uuid)
    })
  )

  /** Values given as environment text, for tests and composers. */
  static readonly layerOf = (env: { readonly [name: string]: string }): Layer.Layer<SchedulerConfig, StartFault> =>
    SchedulerConfig.layerEnv.pipe(Layer.provide(ConfigSource.layerMemory({ env })))
}
