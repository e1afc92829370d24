/**
 * Scopes of secrets (D15): every endpoint of both servers, with a secret for each scope, against running servers.
 *
 * The endpoints are those the Apis declare, so that a new one cannot be forgotten here; what each asks for is read from
 * the declaration, and the few whose scope matters most are also written down.
 */
import * as OpenApi from "@effect/platform/OpenApi"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectError, type Served } from "../../kit/checks/contract.ts"
import { type Answer, request } from "../../kit/checks/http.ts"
import { Door } from "../../kit/processes/Door.ts"
import { hashOf } from "../../src/core/access/scopedSecrets.ts"
import { type Scope, scopes } from "../../src/core/access/scopes.ts"
import { accessOf } from "../../src/protocol/access.ts"
import { SchedulerApi } from "../../src/protocol/SchedulerApi.ts"
import { SspApi } from "../../src/protocol/SspApi.ts"
import { Node } from "../scheduler/node.ts"

const secretOf = (name: string): string => `the-secret-of-${name}`
const others = (scope: Scope): ReadonlyArray<Scope> => scopes.filter((one) => one !== scope)

/**
 * For each scope a secret that has only it, one that is known by its hash where that may be, and one that has every
 * other.
 */
const entries = scopes
  .flatMap((scope) => [
    `only-${scope} ${scope} ${secretOf(`only-${scope}`)}`,
    ...(scope === "ssp" ? [] : [`hashed-${scope} ${scope} sha256:${hashOf(secretOf(`hashed-${scope}`))}`]),
    `all-but-${scope} ${others(scope).join(",")} ${secretOf(`all-but-${scope}`)}`
  ])
  .join("\n")

const ask = (server: Served, asked: string, token: string): Promise<Answer> => {
  const [method = "", path = ""] = asked.split(" ")
  return request(server.url, {
    method,
    path: path.replace(/:\w+/g, "x"),
    token,
    ...(method === "POST" ? { body: {} } : {})
  })
}

const letIn = (answer: Answer, what: string): void =>
  expect([401, 403], `${what} ${answer.text.slice(0, 200)}`).not.toContain(answer.status)

const walk = (server: () => Served, api: typeof SspApi | typeof SchedulerApi): void => {
  for (const [asked, access] of accessOf(api)) {
    if (access === "open") {
      it(`D15 ${asked} asks for no secret`, async () => letIn(await ask(server(), asked, "anything"), asked))
      continue
    }
    it(`D15 ${asked} takes the scope ${access} and no other`, async () => {
      for (const name of [`only-${access}`, ...(access === "ssp" ? [] : [`hashed-${access}`])])
        letIn(await ask(server(), asked, secretOf(name)), name)
      for (const name of [...others(access).map((scope) => `only-${scope}`), `all-but-${access}`]) {
        const answer = await ask(server(), asked, secretOf(name))
        expect(expectError(answer, 403, "SCOPE_REQUIRED")["details"], name).toEqual({ scope: access })
        expect([answer.headers["www-authenticate"], answer.text.includes(name)]).toEqual([
          'Bearer error="insufficient_scope"',
          true
        ])
        expect(answer.text).not.toContain("the-secret-of")
        if (asked.startsWith("GET "))
          expect((await ask(server(), asked.replace("GET", "HEAD"), secretOf(name))).status).toBe(403)
      }
      for (const token of ["wrong", secretOf("nobody"), hashOf(secretOf(`hashed-${access}`)), `only-${access}`])
        expectError(await ask(server(), asked, token), 401, "UNAUTHORIZED")
    })
  }
}

describe("an SSP with secrets by scope alone", () => {
  let door: Door
  beforeAll(async () => {
    door = await Door.start({ env: { SVC_AUTH_SECRET: undefined, SVC_AUTH_SECRETS: entries } })
  })
  afterAll(() => door.close())
  walk(() => door, SspApi)
  it("D15 no secret is printed", () => expect(door.logs).not.toContain("the-secret-of"))
})

