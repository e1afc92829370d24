/**
 * The command that asks an SSP for its compare, against answers of every kind (D41).
 *
 * The answers are made here, because what is tried is how they are told to a person; real ones are in the live test.
 */

import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Console, Effect, Redacted } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { freePort } from "../../../kit/processes/Door.ts"
import * as CheckIntegrity from "../../../src/ssp/commands/checkIntegrity.ts"

let http: Server
const asked: Array<string> = []
let answer: { readonly status: number; readonly body: string } = { status: 200, body: "" }

beforeAll(async () => {
  http = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`)
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body)
  })
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
})
afterAll(() => void http.close())

const port = (): number => (http.address() as AddressInfo).port

const run = async (options: Partial<CheckIntegrity.CheckOptions> = {}, at = port()) => {
  const out: Array<string> = []
  const console = {
    ...Effect.runSync(Console.consoleWith(Effect.succeed)),
    log: (text: string) => Effect.sync(() => void out.push(text))
  }
  const config = { authSecret: Redacted.make("s3cret"), tls: undefined, listen: { host: undefined, port: at } }
  const fault = await Effect.runPromise(
    CheckIntegrity.run(config, { tables: undefined, url: undefined, ...options }).pipe(
      Effect.match({ onFailure: ({ exitCode, message }) => `${exitCode} ${message}`, onSuccess: () => undefined }),
      Effect.provide(FetchHttpClient.layer),
      Effect.withConsole(console)
    )
  )
  return { out, fault }
}

const comparison = (different: number, differences: ReadonlyArray<object>) => ({
  status: 200,
  body: JSON.stringify({ tables: ["item"], compared: 9, different, differences })
})

test("D41 equality is said in one line a table, asked for with the secret where the SSP listens", async () => {
  answer = comparison(0, [])
  asked.length = 0
  expect(await run()).toEqual({ out: ["compared 9 records of item: all are equal"], fault: undefined })
  expect((await run({ tables: ["a b", "c"] })).out).toHaveLength(2)
  expect(asked).toEqual([
    "/integrity/compare Bearer s3cret",
    "/integrity/compare?table=a+b Bearer s3cret",
    "/integrity/compare?table=c Bearer s3cret"
  ])
})

test("D41 every record that differs is named with what differs, those beyond the answer are counted, and it ends with 1", async () => {
  answer = comparison(5, [
    { id: "item:1", kind: "different", version: 2, database_version: 3 },
    { id: "item:2", kind: "different", version: 2, database_version: null },
    { id: "item:3", kind: "missing", version: null, database_version: null },
    { id: "item:4", kind: "extra", version: 7, database_version: null }
  ])
  const { fault, out } = await run()
  expect(out).toEqual([
    "item:1 differs (version 2 here, 3 there)",
    "item:2 differs (version 2 here)",
    "item:3 is in the database and not here",
    "item:4 is here (version 7) and not in the database",
    "and 1 more",
    "compared 9 records of item: 5 differ"
  ])
  expect(fault).toMatch(/^1 5 records differ.*POST .*\/reconcile/)
})

test("D41 no SSP, another answer, another service and an unknown port end with the reason", async () => {
  expect((await run({}, await freePort())).fault).toMatch(/^1 no SSP answers at http:\/\/127\.0\.0\.1:\d+.*--url/)
  answer = { status: 401, body: '{"code":"UNAUTHORIZED"}' }
  expect((await run()).fault).toMatch(/^1 .*answers 401: .*UNAUTHORIZED/)
  answer = { status: 200, body: "<html>" }
  expect((await run()).fault).toMatch(/^1 .*does not answer like an SSP/)
  expect((await run({}, 0)).fault).toMatch(/^2 .*--url/)
})
