/**
 * The SSP's configuration as a whole: defaults, every fault at once, what is derived, what is only warned about.
 *
 * Why without a process: the door's tests prove that it is printed; these prove what it says.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { ConfigSourceShape } from "../../src/ports/ConfigSource.ts"
import * as Config from "../../src/ssp/Config.ts"
import * as Cli from "../../src/ssp/commands/Cli.ts"

const source = (
  env: { readonly [name: string]: string },
  more: Partial<ConfigSourceShape> = {}
): ConfigSourceShape => ({
  env,
  file: undefined,
  readText: () => ({ fault: "none" }),
  hostName: "box",
  ...more
})
const read = (env: { readonly [name: string]: string }, more?: Partial<ConfigSourceShape>) =>
  Config.read(source(env, more), "uuid")
const faults = (env: { readonly [name: string]: string }, more?: Partial<ConfigSourceShape>) =>
  Effect.map(Effect.flip(read(env, more)), ({ exitCode, message }) => ({
    exitCode,
    lines: message.split("\n").map((line) => line.trim())
  }))
const file = (content: unknown, fault?: string): Partial<ConfigSourceShape> => ({
  file: { path: "/etc/svc.yml", content, fault }
})

describe("SSP configuration", () => {
  it.effect("the specification's defaults", () =>
    Effect.gen(function* () {
      const config = yield* read({ SVC_AUTH_SECRET: "s" })
      expect(config).toMatchObject({
        listen: { host: "127.0.0.1", port: 8667 },
        ttlCleanupIntervalSecs: 60,
        heartbeatIntervalMs: 5000,
        mode: "standalone",
        sspId: "ssp-uuid",
        dataDir: "./data",
        storeAddr: undefined,
        maxBodyBytes: 2_097_152,
        bodyLimitBytes: 2_097_152,
        streamBuffer: 1000,
        logLevel: "info",
        warnings: []
      })
    })
  )
  it.effect("D17 D22 scheduler mode: room for the envelope, a data folder of its own", () =>
    Effect.gen(function* () {
      const config = yield* read({ SCHEDULER_URL: "http://scheduler:9667/", SSP_ID: "one", LISTEN_ADDR: ":0" })
      expect([
        config.mode,
        config.schedulerUrl,
        config.bodyLimitBytes,
        config.dataDir,
        config.advertisedUrl(4000)
      ]).toEqual(["scheduler", "http://scheduler:9667", 2_097_152 + 65_536, "./data/one", "http://box:4000"])
    })
  )
  it.effect("D5a every fault at once, exit code 2", () =>
    Effect.gen(function* () {
      const { exitCode, lines } = yield* faults(
        {
          LISTEN_ADDR: "x",
          SCHEDULER_URL: "ftp://x",
          SVC_LOG_LEVEL: "loud",
          SVC_MAX_BODY_BYTES: "1e6",
          SSP_ID: "../up"
        },
        file({ job_tabels: {} })
      )
      expect([exitCode, lines[0]]).toEqual([2, "6 faults in the configuration:"])
      for (const name of [
        "LISTEN_ADDR",
        "SCHEDULER_URL",
        "SVC_LOG_LEVEL",
        "SVC_MAX_BODY_BYTES",
        "SSP_ID",
        "/etc/svc.yml: job_tabels"
      ])
        expect(
          lines.filter((line) => line.startsWith(name)),
          name
        ).toHaveLength(1)
    })
  )
  for (const storeAddr of [
    "ws://db:8000",
    "wss://db",
    "http://db:8000",
    "https://db.example/rpc",
    "db:8000",
    "[::1]:8000"
  ]) {
    it.effect(`D22 ${storeAddr} is a database server: it needs a namespace and a database`, () =>
      Effect.gen(function* () {
        const { exitCode, lines } = yield* faults({ STORE_ADDR: storeAddr })
        expect([exitCode, lines.slice(1).map((line) => line.trim().split(" ")[0])]).toEqual([
          2,
          ["STORE_NS", "STORE_DB"]
        ])
        const config = yield* read({
          STORE_ADDR: storeAddr,
          STORE_NS: "n",
          STORE_DB: "d",
          STORE_USER: "u",
          STORE_PASS: "p w",
          STORE_AUTH_LEVEL: "Database"
        })
        expect(config).toMatchObject({
          storeAddr,
          storeNs: "n",
          storeDb: "d",
          storeUser: "u",
          storeAuthLevel: "database"
        })
        expect(config.storePass === undefined ? undefined : Redacted.value(config.storePass)).toBe("p w")
        expect(config.warnings.filter((warning) => warning.includes("STORE"))).toEqual([])
      })
    )
  }
  it.effect(
    "D22 a text that is no address of a store is a fault that says what is allowed, and shows no password",
    () =>
      Effect.gen(function* () {
        for (const storeAddr of ["redis://db", "ws://u:p4ss@db:8000", "ws://", "db", "ws://db?x=1", "surrealkv://"]) {
          const { lines } = yield* faults({ STORE_ADDR: storeAddr, STORE_NS: "n", STORE_DB: "d" })
          expect(lines[1]).toMatch(/STORE_ADDR is ".*"; must be unset, memory:\/\/, .*ws:\/\/, .*host:port/)
          expect(lines.join()).not.toContain("p4ss")
        }
      })
  )
  it.effect("D22 a user without a password, a password or a level without a user are faults", () =>
    Effect.gen(function* () {
      expect((yield* faults({ STORE_USER: "u" })).lines.slice(1)).toEqual([expect.stringContaining("STORE_PASS_FILE")])
      expect((yield* faults({ STORE_PASS: "hidden", STORE_AUTH_LEVEL: "root" })).lines.slice(1)).toEqual([
        expect.stringMatching(/STORE_PASS is set.*STORE_USER/),
        expect.stringMatching(/STORE_AUTH_LEVEL is set.*STORE_USER/)
      ])
      const { warnings } = yield* read({ STORE_ADDR: "memory://", STORE_USER: "u", STORE_PASS: "p" })
      expect(warnings.filter((warning) => warning.includes("STORE_USER"))).toEqual([
        expect.stringContaining("nobody signs in")
      ])
    })
  )
  it.effect("the compare with the database comes every 10 minutes, and 0 turns it off", () =>
    Effect.gen(function* () {
      expect([
        (yield* read({})).reconcileIntervalSecs,
        (yield* read({ SVC_RECONCILE_INTERVAL_SECS: "0" })).reconcileIntervalSecs
      ]).toEqual([600, 0])
    })
  )
  it.effect("D22 a database inside the process is a store", () =>
    Effect.map(read({ STORE_ADDR: "surrealkv://./data/kv", STORE_NS: "n" }), ({ storeAddr, storeNs, warnings }) =>
      expect([storeAddr, storeNs, warnings.filter((warning) => warning.includes("STORE"))]).toEqual([
        "surrealkv://./data/kv",
        "n",
        []
      ])
    )
  )
  it.effect("a file that cannot be read is a fault that names it", () =>
    Effect.map(faults({}, file(undefined, "cannot be read")), ({ lines }) =>
      expect(lines).toContain("/etc/svc.yml: cannot be read")
    )
  )
  it.effect("D5a secrets are redacted, job tables are read, references come from the environment", () =>
    Effect.gen(function* () {
      const config = yield* read(
        { SVC_AUTH_SECRET: "topsecret", TOKEN: "tok" },
        file({ load_balance: "x", job_tables: { job: { name: "n", base_url: "http://a", auth_token: "${TOKEN}" } } })
      )
      expect(JSON.stringify(config)).not.toMatch(/topsecret|"tok"/)
      expect(config.authSecret === undefined ? undefined : Redacted.value(config.authSecret)).toBe("topsecret")
      expect(config.jobTables).toMatchObject([{ table: "job", timeoutMs: 30_000 }])
      expect(
        config.jobTables.map(({ authToken }) => (authToken === undefined ? undefined : Redacted.value(authToken)))
      ).toEqual(["tok"])
    })
  )
  it.effect("D5a D15 warnings: unset secret, unknown names, job tables without a backend", () =>
    Effect.gen(function* () {
      const { warnings } = yield* read(
        { SVC_AUTH_SECRET: "", SVC_LOG_LEVLE: "x", SVC_SCHEDULER_INGEST_PORT: "1" },
        file({ job_tables: ["mail"] })
      )
      expect(warnings).toHaveLength(3)
      expect(warnings[0]).toContain("did you mean SVC_LOG_LEVEL?")
      expect(warnings[1]).toContain("SVC_AUTH_SECRET is not set")
      expect(warnings[2]).toContain("mail")
    })
  )
  it("every setting is documented, by a name of its own", () => {
    const all = Object.values(Config.knobs)
    expect(new Set(all.map(({ env }) => env)).size).toBe(all.length)
    for (const { allowed, env, meaning } of all)
      expect([env, allowed.length > 3, meaning.endsWith(".")]).toEqual([env, true, true])
  })
})

describe("command line", () => {
  it("knows its options; anything else is a fault with a suggestion", () => {
    expect(["--help", "-h", "--version", "--check-config", "--quickstart"].map((arg) => Cli.parse([arg])._tag)).toEqual(
      Array(5).fill("Right")
    )
    const fault = Cli.parse(["--chek-config", "--port=1"])
    expect(fault._tag === "Left" ? [fault.left.exitCode, fault.left.message] : []).toEqual([
      2,
      expect.stringMatching(/did you mean --check-config\?[^]*--port=1/)
    ])
  })
  it("--help names every setting", () => {
    const text = Cli.help("1.0.0")
    for (const { env } of Object.values(Config.knobs)) expect(text).toContain(`  ${env}`)
  })
})
