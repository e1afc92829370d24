/**
 * The scheduler's own secret (D15): with it every endpoint but the probes asks, without it none does; SSPs and callers
 * send it.
 *
 * The endpoints are those the Api declares, so that a new one cannot be forgotten here.
 */

import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Effect, Either, Redacted } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, type Row } from "../../kit/checks/contract.ts"
import { request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { TestBackend } from "../../kit/processes/backend.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import * as HttpSchedulerClient from "../../src/drivers/httpSchedulerClient.ts"
import { SchedulerClient } from "../../src/ports/SchedulerClient.ts"
import { SchedulerApi } from "../../src/protocol/SchedulerApi.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { Node } from "../scheduler/node.ts"

const own = "own-s3cret"
const open = ["GET /health", "GET /livez", "GET /readyz"]
const endpoints = Object.values(SchedulerApi.groups).flatMap((group) =>
  Object.values(group.endpoints).map(({ method, path }) => `${method} ${path.replace(/:\w+/g, "x")}`)
)
const challenged = (answer: { readonly headers: { readonly [name: string]: unknown } }): void =>
  expect(answer.headers["www-authenticate"]).toBe("Bearer")

describe("a scheduler with a secret of its own", () => {
  let node: Node
  beforeAll(async () => {
    node = await Node.start({ env: { SVC_SCHEDULER_AUTH_SECRET: own, SVC_SCHEDULER_AUTH_SECRET_PREVIOUS: "before" } })
  })
  afterAll(() => node.close())
  const asked = endpoints.filter((ask) => !open.includes(ask))
  contract(
    () => node,
    asked.flatMap(
      (ask) =>
        [
          {
            name: `${ask} 401 UNAUTHORIZED D15 without the scheduler's secret`,
            ask,
            token: null,
            status: 401,
            code: "UNAUTHORIZED",
            check: challenged
          },
          {
            name: `${ask} 401 UNAUTHORIZED D15 with the secret of the SSPs`,
            ask,
            status: 401,
            code: "UNAUTHORIZED",
            check: challenged
          }
        ] satisfies ReadonlyArray<Row>
    )
  )
  contract(
    () => node,
    [...open, "GET /docs", "GET /openapi.json"].map(
      (ask): Row => ({ name: `${ask} asks nobody D15`, ask, token: null, status: ask === "GET /health" ? 503 : 200 })
    )
  )
  contract(
    () => node,
    [
      {
        name: "POST /ingest 401 D6 before body and size",
        ask: "POST /ingest",
        token: null,
        body: "x".repeat(3 << 20),
        status: 401,
        code: "UNAUTHORIZED"
      },
      {
        name: "POST /nowhere 404 D6 before the secret",
        ask: "POST /nowhere",
        token: null,
        status: 404,
        code: "NOT_FOUND"
      },
      {
        name: "POST /ingest 200 D15 with the secret",
        ask: "POST /ingest",
        token: own,
        body: create("a:1"),
        status: 200
      },
      { name: "GET /info 200 D15 with the secret before it", ask: "GET /info", token: "before", status: 200 }
    ]
  )
  it("the list above is all there is, and most of it asks", () =>
    expect([endpoints.length > 20, asked.length]).toEqual([true, endpoints.length - open.length]))

  const register = (secret?: string) =>
    Effect.flatMap(SchedulerClient, (client) =>
      client.register({ ssp_id: "s", url: "http://127.0.0.1:1", batch: true })
    ).pipe(
      Effect.either,
      Effect.provide(
        HttpSchedulerClient.layer(node.url, () => (secret === undefined ? undefined : Redacted.make(secret)))
      ),
      Effect.provide(FetchHttpClient.layer),
      Effect.runPromise
    )
  it("POST /ssp/register 202 D15 an SSP sends the secret it is given; without it it hears why", async () => {
    expect(Either.getOrThrow(await register(own))).toMatchObject({ registration: expect.any(Number) })
    expect(Either.flip(await register())).toMatchObject({
      right: { reason: "refused", message: expect.stringContaining("401") }
    })
  })
  it("GET /view/:view_id 200 D15 the scheduler's secret is not handed on; the SSPs' own is", async () => {
    const ssp = await FakeSsp.start("fake")
    try {
      const ask = (method: string, path: string, body?: unknown) =>
        request(node.url, { method, path, body, token: own })
      ssp.health = "ready"
      expect((await ask("POST", "/ssp/register", { ssp_id: ssp.id, url: ssp.url, batch: true })).status).toBe(202)
      await until("the SSP is ready", async () => (await request(node.url, { path: "/health" })).status === 200)
      expect((await ask("POST", "/view/register", registration("incantation:v", "SELECT * FROM t"))).status).toBe(200)
      await until("the view is there", async () => (await ask("GET", "/view/incantation:v")).status === 200)
      expect(
        ssp.told.filter(({ path }) => path.startsWith("/view/incantation")).map(({ authorization }) => authorization)
      ).toContain(`Bearer ${secret}`)
      expect(JSON.stringify(ssp.told)).not.toContain(own)
    } finally {
      await ssp.close()
    }
  })
})

describe("a cluster whose scheduler has a secret", () => {
  it("D15 D36 runs jobs to their end: the SSP reports with the secret it has", async () => {
    const folder = temporaryFolder()
    const backend = await TestBackend.start()
    const config = join(folder, "svc.yml")
    writeFileSync(
      config,
      `job_tables:\n  mail_job:\n    name: mail\n    base_url: ${backend.url}\n    auth_token: ${backend.token}\n`
    )
    const node = await Node.start({ env: { SVC_SCHEDULER_AUTH_SECRET: own } })
    const ssp = await Door.start({
      env: {
        SCHEDULER_URL: node.url,
        SSP_ID: "runner",
        HEARTBEAT_INTERVAL_MS: "100",
        SVC_SCHEDULER_AUTH_SECRET: own,
        SVC_CONFIG_PATH: config,
        STORE_ADDR: undefined
      }
    })
    try {
      const ask = (method: string, path: string, body?: unknown) =>
        request(node.url, { method, path, body, token: own })
      await until("the SSP is ready", async () => (await ask("GET", "/health")).status === 200)
      expect(
        (
          await ask("POST", "/job/dispatch", {
            job_id: "mail_job:1",
            table: "mail_job",
            payload: { path: "/send", body: { n: 1 } }
          })
        ).status
      ).toBe(200)
      await until("the job has ended", async () =>
        (await ask("POST", "/proxy/query", { query: "SELECT VALUE status FROM mail_job" })).text.includes('"success"')
      )
      expect(backend.calls("mail_job:1").length).toBe(1)
    } finally {
      await ssp.close()
      await node.close()
      await backend.close()
      removeFolder(folder)
    }
  })
})

describe("a scheduler without one", () => {
  let node: Node
  beforeAll(async () => {
    node = await Node.start()
  })
  afterAll(() => node.close())
  it("no endpoint of the specification answers 401", async () => {
    for (const ask of [
      "GET /info",
      "GET /metrics",
      "POST /proxy/signin",
      "POST /proxy/use",
      "GET /progress",
      "POST /ingest",
      "POST /ssp/heartbeat",
      "POST /job/result"
    ]) {
      const [method = "", path = ""] = ask.split(" ")
      expect((await request(node.url, { method, path })).status, ask).not.toBe(401)
    }
  })
})
