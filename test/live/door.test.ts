/**
 * The door as its operator meets it before it serves: options, faults at start, the address (D5a, D22, D24).
 *
 * Why as a process: exit codes and what is printed exist nowhere else. The tests mostly wait, so they run side by side.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { networkInterfaces } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { type Door, secret } from "../../kit/processes/Door.ts"
import { workshop } from "../../kit/processes/workshop.ts"
import { root } from "../../kit/rules/source.ts"

const version = (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version

describe.concurrent("options", () => {
  it("--version prints the version and exits 0", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const door = await use.run({}, "--version")
    expect(door.exit?.code).toBe(0)
    expect(door.logs).toContain(version)
  })
  it("--help names every setting of the specification, D24 127.0.0.1:8667 as the default address, and exits 0", async ({
    onTestFinished
  }) => {
    const use = workshop(onTestFinished)
    const door = await use.run({}, "--help")
    expect(door.exit?.code).toBe(0)
    for (const name of [
      "127.0.0.1:8667",
      "LISTEN_ADDR",
      "SVC_AUTH_SECRET",
      "STORE_ADDR",
      "STORE_USER",
      "STORE_PASS",
      "STORE_NS",
      "STORE_DB",
      "SVC_CONFIG_PATH",
      "TTL_CLEANUP_INTERVAL_SECS",
      "SCHEDULER_URL",
      "SSP_ID",
      "ADVERTISE_ADDR",
      "HEARTBEAT_INTERVAL_MS"
    ]) {
      expect(door.logs).toContain(name)
    }
  })
  it("D5a --check-config exits 0 on a good configuration, without serving, and shows no secret", async ({
    onTestFinished
  }) => {
    const use = workshop(onTestFinished)
    const door = await use.run({}, "--check-config")
    expect(door.exit?.code).toBe(0)
    expect(door.logs).not.toContain(secret)
  })
  it("an unknown option is a fault with exit code 2", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    expect((await use.run({}, "--chekc-config")).exit?.code).toBe(2)
  })
})

describe.concurrent("D5a configuration faults", () => {
  it("D5a all faults at once, each naming its key; exit code 2; no secret printed", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const door = await use.run({
      env: {
        LISTEN_ADDR: "nowhere",
        TTL_CLEANUP_INTERVAL_SECS: "soon",
        HEARTBEAT_INTERVAL_MS: "-5",
        SCHEDULER_URL: "ftp://x",
        SVC_MAX_BODY_BYTES: "many"
      }
    })
    expect(door.exit?.code).toBe(2)
    for (const name of [
      "LISTEN_ADDR",
      "TTL_CLEANUP_INTERVAL_SECS",
      "HEARTBEAT_INTERVAL_MS",
      "SCHEDULER_URL",
      "SVC_MAX_BODY_BYTES"
    ])
      expect(door.logs).toContain(name)
    expect(door.logs).not.toContain(secret)
  })
  it("D5a an unknown key in the file is a fault with a suggestion", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const path = join(use.folder(), "svc.yml")
    writeFileSync(path, "job_table:\n  job:\n    name: job\n    base_url: http://localhost:1\n    auth_token: t\n")
    const door = await use.run({ env: { SVC_CONFIG_PATH: path } })
    expect(door.exit?.code).toBe(2)
    expect(door.logs).toMatch(/job_table\b[\s\S]*job_tables/)
  })
  it("D5a a file that is not there, and a file that is no YAML, are faults that name the file", async ({
    onTestFinished
  }) => {
    const use = workshop(onTestFinished)
    const path = join(use.folder(), "svc.yml")
    const missing = await use.run({ env: { SVC_CONFIG_PATH: path } })
    expect([missing.exit?.code, missing.logs.includes(path)]).toEqual([2, true])
    writeFileSync(path, "job_tables: [unclosed")
    const broken = await use.run({ env: { SVC_CONFIG_PATH: path } })
    expect([broken.exit?.code, broken.logs.includes(path)]).toEqual([2, true])
  })
  it("D5a an environment reference that is unset is a fault, one file may hold the scheduler's keys, unknown SVC_ names only warn", async ({
    onTestFinished
  }) => {
    const use = workshop(onTestFinished)
    const path = join(use.folder(), "svc.yml")
    const file = (token: string): string =>
      `load_balance: least_load\njob_tables:\n  job:\n    name: job\n    base_url: http://localhost:1\n    auth_token: ${token}\n`
    writeFileSync(path, file("${NO_SUCH_TOKEN}"))
    const unset = await use.run({ env: { SVC_CONFIG_PATH: path } }, "--check-config")
    expect([unset.exit?.code, unset.logs.includes("NO_SUCH_TOKEN")]).toEqual([2, true])
    writeFileSync(path, file("${A_TOKEN}"))
    const good = await use.run(
      { env: { SVC_CONFIG_PATH: path, A_TOKEN: "tok-123", SVC_SERVICE_HOST: "10.0.0.1" } },
      "--check-config"
    )
    expect([good.exit?.code, good.logs.includes("SVC_SERVICE_HOST"), good.logs.includes("tok-123")]).toEqual([
      0,
      true,
      false
    ])
  })
  it("D22 a STORE_ADDR whose layer does not exist is a clear start fault", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const door = await use.run({ env: { STORE_ADDR: "redis://localhost:1" } })
    expect([door.exit?.code, door.logs.includes("STORE_ADDR"), door.logs.includes("memory://")]).toEqual([
      2,
      true,
      true
    ])
  })
})

describe.concurrent("D24 address", () => {
  it("D24 a port in use is a fault that names it", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const first = await use.start()
    const second = await use.run({ env: { LISTEN_ADDR: `127.0.0.1:${first.port}` } })
    expect(second.exit?.code).toBeGreaterThan(0)
    expect(second.logs).toContain(String(first.port))
  })
  it("D24 :port means all interfaces, and by default only loopback listens", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const [everywhere, local] = await Promise.all([use.start({ env: { LISTEN_ADDR: ":{port}" } }), use.start()])
    const outward = Object.values(networkInterfaces())
      .flat()
      .find((address) => address !== undefined && !address.internal && address.family === "IPv4")?.address
    const asked = (door: Door, host: string): Promise<number | undefined> =>
      request(`http://${host}:${door.port}`, { path: "/version", keepAlive: false }).then(
        (answer) => answer.status,
        () => undefined
      )
    expect(await asked(everywhere, "127.0.0.1")).toBe(200)
    if (outward === undefined) return
    expect([await asked(everywhere, outward), await asked(local, outward)]).toEqual([200, undefined])
  })
})
