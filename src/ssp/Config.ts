/**
 * Every setting of the SSP: name, default, unit, meaning, and the values allowed.
 *
 * A service like any other, so that a test or another deployment can give values without an environment. The table
 * below is the only place a setting is declared; `--help` and the reference are printed from it.
 */
import { Context, Effect, Layer, type Redacted } from "effect"
import * as ScopedSecrets from "../core/access/scopedSecrets.ts"
import { keptSetting } from "../core/ivm/keptBytes.ts"
import { defaultTombstones } from "../core/ivm/store/tombstones.ts"
import * as Address from "../core/settings/address.ts"
import * as ServiceFile from "../core/settings/serviceFile.ts"
import * as Settings from "../core/settings/settings.ts"
import { limits } from "../core/surql/evaluate/scope.ts"
import * as LeastPrivilege from "../core/surreal/leastPrivilege.ts"
import * as Configuration from "../node/config/configuration.ts"
import { type Reloaded, Secrets } from "../node/config/secrets.ts"
import * as Tls from "../node/config/tls.ts"
import { ConfigSource, type ConfigSourceShape } from "../ports/ConfigSource.ts"
import type { StartFault } from "../ports/StartFault.ts"
import { resultBytes } from "./views/viewLimits.ts"

const hour = 3_600_000

