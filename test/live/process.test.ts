/**
 * The life of the process: signals, logs, and what its data folder holds over a restart (D22, D23).
 *
 * Why as a process: signals, locks and restarts exist nowhere else. The tests of signals mostly
 * wait, so they run side by side.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { type Body, bodyOf, request } from "../../kit/checks/http.ts"
import { campaign } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, type DoorOptions, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { workshop } from "../../kit/processes/workshop.ts"

describe.concurrent("signals", () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`${signal} stops with exit code 0 and finishes the request in flight`, async ({ onTestFinished }) => {
      const use = workshop(onTestFinished)
      const door = await use.start()
      const body = JSON.stringify(create("a:1"))
      // Opened ahead, as clients do that keep connections, and never asked on.
      const unused = connect(door.port, "127.0.0.1").on("error", () => {})
      let isWritten = (): void => {}
      const written = new Promise<void>((done) => {
        isWritten = done
      })
      const socket = connect(door.port, "127.0.0.1")
      const answer = new Promise<string>((done) => {
        let text = ""
        socket.on("connect", () => {
          socket.write(
            `POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 10)}`
          )
          isWritten()
        })
        socket.on("data", (chunk) => {
          text += chunk.toString()
        })
        socket.on("close", () => done(text))
        socket.on("error", () => done(text))
      })
      await written
      // A request that comes after it is answered, so the door has read the head of the first one.
      await send(door, { ask: "GET /debug/deps" })
      door.signal(signal)
      await until(
        "the door takes no new connections",
        async () =>
          (await request(door.url, { path: "/health", keepAlive: false }).catch(() => undefined))?.status !== 200
      )
      socket.write(body.slice(10))
      expect(await door.exited).toEqual({ code: 0, signal: null })
      expect(await answer).toMatch(/^HTTP\/1\.1 200 /)
      unused.destroy()
      expect(door.logs).not.toMatch(/still busy/)
    })
  }
  it("a second signal exits at once though a request still hangs", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const door = await use.start()
    const socket = connect(door.port, "127.0.0.1", () =>
      socket.write(
        `POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: 100\r\n\r\n{`
      )
    )
    socket.on("error", () => {})
    await send(door, { ask: "GET /debug/deps" })
    door.signal("SIGTERM")
    await until(
      "the first signal is seen: no new connections",
      async () =>
        (await request(door.url, { path: "/health", keepAlive: false }).catch(() => undefined))?.status !== 200
    )
    expect(door.exit).toBeUndefined()
    const asked = performance.now()
    door.signal("SIGTERM")
    const exit = await door.exited
    expect(exit).not.toEqual({ code: 0, signal: null })
    expect(performance.now() - asked).toBeLessThan(8_000)
    socket.destroy()
  })
  it("SIGTERM is answered within 10 s by exit code 0 even when a request never ends", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const door = await use.start()
    const socket = connect(door.port, "127.0.0.1", () =>
      socket.write(
        `POST /ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: 100\r\n\r\n{`
      )
    )
    socket.on("error", () => {})
    await send(door, { ask: "GET /debug/deps" })
    expect(await door.stop()).toEqual({ code: 0, signal: null })
    socket.destroy()
  })
})

/** One folder from its first start to its end: each test takes it as the one before left it. */
describe("D22 data folder", () => {
  const folder = temporaryFolder()
  const dataDir = join(folder, "kept")
  const options: DoorOptions = { dataDir, env: { STORE_ADDR: undefined } }
  let door: Door
  let before: Body
  afterAll(async () => {
    await door?.close()
    removeFolder(folder)
  })
  const files = () => readdirSync(dataDir, { recursive: true, encoding: "utf8" }).map((name) => join(dataDir, name))
  beforeAll(async () => {
    door = await Door.start(options)
    await send(door, {
      ask: "POST /view/register",
      body: registration("v", "SELECT * FROM a WHERE n > 0", { format: "tree" })
    })
    for (const n of [1, 2, 3]) await send(door, { ask: "POST /ingest", body: create("a:1", { n }) })
    await send(door, {
      ask: "POST /ingest",
      body: create("a:⟨odd id⟩", {
        n: 1.5,
        big: 12345678901234,
        nothing: null,
        at: "2024-01-01T00:00:00.123456789Z",
        deep: { list: [1, [2, { a: null }]] }
      })
    })
    before = bodyOf(await send(door, { ask: "GET /view/v" }))
  })

  it("D22 a second process on the same folder gets a clear fault that names it, the first goes on", async ({
    onTestFinished
  }) => {
    const second = await workshop(onTestFinished).run(options)
    expect(second.exit?.code).toBeGreaterThan(0)
    expect(second.logs).toContain(dataDir)
    expect((await send(door, { ask: "POST /ingest", body: create("b:1") })).status).toBe(200)
  })
  it("logs are one JSON object per line when the output is no terminal", async () => {
    await send(door, { ask: "POST /log", body: { message: "for the log", level: "warn", data: { a: 1 } } })
    await until("the message", () => door.logs.includes("for the log"))
    expect(await door.stop()).toEqual({ code: 0, signal: null })
    const lines = door.logs.split("\n").filter((line) => line !== "")
    expect(lines.length).toBeGreaterThan(1)
    for (const line of lines) expect(() => JSON.parse(line) as unknown, line).not.toThrow()
  })
  it("the data folder and every file in it are this user's alone", () => {
    const modes = ["", ...readdirSync(dataDir)].map(
      (name) => [name, statSync(join(dataDir, name)).mode & 0o077] as const
    )
    expect(modes.length).toBeGreaterThan(1)
    expect(modes.filter(([, open]) => open !== 0)).toEqual([])
  })
  it("D22 D23 records, versions, views and generations are there after a clean stop and start", async () => {
    expect(before).toMatchObject({
      content_generation: 5,
      result_data: [
        { id: "a:1", n: 3 },
        { n: 1.5, nothing: null }
      ]
    })
    door = await Door.start(options)
    expect(bodyOf(await send(door, { ask: "GET /view/v" }))).toEqual(before)
    expect(bodyOf(await send(door, { ask: "GET /view/v?format=flat" }))["result_data"]).toEqual([
      ["a:1", 3],
      [expect.any(String), 1]
    ])
  })
  it("D23 a damaged saved state is set aside and reported, and the views are right all the same", async () => {
    await send(door, { ask: "POST /view/register", body: registration("w", "SELECT * FROM c") })
    await send(door, { ask: "POST /ingest", body: create("c:1") })
    const was = bodyOf(await send(door, { ask: "GET /view/w" }))
    expect(was).toMatchObject({ content_generation: 2, result_data: [["c:1", 1]] })
    await door.stop()
    const states = files().filter((path) => path.endsWith(".json"))
    expect(states.length).toBeGreaterThan(0)
    for (const path of states) writeFileSync(path, "{ damaged")
    door = await Door.start(options)
    const after = bodyOf(await send(door, { ask: "GET /view/w" }))
    expect({ ...after, content_generation: 0 }).toEqual({ ...was, content_generation: 0 })
    expect(after["content_generation"]).toBeGreaterThanOrEqual(Number(was["content_generation"]))
    expect(door.logs).toMatch(/damaged/)
  })
  it("D22 a damaged database file is refused with exit code 3 and a message naming it", async ({ onTestFinished }) => {
    const records = Array.from({ length: 200 }, (_, n) => create(`d:${n}`, { text: "x".repeat(500) }))
    expect((await send(door, { ask: "POST /ingest", body: records })).status).toBe(200)
    await door.stop()
    const database = files().filter((path) => isSqlite(path))
    expect(database).toHaveLength(1)
    const bytes = readFileSync(database[0] ?? "")
    bytes.fill(0xa5, 100, bytes.length)
    writeFileSync(database[0] ?? "", bytes)
    const second = await workshop(onTestFinished).run(options)
    expect([second.exit?.code, second.logs.includes(database[0] ?? "?")]).toEqual([3, true])
  })
})

describe.concurrent("D22 data folders", () => {
  it.runIf(campaign)("D22 memory:// keeps nothing", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const dataDir = use.folder()
    const first = await use.start({ dataDir })
    await send(first, { ask: "POST /ingest", body: create("a:1") })
    await first.stop()
    const second = await use.start({ dataDir })
    expect((await send(second, { ask: "GET /debug/deps" })).json).toMatchObject({ tables_in_store: [] })
  })
  it("D22 a folder that cannot be used is a fault that names it", async ({ onTestFinished }) => {
    const use = workshop(onTestFinished)
    const path = join(use.folder(), "file")
    writeFileSync(path, "no folder")
    const door = await use.run({ dataDir: path, env: { STORE_ADDR: undefined } })
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
