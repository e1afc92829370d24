/**
 * The scheduler as its users start it: `node dist/scheduler.js` with a real SSP, killed and started again; help,
 * faults, exit codes.
 *
 * Few processes, because each costs a second; what one node does is tested without them.
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { bodyOf, client } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { closing } from "../../kit/processes/closing.ts"
import { Door, freePort, removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { knobs } from "../../src/scheduler/Config.ts"

const afterwards = closing()
const command = [process.execPath, "dist/scheduler.js"]
const folder = (): string => {
  const path = temporaryFolder()
  afterwards(() => removeFolder(path))
  return path
}
const own = (path: string, port: number): { readonly [name: string]: string | undefined } => ({
  SVC_SCHEDULER_REPLICA_DB_PATH: join(path, "replica"),
  SVC_SCHEDULER_WAL_PATH: join(path, "wal.log"),
  SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
  SVC_SCHEDULER_INGEST_PORT: String(port),
  SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "50",
  SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "200",
  SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "30000",
  // An SSP opens its feed again within 250 ms of a restart, which is all that an answer of `/ingest` waits by default.
  SVC_SCHEDULER_DELIVERY_WAIT_MS: "60000",
  LISTEN_ADDR: undefined,
  STORE_ADDR: undefined,
  SVC_DATA_DIR: undefined
})
const spawn = async (path: string, port: number): Promise<Door> => {
  const door = await Door.spawn({ command, env: own(path, port), dataDir: path })
  afterwards(() => door.close())
  return door
}
const ended = async (
  ...args: ReadonlyArray<string>
): Promise<{ readonly code: number | null; readonly text: string }> => {
  const door = await Door.spawn(
    {
      command,
      env: {
        LISTEN_ADDR: undefined,
        STORE_ADDR: undefined,
        SVC_DATA_DIR: undefined,
        SVC_SCHEDULER_INGEST_PORT: args.includes("--check-config") ? "x" : undefined
      }
    },
    ...args
  )
  afterwards(() => door.close())
  const { code } = await door.exited
  return { code, text: door.logs }
}

describe("a scheduler and an SSP", () => {
  it("D31 kill -9 of the scheduler: nothing acknowledged is lost, the SSP goes on without a bootstrap; SIGTERM ends with 0", async () => {
    const path = folder()
    const port = await freePort()
    const scheduler = client(`http://127.0.0.1:${port}`, undefined)
    const serving = (): Promise<unknown> =>
      until("the scheduler serves", async () => (await scheduler.get("/livez").catch(() => undefined))?.status === 200)
    const ready = (): Promise<unknown> =>
      until("the SSP is ready", async () => (await scheduler.get("/health").catch(() => undefined))?.status === 200)
    const first = await spawn(path, port)
    await serving()
    for (let n = 1; n <= 5; n++) expect((await scheduler.post("/ingest", create(`t:${n}`, { n }))).status).toBe(200)
    mkdirSync(join(path, "ssp"))
    const ssp = await Door.start({
      env: { SCHEDULER_URL: `http://127.0.0.1:${port}`, SSP_ID: "ssp-1", HEARTBEAT_INTERVAL_MS: "100" },
      dataDir: join(path, "ssp")
    })
    afterwards(() => ssp.close())
    await ready()
    expect(
      (
        await scheduler.post(
          "/view/register",
          registration("incantation:v", "SELECT VALUE n FROM t", { format: "tree" })
        )
      ).status
    ).toBe(200)
    const rows = async (): Promise<unknown> =>
      bodyOf(await client(ssp.url, "s3cret-for-tests").get("/view/v"))["result_data"]
    expect(await rows()).toEqual([1, 2, 3, 4, 5])
    await first.kill()
    const second = await spawn(path, port)
    await serving()
    await ready()
    expect((await scheduler.post("/ingest", create("t:6", { n: 6 }))).json).toEqual({ seq: 6, delivered: 1 })
    expect(await rows()).toEqual([1, 2, 3, 4, 5, 6])
    expect(ssp.logs.match(/bootstrapped at position/g)).toHaveLength(1)
    const third = await spawn(path, await freePort())
    expect([(await third.exited).code, third.logs]).toEqual([1, expect.stringMatching(/another process has it/)])
    expect(await second.stop()).toEqual({ code: 0, signal: null })
  })
})

describe("the command line", () => {
  it("--help prints every setting and ends with 0", async () => {
    const { code, text } = await ended("--help")
    expect(code).toBe(0)
    for (const { env } of Object.values(knobs)) expect(text).toContain(env)
  })
  it("D5a --check-config names the fault and ends with 2; so does an unknown option", async () => {
    expect(await ended("--check-config")).toMatchObject({
      code: 2,
      text: expect.stringMatching(/SVC_SCHEDULER_INGEST_PORT is "x"/)
    })
    expect(await ended("--verify-val", "x")).toMatchObject({
      code: 2,
      text: expect.stringMatching(/did you mean --verify-wal/)
    })
  })
})
