/**
 * Callers who may not ask (D47): pages of other sites, names that were made to lead here, addresses from outside.
 *
 * The tables are `attacks/callers.ts`, gone through over real processes.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, request } from "../../kit/checks/http.ts"
import { registration } from "../../kit/data/registration.ts"
import { Door, schedulerEnv, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import * as Callers from "../../src/core/access/callers.ts"
import { inside, names, outside, pages, type Row } from "./attacks/callers.ts"

const askOf = (url: string, { ask, body, headers }: Row, token: string | undefined): Promise<Answer> => {
  const [method = "", path = ""] = ask.split(" ")
  return request(url, { method, path, headers, token, ...(body === undefined ? {} : { body }) })
}

const check = (answer: Answer, { code, status, what }: Row): void => {
  expect(
    [answer.status, code === undefined ? undefined : (answer.json as { readonly code?: unknown }).code],
    `${what}: ${answer.text}`
  ).toEqual([status, code])
}

describe("an open scheduler", () => {
  let door: Door
  beforeAll(async () => {
    const folder = temporaryFolder()
    door = await Door.spawn({
      command: [process.execPath, "dist/scheduler.js"],
      dataDir: folder,
      env: {
        ...schedulerEnv(folder),
        SVC_HOSTS: "allowed.example, *.below.example"
      }
    })
    await until(
      "the scheduler serves",
      async () => (await request(door.url, { path: "/livez", keepAlive: false }).catch(() => undefined))?.status === 200
    )
  })
  afterAll(() => door.close())
  for (const row of [...pages, ...names])
    it(`${row.ask} ${row.status} D47 ${row.what}`, async () => check(await askOf(door.url, row, undefined), row))
  it("D47 and nothing of it was written", async () => {
    expect(
      (await request(door.url, { method: "POST", path: "/proxy/query", body: { query: "SELECT * FROM planted" } })).json
    ).toEqual([])
    expect((await request(door.url, { path: "/info" })).text).not.toContain("rebound")
  })
})

it("D47 a scheduler that is opened to anybody is asked under any name", async () => {
  const folder = temporaryFolder()
  const door = await Door.spawn({
    command: [process.execPath, "dist/scheduler.js"],
    dataDir: folder,
    env: { ...schedulerEnv(folder), SVC_SCHEDULER_OPEN_TO: "anybody" }
  })
  try {
    const asked = () =>
      request(door.url, { path: "/info", headers: { host: "scheduler.example.com" }, keepAlive: false })
    expect(await until("it serves", async () => (await asked().catch(() => undefined))?.status)).toBe(200)
  } finally {
    await door.close()
  }
})

describe("an SSP, which asks for its secret", () => {
  let door: Door
  beforeAll(async () => {
    door = await Door.start({ env: { SVC_CORS_ORIGINS: "https://app.example" } })
  })
  afterAll(() => door.close())
  for (const row of pages)
    it(`${row.ask} ${row.status} D47 ${row.what}`, async () => check(await askOf(door.url, row, secret), row))
  it("POST /view/register 200 D47 from a listed page, and from its own page behind a proxy with TLS", async () => {
    for (const headers of [
      { origin: "https://app.example" },
      { host: "views.example", origin: "https://views.example" },
      { host: "views.example:8443", origin: "https://views.example:8443" }
    ]) {
      expect(
        (
          await request(door.url, {
            method: "POST",
            path: "/view/register",
            headers,
            token: secret,
            body: registration("incantation:fine", "SELECT * FROM item")
          })
        ).status
      ).toBe(200)
    }
  })
})

describe("addresses at a server without a secret", () => {
  const rules: Callers.CallerRules = {
    isOpen: true,
    answersAnybody: false,
    origins: { all: [], browser: [] },
    hosts: undefined,
    asksCertificates: false,
    nodePaths: [],
    staticPaths: new Set(["/docs"])
  }
  const from = (address: string, path = "/ingest", more: object = {}, host = "localhost", origin?: string) =>
    Callers.refusal(
      { ...rules, ...more },
      {
        method: "POST",
        path,
        host,
        origin,
        contentType: "application/json",
        address,
        isNode: false
      }
    )
  it("D47 loopback and private ones are answered", () => {
    for (const address of inside) expect(from(address), address).toBeUndefined()
  })
  it("D47 all others are told which setting lets them in; probes are answered", () => {
    for (const address of outside) {
      expect(from(address), address).toMatchObject({
        code: "FORBIDDEN",
        message: expect.stringMatching(/SVC_SCHEDULER_AUTH_SECRET.*SVC_SCHEDULER_OPEN_TO=anybody/)
      })
      expect(from(address, "/docs"), address).toMatchObject({ code: "FORBIDDEN" })
      expect(from(address, "/readyz"), address).toBeUndefined()
    }
  })
  it("D47 opened to anybody every address is answered under every name; pages of other origins still may not call", () => {
    const opened = { answersAnybody: true }
    expect(from("127.0.0.1", "/ingest", {}, "scheduler.example.com")).toMatchObject({
      code: "MISDIRECTED_REQUEST",
      message: expect.stringContaining("SVC_SCHEDULER_OPEN_TO=anybody")
    })
    for (const address of [...inside, ...outside])
      expect(from(address, "/ingest", opened, "scheduler.example.com"), address).toBeUndefined()
    expect(from("192.0.2.1", "/ingest", opened, "a.example", "https://b.example")).toMatchObject({ code: "FORBIDDEN" })
  })
})
