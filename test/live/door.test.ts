/**
 * The door as its operator meets it: options, faults at start, signals, logs, data folder (D5a, D22, D23, D24).
 *
 * Why as a process: exit codes, signals and what is printed exist nowhere else.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { networkInterfaces } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { send } from "../kit/contract.ts"
import { Door, type DoorOptions, removeFolder, secret, temporaryFolder, until } from "../kit/Door.ts"
import { bodyOf, request } from "../kit/http.ts"
import { root } from "../kit/source.ts"
import { create, registration } from "../kit/registration.ts"

const doors: Array<Door> = []
const folders: Array<string> = []
afterEach(async () => {
  for (const door of doors.splice(0)) await door.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})
const start = async (options: DoorOptions = {}): Promise<Door> => {
  const door = await Door.start(options)
  doors.push(door)
  return door
}
const run = async (options: DoorOptions, ...args: ReadonlyArray<string>): Promise<Door> => {
  const door = await Door.spawn(options, ...args)
  doors.push(door)
  await door.exited
  return door
}
const folder = (): string => {
  const path = temporaryFolder()
  folders.push(path)
  return path
}
const version = (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version

describe("options", () => {
  it("--version prints the version and exits 0", async () => {
    const door = await run({}, "--version")
    expect(door.exit?.code).toBe(0)
    expect(door.logs).toContain(version)
  })
  it("--help names every setting of the specification and exits 0", async () => {
    const door = await run({}, "--help")
    expect(door.exit?.code).toBe(0)
    for (const name of ["LISTEN_ADDR", "SVC_AUTH_SECRET", "STORE_ADDR", "STORE_USER", "STORE_PASS", "STORE_NS", "STORE_DB", "SVC_CONFIG_PATH", "TTL_CLEANUP_INTERVAL_SECS", "SCHEDULER_URL", "SSP_ID", "ADVERTISE_ADDR", "HEARTBEAT_INTERVAL_MS"]) {
      expect(door.logs).toContain(name)
    }
  })
  it("D5a --check-config exits 0 on a good configuration, without serving, and shows no secret", async () => {
    const door = await run({}, "--check-config")
    expect(door.exit?.code).toBe(0)
    expect(door.logs).not.toContain(secret)
  })
  it("an unknown option is a fault with exit code 2", async () => {
    expect((await run({}, "--chekc-config")).exit?.code).toBe(2)
  })
})

describe("D5a configuration faults", () => {
  it("D5a all faults at once, each naming its key; exit code 2; no secret printed", async () => {
    const door = await run({ env: { LISTEN_ADDR: "nowhere", TTL_CLEANUP_INTERVAL_SECS: "soon", HEARTBEAT_INTERVAL_MS: "-5", SCHEDULER_URL: "ftp://x", SVC_MAX_BODY_BYTES: "many" } })
    expect(door.exit?.code).toBe(2)
    for (const name of ["LISTEN_ADDR", "TTL_CLEANUP_INTERVAL_SECS", "HEARTBEAT_INTERVAL_MS", "SCHEDULER_URL", "SVC_MAX_BODY_BYTES"]) expect(door.logs).toContain(name)
    expect(door.logs).not.toContain(secret)
  })
  it("D5a an unknown key in the file is a fault with a suggestion", async () => {
    const path = join(folder(), "svc.yml")
    writeFileSync(path, "job_table:\n  job:\n    name: job\n    base_url: http://localhost:1\n    auth_token: t\n")
    const door = await run({ env: { SVC_CONFIG_PATH: path } })
    expect(door.exit?.code).toBe(2)
    expect(door.logs).toMatch(/job_table\b[\s\S]*job_tables/)
  })
  it("D5a a file that is not there, and one that is no YAML, are faults that name the file", async () => {
    const path = join(folder(), "svc.yml")
    const missing = await run({ env: { SVC_CONFIG_PATH: path } })
    expect([missing.exit?.code, missing.logs.includes(path)]).toEqual([2, true])
    writeFileSync(path, "job_tables: [unclosed")
    const broken = await run({ env: { SVC_CONFIG_PATH: path } })
    expect([broken.exit?.code, broken.logs.includes(path)]).toEqual([2, true])
  })
  it("D5a an environment reference that is unset is a fault, one file may hold the scheduler's keys, unknown SVC_ names only warn", async () => {
    const path = join(folder(), "svc.yml")
    const file = (token: string): string => `load_balance: least_load\njob_tables:\n  job:\n    name: job\n    base_url: http://localhost:1\n    auth_token: ${token}\n`
    writeFileSync(path, file("${NO_SUCH_TOKEN}"))
    const unset = await run({ env: { SVC_CONFIG_PATH: path } }, "--check-config")
    expect([unset.exit?.code, unset.logs.includes("NO_SUCH_TOKEN")]).toEqual([2, true])
    writeFileSync(path, file("${A_TOKEN}"))
    const good = await run({ env: { SVC_CONFIG_PATH: path, A_TOKEN: "tok-123", SVC_SERVICE_HOST: "10.0.0.1" } }, "--check-config")
    expect([good.exit?.code, good.logs.includes("SVC_SERVICE_HOST"), good.logs.includes("tok-123")]).toEqual([0, true, false])
  })
  it("D22 a STORE_ADDR whose layer does not exist is a clear start fault", async () => {
    const door = await run({ env: { STORE_ADDR: "redis://localhost:1" } })
    expect([door.exit?.code, door.logs.includes("STORE_ADDR"), door.logs.includes("memory://")]).toEqual([2, true, true])
  })
})

describe("D24 address", () => {
  it("D24 LISTEN_ADDR defaults to 127.0.0.1:8667, and a port in use is a fault that names it", async () => {
    const help = await run({}, "--help")
    expect(help.logs).toContain("127.0.0.1:8667")
    const first = await start()
    const second = await run({ env: { LISTEN_ADDR: `127.0.0.1:${first.port}` } })
    expect(second.exit?.code).toBeGreaterThan(0)
    expect(second.logs).toContain(String(first.port))
  })
  it("D24 :port means all interfaces, and by default only loopback listens", async () => {
    const everywhere = await start({ env: { LISTEN_ADDR: ":{port}" } })
    const local = await start()
    const outward = Object.values(networkInterfaces()).flat().find((address) => address !== undefined && !address.internal && address.family === "IPv4")?.address
    const asked = (door: Door, host: string): Promise<number | undefined> =>
      request(`http://${host}:${door.port}`, { path: "/version", keepAlive: false }).then((answer) => answer.status, () => undefined)
    expect(await asked(everywhere, "127.0.0.1")).toBe(200)
    if (outward === undefined) return
    expect([await asked(everywhere, outward), await asked(local, outward)]).toEqual([200, undefined])
  })
})

describe("signals", () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`${signal} stops with exit code 0 and finishes the request in flight`, async () => {
      const door = await start()
      const body = JSON.stringify(create("a:1"))
      const answer = new Promise<string>((done) => {
        let text = ""
        const socket = connect(door.port, "127.0.0.1", () => {
          socket.write(`POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 10)}`)
          setTimeout(() => {
            door.signal(signal)
            setTimeout(() => socket.write(body.slice(10)), 200)
          }, 200)
        })
        socket.on("data", (chunk) => {
          text += chunk.toString()
        })
        socket.on("close", () => done(text))
        socket.on("error", () => done(text))
      })
      expect(await door.exited).toEqual({ code: 0, signal: null })
      expect(await answer).toMatch(/^HTTP\/1\.1 200 /)
    })
  }
  it("a second signal exits at once though a request still hangs", async () => {
    const door = await start()
    const socket = connect(door.port, "127.0.0.1", () => socket.write(`POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: 100\r\n\r\n{`))
    socket.on("error", () => {})
    await send(door, { ask: "GET /debug/deps" })
    door.signal("SIGTERM")
    await until("the first signal is seen: no new connections", async () => (await request(door.url, { path: "/health", keepAlive: false }).catch(() => undefined))?.status !== 200)
    expect(door.exit).toBeUndefined()
    const asked = performance.now()
    door.signal("SIGTERM")
    const exit = await door.exited
    expect(exit).not.toEqual({ code: 0, signal: null })
    expect(performance.now() - asked).toBeLessThan(8_000)
    socket.destroy()
  })
  it("SIGTERM is answered within 10 s by exit code 0 even when a request never ends", async () => {
    const door = await start()
    const socket = connect(door.port, "127.0.0.1", () => socket.write(`POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: 100\r\n\r\n{`))
    socket.on("error", () => {})
    await send(door, { ask: "GET /debug/deps" })
    expect(await door.stop()).toEqual({ code: 0, signal: null })
    socket.destroy()
  })
})

describe("logs", () => {
  it("are one JSON object per line when the output is no terminal", async () => {
    const door = await start()
    await send(door, { ask: "POST /log", body: { message: "for the log", level: "warn", data: { a: 1 } } })
    await until("the message", () => door.logs.includes("for the log"))
    await door.stop()
    const lines = door.logs.split("\n").filter((line) => line !== "")
    expect(lines.length).toBeGreaterThan(1)
    for (const line of lines) expect(() => JSON.parse(line) as unknown, line).not.toThrow()
  })
})

describe("D22 data folder", () => {
  const sqlite = (dataDir: string): DoorOptions => ({ dataDir, env: { STORE_ADDR: undefined } })
  it("D22 D23 records, versions, views and generations are there after a clean stop and start", async () => {
    const dataDir = folder()
    const first = await start(sqlite(dataDir))
    await send(first, { ask: "POST /view/register", body: registration("v", "SELECT * FROM a WHERE n > 0", { format: "tree" }) })
    for (const n of [1, 2, 3]) await send(first, { ask: "POST /ingest", body: create("a:1", { n }) })
    await send(first, { ask: "POST /ingest", body: create("a:⟨odd id⟩", { n: 1.5, big: 12345678901234, nothing: null, at: "2024-01-01T00:00:00.123456789Z", deep: { list: [1, [2, { a: null }]] } }) })
    const before = bodyOf(await send(first, { ask: "GET /view/v" }))
    expect((await first.stop()).code).toBe(0)
    const second = await start(sqlite(dataDir))
    expect(bodyOf(await send(second, { ask: "GET /view/v" }))).toEqual(before)
    expect(bodyOf(await send(second, { ask: "GET /view/v?format=flat" }))["result_data"]).toEqual([["a:1", 3], [expect.any(String), 1]])
  })
  it("D22 memory:// keeps nothing", async () => {
    const dataDir = folder()
    const first = await start({ dataDir })
    await send(first, { ask: "POST /ingest", body: create("a:1") })
    await first.stop()
    const second = await start({ dataDir })
    expect((await send(second, { ask: "GET /debug/deps" })).json).toMatchObject({ tables_in_store: [] })
  })
  it("D22 a second process on the same folder gets a clear fault that names it, the first goes on", async () => {
    const dataDir = folder()
    const first = await start(sqlite(dataDir))
    const second = await run(sqlite(dataDir))
    expect(second.exit?.code).toBeGreaterThan(0)
    expect(second.logs).toContain(dataDir)
    expect((await send(first, { ask: "POST /ingest", body: create("a:1") })).status).toBe(200)
  })
  it("D22 a damaged database file is refused with exit code 3 and a message naming it", async () => {
    const dataDir = folder()
    const first = await start(sqlite(dataDir))
    for (let n = 0; n < 200; n++) await send(first, { ask: "POST /ingest", body: create(`a:${n}`, { text: "x".repeat(500) }) })
    await first.stop()
    const files = readdirSync(dataDir, { recursive: true, encoding: "utf8" }).map((name) => join(dataDir, name))
    const database = files.filter((path) => isSqlite(path))
    expect(database).toHaveLength(1)
    const bytes = readFileSync(database[0] ?? "")
    bytes.fill(0xa5, 100, bytes.length)
    writeFileSync(database[0] ?? "", bytes)
    const second = await run(sqlite(dataDir))
    expect([second.exit?.code, second.logs.includes(database[0] ?? "?")]).toEqual([3, true])
  })
  it("D23 a damaged saved state is set aside and reported, and the views are right all the same", async () => {
    const dataDir = folder()
    const first = await start(sqlite(dataDir))
    await send(first, { ask: "POST /view/register", body: registration("v", "SELECT * FROM a") })
    await send(first, { ask: "POST /ingest", body: create("a:1") })
    const before = bodyOf(await send(first, { ask: "GET /view/v" }))
    await first.stop()
    const files = readdirSync(dataDir, { recursive: true, encoding: "utf8" }).map((name) => join(dataDir, name))
    const states = files.filter((path) => path.endsWith(".json"))
    expect(states.length).toBeGreaterThan(0)
    for (const path of states) writeFileSync(path, "{ damaged")
    const second = await start(sqlite(dataDir))
    const after = bodyOf(await send(second, { ask: "GET /view/v" }))
    expect({ ...after, content_generation: 0 }).toEqual({ ...before, content_generation: 0 })
    expect(after["content_generation"]).toBeGreaterThanOrEqual(Number(before["content_generation"]))
    expect(second.logs).toMatch(/damaged/)
  })
  it("D22 a folder that cannot be used is a fault that names it", async () => {
    const path = join(folder(), "file")
    mkdirSync(join(path, ".."), { recursive: true })
    writeFileSync(path, "no folder")
    const door = await run(sqlite(path))
    expect(door.exit?.code).toBeGreaterThan(0)
    expect(door.logs).toContain(path)
  })
})

const isSqlite = (path: string): boolean => {
  try {
    return readFileSync(path).subarray(0, 15).toString() === "SQLite format 3"
  } catch {
    return false
  }
}
