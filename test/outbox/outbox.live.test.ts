/**
 * The outbox as its users have it: a record user signs up, runs jobs through its own connection, and sees what it may
 * (D40).
 *
 * On the real engine with the printed schema, an SSP beside it and a real HTTP backend that checks the token.
 */

import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Redacted } from "effect"
import type { Surreal } from "surrealdb"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { TestBackend } from "../../kit/processes/backend.ts"
import { removeFolder, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { RpcServer } from "../../kit/processes/surreal/RpcServer.ts"
import { newClient, rootClient } from "../../kit/processes/surreal/sdk.ts"
import { jobTable } from "../../src/core/surreal/jobTableSchema.ts"
import * as SurrealSchema from "../../src/core/surreal/surrealSchema.ts"
import type { Outbox } from "../../src/outbox/call.ts"
import { InvalidCall, JobNotCreated, UnknownBackend, UnknownRoute } from "../../src/outbox/errors.ts"
import { outbox } from "../../src/outbox.ts"
import { pollingRunner } from "./kit.ts"

const folder = temporaryFolder()
let server: RpcServer
let backend: TestBackend
let root: Surreal
let ann: Surreal
let bob: Surreal
let box: Outbox
let stop: () => Promise<void>

const accounts = `DEFINE ACCESS account ON DATABASE TYPE RECORD SIGNUP (CREATE user SET name = $name) SIGNIN (SELECT * FROM user WHERE name = $name);
  DEFINE TABLE user PERMISSIONS FOR select WHERE id = $auth.id; DEFINE TABLE note PERMISSIONS FOR select, create WHERE author = $auth.id;`

const openApi = `openapi: 3.1.0
info: { title: mail, version: "1" }
paths:
  /send:
    post:
      requestBody:
        content:
          application/json:
            schema: { $ref: ./parts.yml#/Mail }
`
const parts =
  "Mail: { type: object, required: [to, count], properties: { to: { type: string, minLength: 1 }, count: { type: integer } }, additionalProperties: false }\n"

const signUp = async (name: string): Promise<Surreal> => {
  const db = newClient()
  await db.connect(server.url, { namespace: "n", database: "d" })
  await db.signup({ namespace: "n", database: "d", access: "account", variables: { name } })
  return db
}

const ask = async (db: Surreal, statement: string): Promise<unknown> => (await db.query<[unknown]>(statement))[0]

beforeAll(async () => {
  server = await RpcServer.start()
  backend = await TestBackend.start()
  writeFileSync(join(folder, "mail.yml"), openApi)
  writeFileSync(join(folder, "parts.yml"), parts)
  writeFileSync(
    join(folder, "svc.yml"),
    `backends:\n  mail:\n    type: http\n    baseUrl: ${backend.url}\n    spec: ./mail.yml\n    auth: { type: token, token: "\${NOT_SET_ON_THE_CLIENT}" }\n    method: { type: outbox, table: mail_job, schema: ./mail_job.surql }\n`
  )
  root = await rootClient(server)
  await root.query(accounts + SurrealSchema.printed([jobTable("mail_job")]))
  ann = await signUp("ann")
  bob = await signUp("bob")
  await ann.query("CREATE note:a SET author = $auth.id")
  await bob.query("CREATE note:b SET author = $auth.id")
  box = await outbox(ann, { path: join(folder, "svc.yml") })
  stop = await pollingRunner(server, [
    {
      table: "mail_job",
      name: "mail",
      baseUrl: backend.url,
      authToken: Redacted.make(backend.token),
      timeoutMs: 2000,
      concurrency: 4
    }
  ])
})
afterAll(async () => {
  await stop()
  for (const db of [ann, bob, root]) await db.close()
  await server.kill()
  await backend.close()
  removeFolder(folder)
})

const rejection = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => ({ resolved: value }),
    (error: unknown) => error
  )

