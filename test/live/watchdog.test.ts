/**
 * The watchdog of the built processes: a turn that does not end is ended, and who did it is said in the log (D48).
 *
 * The query that hangs is legal and charges honestly; only its budget is set so high that it is never reached.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { request } from "../../kit/checks/http.ts"
import { long } from "../../kit/data/random.ts"
import { change, create, registration } from "../../kit/data/registration.ts"
import { Door, freePort, sleep, until } from "../../kit/processes/Door.ts"
import { ProcessCluster } from "../../kit/processes/processCluster.ts"
import { workshop } from "../../kit/processes/workshop.ts"

/** Takes about a millisecond for each that `n` counts. */
const hangs =
  "SELECT id FROM t WHERE array::all(array::range(0, n), |$a| array::all(array::range(0, 1000), |$b| $b >= 0))"
const patient = {
  SVC_QUERY_ROW_STEPS: "1000000000000",
  SVC_QUERY_STEPS: "1000000000000",
  SVC_QUERY_BYTES: "1000000000000",
  SVC_MAX_TURN_MS: "1200",
  SVC_LOG_FORMAT: "json"
}
const forever = 1_000_000

describe("D48 a turn of the event loop that does not end", () => {
  it("ends the SSP with exit code 5 and names the view; what it evaluated is written down", async ({
    onTestFinished
  }) => {
    const ssp = await workshop(onTestFinished).start({ env: { ...patient, STORE_ADDR: undefined } })
    expect(
      (await send(ssp, { ask: "POST /view/register", body: registration("incantation:hangs", hangs) })).status
    ).toBe(200)
    expect((await send(ssp, { ask: "POST /ingest", body: create("t:quick", { n: 1 }) })).status).toBe(200)
    const asked = send(ssp, { ask: "POST /ingest", body: create("t:slow", { n: forever }) }).catch(() => undefined)
    expect(await ssp.exited).toEqual({ code: 5, signal: null })
    await asked
    expect(ssp.logs).toMatch(
      /"level":"error","message":"one turn of the event loop has computed for \d+ ms .*SVC_MAX_TURN_MS is 1200.* view \\"incantation:hangs\\"/
    )
    expect(JSON.parse(readFileSync(join(ssp.dataDir, "evaluating.json"), "utf8"))).toMatchObject({
      format: 1,
      id: "incantation:hangs",
      query: expect.stringMatching(/^[0-9a-f]{32}$/),
      ...(process.platform === "linux" ? { boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() } : {})
    })
  })

  it.runIf(long)("ends the scheduler too", async ({ onTestFinished }) => {
    const shop = workshop(onTestFinished),
      folder = shop.folder(),
      port = await freePort()
    const scheduler = await Door.spawn({
      command: [process.execPath, "dist/scheduler.js"],
      dataDir: folder,
      env: {
        ...patient,
        SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
        SVC_SCHEDULER_INGEST_PORT: String(port),
        SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "replica"),
        SVC_SCHEDULER_WAL_PATH: join(folder, "wal.log"),
        LISTEN_ADDR: undefined,
        STORE_ADDR: undefined,
        SVC_DATA_DIR: undefined
      }
    })
    onTestFinished(() => scheduler.close())
    const url = `http://127.0.0.1:${port}`
    await until(
      "the scheduler serves",
      async () => (await request(url, { path: "/livez" }).catch(() => undefined))?.status === 200
    )
    const asked = request(url, {
      method: "POST",
      path: "/proxy/query",
      body: { query: hangs.replace("SELECT id FROM t WHERE", "RETURN").replace("0, n", `0, ${forever}`) }
    }).catch(() => undefined)
    expect(await scheduler.exited).toEqual({ code: 5, signal: null })
    await asked
    expect(scheduler.logs).toMatch(/SVC_MAX_TURN_MS is 1200/)
  })

  it.runIf(long)(
    "is none while the process is stopped, and an evaluation that ends leaves nothing written down",
    async ({ onTestFinished }) => {
      const ssp = await workshop(onTestFinished).start({
        env: { ...patient, STORE_ADDR: undefined, SVC_SLOW_EVALUATION_MS: "50" }
      })
      const file = join(ssp.dataDir, "evaluating.json")
      ssp.signal("SIGSTOP")
      await sleep(1600)
      ssp.signal("SIGCONT")
      expect(
        (await send(ssp, { ask: "POST /view/register", body: registration("incantation:slow", hangs) })).status
      ).toBe(200)
      const asked = send(ssp, { ask: "POST /ingest", body: create("t:slow", { n: 400 }) })
      await until("the evaluation is written down", () => existsSync(file))
      expect((await asked).status).toBe(200)
      await until("it has ended", () => !existsSync(file))
      expect(await ssp.stop()).toEqual({ code: 0, signal: null })
    }
  )
})

