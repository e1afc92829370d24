/**
 * Authentication of the SSP (spec, "Authentication"; D15): every endpoint with every way of not being allowed in.
 *
 * Why every pair is a row: a middleware forgotten on one route is how such things go wrong. Order of checks: D6.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contract, expectError, type Row, send } from "../../kit/checks/contract.ts"
import { create } from "../../kit/data/registration.ts"
import { Door, secret } from "../../kit/processes/Door.ts"

const protectedRoutes: ReadonlyArray<readonly [string, unknown?]> = [
  ["POST /ingest", create("auth:1")],
  ["POST /view/register", { id: "incantation:a", surql: "SELECT * FROM auth", clientId: "c", ttl: "1h" }],
  ["POST /view/unregister", { id: "incantation:a" }],
  ["POST /view/free", { id: "incantation:a" }],
  ["POST /reset"],
  ["GET /debug/view/a"],
  ["GET /debug/deps"],
  ["POST /log", { message: "hello" }],
  ["GET /view/a"],
  ["GET /view/a/stream"],
  ["GET /views"],
  ["GET /overview"],
  ["GET /integrity"],
  ["GET /integrity/compare"],
  ["POST /reconcile"]
]

const ways: ReadonlyArray<readonly [string, { readonly [name: string]: string | ReadonlyArray<string> }]> = [
  ["no header", {}],
  ["an empty header", { authorization: "" }],
  ["a wrong secret", { authorization: "Bearer wrong" }],
  ["the secret cut short", { authorization: `Bearer ${secret.slice(0, -1)}` }],
  ["the secret and more", { authorization: `Bearer ${secret}x` }],
  ["the secret without a scheme", { authorization: secret }],
  ["a scheme as long as Bearer", { authorization: `XXXXXX ${secret}` }],
  ["Basic credentials", { authorization: `Basic ${Buffer.from(`user:${secret}`).toString("base64")}` }],
  ["the scheme alone", { authorization: "Bearer " }]
]

const unauthorized = (answer: { readonly headers: { readonly [name: string]: unknown } }): void => {
  expect(answer.headers["www-authenticate"]).toMatch(/^Bearer\b/)
}

let door: Door
beforeAll(async () => {
  door = await Door.start()
})
afterAll(() => door.close())

describe("protected endpoints", () => {
  contract(
    () => door,
    protectedRoutes.flatMap(([ask, body]) =>
      ways.map(
        ([way, headers]): Row => ({
          name: `${ask} 401 UNAUTHORIZED with ${way}`,
          ask,
          body,
          token: null,
          headers,
          status: 401,
          code: "UNAUTHORIZED",
          check: unauthorized
        })
      )
    )
  )

  contract(
    () => door,
    [
      {
        name: "POST /ingest 401 D6 before the body is looked at",
        ask: "POST /ingest",
        body: "{not json",
        token: "wrong",
        status: 401,
        code: "UNAUTHORIZED"
      },
      {
        name: "POST /ingest 401 D6 before the size is looked at",
        ask: "POST /ingest",
        body: "x".repeat(3 << 20),
        token: "wrong",
        status: 401,
        code: "UNAUTHORIZED"
      },
      {
        name: "POST /nowhere 404 D6 before the secret is looked at",
        ask: "POST /nowhere",
        token: null,
        status: 404,
        code: "NOT_FOUND"
      }
    ]
  )

  it("POST /ingest 401 left nothing behind: no record of a refused request is in the store", async () => {
    const deps = await send(door, { ask: "GET /debug/deps" })
    expect(deps.json).toMatchObject({ tables_in_store: [], view_count: 0 })
  })
})

describe("open endpoints", () => {
  contract(
    () => door,
    ["/health", "/version", "/info"].flatMap(
      (path): ReadonlyArray<Row> => [
        { name: `GET ${path} 200 without a header`, ask: `GET ${path}`, token: null, status: 200 },
        { name: `GET ${path} 200 whatever the header says`, ask: `GET ${path}`, token: "wrong", status: 200 }
      ]
    )
  )
})

for (const [what, value] of [
  ["unset", undefined],
  ["empty", ""]
] as const) {
  describe(`D15 SVC_AUTH_SECRET ${what}`, () => {
    let open: Door
    beforeAll(async () => {
      open = await Door.start({ env: { SVC_AUTH_SECRET: value } })
    })
    afterAll(() => open.close())

    contract(
      () => open,
      protectedRoutes.flatMap(
        ([ask, body]): ReadonlyArray<Row> => [
          {
            name: `D15 ${ask} 401 for everybody when the secret is ${what}`,
            ask,
            body,
            token: "anything",
            status: 401,
            code: "UNAUTHORIZED",
            check: unauthorized
          }
        ]
      )
    )
    it(`D15 POST /ingest 401 for an empty bearer, "undefined" and none when the secret is ${what}`, async () => {
      for (const authorization of ["Bearer ", "Bearer", "Bearer undefined", "Bearer null", ""]) {
        expectError(
          await send(open, { ask: "POST /ingest", body: create("auth:1"), token: null, headers: { authorization } }),
          401,
          "UNAUTHORIZED"
        )
      }
    })
    contract(
      () => open,
      ["/health", "/version", "/info"].map(
        (path): Row => ({
          name: `D15 GET ${path} 200 when the secret is ${what}`,
          ask: `GET ${path}`,
          token: null,
          status: 200
        })
      )
    )
    it(`D15 one warning names the setting when the secret is ${what}`, () => {
      expect(open.logs.split("\n").filter((line) => line.includes("SVC_AUTH_SECRET"))).toHaveLength(1)
    })
  })
}

it("D15 no secret is printed at start or in an answer", async () => {
  const answers = [
    await send(door, { ask: "GET /info" }),
    await send(door, { ask: "POST /log", body: { message: "x" }, token: "wrong" })
  ]
  expect(door.logs + answers.map((answer) => answer.text + JSON.stringify(answer.headers)).join("")).not.toContain(
    secret
  )
})
