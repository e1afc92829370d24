/**
 * The scheduler's configuration: every file key and variable does something, the environment wins, every fault is named
 * at once (D5a).
 *
 * Each row gives a value that is not the default and looks for it where it must arrive.
 */
import { Effect, Either, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { strategies } from "../../src/core/cluster/balance.ts"
import { schedulerKeys } from "../../src/core/settings/serviceFile.ts"
import { ConfigSource } from "../../src/ports/ConfigSource.ts"
import { SchedulerConfig, type SchedulerConfigShape } from "../../src/scheduler/Config.ts"
import { limits } from "../../src/scheduler/pool/Pool.ts"

type Env = { readonly [name: string]: string }

const read = (env: Env, content?: unknown, path = "/etc/svc/svc.yml"): Either.Either<SchedulerConfigShape, string> =>
  SchedulerConfig.layerEnv.pipe(
    (layer) => Effect.provide(SchedulerConfig, layer),
    Effect.provide(
      ConfigSource.layerMemory({ env, file: content === undefined ? undefined : { path, content, fault: undefined } })
    ),
    Effect.mapError((fault) => fault.message),
    Effect.either,
    Effect.runSync
  )
const good = (env: Env, content?: unknown): SchedulerConfigShape =>
  Either.getOrThrowWith(read(env, content), (message) => new Error(message))
const fault = (env: Env, content?: unknown): string =>
  Either.getOrThrowWith(Either.flip(read(env, content)), () => new Error("no fault"))

interface Row {
  readonly key: string
  readonly env?: string
  readonly value: string | number
  readonly is: (config: SchedulerConfigShape) => unknown
  readonly expected?: unknown
}

const both = { "db.namespace": "ns", "db.database": "main" } as const

const rows: ReadonlyArray<Row> = [
  {
    key: "db.url",
    env: "SVC_SCHEDULER_DB_URL",
    value: "db.example:8001",
    is: ({ database }) => database?.url,
    expected: "ws://db.example:8001/rpc"
  },
  { key: "db.namespace", env: "SVC_SCHEDULER_DB_NAMESPACE", value: "other", is: ({ database }) => database?.namespace },
  { key: "db.database", env: "SVC_SCHEDULER_DB_DATABASE", value: "other", is: ({ database }) => database?.name },
  { key: "db.username", env: "SVC_SCHEDULER_DB_USERNAME", value: "me", is: ({ database }) => database?.username },
  {
    key: "db.password",
    env: "SVC_SCHEDULER_DB_PASSWORD",
    value: "s p",
    is: ({ database }) => (database?.password === undefined ? undefined : Redacted.value(database.password))
  },
  { key: "load_balance", env: "SVC_SCHEDULER_LOAD_BALANCE", value: "round_robin", is: (config) => config.loadBalance },
  {
    key: "heartbeat_interval_ms",
    env: "SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS",
    value: 700,
    is: (config) => config.heartbeatIntervalMs
  },
  {
    key: "heartbeat_timeout_ms",
    env: "SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS",
    value: 70_000,
    is: (config) => limits(config, strategies[config.loadBalance]).heartbeatTimeoutMs
  },
  {
    key: "bootstrap_chunk_size",
    env: "SVC_SCHEDULER_BOOTSTRAP_CHUNK_SIZE",
    value: 7,
    is: (config) => config.bootstrapChunkSize
  },
  {
    key: "bootstrap_timeout_secs",
    env: "SVC_SCHEDULER_BOOTSTRAP_TIMEOUT_SECS",
    value: 7,
    is: (config) => limits(config, strategies[config.loadBalance]).bootstrapTimeoutMs,
    expected: 7000
  },
  { key: "ingest_host", env: "SVC_SCHEDULER_INGEST_HOST", value: "127.0.0.9", is: (config) => config.listen.host },
  { key: "ingest_port", env: "SVC_SCHEDULER_INGEST_PORT", value: 7777, is: (config) => config.listen.port },
  {
    key: "replica_db_path",
    env: "SVC_SCHEDULER_REPLICA_DB_PATH",
    value: "/data/r",
    is: (config) => config.replicaDbPath
  },
  { key: "wal_path", env: "SVC_SCHEDULER_WAL_PATH", value: "/data/w", is: (config) => config.walPath },
  {
    key: "ssp_poll_interval_ms",
    env: "SVC_SCHEDULER_SSP_POLL_INTERVAL_MS",
    value: 77,
    is: (config) => limits(config, strategies[config.loadBalance]).pollIntervalMs
  },
  {
    key: "max_buffer_per_ssp",
    env: "SVC_SCHEDULER_MAX_BUFFER_PER_SSP",
    value: 77,
    is: (config) => limits(config, strategies[config.loadBalance]).maxBuffer
  },
  {
    key: "snapshot_update_interval_secs",
    env: "SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS",
    value: 77,
    is: (config) => config.snapshotUpdateIntervalSecs
  }
]

/** `db.url` as the file nests it. */
const nested = (values: { readonly [key: string]: unknown }): unknown => {
  const db = Object.fromEntries(
    Object.entries(values)
      .filter(([key]) => key.startsWith("db."))
      .map(([key, value]) => [key.slice(3), value])
  )
  return { ...Object.fromEntries(Object.entries(values).filter(([key]) => !key.startsWith("db."))), db }
}

describe("every key", () => {
  it("D5a the rows below are all keys of the file", () => {
    expect(
      rows
        .map(({ key }) => key)
        .filter((key) => !key.startsWith("db."))
        .sort()
    ).toEqual([...schedulerKeys].sort())
  })
  for (const { env, expected, is, key, value } of rows) {
    it(`D5a ${key} is read from the file, and ${env} wins over it`, () => {
      const without = is(good({}, nested(both)))
      const file = nested({ ...both, [key]: value })
      expect(is(good({}, file))).toEqual(expected ?? value)
      expect(is(good({}, file))).not.toEqual(without)
      expect(
        is(
          good(
            { [env ?? ""]: String(value) },
            nested({ ...both, [key]: typeof value === "number" ? value + 1 : value })
          )
        )
      ).toEqual(expected ?? value)
    })
  }
  it("D5a job_tables as a list, as the SSP's map, and backends with an outbox name job tables", () => {
    const backends = {
      b: {
        type: "http",
        baseUrl: "http://b",
        spec: "s",
        method: { type: "outbox", table: "from_backend", schema: "s" }
      }
    }
    expect([...good({}, { job_tables: ["one", "two"], backends }).jobTables].sort()).toEqual([
      "from_backend",
      "one",
      "two"
    ])
    expect([...good({}, { job_tables: { mail: { name: "mail", base_url: "http://mail" } } }).jobTables]).toEqual([
      "mail"
    ])
  })
  it("D5a paths in the file are relative to it, those of the environment are not", () => {
    expect(good({}, { wal_path: "./wal.log" }).walPath).toBe("/etc/svc/./wal.log")
    expect(good({ SVC_SCHEDULER_WAL_PATH: "./wal.log" }, { wal_path: "x" }).walPath).toBe("./wal.log")
  })
  it("D25 without namespace and database nothing is cloned; D26 the wait is 250 ms; the defaults are the specification's", () => {
    expect(good({})).toMatchObject({
      database: undefined,
      loadBalance: "least_queries",
      heartbeatIntervalMs: 5000,
      heartbeatTimeoutMs: 15_000,
      bootstrapChunkSize: 1000,
      bootstrapTimeoutSecs: 120,
      listen: { host: "0.0.0.0", port: 9667 },
      replicaDbPath: "./data/replica",
      walPath: "./data/event_wal.log",
      sspPollIntervalMs: 3000,
      maxBufferPerSsp: 10_000,
      snapshotUpdateIntervalSecs: 300,
      deliveryWaitMs: 250,
      schedulerId: expect.stringMatching(/^scheduler-[0-9a-f-]{36}$/)
    })
    expect(good({}, nested(both)).database?.url).toBe("ws://localhost:8000/rpc")
  })
})

describe("faults", () => {
  it("D5a are all named at once, with key, value and what is allowed; secrets are not shown", () => {
    const message = fault(
      { SVC_SCHEDULER_INGEST_PORT: "99999", SVC_AUTH_SECRET: "bad secret" },
      { heartbeat_interval_ms: "soon", load_balance: "best", db: { password: { x: 1 } } }
    )
    expect(message).toMatch(/^5 faults/)
    for (const part of [
      "SVC_SCHEDULER_INGEST_PORT",
      "0 to 65535",
      'heartbeat_interval_ms is "soon"',
      'load_balance is "best"; must be one of round_robin',
      "db.password is a value that is not shown"
    ])
      expect(message).toContain(part)
    expect(message).not.toContain("bad secret")
  })
  it("D5a unknown keys, with a suggestion", () =>
    expect(fault({}, { load_balanse: "round_robin" })).toMatch(
      /load_balanse is not a known key; did you mean load_balance\?/
    ))
  it("D64 snapshots beside the log, where that is not on NATS; elsewhere they are where the address says", () => {
    const from = (url: string, log = "postgres://h/d") =>
      good({ SVC_SNAPSHOT_URL: url, SVC_LOG_URL: log }).snapshotSource
    expect(from("log:", "nats://h/x")).toEqual({ kind: "log" })
    expect(from("file:///a%20b/c")).toEqual({ kind: "folder", path: "/a b/c" })
    expect(from("peer:")).toEqual(good({}).snapshotSource)
    for (const env of [{}, { SVC_LOG_URL: "postgres://h/d" }])
      expect(fault({ SVC_SNAPSHOT_URL: "log:", ...env })).toMatch(/SVC_SNAPSHOT_URL is log:.*no log on NATS/)
    for (const bad of ["log:x", "nats://h", "file://host/a", "file:///"])
      expect(fault({ SVC_SNAPSHOT_URL: bad, SVC_LOG_URL: "nats://h" })).toMatch(/SVC_SNAPSHOT_URL/)
  })
  it("D5a only one of namespace and database", () => {
    expect(fault({}, { db: { namespace: "n" } })).toMatch(/db\.namespace is set and db\.database is not/)
    expect(fault({ SVC_SCHEDULER_DB_DATABASE: "d" })).toMatch(/db\.database is set and db\.namespace is not/)
  })
  it("D5a a staleness time-out that is not above the interval", () =>
    expect(fault({ SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "5000" })).toMatch(
      /must be above heartbeat_interval_ms, which is 5000/
    ))
  it("D5a a reference that is not set", () => expect(fault({}, { db: { password: "${NOWHERE}" } })).toMatch(/NOWHERE/))
})

describe("warnings", () => {
  it("D5a unknown names of the environment are warned about, the SSP's are known", () => {
    const { warnings } = good({
      SVC_AUTH_SECRET: "x",
      SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
      SVC_SCHEDULER_WALPATH: "x",
      STORE_ADDR: "x",
      SVC_DATA_DIR: "x"
    })
    expect(warnings).toEqual([expect.stringMatching(/SVC_SCHEDULER_WALPATH is not a setting.*SVC_SCHEDULER_WAL_PATH/)])
  })
  it("D15 all interfaces without a secret are warned about, one interface or a secret is not", () => {
    const about = (env: { readonly [name: string]: string }) =>
      good({ SVC_AUTH_SECRET: "x", ...env }).warnings.filter((text) => text.includes("all interfaces"))
    expect(about({})).toEqual([expect.stringContaining("SVC_SCHEDULER_AUTH_SECRET")])
    expect(about({ SVC_SCHEDULER_INGEST_HOST: "::" })).toHaveLength(1)
    expect([about({ SVC_SCHEDULER_INGEST_HOST: "127.0.0.1" }), about({ SVC_SCHEDULER_AUTH_SECRET: "s" })]).toEqual([
      [],
      []
    ])
  })
  it("D47 opened to anybody is warned about, and where a secret makes nothing of it", () => {
    const about = (env: { readonly [name: string]: string }) =>
      good({ SVC_AUTH_SECRET: "x", SVC_SCHEDULER_OPEN_TO: "anybody", ...env }).warnings
    expect(about({})).toEqual([expect.stringMatching(/SVC_SCHEDULER_OPEN_TO=anybody: everybody/)])
    expect(about({ SVC_SCHEDULER_AUTH_SECRET: "s" })).toEqual([expect.stringContaining("changes nothing")])
    expect(fault({ SVC_SCHEDULER_OPEN_TO: "all" }, {})).toMatch(/SVC_SCHEDULER_OPEN_TO.*private, anybody/)
  })
  it("D15 an unset secret is warned about", () =>
    expect(good({}).warnings.join()).toContain("SVC_AUTH_SECRET is not set"))
})

it("SCHEDULER_ID and the hosts that may register", () => {
  expect(good({ SCHEDULER_ID: "one", SVC_SCHEDULER_SSP_URL_ALLOW: "a.example, *.b.example" })).toMatchObject({
    schedulerId: "one",
    allowedHosts: ["a.example", "*.b.example"]
  })
  expect(fault({ SVC_SCHEDULER_SSP_URL_ALLOW: "http://a" })).toContain("SVC_SCHEDULER_SSP_URL_ALLOW")
})