describe("D48 a view that kills", () => {
  it("does not kill again: killed once in its evaluation, the SSP serves all others, until an operator frees it", async ({
    onTestFinished
  }) => {
    const shop = workshop(onTestFinished),
      dataDir = shop.folder()
    const options = {
      dataDir,
      env: { ...patient, STORE_ADDR: undefined, SVC_SLOW_EVALUATION_MS: "50", SVC_MAX_TURN_MS: "0" }
    }
    const writtenBy = (door: Door) => {
      const path = join(dataDir, "evaluating.json")
      return existsSync(path) && (JSON.parse(readFileSync(path, "utf8")) as { readonly pid: number }).pid === door.pid
    }
    const first = await shop.start(options)
    for (const [id, surql] of [
      ["incantation:kills", hangs],
      ["incantation:good", "SELECT VALUE id FROM t"]
    ] as const)
      expect((await send(first, { ask: "POST /view/register", body: registration(id, surql) })).status).toBe(200)
    const asked = send(first, { ask: "POST /ingest", body: create("t:slow", { n: forever }) }).catch(() => undefined)
    await until("the first process has written it down", () => writtenBy(first))
    await first.kill()
    await asked
    const second = await shop.start(options)
    expect(second.logs).toMatch(/"level":"warn","message":"view incantation:kills is quarantined/)
    expect((await send(second, { ask: "GET /view/good?format=tree" })).json).toMatchObject({ result_data: ["t:slow"] })
    expect((await send(second, { ask: "GET /overview" })).json).toMatchObject({
      quarantined: [{ id: "incantation:kills", query: hangs, ends: 1 }]
    })
    expect((await send(second, { ask: "GET /debug/view/kills" })).json).toMatchObject({
      cache: [],
      quarantined: { ends: 1 }
    })
    expect((await send(second, { ask: "GET /view/kills/stream" })).text).toContain(
      'event: end\ndata: {"reason":"quarantined"}'
    )
    for (const refused of [
      { ask: "GET /view/kills" },
      { ask: "POST /view/register", body: registration("incantation:other", hangs) }
    ]) {
      const answer = await send(second, refused)
      expect([answer.status, answer.json]).toEqual([
        409,
        {
          code: "VIEW_QUARANTINED",
          message: expect.stringContaining("POST /view/free"),
          details: { ends: 1, last: expect.any(String) }
        }
      ])
    }
    expect((await send(second, { ask: "POST /view/free", body: { id: "good" } })).status).toBe(404)
    expect((await send(second, { ask: "POST /ingest", body: change("DELETE", "t:slow") })).status).toBe(200)
    expect((await send(second, { ask: "POST /ingest", body: create("t:quick", { n: 1 }) })).status).toBe(200)
    expect((await send(second, { ask: "POST /view/free", body: { id: "incantation:kills" } })).json).toEqual({
      status: "ok"
    })
    expect((await send(second, { ask: "GET /view/kills" })).json).toMatchObject({ result_data: [["t:quick", 1]] })
  })
})

describe.runIf(long)("D48 a registration that kills", () => {
  it("is not carried to a third SSP, and is taken again when it is freed", async ({ onTestFinished }) => {
    const cluster = await ProcessCluster.start(3, { SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "60000" }, () => ({
      ...patient,
      // An SSP that ends sooner counts as one that something else has ended.
      SVC_MAX_TURN_MS: "3500"
    }))
    onTestFinished(() => cluster.close())
    const { scheduler, ssps } = cluster
    const post = (path: string, body: unknown) => scheduler.ask({ method: "POST", path, body }, 60_000)
    expect((await post("/ingest", create("t:slow", { n: forever })))?.status).toBe(200)
    const answer = await post("/view/register", registration("incantation:kills", hangs))
    expect([answer?.status, answer?.json]).toEqual([
      409,
      {
        code: "VIEW_QUARANTINED",
        message: expect.stringContaining("POST /view/free"),
        details: { ends: 2, last: expect.any(String) }
      }
    ])
    const codes = () => ssps.map(({ door }) => door!.exit?.code)
    // On a busy machine the scheduler gives up a call before the SSP has computed for as long as a turn may.
    await until("two SSPs have ended", () => codes().filter((code) => code !== undefined).length === 2, 60_000)
    const ended = codes()
    expect([...ended].sort()).toEqual([5, 5, undefined])
    expect((await scheduler.ask({ path: "/overview" }))?.json).toMatchObject({
      quarantined: [{ id: "kills", query: hangs, ends: 2 }]
    })
    const third = ssps[ended.indexOf(undefined)]!
    expect((await third.ask({ path: "/health" }))?.status).toBe(200)
    expect((await post("/view/register", registration("incantation:good", "SELECT VALUE id FROM t")))?.status).toBe(200)
    expect((await post("/ingest", change("DELETE", "t:slow")))?.status).toBe(200)
    expect((await post("/view/free", { id: "incantation:kills" }))?.json).toEqual({ status: "ok" })
    expect((await post("/view/register", registration("incantation:kills", hangs)))?.json).toMatchObject({
      ssp_id: third.name
    })
  })
})