export const knobs = {
  listenAddr: Settings.text("LISTEN_ADDR", {
    meaning: "Address the service listens on; `:8667` means all interfaces, port 0 takes a free one.",
    defaultText: "127.0.0.1:8667",
    allowed: "host:port, :port or [ipv6]:port",
    read: (text) => (Address.parse(text) === undefined ? undefined : text)
  }),
  authSecret: Settings.secret("SVC_AUTH_SECRET", {
    meaning: "Bearer secret of the protected endpoints; unset, they all answer 401."
  }),
  authSecretPrevious: Settings.secrets("SVC_AUTH_SECRET_PREVIOUS", {
    meaning: "Secrets that are let in too while SVC_AUTH_SECRET is being replaced; never sent."
  }),
  authSecrets: ScopedSecrets.knob,
  storeAddr: Settings.text("STORE_ADDR", {
    meaning:
      "Where records and views are kept: unset for the embedded store under SVC_DATA_DIR, `memory://` to keep nothing, `surrealkv://<folder>` or `mem://` for a SurrealDB inside the process (optional package `@surrealdb/node`); a SurrealDB server (`ws://`, `wss://`, `http://`, `https://` or bare `host:port`) is where records come from.",
    defaultText: "embedded store",
    allowed:
      "unset, memory://, mem://, surrealkv://<folder>, rocksdb://<folder>, or a server as ws://, wss://, http://, https:// or host:port without user, query and fragment",
    read: (text) => (Address.store(text) === undefined ? undefined : text)
  }),
  storeUser: Settings.text("STORE_USER", { meaning: "User on the database server; unset, nobody signs in." }),
  storePass: Settings.password("STORE_PASS", { meaning: "Password of STORE_USER." }),
  storeNs: Settings.text("STORE_NS", {
    meaning: "Database namespace; inside the process `main` by default, needed with a server."
  }),
  storeDb: Settings.text("STORE_DB", {
    meaning: "Database name; inside the process `main` by default, needed with a server."
  }),
  storeAuthLevel: Settings.choice("STORE_AUTH_LEVEL", ["root", "namespace", "database"], undefined, {
    meaning: "Level STORE_USER is defined at.",
    defaultText: "tried in that order"
  }),
  storeServiceUser: Settings.text("STORE_SERVICE_USER", {
    meaning:
      "User that `--install-database-setup --least-privilege` defines in the database, for the service to run as; a command that serves does not read it.",
    allowed: "a name of letters, digits and `_`",
    defaultText: LeastPrivilege.defaultName,
    read: (text) => (/^[A-Za-z_]\w*$/.test(text) ? text : undefined)
  }),
  storeServicePass: Settings.password("STORE_SERVICE_PASS", { meaning: "Password that this command gives it." }),
  configPath: Settings.text("SVC_CONFIG_PATH", {
    meaning: "Configuration file (job tables, backends).",
    defaultText: "./svc.yml if it is there",
    allowed: "the path of a YAML file"
  }),
  ttlCleanupIntervalSecs: Settings.integer("TTL_CLEANUP_INTERVAL_SECS", 60, [1, 86_400], {
    unit: "s",
    meaning: "Interval of the removal of expired views."
  }),
  schedulerUrl: Settings.text("SCHEDULER_URL", {
    meaning:
      "Scheduler address; set, it turns scheduler mode on. Several schedulers of one log (SVC_LOG_URL) separated by commas.",
    allowed: "an http:// or https:// address, or several separated by commas",
    read: (text) => Address.httpBases(text)
  }),
  schedulerAuthSecret: Settings.secret("SVC_SCHEDULER_AUTH_SECRET", {
    meaning:
      "Bearer secret the scheduler asks for; sent to SCHEDULER_URL, and by the database's events to the scheduler."
  }),
  sspId: Settings.text("SSP_ID", {
    meaning: "Name of this SSP.",
    defaultText: "ssp-<uuid>",
    allowed: Settings.nodeNameAllowed,
    read: (text) => (Settings.nodeName.test(text) ? text : undefined)
  }),
  advertiseAddr: Settings.text("ADVERTISE_ADDR", {
    meaning: "Address others reach this SSP at.",
    defaultText: "from LISTEN_ADDR",
    allowed: "host:port or an http:// or https:// address",
    read: (text) => (Address.advertised(text) === undefined ? undefined : text)
  }),
  clusterFeed: Settings.choice("SVC_CLUSTER_FEED", ["push", "pull"], "pull", {
    meaning:
      "How an SSP of a cluster gets changes: `pull`, it follows the tables that its views and jobs read, and holds no others; `push`, it is sent those of every table, and holds all records. A scheduler that only speaks the specification pushes."
  }),
  tableGraceSecs: Settings.integer("SVC_TABLE_GRACE_SECS", 60, [0, 86_400], {
    unit: "s",
    meaning: "How long an SSP that pulls keeps a table that no view reads any more, for one that may come."
  }),
  heartbeatIntervalMs: Settings.integer("HEARTBEAT_INTERVAL_MS", 5000, [100, hour], {
    unit: "ms",
    meaning: "Heartbeat period in scheduler mode."
  }),
  dataDir: Settings.text("SVC_DATA_DIR", {
    meaning: "Folder of the embedded store and saved state.",
    defaultText: "./data (in scheduler mode ./data/<SSP_ID>)",
    allowed: "a path"
  }),
  stateDebounceMs: Settings.integer("SVC_STATE_DEBOUNCE_MS", 2000, [0, hour], {
    unit: "ms",
    meaning: "Quiet time before state is saved."
  }),
  maxBodyBytes: Settings.maxBodyBytes("In scheduler mode 64 KiB more are taken."),
  maxViews: Settings.integer("SVC_MAX_VIEWS", 100_000, [1, 10_000_000], {
    unit: "views",
    meaning: "Most registered views; beyond it registration answers 503."
  }),
  maxPendingChanges: Settings.integer("SVC_MAX_PENDING_CHANGES", 10_000, [1, 10_000_000], {
    unit: "changes",
    meaning: "Most record changes that may wait for the store; beyond it 503 OVERLOADED."
  }),
  maxPendingEdges: Settings.integer("SVC_MAX_PENDING_EDGES", 200_000, [1, 100_000_000], {
    unit: "edges",
    meaning:
      "Most edges that may wait for the database (each the last of its changes, about 300 bytes); beyond it 503 OVERLOADED."
  }),
  maxStreams: Settings.integer("SVC_MAX_STREAMS", 1000, [1, 1_000_000], {
    unit: "streams",
    meaning: "Most views that are followed over event streams; beyond it 503."
  }),
  ...Settings.browser,
  maxTombstones: Settings.integer("SVC_MAX_TOMBSTONES", defaultTombstones, [0, 100_000_000], {
    unit: "records",
    meaning:
      "Most deleted records that are remembered (each about 230 bytes of memory), so that one created again goes on from its last version; of older ones only the highest version is known, and they go on from there."
  }),
  ...Settings.server,
  slowEvaluationMs: Settings.integer("SVC_SLOW_EVALUATION_MS", 250, [0, hour], {
    unit: "ms",
    meaning:
      "One evaluation of a view that computes for longer is written down while it goes on, so that a restart knows it: a query in which the process ended is set aside. 0 writes nothing down."
  }),
  rowErrorsPerMinute: Settings.integer("SVC_ROW_ERRORS_PER_MINUTE", 60, [0, 1_000_000], {
    unit: "lines",
    meaning:
      "Most lines a minute about rows that views leave out, one for each kind of failure in a view, with the first row and its values; the rest are counted, and the count is a line."
  }),
  rowSteps: Settings.integer(limits.rowSteps.setting, limits.rowSteps.value, [1000, 1e12], {
    unit: "steps",
    meaning:
      "Most work for one row of a view, in steps (a row read, an element touched), or for a view that is run whole at each change; a row that needs more is left out and named, a whole run shows no rows and says so."
  }),
  changeSteps: Settings.integer(limits.changeSteps.setting, limits.changeSteps.value, [1000, 1e12], {
    unit: "steps",
    meaning:
      "Most work of one change for the rows of all views, in steps; rows of up to 1000 steps do not count. A row that finds too little left is left out and named until a later change, which evaluates it again."
  }),
  querySteps: Settings.integer(limits.querySteps.setting, limits.querySteps.value, [1000, 1e12], {
    unit: "steps",
    meaning: "Most work for what is evaluated over many rows (a group, a query of its own), in steps."
  }),
  queryBytes: Settings.integer(limits.queryBytes.setting, limits.queryBytes.value, [65_536, 1e12], {
    unit: "bytes",
    meaning:
      "Most memory that the evaluation of one row of a view, or of what is evaluated over many rows, may make and write out; charged before it is made. A row that needs more is left out and named."
  }),
  viewBytesTotal: Settings.integer(keptSetting, 0, [0, 1e12], {
    unit: "bytes",
    meaning:
      "Most memory that rows of all views may keep beside their records: computed sort values, pieces of SPLIT, values and rows of groups, results of subqueries and of queries that are run whole, what rows have read in other records, and the index of edges. A registration that needs more is 503 OVERLOADED; a row that needs more later is left out and named until its record changes again. 0 for a third of the heap's limit."
  }),
  resultBytes: Settings.integer(resultBytes.setting, resultBytes.value, [65_536, resultBytes.most], {
    unit: "bytes",
    meaning:
      "Largest result of a view in format tree when it is written out; never more than a third of the heap's limit. A larger one is refused at registration; one that grows beyond shows no rows and says so. Format flat has no such limit."
  }),
  ...Settings.logging,
  jobRetryBaseMs: Settings.integer("SVC_JOB_RETRY_BASE_MS", 1000, [1, hour], {
    unit: "ms",
    meaning: "Base delay between attempts of a job."
  }),
  jobResultBytes: Settings.integer("SVC_JOB_RESULT_BYTES", 4096, [0, 1_048_575], {
    unit: "bytes",
    meaning:
      "Longest JSON answer of a backend that is kept as its job's result and sent to the scheduler; a longer one is left out and says so. 0 keeps none."
  }),
  jobMaxRetries: Settings.integer("SVC_JOB_MAX_RETRIES", 100, [0, 10_000], {
    unit: "retries",
    meaning: "Cap of a job's max_retries."
  }),
  reconcileIntervalSecs: Settings.reconcileIntervalSecs,
  databaseLeaseSecs: Settings.databaseLeaseSecs,
  databaseWaitMs: Settings.integer("SVC_DATABASE_WAIT_MS", 4_000, [10, hour], {
    unit: "ms",
    meaning: "How long a registration waits for the database to take it; then it is answered 500 STORE_FAILED."
  }),
  changesPerRead: Settings.changesPerRead,
  changesBehindSecs: Settings.changesBehindSecs,
  schemaIntervalMs: Settings.schemaIntervalMs,
  defineEvents: Settings.defineEvents,
  integrityQuietSecs: Settings.integer("SVC_INTEGRITY_QUIET_SECS", 5, [0, 3600], {
    unit: "s",
    meaning:
      "How long a table must be quiet before the hashes of its records are written to a database server; 0 writes none."
  })
}