describe("a scheduler with secrets by scope alone", () => {
  let node: Node
  beforeAll(async () => {
    node = await Node.start({ env: { SVC_AUTH_SECRETS: entries } })
  })
  afterAll(() => node.close())
  walk(() => node, SchedulerApi)
})

describe("the one secret beside them", () => {
  it("D15 opens every endpoint, as the specification says", async () => {
    const [door, node] = await Promise.all([
      Door.start({ env: { SVC_AUTH_SECRETS: entries } }),
      Node.start({ env: { SVC_AUTH_SECRETS: entries, SVC_SCHEDULER_AUTH_SECRET: "s3cret-for-tests" } })
    ])
    try {
      for (const [server, api] of [
        [door, SspApi],
        [node, SchedulerApi]
      ] as const) {
        for (const asked of accessOf(api).keys()) letIn(await ask(server, asked, "s3cret-for-tests"), asked)
      }
    } finally {
      await door.close()
      await node.close()
    }
  })
})

describe("what the declarations say", () => {
  const having = (api: typeof SspApi | typeof SchedulerApi, access: Scope | "open") =>
    [...accessOf(api)].flatMap(([asked, one]) => (one === access ? [asked] : []))
  it("D15 what destroys, repairs or runs again needs admin; Prometheus has a scope of its own; SSPs too", () => {
    expect(having(SspApi, "admin")).toEqual([
      "POST /reset",
      "POST /view/free",
      "GET /integrity/compare",
      "POST /reconcile",
      "POST /jobs/:job_id/retry",
      "POST /jobs/:job_id/cancel"
    ])
    expect(having(SchedulerApi, "admin")).toEqual([
      "POST /view/free",
      "POST /jobs/:job_id/retry",
      "POST /jobs/:job_id/cancel"
    ])
    expect([having(SspApi, "metrics"), having(SchedulerApi, "metrics")]).toEqual([["GET /metrics"], ["GET /metrics"]])
    expect([having(SspApi, "ssp"), having(SchedulerApi, "ssp")]).toEqual([
      [],
      [
        "POST /ssp/register",
        "POST /ssp/heartbeat",
        "POST /ssp/deregister",
        "GET /feed",
        "POST /ssp/applied",
        "POST /job/result"
      ]
    ])
    expect([having(SspApi, "open"), having(SchedulerApi, "open")]).toEqual([
      ["GET /health", "GET /version", "GET /info"],
      ["GET /health", "GET /livez", "GET /readyz"]
    ])
  })
  it("D15 read changes nothing: what it opens is GET, the query that cannot write, or following and keeping of views", () => {
    expect(
      [...having(SspApi, "read"), ...having(SchedulerApi, "read")].filter((asked) => !asked.startsWith("GET "))
    ).toEqual([
      "POST /stream",
      "POST /stream/:stream_id",
      "POST /view/token",
      "POST /view/touch",
      "POST /proxy/query",
      "POST /proxy/signin",
      "POST /proxy/use",
      "POST /stream",
      "POST /stream/:stream_id",
      "POST /view/token",
      "POST /view/touch"
    ])
  })
  it("D15 the OpenAPI documents name the scope of every operation", () => {
    for (const api of [SspApi, SchedulerApi]) {
      const { paths } = OpenApi.fromApi(api as never) as unknown as {
        readonly paths: {
          readonly [path: string]: {
            readonly [method: string]: {
              readonly security: ReadonlyArray<{ readonly [scheme: string]: ReadonlyArray<string> }>
            }
          }
        }
      }
      const named = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(
          ([method, { security }]) =>
            [
              `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`,
              security.flatMap(({ bearer, view }) => bearer ?? view ?? [])[0] ?? "open"
            ] as const
        )
      )
      expect(new Map(named)).toEqual(new Map(accessOf(api)))
    }
  })
})
