/**
 * The 503 rows of the SSP: a process in scheduler mode whose scheduler does not answer stays `bootstrapping`.
 *
 * Why with a dead scheduler: it is the one state of "not ready" that lasts, so every row can be seen on a real process.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, type Row, send } from "../../kit/checks/contract.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, freePort, until } from "../../kit/processes/Door.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start({ env: { SCHEDULER_URL: `http://127.0.0.1:${await freePort()}`, SSP_ID: "ssp-waiting" } })
})
afterAll(() => door.close())

const notReady = (ask: string, body?: unknown, more = ""): Row => ({
  name: `${ask} 503 SSP_NOT_READY${more}`,
  ask,
  body,
  status: 503,
  code: "SSP_NOT_READY"
})

describe("an SSP that is not ready", () => {
  contract(
    () => door,
    [
      {
        name: "GET /health 503 {status: bootstrapping}",
        ask: "GET /health",
        token: null,
        status: 503,
        is: { status: "bootstrapping" }
      },
      {
        name: "GET /version 200 D12 mode scheduler",
        ask: "GET /version",
        token: null,
        status: 200,
        is: { version: expect.any(String), mode: "scheduler" }
      },
      {
        name: "GET /info 200 shows bootstrapping",
        ask: "GET /info",
        token: null,
        status: 200,
        is: [{ entity: "ssp", id: "ssp-waiting", status: "bootstrapping", views: 0 }]
      },
      notReady("POST /ingest", create("a:1")),
      notReady("POST /ingest", [create("a:1")], " for an array"),
      notReady("POST /view/register", registration("v", "SELECT * FROM a")),
      notReady("GET /view/v", undefined, " D11"),
      notReady("GET /view/v/stream", undefined, " D11"),
      notReady("GET /integrity", undefined, " D41"),
      notReady("GET /integrity/compare", undefined, " D41"),
      notReady("POST /reconcile"),
      notReady("POST /ingest", "{", " D6 before the body is looked at"),
      notReady("POST /ingest", "x".repeat(3 << 20), " D6 before the size is looked at"),
      notReady("POST /view/register", {}, " D6 before the body is looked at"),
      {
        name: "POST /ingest 401 D6 before readiness is looked at",
        ask: "POST /ingest",
        body: create("a:1"),
        token: "wrong",
        status: 401,
        code: "UNAUTHORIZED"
      },
      {
        name: "POST /view/register 401 D6 before readiness is looked at",
        ask: "POST /view/register",
        body: {},
        token: null,
        status: 401,
        code: "UNAUTHORIZED"
      },
      {
        name: "POST /view/unregister 200 not ready",
        ask: "POST /view/unregister",
        body: { id: "v" },
        status: 200,
        is: { status: "ok" }
      },
      { name: "POST /reset 200 not ready", ask: "POST /reset", status: 200, is: { status: "ok" } },
      { name: "POST /log 200 not ready", ask: "POST /log", body: { message: "x" }, status: 200, is: { status: "ok" } },
      {
        name: "GET /debug/view/:view_id 404 VIEW_NOT_FOUND not ready",
        ask: "GET /debug/view/v",
        status: 404,
        code: "VIEW_NOT_FOUND"
      },
      { name: "GET /debug/deps 200 not ready", ask: "GET /debug/deps", status: 200 }
    ]
  )
  it("says in the log that it cannot reach the scheduler, tries again, and goes on serving", async () => {
    const tries = (): number => door.logs.split("\n").filter((line) => /regist/i.test(line)).length
    await until("two tries to register are in the log", () => tries() >= 2)
    expect((await send(door, { ask: "GET /health" })).status).toBe(503)
  })
  it("stops with exit code 0 on SIGTERM while it waits for the scheduler", async () => {
    expect(await door.stop()).toEqual({ code: 0, signal: null })
  })
})
