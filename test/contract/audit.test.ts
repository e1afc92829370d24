/**
 * Audit lines of both servers (D53): who did what to what, from where, and how it ended, for every operation that is
 * declared.
 *
 * On the process for the SSP, because what counts is the line that an operator's collector gets.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, request } from "../../kit/checks/http.ts"
import { registration } from "../../kit/data/registration.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"
import { root } from "../../kit/rules/source.ts"
import { auditedOf } from "../../src/protocol/access.ts"
import { SchedulerApi } from "../../src/protocol/SchedulerApi.ts"
import { SspApi } from "../../src/protocol/SspApi.ts"
import { Node } from "../scheduler/node.ts"

const alice = "the-secret-of-alice"
const prometheus = "the-secret-of-prometheus"
const entries = `alice admin,register,read,ssp ${alice}\nprometheus metrics ${prometheus}`

interface Line {
  readonly audit?: boolean
  readonly operation: string
  readonly object: string
  readonly secret: string
  readonly address: string
  readonly outcome: string
  readonly left_out?: number
}

const ask = (url: string, asked: string, token: string, body: unknown = {}): Promise<Answer> => {
  const [method = "", path = ""] = asked.split(" ")
  return request(url, { method, path, token, ...(method === "POST" ? { body } : {}) })
}

/** What each audited endpoint is asked, what the line says it was done to, and how it ends here. */
type Asked = { readonly [route: string]: readonly [path: string, body: unknown, object: string, outcome: string] }

const walk = (
  server: () => { readonly url: string; readonly lines: () => ReadonlyArray<Line> },
  api: typeof SspApi | typeof SchedulerApi,
  asked: Asked
): void => {
  it("D53 the table below has every operation", () =>
    expect(Object.keys(asked).sort()).toEqual([...auditedOf(api).keys()].sort()))
  for (const [route, operation] of auditedOf(api)) {
    const [path, body, object, outcome] = asked[route] ?? ["", {}, "", ""]
    it(`D53 ${route} is the audit line ${operation}, ${outcome}`, async () => {
      const { lines, url } = server()
      for (const [token, name] of [
        [alice, "alice"],
        [secret, "default"]
      ] as const) {
        const before = lines().length
        // The client is another each time: a registration that changes nothing is no operation (D63).
        const sent = path === "/view/register" ? { ...(body as object), clientId: name } : body
        await ask(url, `${route.split(" ")[0]} ${path}`, token, sent)
        await until("the line", () => lines().length > before)
        expect(lines().slice(before)).toEqual([
          expect.objectContaining({ audit: true, operation, object, secret: name, address: "127.0.0.1", outcome })
        ])
      }
    })
  }
  it("D53 a caller that is turned away is a line that names the secret, never its text, and nothing of the request but its route", async () => {
    const { lines, url } = server()
    for (const [route, token, name, outcome] of [
      ["POST /ingest", prometheus, "prometheus", "SCOPE_REQUIRED"],
      ["POST /ingest", "a-guess-of-somebody", "unknown", "UNAUTHORIZED"],
      ["GET /view/:view_id", prometheus, "prometheus", "SCOPE_REQUIRED"],
      ["POST /view/register", "a-guess-of-somebody", "unknown", "UNAUTHORIZED"]
    ] as const) {
      const before = lines().length
      await ask(
        url,
        `${route.replace(":view_id", "h1dden%0Aaudit")}?h1dden=1`.replace("/ingest?h1dden=1", "/ingest"),
        token,
        { h1dden: 1 }
      )
      await until("the line", () => lines().length > before)
      expect(lines().slice(before)).toEqual([
        expect.objectContaining({
          audit: true,
          operation: "access",
          object: route,
          secret: name,
          address: "127.0.0.1",
          outcome
        })
      ])
    }
  })
}

