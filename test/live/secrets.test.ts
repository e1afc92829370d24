/**
 * Secrets of real processes: a cluster where every door asks, secrets replaced on SIGHUP without a restart, nothing of
 * them in any log.
 *
 * One cluster for all of it, at the most talkative log level; what is searched for in the logs has been used just
 * before.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { client, request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, freePort, until } from "../../kit/processes/Door.ts"
import { workshop } from "../../kit/processes/workshop.ts"

const command = [process.execPath, "dist/scheduler.js"]

describe("secrets of a cluster", () => {
  it("D15 every door asks; SIGHUP puts what the files hold now in force; a broken file keeps the old secret; no log shows one", async ({
    onTestFinished
  }) => {
    const shop = workshop(onTestFinished)
    const folder = shop.folder(),
      port = await freePort()
    const file = (name: string): string => join(folder, name)
    const write = (name: string, text: string): void => writeFileSync(file(name), text, { mode: 0o600 })
    write("ssp", "ssp-s3cret-1\n")
    write("own", "own-s3cret-1\n")
    write("before", "own-s3cret-0\n")
    const both = {
      SVC_LOG_LEVEL: "trace",
      SVC_LOG_FORMAT: "json",
      SVC_AUTH_SECRET: undefined,
      SVC_AUTH_SECRET_FILE: file("ssp"),
      SVC_SCHEDULER_AUTH_SECRET_FILE: file("own")
    }
    const scheduler = await Door.spawn({
      command,
      dataDir: folder,
      env: {
        ...both,
        SVC_SCHEDULER_AUTH_SECRET_PREVIOUS_FILE: file("before"),
        SVC_SCHEDULER_REPLICA_DB_PATH: file("replica"),
        SVC_SCHEDULER_WAL_PATH: file("wal.log"),
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_INGEST_PORT: String(port),
        SVC_SCHEDULER_SSP_POLL_INTERVAL_MS: "50",
        SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS: "200",
        SVC_SCHEDULER_DELIVERY_WAIT_MS: "60000",
        LISTEN_ADDR: undefined,
        STORE_ADDR: undefined,
        SVC_DATA_DIR: undefined
      }
    })
    onTestFinished(() => scheduler.close())
    const at = (token: string | undefined) => client(`http://127.0.0.1:${port}`, token)
    await until(
      "the scheduler serves",
      async () =>
        (
          await at(undefined)
            .get("/livez")
            .catch(() => undefined)
        )?.status === 200
    )
    mkdirSync(file("data"))
    const ssp = await shop.start({
      env: { ...both, SCHEDULER_URL: `http://127.0.0.1:${port}`, SSP_ID: "one", HEARTBEAT_INTERVAL_MS: "100" },
      dataDir: file("data")
    })
    await until("the SSP is ready", async () => (await at(undefined).get("/health")).status === 200)

    expect((await at(undefined).post("/ingest", create("t:1"))).status).toBe(401)
    expect((await at("ssp-s3cret-1").post("/ingest", create("t:1"))).status).toBe(401)
    expect((await at("own-s3cret-0").post("/ingest", create("t:1"))).json).toEqual({ seq: 1, delivered: 1 })
    expect(
      (
        await at("own-s3cret-1").post(
          "/view/register",
          registration("incantation:v", "SELECT VALUE id FROM t", { format: "tree" })
        )
      ).status
    ).toBe(200)

    const reloaded = async (door: Door, what: RegExp): Promise<void> => {
      const from = door.logs.length
      door.signal("SIGHUP")
      await until(`${what} in the log`, () => what.test(door.logs.slice(from)))
    }
    write("ssp", "ssp-s3cret-2\n")
    write("own", "own-s3cret-2\n")
    write("before", "own-s3cret-1\n")
    await reloaded(scheduler, /SVC_SCHEDULER_AUTH_SECRET_PREVIOUS_FILE is replaced/)
    await reloaded(ssp, /SVC_SCHEDULER_AUTH_SECRET_FILE is replaced/)
    expect([(await at("own-s3cret-0").get("/info")).status, (await at("own-s3cret-1").get("/info")).status]).toEqual([
      401, 200
    ])
    expect((await at("own-s3cret-2").post("/ingest", create("t:2"))).json).toEqual({ seq: 2, delivered: 1 })
    const rows = (token: string) => request(ssp.url, { path: "/view/v", token })
    expect([(await rows("ssp-s3cret-1")).status, (await rows("ssp-s3cret-2")).json]).toEqual([
      401,
      expect.objectContaining({ result_data: ["t:1", "t:2"] })
    ])

    write("ssp", "")
    await reloaded(ssp, /SVC_AUTH_SECRET_FILE stays what it was/)
    expect((await rows("ssp-s3cret-2")).status).toBe(200)
    write("before", "")
    write("own", "two words")
    await reloaded(scheduler, /SVC_SCHEDULER_AUTH_SECRET_FILE stays what it was/)
    expect((await at("own-s3cret-2").get("/info")).status).toBe(200)

    expect(`${scheduler.logs}${ssp.logs}`).not.toMatch(/s3cret-\d|two words/)
    expect([(await ssp.stop()).code, (await scheduler.stop()).code]).toEqual([0, 0])
  })
  it("SIGHUP without a file to read leaves the service as it is, and says so", async ({ onTestFinished }) => {
    const door = await workshop(onTestFinished).start()
    door.signal("SIGHUP")
    await until("it says so", () => door.logs.includes("nothing to reload"))
    expect((await request(door.url, { path: "/health" })).status).toBe(200)
    expect((await door.stop()).code).toBe(0)
  })
})
