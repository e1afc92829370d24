/**
 * Secrets that come from files, in the configurations of both processes: read at the start, read again, kept when a
 * file is broken.
 */
import { Effect, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { hashOf, type KnownSecret, oneSecret } from "../../src/core/access/scopedSecrets.ts"
import type { Reloaded } from "../../src/node/config/secrets.ts"
import { makeJudge, makeSecretFinder } from "../../src/node/http/bearer.ts"
import type { ConfigSourceShape } from "../../src/ports/ConfigSource.ts"
import * as Scheduler from "../../src/scheduler/Config.ts"
import * as Ssp from "../../src/ssp/Config.ts"

/** Whether anybody holds the secret. */
const makeAuthorized =
  (secrets: () => ReadonlyArray<KnownSecret>) =>
  (authorization: string): boolean =>
    makeSecretFinder(secrets)(authorization) !== undefined

type Files = Record<string, string | undefined>

const source = (env: { readonly [name: string]: string }, files: Files, content?: unknown): ConfigSourceShape => ({
  env,
  hostName: "box",
  file: content === undefined ? undefined : { path: "/etc/svc/svc.yml", content, fault: undefined },
  readText: (path) => {
    const text = files[path]
    return text === undefined ? { fault: "ENOENT" } : { text }
  }
})
const ssp = (env: { readonly [name: string]: string }, files: Files = {}, content?: unknown) =>
  Effect.runSync(Ssp.read(source(env, files, content), "uuid"))
const scheduler = (env: { readonly [name: string]: string }, files: Files = {}) =>
  Effect.runSync(Scheduler.read(source({ SVC_AUTH_SECRET: "x", ...env }, files), "uuid"))
const fault = (env: { readonly [name: string]: string }, files: Files, content?: unknown) =>
  Effect.runSync(Effect.flip(Ssp.read(source(env, files, content), "uuid"))).message
const outcomes = (reloaded: ReadonlyArray<Reloaded>) =>
  reloaded.map(({ name, outcome }) => [name, typeof outcome === "string" ? outcome : "fault"])

describe("several secrets", () => {
  it("D15 the current secret and all before it are let in, no other", () => {
    const { bearers } = ssp({ SVC_AUTH_SECRET: "new", SVC_AUTH_SECRET_PREVIOUS: "old older" })
    const authorized = makeAuthorized(bearers)
    expect(["new", "old", "older"].map((secret) => authorized(`Bearer ${secret}`))).toEqual([true, true, true])
    expect(["old older", "", "newold", "ne", "oldest"].map((secret) => authorized(`Bearer ${secret}`))).toEqual([
      false,
      false,
      false,
      false,
      false
    ])
  })
  it("D15 the one that is sent is the one of now", () => {
    const config = scheduler({ SVC_AUTH_SECRET: "new" })
    expect(Redacted.value(config.sspSecret("any") ?? expect.fail("none"))).toBe("new")
  })
  it("D15 earlier secrets alone admit no caller, and are warned about", () => {
    const config = ssp({ SVC_AUTH_SECRET_PREVIOUS: "old" })
    expect([
      makeAuthorized(config.bearers)("Bearer old"),
      config.warnings.filter((text) => text.includes("SVC_AUTH_SECRET_PREVIOUS"))
    ]).toEqual([false, [expect.any(String)]])
  })
  it("every secret is compared, whichever fits: the time says nothing", () => {
    const looked: Array<string> = []
    const watched = (secret: string) =>
      ({
        length: secret.length,
        charCodeAt: (n: number) => (looked.push(`${secret}[${n}]`), secret.charCodeAt(n))
      }) as unknown as string
    expect(makeAuthorized(() => [oneSecret(watched("ab")), oneSecret(watched("xy"))])("Bearer ab")).toBe(true)
    expect(looked).toEqual(["ab[0]", "ab[1]", "xy[0]", "xy[1]"])
  })
})

describe("files that hold secrets", () => {
  const env = { SVC_AUTH_SECRET_FILE: "/run/now", SVC_AUTH_SECRET_PREVIOUS_FILE: "/run/old" }
  it("D5a a reload puts the new secret in force, without a restart", () => {
    const files: Files = { "/run/now": "one\n", "/run/old": "zero\n" }
    const config = ssp(env, files)
    const authorized = makeAuthorized(config.bearers)
    Object.assign(files, { "/run/now": "two\n", "/run/old": "one\nzero\n" })
    expect(authorized("Bearer two")).toBe(false)
    expect(outcomes(config.reloadSecrets())).toEqual([
      ["SVC_AUTH_SECRET_FILE", "changed"],
      ["SVC_AUTH_SECRET_PREVIOUS_FILE", "changed"]
    ])
    expect(["two", "one", "zero"].map((secret) => authorized(`Bearer ${secret}`))).toEqual([true, true, true])
    Object.assign(files, { "/run/old": "one" })
    expect(outcomes(config.reloadSecrets())).toEqual([
      ["SVC_AUTH_SECRET_FILE", "unchanged"],
      ["SVC_AUTH_SECRET_PREVIOUS_FILE", "changed"]
    ])
    expect(authorized("Bearer zero")).toBe(false)
  })
  it("D5a a file that is gone, empty or no secret leaves the old one in force and says so, without the value", () => {
    const files: Files = { "/run/now": "one" }
    const config = ssp({ SVC_AUTH_SECRET_FILE: "/run/now" }, files)
    for (const broken of [undefined, "", "\n", "two words", "tw\u0000o"]) {
      files["/run/now"] = broken
      const [{ name, outcome } = expect.fail("nothing reloaded")] = config.reloadSecrets()
      expect([name, outcome]).toEqual([
        "SVC_AUTH_SECRET_FILE",
        { fault: expect.stringMatching(/SVC_AUTH_SECRET_FILE/) }
      ])
      expect(JSON.stringify(outcome)).not.toMatch(/two words|tw\\u0000o/)
      expect(makeAuthorized(config.bearers)("Bearer one"), JSON.stringify(broken)).toBe(true)
    }
  })
  it("D5a what stands in the environment itself is not reloaded", () => {
    expect(ssp({ SVC_AUTH_SECRET: "one" }).reloadSecrets()).toEqual([])
  })
  it("D5a the scheduler reloads what it sends to SSPs and what it asks for", () => {
    const files: Files = { "/run/ssp": "s1", "/run/own": "o1" }
    const config = scheduler(
      { SVC_AUTH_SECRET: "", SVC_AUTH_SECRET_FILE: "/run/ssp", SVC_SCHEDULER_AUTH_SECRET_FILE: "/run/own" },
      files
    )
    Object.assign(files, { "/run/ssp": "s2", "/run/own": "o2" })
    config.reloadSecrets()
    const authorized = makeAuthorized(config.bearers ?? expect.fail("asks nobody"))
    expect([
      Redacted.value(config.sspSecret("any") ?? expect.fail("none")),
      authorized("Bearer o2"),
      authorized("Bearer o1")
    ]).toEqual(["s2", true, false])
  })
  it("D5a the passwords of databases are reloaded, for the next sign-in", () => {
    const files: Files = { "/run/db": "p1" }
    const beside = ssp(
      {
        SVC_AUTH_SECRET: "x",
        STORE_ADDR: "ws://db",
        STORE_NS: "n",
        STORE_DB: "d",
        STORE_USER: "u",
        STORE_PASS_FILE: "/run/db"
      },
      files
    )
    const cloned = scheduler(
      { SVC_SCHEDULER_DB_NAMESPACE: "n", SVC_SCHEDULER_DB_DATABASE: "d", SVC_SCHEDULER_DB_PASSWORD_FILE: "/run/db" },
      files
    )
    const passwords = () =>
      [beside.storePass, cloned.database?.password].map((password) => Redacted.value(password ?? expect.fail("none")))
    expect(passwords()).toEqual(["p1", "p1"])
    files["/run/db"] = "p2"
    beside.reloadSecrets()
    cloned.reloadSecrets()
    expect(passwords()).toEqual(["p2", "p2"])
  })
  it("D5a what an SSP sends to the scheduler is reloaded too", () => {
    const files: Files = { "/run/own": "o1" }
    const config = ssp({ SVC_SCHEDULER_AUTH_SECRET_FILE: "/run/own" }, files)
    files["/run/own"] = "o2"
    config.reloadSecrets()
    expect(Redacted.value(config.schedulerSecret() ?? expect.fail("none"))).toBe("o2")
  })
})

describe("tokens of job tables", () => {
  const job = (more: object) => ({ job_tables: { mail_job: { name: "mail", base_url: "http://b", ...more } } })
  const backend = (auth: object) => ({
    backends: {
      mail: {
        type: "http",
        baseUrl: "http://b",
        spec: "s.yml",
        auth: { type: "token", ...auth },
        method: { type: "outbox", table: "mail_job", schema: "s.surql" }
      }
    }
  })
  for (const [what, content] of [
    ["auth_token_file of a job table", job({ auth_token_file: "tokens/mail" })],
    ["token_file of a backend", backend({ token_file: "tokens/mail" })]
  ] as const) {
    it(`D5a ${what} is read beside the file that names it, and again at a reload`, () => {
      const files: Files = { "/etc/svc/tokens/mail": "t1\n" }
      const config = ssp({ SVC_AUTH_SECRET: "x" }, files, content)
      const token = () => Redacted.value(config.jobTables[0]?.authToken ?? expect.fail("no token"))
      expect(token()).toBe("t1")
      files["/etc/svc/tokens/mail"] = "t2\n"
      expect(outcomes(config.reloadSecrets())).toEqual([
        [expect.stringMatching(/mail_job\.auth_token_file|mail\.auth\.token_file/), "changed"]
      ])
      expect(token()).toBe("t2")
      files["/etc/svc/tokens/mail"] = undefined
      expect(outcomes(config.reloadSecrets())[0]?.[1]).toBe("fault")
      expect(token()).toBe("t2")
    })
  }
  it("D5a a token and a file for it, or a file that is not there, are faults", () => {
    expect(
      fault({ SVC_AUTH_SECRET: "x" }, { "/etc/svc/t": "t" }, job({ auth_token: "a", auth_token_file: "t" }))
    ).toContain("auth_token_file is set beside auth_token")
    expect(fault({ SVC_AUTH_SECRET: "x" }, {}, job({ auth_token_file: "t" }))).toContain(
      "job_tables.mail_job.auth_token_file: /etc/svc/t cannot be read"
    )
    expect(fault({ SVC_AUTH_SECRET: "x" }, { "/etc/svc/t": "two\nlines" }, job({ auth_token_file: "t" }))).toMatch(
      /auth_token_file: \/etc\/svc\/t holds a value that is not shown/
    )
    expect(fault({ SVC_AUTH_SECRET: "x" }, {}, backend({}))).toContain("backends.mail.auth.token is missing")
  })
  it("D5a no secret shows when a configuration is printed", () => {
    const config = ssp(
      {
        SVC_AUTH_SECRET: "s3cr3t-a",
        SVC_AUTH_SECRET_PREVIOUS: "s3cr3t-b",
        SVC_SCHEDULER_AUTH_SECRET: "s3cr3t-c",
        STORE_ADDR: "ws://db",
        STORE_NS: "n",
        STORE_DB: "d",
        STORE_USER: "u",
        STORE_PASS: "s3cr3t-d"
      },
      { "/etc/svc/t": "s3cr3t-e" },
      job({ auth_token_file: "t" })
    )
    expect(`${JSON.stringify(config)} ${JSON.stringify(config.jobTables)}`).not.toContain("s3cr3t")
  })
})

describe("secrets by name and scope", () => {
  const a = "aaaaaaaaaaaaaaaa"
  const b = "bbbbbbbbbbbbbbbb"
  const refused = { code: "UNAUTHORIZED" as const, message: "who is there?" }
  const judged = (config: { readonly bearers: (() => ReadonlyArray<KnownSecret>) | undefined }, secret: string) => {
    const found = makeJudge(config.bearers, refused)(`Bearer ${secret}`, "metrics")
    return "caller" in found ? found.caller.name : found.turned.code
  }
  it("D15 the caller is told by name; the one secret and those before it are `default`", () => {
    const config = ssp({
      SVC_AUTH_SECRET: "one",
      SVC_AUTH_SECRET_PREVIOUS: "old",
      SVC_AUTH_SECRETS: `grafana metrics ${a}\nshop read,register sha256:${hashOf(b)}`
    })
    expect(
      ["one", "old", a, b, hashOf(b), `sha256:${hashOf(b)}`, "other"].map((secret) => judged(config, secret))
    ).toEqual(["default", "default", "grafana", "SCOPE_REQUIRED", "UNAUTHORIZED", "UNAUTHORIZED", "UNAUTHORIZED"])
  })
  it("D15 a scheduler asks for a secret as soon as it has one by name", () => {
    expect(
      ["", "wrong", a].map((secret) => judged(scheduler({ SVC_AUTH_SECRETS: `grafana metrics ${a}` }), secret))
    ).toEqual(["UNAUTHORIZED", "UNAUTHORIZED", "grafana"])
    expect(judged(scheduler({}), "")).toBe("none")
  })
  it("D15 all secrets by name are compared too, hashed ones by all of their hash", () => {
    const looked: Array<string> = []
    const watched = (name: string, text: string) =>
      ({
        length: text.length,
        charCodeAt: (n: number) => (looked.push(`${name}${n}`), text.charCodeAt(n))
      }) as unknown as string
    const hashed = (name: string, text: string): KnownSecret => ({
      ...oneSecret(""),
      name,
      text: undefined,
      sha256: watched(name, hashOf(text))
    })
    expect(
      makeSecretFinder(() => [hashed("a", "xx"), oneSecret(watched("b", "yyy")), hashed("c", "zz")])("Bearer xx")?.name
    ).toBe("a")
    expect(["a", "b", "c"].map((name) => looked.filter((look) => look.startsWith(name)).length)).toEqual([64, 2, 64])
  })
  it("D15 an entry must not have the one secret, now or before: it would open everything", () => {
    expect(fault({ SVC_AUTH_SECRET: a, SVC_AUTH_SECRETS: `grafana metrics ${a}` }, {})).toMatch(
      /SVC_AUTH_SECRETS: grafana has the secret of SVC_AUTH_SECRET or/
    )
    expect(
      fault(
        {
          SVC_AUTH_SECRET: "one",
          SVC_AUTH_SECRET_PREVIOUS: `x ${b}`,
          SVC_AUTH_SECRETS: `grafana metrics sha256:${hashOf(b)}`
        },
        {}
      )
    ).not.toContain(b)
  })
  it("D15 a reload puts entries in force and takes others away; a file with a fault changes nothing", () => {
    const files: Files = { "/run/all": `grafana metrics ${a}` }
    const config = ssp({ SVC_AUTH_SECRETS_FILE: "/run/all" }, files)
    expect([judged(config, a), judged(config, b)]).toEqual(["grafana", "UNAUTHORIZED"])
    files["/run/all"] = `grafana metrics ${b}`
    expect(outcomes(config.reloadSecrets())).toEqual([["SVC_AUTH_SECRETS_FILE", "changed"]])
    expect([judged(config, a), judged(config, b)]).toEqual(["UNAUTHORIZED", "grafana"])
    files["/run/all"] = `grafana read ${b}`
    expect([outcomes(config.reloadSecrets())[0]?.[1], judged(config, b)]).toEqual(["changed", "SCOPE_REQUIRED"])
    files["/run/all"] = `grafana metrix ${a}`
    expect(JSON.stringify(config.reloadSecrets())).toMatch(
      /line 1 \(grafana\) has a scope that does not exist, did you mean metrics/
    )
    expect([judged(config, a), judged(config, b)]).toEqual(["UNAUTHORIZED", "SCOPE_REQUIRED"])
  })
  it("D54 an SSP is sent the secret of its name, the others the one of all, and a reload replaces it", () => {
    const files: Files = { "/run/all": `ssp-1 ssp,read ${a}\nssp-2 read ${b}` }
    const config = scheduler({ SVC_AUTH_SECRETS_FILE: "/run/all" }, files)
    const sent = () =>
      ["ssp-1", "ssp-2", "ssp-3"].map((name) => Redacted.value(config.sspSecret(name) ?? expect.fail("none")))
    expect(sent()).toEqual([a, "x", "x"])
    files["/run/all"] = `ssp-1 ssp,read ${b}`
    config.reloadSecrets()
    expect(sent()).toEqual([b, "x", "x"])
  })
})