/** Settings of the scheduler that a shared environment may hold. */
const schedulerNames = [
  "SVC_SCHEDULER_DB_URL",
  "SVC_SCHEDULER_DB_NAMESPACE",
  "SVC_SCHEDULER_DB_DATABASE",
  "SVC_SCHEDULER_DB_USERNAME",
  "SVC_SCHEDULER_DB_PASSWORD",
  "SVC_SCHEDULER_DB_PASSWORD_FILE",
  "SVC_SCHEDULER_AUTH_SECRET_PREVIOUS",
  "SVC_SCHEDULER_AUTH_SECRET_PREVIOUS_FILE",
  "SVC_SCHEDULER_DELIVERY_WAIT_MS",
  "SVC_SCHEDULER_SSP_URL_ALLOW",
  limits.queryRows.setting,
  "SVC_QUERY_BYTES_TOTAL",
  ...ServiceFile.schedulerKeys.map((key) => `SVC_SCHEDULER_${key.toUpperCase()}`)
]

type Read = Settings.Values<typeof knobs>

/** Target of a table's jobs; the token is redacted when a configuration is printed. */
interface JobTable extends Omit<ServiceFile.JobTable, "authToken" | "authTokenFile"> {
  /** Getter: the current value; SIGHUP replaces it. */
  readonly authToken: Redacted.Redacted<string> | undefined
}

