/**
 * Both doors under Deno, with the permissions that `docs/compose.md` says and no more, on every store there is.
 *
 * Why: nothing above src/host knows which runtime it is on, and this is the proof. The commands are read from that
 * page, so that it cannot ask for too little. Deno comes as an npm package; where it is not installed the tests are
 * skipped, visibly.
 */
import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { expectError, send } from "../../kit/checks/contract.ts"
import { EventStream } from "../../kit/checks/EventStream.ts"
import { bodyOf, client } from "../../kit/checks/http.ts"
import { campaign } from "../../kit/data/random.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { closing } from "../../kit/processes/closing.ts"
import {
  Door,
  type DoorOptions,
  freePort,
  removeFolder,
  secret,
  temporaryFolder,
  until
} from "../../kit/processes/Door.ts"
import { deno, denoPath } from "../../kit/processes/runtimes.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { root } from "../../kit/rules/source.ts"

const afterwards = closing()
const page = readFileSync(join(root, "docs/compose.md"), "utf8")
const lines = [...page.matchAll(/^deno (run .*)$/gm)].map(([, line]) => line ?? "")
const [memory = "", embedded = "", inProcess = "", scheduler = "", member = ""] = lines

const folder = (): string => {
  const path = temporaryFolder()
  afterwards(() => removeFolder(path))
  return path
}
const start = async (line: string, dataDir: string, env: NonNullable<DoorOptions["env"]> = {}): Promise<Door> => {
  const command = [denoPath, ...line.replaceAll("./data", dataDir).split(" ")]
  const door =
    env["SVC_SCHEDULER_INGEST_PORT"] === undefined
      ? await Door.start({ command, dataDir, env })
      : await Door.spawn({ command, dataDir, env })
  afterwards(() => door.close())
  return door
}
const ingest = async (door: { readonly url: string }, id: string, record: object): Promise<void> =>
  expect((await send(door as Door, { ask: "POST /ingest", body: create(id, record) })).status).toBe(200)
const rows = async (door: Door): Promise<unknown> => bodyOf(await send(door, { ask: "GET /view/v" }))["result_data"]
const view = (door: Door, surql = "SELECT * FROM a ORDER BY n") =>
  send(door, { ask: "POST /view/register", body: registration("v", surql, { format: "tree" }) })