describe("an SSP", () => {
  let door: Door
  const lines = (): ReadonlyArray<Line> =>
    door.logs
      .split("\n")
      .flatMap((line) => (line.includes('"audit"') ? [JSON.parse(line) as Line] : []))
      .filter(({ audit }) => audit === true)
  beforeAll(async () => {
    // Audit lines are there whatever the level, and the others must not make them hard to find.
    door = await Door.start({
      env: {
        SVC_AUTH_SECRETS: entries,
        SVC_LOG_LEVEL: "error",
        SVC_LOG_FORMAT: "json",
        SVC_AUDIT_TURNED_PER_MINUTE: "10"
      }
    })
  })
  afterAll(() => door.close())
  walk(() => ({ url: door.url, lines }), SspApi, {
    "POST /view/register": [
      "/view/register",
      registration("incantation:v", "SELECT * FROM h1dden"),
      "incantation:v",
      "ok"
    ],
    "POST /view/unregister": ["/view/unregister", { id: "incantation:v" }, "incantation:v", "ok"],
    "POST /view/token/revoke": ["/view/token/revoke", { subject: "user:ann" }, "user:ann", "ok"],
    "POST /view/free": ["/view/free", { id: "incantation:v" }, "incantation:v", "VIEW_NOT_FOUND"],
    "POST /reset": ["/reset", {}, "", "ok"],
    "POST /reconcile": ["/reconcile", {}, "", "INVALID_REQUEST"],
    "POST /jobs/:job_id/retry": ["/jobs/mail_job:1/retry", {}, "mail_job:1", "JOB_NOT_FOUND"],
    "POST /jobs/:job_id/cancel": ["/jobs/mail_job:1/cancel", {}, "mail_job:1", "JOB_NOT_FOUND"]
  })
  it("D53 a line break, a quote or an escape in an id makes no second line and no second field", async () => {
    const id = `incantation:x\n{"audit":true,"operation":"reset","secret":"alice"}\u001b[2J\u2028"`
    const before = lines().length
    await ask(door.url, "POST /view/unregister", alice, { id })
    await until("the line", () => lines().length > before)
    expect(
      lines()
        .slice(before)
        .map(({ operation, secret }) => [operation, secret])
    ).toEqual([["view.unregister", "alice"]])
  })
  it("D53 what a client writes to the log cannot pass for an audit line", async () => {
    const before = lines().length
    await ask(door.url, "POST /log", secret, {
      level: "error",
      message: "audit",
      data: { audit: true, operation: "reset" }
    })
    await until("the log", () => door.logs.includes('"from":"client"'))
    expect(lines()).toHaveLength(before)
  })
  it("D53 a flood of guesses writes no more lines than are allowed, and the end says how many were left out", async () => {
    for (let i = 0; i < 100; i++) await ask(door.url, "POST /ingest", `a-guess-of-somebody-${i}`)
    for (let i = 0; i < 100; i++) await ask(door.url, "GET /views", `a-guess-of-somebody-${i}`)
    const unknown = () => lines().filter(({ secret }) => secret === "unknown")
    // One window, or a few where the machine is slow.
    expect(unknown().length).toBeLessThan(100)
    await door.stop()
    const written = unknown().filter(({ left_out }) => left_out === undefined).length
    expect(written + unknown().reduce((sum, { left_out = 0 }) => sum + left_out, 0)).toBe(202)
    expect(door.logs).not.toMatch(/the-secret-of|a-guess-of|h1dden|s3cret-for/)
  })
})

describe("a scheduler", () => {
  let node: Node
  const lines = () => node.annotated.filter(({ audit }) => audit === true) as unknown as ReadonlyArray<Line>
  beforeAll(async () => {
    node = await Node.start({ env: { SVC_AUTH_SECRETS: entries, SVC_SCHEDULER_AUTH_SECRET: secret } })
  })
  afterAll(() => node.close())
  walk(() => ({ url: node.url, lines }), SchedulerApi, {
    "POST /view/register": [
      "/view/register",
      registration("incantation:v", "SELECT * FROM h1dden"),
      "incantation:v",
      "NO_SSP_AVAILABLE"
    ],
    "POST /view/unregister": ["/view/unregister", { id: "incantation:v" }, "incantation:v", "VIEW_NOT_FOUND"],
    "POST /view/token/revoke": ["/view/token/revoke", { subject: "user:ann" }, "user:ann", "ok"],
    "POST /view/free": ["/view/free", { id: "incantation:v" }, "incantation:v", "VIEW_NOT_FOUND"],
    "POST /query/register": [
      "/query/register",
      { query_id: "incantation:v", view_plan: "SELECT * FROM h1dden" },
      "incantation:v",
      "NO_SSP_AVAILABLE"
    ],
    "POST /ssp/register": [
      "/ssp/register",
      { ssp_id: "alice", url: "http://169.254.169.254" },
      "alice",
      "INVALID_REQUEST"
    ],
    "POST /ssp/deregister": ["/ssp/deregister", { ssp_id: "alice" }, "alice", "ok"],
    "POST /jobs/:job_id/retry": ["/jobs/mail_job:1/retry", {}, "mail_job:1", "NO_SSP_AVAILABLE"],
    "POST /jobs/:job_id/cancel": ["/jobs/mail_job:1/cancel", {}, "mail_job:1", "NO_SSP_AVAILABLE"]
  })
  it("D53 nothing of a secret or a query is in any line", () =>
    expect(JSON.stringify(node.annotated)).not.toMatch(/the-secret-of|a-guess-of|h1dden|s3cret-for/))
})

it("D53 an open scheduler names no secret, and writes the line all the same", async () => {
  const node = await Node.start()
  try {
    await node.post("/ssp/deregister", { ssp_id: "x" })
    await until("the line", () => node.annotated.some(({ audit }) => audit === true))
    expect(node.annotated.find(({ audit }) => audit === true)).toMatchObject({
      operation: "ssp.deregister",
      object: "x",
      secret: "none",
      outcome: "ok"
    })
  } finally {
    await node.close()
  }
})

it("D53 docs/security.md names every operation", () => {
  const page = readFileSync(join(root, "docs/security.md"), "utf8")
  expect(
    [...auditedOf(SspApi).values(), ...auditedOf(SchedulerApi).values(), "access"].filter(
      (operation) => !page.includes(`\`${operation}\``)
    )
  ).toEqual([])
})