export interface SspConfigShape
  extends Omit<
    Read,
    | "listenAddr"
    | "authSecret"
    | "authSecretPrevious"
    | "authSecrets"
    | "schedulerAuthSecret"
    | "storePass"
    | "storeServicePass"
    | "storeServiceUser"
    | "corsOrigins"
    | "browserOrigins"
    | "sspId"
    | "dataDir"
    | "advertiseAddr"
    | "logLevel"
    | keyof Tls.TlsSettings
  > {
  readonly listen: Address.HostPort
  /** Undefined: plain HTTP. */
  readonly tls: Tls.Tls | undefined
  /** The secret as read at the start, for commands that run once; a server asks {@link bearers}. */
  readonly authSecret: Redacted.Redacted<string> | undefined
  /** Secrets that are accepted now. */
  readonly bearers: () => ReadonlyArray<ScopedSecrets.KnownSecret>
  /** The secret that the scheduler is sent now. */
  readonly schedulerSecret: () => Redacted.Redacted<string> | undefined
  /** Reads the files that hold secrets again. */
  readonly reloadSecrets: () => ReadonlyArray<Reloaded>
  readonly corsOrigins: ReadonlyArray<string>
  readonly browserOrigins: ReadonlyArray<string>
  /** Getter: the current value; SIGHUP replaces it. */
  readonly storePass: Redacted.Redacted<string> | undefined
  readonly storeServicePass: Redacted.Redacted<string> | undefined
  readonly storeServiceUser: string
  readonly sspId: string
  readonly dataDir: string
  /** URL at which others reach this SSP (D24), given the port that was bound. */
  readonly advertisedUrl: (port: number) => string
  readonly mode: "standalone" | "scheduler"
  readonly logLevel: NonNullable<Read["logLevel"]>
  /** `maxBodyBytes` and the size that an envelope may add (D17). */
  readonly bodyLimitBytes: number
  readonly jobTables: ReadonlyArray<JobTable>
  /** Warnings to log once at the start. */
  readonly warnings: ReadonlyArray<string>
}

const envelopeBytes = 65_536

