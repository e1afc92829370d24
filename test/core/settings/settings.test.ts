/**
 * Settings, addresses, durations, depth and the configuration file: the pure reading of what operators and clients
 * write.
 *
 * Why together: each is a small table of accepted and refused texts, and a fault must name its key and what is allowed.
 */
import { describe, expect, it } from "vitest"
import * as JsonText from "../../../src/core/jsonText.ts"
import * as Address from "../../../src/core/settings/address.ts"
import * as ServiceFile from "../../../src/core/settings/serviceFile.ts"
import * as Settings from "../../../src/core/settings/settings.ts"
import * as Ttl from "../../../src/core/view/ttl.ts"

const knobs = {
  count: Settings.integer("SVC_COUNT", 5, [1, 10], { meaning: "A count.", unit: "things" }),
  kind: Settings.choice("SVC_KIND", ["a", "b"], "a", { meaning: "A kind." }),
  token: Settings.secret("SVC_TOKEN", { meaning: "A secret." })
}
const readText = (path: string) => (path === "/secret" ? { text: "from-file\n" } : { fault: "no such file" })
const read = (env: Record<string, string>) => {
  const faults: Array<string> = []
  return { values: Settings.readAll(knobs, { env, readText }, faults), faults }
}

describe("settings", () => {
  it("take defaults where a variable is unset or empty", () => {
    expect(read({ SVC_COUNT: "" })).toEqual({ values: { count: 5, kind: "a", token: undefined }, faults: [] })
  })
  it("D5a every fault at once, naming key, value and what is allowed", () => {
    const { faults } = read({ SVC_COUNT: "11", SVC_KIND: "c", SVC_TOKEN: "two words" })
    expect(faults).toEqual([
      'SVC_COUNT is "11"; must be a whole number from 1 to 10',
      'SVC_KIND is "c"; must be one of a, b',
      "SVC_TOKEN is a value that is not shown; must be visible ASCII characters without blanks"
    ])
  })
  it("D5a a secret may come from the file its _FILE variant names, but not from both", () => {
    expect(read({ SVC_TOKEN_FILE: "/secret" })).toEqual({
      values: { count: 5, kind: "a", token: "from-file" },
      faults: []
    })
    expect(read({ SVC_TOKEN_FILE: "/secret", SVC_TOKEN: "x" }).faults).toEqual([
      "SVC_TOKEN and SVC_TOKEN_FILE are both set; set one of them"
    ])
    expect(read({ SVC_TOKEN_FILE: "/none" }).faults[0]).toContain("/none cannot be read")
  })
  it("D5a a fault shows no user and password of an address", () => {
    const faults: Array<string> = []
    Settings.readAll(
      { url: Settings.text("URL", { meaning: "", read: () => undefined }) },
      { env: { URL: "http://user:pass@host" }, readText },
      faults
    )
    expect(faults[0]).toBe('URL is "http://…@host"; must be text')
  })
  it("D5a unknown names of ours are warned about, with a suggestion where one is near", () => {
    expect(Settings.unknownNames({ SVC_CUONT: "1", SVC_TOKEN_FILE: "x", STORE_X: "1", PATH: "/" }, knobs, [])).toEqual([
      "STORE_X is not a setting of this service and is ignored",
      "SVC_CUONT is not a setting of this service and is ignored; did you mean SVC_COUNT?"
    ])
  })
})

describe("addresses", () => {
  for (const [text, expected] of [
    ["127.0.0.1:8667", { host: "127.0.0.1", port: 8667 }],
    [":8667", { host: undefined, port: 8667 }],
    ["[::1]:1", { host: "::1", port: 1 }],
    ["host-1.local:0", { host: "host-1.local", port: 0 }],
    ["nowhere", undefined],
    ["a:70000", undefined],
    ["::1:80", undefined],
    ["a b:1", undefined],
    ["http://a:1", undefined],
    ["", undefined]
  ] as const)
    it(`D24 LISTEN_ADDR ${JSON.stringify(text)}`, () => expect(Address.parse(text)).toEqual(expected))
  it("D24 ADVERTISE_ADDR gets a scheme where it has none", () => {
    expect(
      ["a:1", "http://a:1/", "https://a", "ftp://a", "http://u:p@a", "a b"].map((text) => Address.advertised(text))
    ).toEqual(["http://a:1", "http://a:1", "https://a", undefined, undefined, undefined])
    expect(["a:1", "http://a"].map((text) => Address.advertised(text, "https"))).toEqual(["https://a:1", "http://a"])
  })
  it("D24 unset, it is the host of LISTEN_ADDR, or the machine's name for all interfaces, and the port bound", () => {
    expect(Address.reachable({ host: "10.0.0.1", port: 0 }, 4000, "box")).toBe("http://10.0.0.1:4000")
    expect(Address.reachable({ host: undefined, port: 1 }, 4000, "box")).toBe("http://box:4000")
    expect(Address.reachable({ host: "0.0.0.0", port: 1 }, 4000, "box")).toBe("http://box:4000")
    expect(Address.reachable({ host: "::1", port: 1 }, 4000, "box")).toBe("http://[::1]:4000")
  })
})