describe.skipIf(!deno.installed)("Deno, with the permissions of docs/compose.md", () => {
  it("the page names a command for each kind of node, none of them with everything", () => {
    expect(lines.length).toBe(5)
    expect(lines.filter((line) => /-A\b|--allow-all|--allow-(?:write|sys)(?: |$)|--allow-run/.test(line))).toEqual([])
    expect(lines.map((line) => /--allow-net(?: |$)/.test(line))).toEqual([false, false, false, true, true])
  })

  it.runIf(campaign)(
    "the page's `deno check` finds nothing wrong with the source, and would: in a file with a mistake it does",
    async () => {
      const [, line = ""] = /^deno (check .*)$/m.exec(page) ?? []
      expect(line.split(" ").slice(1)).toEqual(
        expect.arrayContaining(["src/programs/ssp/main.ts", "src/programs/scheduler/main.ts", "src/outbox.ts"])
      )
      const mistaken = join(root, "test/live", `.mistaken-${process.pid}.ts`)
      afterwards(() => rmSync(mistaken, { force: true }))
      writeFileSync(mistaken, "export const text: string = 1\n")
      const checked = (...words: ReadonlyArray<string>) =>
        promisify(execFile)(denoPath, words, { cwd: root, env: { ...process.env, NO_COLOR: "1" } }).then(
          () => "",
          ({ stderr }: { readonly stderr: string }) => stderr
        )
      // These are 900 modules, which take the checker some twenty seconds: too long for every run.
      expect(await checked(...line.split(" "))).toBe("")
      expect(await checked("check", mistaken)).toContain("TS2322")
    },
    240_000
  )

  it("memory:// from the source: records in, views and streams out, refusals, a clean stop", async () => {
    const door = await start(memory, folder())
    await view(door, "SELECT * FROM a WHERE n > 1 ORDER BY n DESC LIMIT 2")
    const stream = await EventStream.open(door.url, "/view/v/stream", secret)
    await stream.atLeast(1)
    for (const n of [1, 2, 3, 4]) await ingest(door, `a:${n}`, { n })
    expect(await rows(door)).toEqual([
      { id: "a:4", n: 4 },
      { id: "a:3", n: 3 }
    ])
    expect((await stream.atLeast(4)).map((event) => event.event)).toEqual(["snapshot", "delta", "delta", "delta"])
    expectError(await send(door, { ask: "POST /ingest", body: "{" }), 400, "INVALID_REQUEST")
    expectError(await send(door, { ask: "POST /ingest", body: create("a:1"), token: "wrong" }), 401, "UNAUTHORIZED")
    expect(await door.stop()).toEqual({ code: 0, signal: null })
  })

  it.runIf(campaign)(
    "D22 D39 the embedded store: what was answered survives kill -9, a second process is kept out, a job is called and its end is kept",
    async () => {
      const data = folder(),
        config = folder()
      const backend = await TestBackend.start()
      afterwards(() => backend.close())
      writeFileSync(
        join(config, "svc.yml"),
        `job_tables:\n  mail: { name: mail, base_url: "${backend.url}", auth_token: "${backend.token}" }\n`
      )
      const env = { STORE_ADDR: undefined, SVC_CONFIG_PATH: join(config, "svc.yml") }
      const first = await start(embedded, data, env)
      expect(first.logs).toContain("SQLite through node:sqlite")
      await view(first)
      for (const n of [1, 2]) await ingest(first, `a:${n}`, { n, text: "\u0000" })
      const second = await Door.spawn({
        command: [denoPath, ...embedded.replaceAll("./data", data).split(" ")],
        dataDir: data,
        env
      })
      expect([(await second.exited).code, second.logs]).toEqual([1, expect.stringContaining("another process has it")])
      await first.kill()
      const again = await start(embedded, data, env)
      expect(await rows(again)).toEqual([
        { id: "a:1", n: 1, text: "\u0000" },
        { id: "a:2", n: 2, text: "\u0000" }
      ])
      await ingest(again, "mail:1", {
        path: "/send",
        payload: {},
        status: "pending",
        retries: 0,
        max_retries: 3,
        retry_strategy: "linear",
        errors: []
      })
      await until(
        "the job has ended",
        async () => bodyOf(await send(again, { ask: "GET /jobs/mail:1" }))["status"] === "success"
      )
      expect(backend.received.length).toBe(1)
      expect(await again.stop()).toEqual({ code: 0, signal: null })
    }
  )

  it.runIf(campaign)("D22 a SurrealDB inside the process, and one beside it", async () => {
    const server = await RpcServer.start()
    afterwards(() => server.kill())
    await server.ask("n", "d", "CREATE a:1 SET n = 1")
    const data = folder()
    for (const [line, env] of [
      [inProcess, { STORE_ADDR: `surrealkv://${join(data, "kv")}` }],
      [
        embedded,
        { STORE_ADDR: `127.0.0.1:${server.port}`, STORE_NS: "n", STORE_DB: "d", STORE_USER: "root", STORE_PASS: "root" }
      ]
    ] as const) {
      const door = await start(line, data, env)
      await view(door)
      if (line === inProcess) await ingest(door, "a:1", { n: 1 })
      expect(await rows(door)).toEqual([{ id: "a:1", n: 1 }])
      expect(await door.stop()).toEqual({ code: 0, signal: null })
    }
  })

  it.runIf(campaign)(
    "D31 a cluster: records in at the scheduler and out at the SSP; kill -9 of the scheduler loses nothing and bootstraps nobody",
    async () => {
      const path = folder(),
        port = await freePort()
      const own = {
        SVC_SCHEDULER_REPLICA_DB_PATH: join(path, "replica"),
        SVC_SCHEDULER_WAL_PATH: join(path, "event_wal.log"),
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_INGEST_PORT: String(port),
        SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "50",
        SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "200",
        LISTEN_ADDR: undefined,
        STORE_ADDR: undefined,
        SVC_DATA_DIR: undefined
      }
      const asked = client(`http://127.0.0.1:${port}`, undefined)
      const ready = (): Promise<unknown> =>
        until("somebody is ready", async () => (await asked.get("/health").catch(() => undefined))?.status === 200)
      const post = async (n: number): Promise<void> =>
        expect((await asked.post("/ingest", create(`a:${n}`, { n }))).status).toBe(200)
      const first = await start(scheduler, path, own)
      await until(
        "the scheduler serves",
        async () => (await asked.get("/livez").catch(() => undefined))?.status === 200
      )
      await post(1)
      mkdirSync(join(path, "ssp"))
      const ssp = await start(member, join(path, "ssp"), {
        SCHEDULER_URL: `http://127.0.0.1:${port}`,
        SSP_ID: "a",
        STORE_ADDR: undefined,
        HEARTBEAT_INTERVAL_MS: "100"
      })
      await ready()
      expect(
        (await asked.post("/view/register", registration("v", "SELECT * FROM a ORDER BY n", { format: "tree" }))).status
      ).toBe(200)
      await post(2)
      await first.kill()
      const again = await start(scheduler, path, own)
      await ready()
      await post(3)
      await until("the SSP has it", async () => ((await rows(ssp)) as ReadonlyArray<unknown>).length === 3)
      expect(await rows(ssp)).toEqual([1, 2, 3].map((n) => ({ id: `a:${n}`, n })))
      expect(again.logs).not.toContain("Bootstrapping")
      expect([await ssp.stop(), await again.stop()]).toEqual([
        { code: 0, signal: null },
        { code: 0, signal: null }
      ])
    }
  )
})