/** Job tables with tokens from files, which a reload reads again. */
const jobTablesOf = (
  source: ConfigSourceShape,
  file: ServiceFile.ServiceFile,
  secrets: Secrets,
  faults: Array<string>
): ReadonlyArray<JobTable> =>
  file.jobTables.map(({ authToken, authTokenFile, ...table }) => {
    const path =
      authTokenFile === undefined ? undefined : Configuration.relativeTo(source.file?.path ?? "", authTokenFile.path)
    const held =
      authTokenFile === undefined || path === undefined
        ? () => authToken
        : secrets.holdFile(authTokenFile.key, path, Settings.tokenFile(authTokenFile.key, path, source, faults))
    return {
      ...table,
      get authToken() {
        return Configuration.redacted(held())
      }
    }
  })

/** Faults of store settings that do not fit together. */
const storeFaults = ({
  storeAddr,
  storeAuthLevel,
  storeDb,
  storeNs,
  storePass,
  storeUser
}: Read): ReadonlyArray<string> => {
  const server = Address.store(storeAddr ?? "")?.kind === "server"
  const missing = server
    ? [
        ["STORE_NS", storeNs, "namespace"],
        ["STORE_DB", storeDb, "database"]
      ].filter(([, value]) => value === undefined)
    : []
  return [
    ...missing.map(
      ([name, , what]) =>
        `${name} is not set; STORE_ADDR names a database server, so it must be the name of a ${what} on it`
    ),
    ...(storeUser !== undefined && storePass === undefined
      ? ["STORE_USER is set without its password; set STORE_PASS or STORE_PASS_FILE"]
      : []),
    ...(storeUser === undefined && storePass !== undefined ? ["STORE_PASS is set without a user; set STORE_USER"] : []),
    ...(storeUser === undefined && storeAuthLevel !== undefined
      ? ["STORE_AUTH_LEVEL is set without a user; set STORE_USER"]
      : [])
  ]
}

/** Faults of addresses without TLS, if nodes must verify each other. */
const tlsFaults = ({ advertiseAddr, schedulerUrl, tlsCaFile }: Read): ReadonlyArray<string> => {
  if (tlsCaFile === undefined) return []
  const clear = [
    ...(schedulerUrl ?? "").split(",").map((url) => ["SCHEDULER_URL", url]),
    ["ADVERTISE_ADDR", advertiseAddr]
  ].filter(([, url]) => url?.startsWith("http://"))
  return clear.map(([name, url]) => `${name} is ${url}; must be an https:// address where SVC_TLS_CA_FILE is set`)
}

const schemeOf = (tls: Tls.Tls | undefined): Address.Scheme => (tls === undefined ? "http" : "https")

const warningsOf = (source: ConfigSourceShape, values: Read, file: ServiceFile.ServiceFile): ReadonlyArray<string> => {
  const warnings = [...Settings.unknownNames(source.env, knobs, schedulerNames)]
  if (values.authSecret === undefined && values.authSecretPrevious !== undefined)
    warnings.push("SVC_AUTH_SECRET_PREVIOUS is set without SVC_AUTH_SECRET: it is not let in")
  if (values.authSecret === undefined && values.authSecrets === undefined)
    warnings.push(
      "SVC_AUTH_SECRET is not set: every protected endpoint answers 401; set it to the secret that clients send as `Authorization: Bearer <secret>`"
    )
  const { schedulerUrl, storeAddr, storeUser, tlsCaFile } = values
  if (tlsCaFile !== undefined && schedulerUrl === undefined)
    warnings.push(
      "SVC_TLS_CA_FILE is set without SCHEDULER_URL: an SSP without a cluster asks nobody for a certificate"
    )
  if (schedulerUrl !== undefined && Address.store(storeAddr ?? "")?.kind === "embedded")
    warnings.push(
      `STORE_ADDR=${storeAddr} is not used with SCHEDULER_URL: the scheduler keeps the records; only a database server takes something from an SSP of a cluster, its edges`
    )
  if (storeUser !== undefined && Address.store(storeAddr ?? "")?.kind !== "server")
    warnings.push("STORE_USER is set, but STORE_ADDR names no database server: nobody signs in")
  for (const table of file.tablesWithoutBackend)
    warnings.push(
      `job_tables names ${table} without a backend; give it base_url here or a backends entry, or its jobs will not run`
    )
  return warnings
}