describe("D40 db.run() as a record user", () => {
  it("D40 a good payload becomes a job that runs against the backend and ends in success", async () => {
    const db = Object.assign(ann, box)
    const id = await db.run(
      "mail",
      "/send",
      { to: "bob", count: 2 },
      { assignedTo: "note:a", max_retries: 1, retry_strategy: "exponential" }
    )
    expect(id).toMatch(/^mail_job:\w+$/)
    await until(
      "it succeeded",
      async () => ((await ask(ann, `SELECT VALUE status FROM ${id}`)) as ReadonlyArray<string>)[0] === "success"
    )
    expect(backend.calls(id).map(({ body, path }) => [path, body])).toEqual([["POST /send", { to: "bob", count: 2 }]])
    expect(
      await ask(
        root,
        `SELECT path, payload, max_retries, retry_strategy, retries, errors, status, <string> assigned_to AS parent FROM ${id}`
      )
    ).toEqual([
      {
        path: "/send",
        payload: { to: "bob", count: 2 },
        max_retries: 1,
        retry_strategy: "exponential",
        retries: 0,
        errors: [],
        status: "success",
        parent: "note:a"
      }
    ])
  })
  it("D40 a missing parameter, a wrong type, an unknown one and a bad option are one error that names them all, and no record", async () => {
    const before = await ask(root, "SELECT VALUE id FROM mail_job")
    const error = await rejection(
      box.run("mail", "/send", { count: "two", extra: 1 }, { assignedTo: "note a", max_retries: -1 })
    )
    expect(error).toBeInstanceOf(InvalidCall)
    expect((error as InvalidCall).faults).toEqual(
      expect.arrayContaining([
        { path: "payload.to", reason: "is missing" },
        { path: "payload.count", reason: "must be integer" },
        { path: "payload.extra", reason: "is not a parameter of this route" },
        { path: "options.assignedTo", reason: expect.any(String) },
        { path: "options.max_retries", reason: expect.any(String) }
      ])
    )
    expect((error as InvalidCall).faults.length).toBe(5)
    expect(await ask(root, "SELECT VALUE id FROM mail_job")).toEqual(before)
  })
  it("D40 unknown backends and routes are refused with those that are known", async () => {
    expect(await rejection(box.run("post", "/send", {}))).toBeInstanceOf(UnknownBackend)
    const error = await rejection(box.run("mail", "/sent", {}))
    expect(error).toBeInstanceOf(UnknownRoute)
    expect((error as UnknownRoute).message).toContain("/send")
  })
  it("D40 a creation that the permissions swallow is an error", async () => {
    const good = { to: "x", count: 1 }
    for (const options of [{ assignedTo: "note:b" }, {}]) {
      const error = await rejection(box.run("mail", "/send", good, options))
      expect(error).toBeInstanceOf(JobNotCreated)
      expect((error as JobNotCreated).message).toContain("permissions")
    }
    expect(backend.received.filter(({ body }) => (body as { to: string }).to === "x")).toEqual([])
  })
  it("another user cannot read the job; no record user selects errors or updates status; a failed job shows only that", async () => {
    backend.reply = (_, response) => void response.writeHead(422).end("no such address")
    const id = await box.run("mail", "/send", { to: "nobody", count: 1 }, { assignedTo: "note:a" })
    await until(
      "it failed",
      async () => ((await ask(ann, `SELECT VALUE status FROM ${id}`)) as ReadonlyArray<string>)[0] === "failed"
    )
    backend.reply = (_, response) => void response.end("{}")
    expect(await ask(bob, `SELECT * FROM ${id}`)).toEqual([])
    expect(await ask(root, `SELECT VALUE errors FROM ${id}`)).toMatchObject([
      [{ attempt: 1, code: 422, reason: "the backend answered 422: no such address", at: expect.any(String) }]
    ])
    expect(((await ask(ann, `SELECT * FROM ${id}`)) as ReadonlyArray<object>).map((row) => "errors" in row)).toEqual([
      false
    ])
    await ann.query(`UPDATE ${id} SET status = 'pending', errors = [], path = '/other'`).then(
      () => undefined,
      () => undefined
    )
    await bob.query(`UPDATE ${id} SET max_retries = 9`).then(
      () => undefined,
      () => undefined
    )
    expect(await ask(root, `SELECT status, path, max_retries, array::len(errors) AS errors FROM ${id}`)).toEqual([
      { status: "failed", path: "/send", max_retries: 3, errors: 1 }
    ])
  })
})