describe("D14 durations", () => {
  for (const [text, ms] of [
    ["30s", 30_000],
    ["10m", 600_000],
    ["1h30m", 5_400_000],
    ["1d", 86_400_000],
    ["1w", 604_800_000],
    ["1y", 31_536_000_000],
    ["5ms", 5],
    ["1500us", 2],
    ["1ns", 1],
    ["0s", 0],
    ["3µs4ns", 1]
  ] as const) {
    it(`D14 ${text}`, () => expect(Ttl.parseMs(text)).toBe(ms))
  }
  for (const text of ["", "30", "s", "1.5s", "-1s", "1 h", "1H", "1h 30m", "30sec", "1month"])
    it(`D14 ${JSON.stringify(text)} is none`, () => expect(Ttl.parseMs(text)).toBeUndefined())
})

describe("D17 depth", () => {
  const nested = (levels: number, leaf: unknown = 1): unknown => (levels === 0 ? leaf : { a: nested(levels - 1, leaf) })
  const isTooDeep = (value: unknown): boolean => {
    try {
      JsonText.parse(JSON.stringify(value), JsonText.maxDepth)
      return false
    } catch (error) {
      if (error instanceof JsonText.TooDeep) return true
      throw error
    }
  }
  it("D17 64 levels pass, 65 do not, arrays count too", () => {
    expect([nested(64), nested(65), nested(63, [1]), nested(64, [1]), 5, null].map(isTooDeep)).toEqual([
      false,
      true,
      false,
      true,
      false,
      false
    ])
  })
  it("D17 the array round a batch is no level, so what the scheduler took alone an SSP takes in a batch", () => {
    expect([isTooDeep([nested(64)]), isTooDeep([nested(65)])]).toEqual([false, true])
  })
})

describe("D5a configuration file", () => {
  const readFile = (content: unknown) => {
    const faults: Array<string> = []
    return { file: ServiceFile.read(content, faults), faults }
  }
  it("D5a job tables and outbox backends, the job table's own entry winning", () => {
    const { faults, file } = readFile({
      job_tables: {
        mail: { name: "mail", base_url: "http://a" },
        both: { name: "own", base_url: "http://b", auth_token: "t", timeout_ms: 5, concurrency: 1 }
      },
      backends: {
        api: {
          type: "http",
          baseUrl: "http://c",
          spec: "s.yml",
          method: { type: "outbox", table: "both", schema: "x" }
        },
        other: {
          type: "http",
          baseUrl: "http://d",
          spec: "s.yml",
          auth: { type: "token", token: "u" },
          method: { type: "outbox", table: "other_job", schema: "x" }
        }
      }
    })
    expect(faults).toEqual([])
    expect(file.jobTables.map(({ authToken, baseUrl, table }) => [table, baseUrl, authToken])).toEqual([
      ["both", "http://b", "t"],
      ["other_job", "http://d", "u"],
      ["mail", "http://a", undefined]
    ])
  })
  it("D5a faults carry the whole key path, unknown keys a suggestion, and the scheduler's keys are known", () => {
    const { faults } = readFile({
      load_balance: "x",
      job_tabels: 1,
      db: { urll: 1 },
      job_tables: { a: { name: 1, base_url: "ftp://x", auth_tokn: "secret" } },
      backends: { b: { type: "grpc", method: { type: "direct" } } }
    })
    for (const [key, hint] of [
      ["job_tabels", "job_tables"],
      ["db.urll", "url"],
      ["job_tables.a.auth_tokn", "auth_token"],
      ["job_tables.a.name", "text"],
      ["job_tables.a.base_url", "http://"],
      ["backends.b.type", "http"],
      ["backends.b.method.type", "outbox"],
      ["backends.b.spec", "missing"]
    ] as const) {
      expect(
        faults.filter((fault) => fault.startsWith(`${key} `) && fault.includes(hint)),
        `${key} in ${faults.join("\n")}`
      ).toHaveLength(1)
    }
    expect(faults.some((fault) => fault.includes("secret"))).toBe(false)
    expect(faults.some((fault) => fault.startsWith("load_balance"))).toBe(false)
  })
  it("D5a an empty file is fine, a list or text is not", () => {
    expect([readFile(null).faults, readFile([1]).faults, readFile("x").faults]).toEqual([
      [],
      ["the file must be a mapping"],
      ["the file must be a mapping"]
    ])
  })
  it("D5a ${NAME} is replaced inside any text; unset is a fault that names key and variable", () => {
    const faults: Array<string> = []
    expect(ServiceFile.interpolate({ a: ["x-${A}-${A}", 5, { b: "${NO}" }], c: "$A $${" }, { A: "1" }, faults)).toEqual(
      { a: ["x-1-1", 5, { b: "unset" }], c: "$A $${" }
    )
    expect(faults).toEqual(
      ["a[1].b refers to ${NO}, which is not set in the environment"].map((f) => f.replace("[1]", "[2]"))
    )
  })
})