/** All settings, or every fault. `uuid`: id of an SSP that has no name. */
export const read = (source: ConfigSourceShape, uuid: string): Effect.Effect<SspConfigShape, StartFault> =>
  Effect.suspend(() => {
    const faults: Array<string> = []
    const values = Settings.readAll(knobs, source, faults)
    faults.push(
      ...storeFaults(values),
      ...Configuration.sameSecretFaults(
        values.authSecrets,
        [values.authSecret, ...(values.authSecretPrevious ?? [])],
        "SVC_AUTH_SECRET or SVC_AUTH_SECRET_PREVIOUS"
      )
    )
    const { read: file } = Configuration.readFile(source, faults)
    const secrets = new Secrets(source)
    const tlsWarnings: Array<string> = []
    const tls = Tls.loadTls(values, source, secrets, faults, tlsWarnings)
    faults.push(...tlsFaults(values))
    const jobTables = jobTablesOf(source, file, secrets, faults)
    const listen = Address.parse(values.listenAddr ?? Address.defaultListen)
    if (faults.length > 0 || listen === undefined) return Effect.fail(Configuration.configFault(faults))
    const sspId = values.sspId ?? `ssp-${uuid}`
    const mode = values.schedulerUrl === undefined ? "standalone" : "scheduler"
    const {
      authSecret,
      authSecretPrevious,
      authSecrets,
      storePass,
      storeServicePass,
      advertiseAddr,
      corsOrigins,
      browserOrigins,
      schedulerAuthSecret,
      tlsCaFile: _ca,
      tlsCertFile: _cert,
      tlsKeyFile: _key,
      ...rest
    } = values
    const current = secrets.hold(knobs.authSecret, authSecret)
    const previous = secrets.hold(knobs.authSecretPrevious, authSecretPrevious)
    const scoped = secrets.hold(knobs.authSecrets, authSecrets)
    const password = secrets.hold(knobs.storePass, storePass)
    const toScheduler = secrets.hold(knobs.schedulerAuthSecret, schedulerAuthSecret)
    return Effect.succeed({
      ...rest,
      listen,
      tls,
      authSecret: Configuration.redacted(authSecret),
      bearers: secrets.derive(() => Configuration.acceptedSecrets(current(), previous(), scoped())),
      schedulerSecret: () => Configuration.redacted(toScheduler()),
      reloadSecrets: () => secrets.reload(),
      corsOrigins: corsOrigins ?? [],
      browserOrigins: browserOrigins ?? [],
      get storePass() {
        return Configuration.redacted(password())
      },
      storeServicePass: Configuration.redacted(storeServicePass),
      storeServiceUser: values.storeServiceUser ?? LeastPrivilege.defaultName,
      sspId,
      mode,
      dataDir: values.dataDir ?? (mode === "standalone" ? "./data" : `./data/${sspId}`),
      advertisedUrl: (port: number) =>
        Address.advertised(advertiseAddr ?? "", schemeOf(tls)) ??
        Address.reachable(listen, port, source.hostName, schemeOf(tls)),
      logLevel: values.logLevel ?? "info",
      bodyLimitBytes: values.maxBodyBytes + (mode === "scheduler" ? envelopeBytes : 0),
      jobTables,
      warnings: [...warningsOf(source, values, file), ...tlsWarnings]
    })
  })

/** The settings of an SSP: `layerEnv` reads them, `layerOf` takes them as text by name. */
export class SspConfig extends Context.Tag("ssp/Config")<SspConfig, SspConfigShape>() {
  /** Environment and configuration file; the environment wins. */
  static readonly layerEnv: Layer.Layer<SspConfig, StartFault, ConfigSource> = Layer.effect(
    SspConfig,
    Effect.gen(function* () {
      return yield* read(yield* ConfigSource, yield* Configuration.uuid)
    })
  )

  /** Values given as environment text, for tests and composers. */
  static readonly layerOf = (env: { readonly [name: string]: string }): Layer.Layer<SspConfig, StartFault> =>
    SspConfig.layerEnv.pipe(Layer.provide(ConfigSource.layerMemory({ env })))
}
