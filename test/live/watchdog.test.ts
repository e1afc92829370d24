/**
 * The watchdog of the built processes: a turn that does not end is ended, and who did it is said in the log (D48).
 *
 * The query that hangs is legal and charges honestly; only its budget is set so high that it is never reached.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { send } from "../kit/contract.ts"
import { Door, freePort, sleep, until } from "../kit/Door.ts"
import { request } from "../kit/http.ts"
import { create, registration } from "../kit/registration.ts"
import { workshop } from "../kit/workshop.ts"

/** Takes about a millisecond for each that `n` counts. */
const hangs = "SELECT id FROM t WHERE array::all(array::range(0, n), |$a| array::all(array::range(0, 1000), |$b| $b >= 0))"
const patient = { SVC_QUERY_ROW_STEPS: "1000000000000", SVC_QUERY_STEPS: "1000000000000", SVC_QUERY_BYTES: "1000000000000", SVC_MAX_TURN_MS: "1200", SVC_LOG_FORMAT: "json" }
const forever = 1_000_000

describe("D48 a turn of the event loop that does not end", () => {
  it("ends the SSP with exit code 5 and names the view; what it evaluated is written down", async ({ onTestFinished }) => {
    const ssp = await workshop(onTestFinished).start({ env: { ...patient, STORE_ADDR: undefined } })
    expect((await send(ssp, { ask: "POST /view/register", body: registration("incantation:hangs", hangs) })).status).toBe(200)
    expect((await send(ssp, { ask: "POST /ingest", body: create("t:quick", { n: 1 }) })).status).toBe(200)
    const asked = send(ssp, { ask: "POST /ingest", body: create("t:slow", { n: forever }) }).catch(() => undefined)
    expect(await ssp.exited).toEqual({ code: 5, signal: null })
    await asked
    expect(ssp.logs).toMatch(/"level":"error","message":"one turn of the event loop has computed for \d+ ms .*SVC_MAX_TURN_MS is 1200.* view \\"incantation:hangs\\"/)
    expect(JSON.parse(readFileSync(join(ssp.dataDir, "evaluating.json"), "utf8"))).toMatchObject({ format: 1, id: "incantation:hangs", query: expect.stringMatching(/^[0-9a-f]{32}$/) })
  })

  it("ends the scheduler too", async ({ onTestFinished }) => {
    const shop = workshop(onTestFinished), folder = shop.folder(), port = await freePort()
    const scheduler = await Door.spawn({
      command: [process.execPath, "dist/scheduler.js"], dataDir: folder,
      env: {
        ...patient, SVC_SCHEDULER_INGEST_HOST: "127.0.0.1", SVC_SCHEDULER_INGEST_PORT: String(port), SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "replica"), SVC_SCHEDULER_WAL_PATH: join(folder, "wal.log"),
        LISTEN_ADDR: undefined, STORE_ADDR: undefined, SVC_DATA_DIR: undefined
      }
    })
    onTestFinished(() => scheduler.close())
    const url = `http://127.0.0.1:${port}`
    await until("the scheduler serves", async () => (await request(url, { path: "/livez" }).catch(() => undefined))?.status === 200)
    const asked = request(url, { method: "POST", path: "/proxy/query", body: { query: hangs.replace("SELECT id FROM t WHERE", "RETURN").replace("0, n", `0, ${forever}`) } }).catch(() => undefined)
    expect(await scheduler.exited).toEqual({ code: 5, signal: null })
    await asked
    expect(scheduler.logs).toMatch(/SVC_MAX_TURN_MS is 1200/)
  })

  it("is none while the process is stopped, and an evaluation that ends leaves nothing written down", async ({ onTestFinished }) => {
    const ssp = await workshop(onTestFinished).start({ env: { ...patient, STORE_ADDR: undefined, SVC_SLOW_EVALUATION_MS: "50" } })
    const file = join(ssp.dataDir, "evaluating.json")
    ssp.signal("SIGSTOP")
    await sleep(1600)
    ssp.signal("SIGCONT")
    expect((await send(ssp, { ask: "POST /view/register", body: registration("incantation:slow", hangs) })).status).toBe(200)
    const asked = send(ssp, { ask: "POST /ingest", body: create("t:slow", { n: 400 }) })
    await until("the evaluation is written down", () => existsSync(file))
    expect((await asked).status).toBe(200)
    await until("it has ended", () => !existsSync(file))
    expect(await ssp.stop()).toEqual({ code: 0, signal: null })
  })
})
