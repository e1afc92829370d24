/**
 * The examples in both OpenAPI documents, held against running nodes: each is sent as it stands, in an order in which
 * it can succeed.
 *
 * Why all and on real processes: an example that nobody runs is wrong within a month, and it is what a newcomer sends
 * first.
 */

import { mkdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import * as HttpApi from "@effect/platform/HttpApi"
import { Either, Option, Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, type Body, bodyOf, request } from "../../kit/checks/http.ts"
import { begunStream, bodiesOf, examplesIn, type Operation, operationsOf, pathOf } from "../../kit/checks/operations.ts"
import { Door, removeFolder, secret, temporaryFolder, until } from "../../kit/processes/Door.ts"
import { listen, shut } from "../../kit/processes/listening.ts"
import { ProcessCluster } from "../../kit/processes/processCluster.ts"
import { jobId } from "../../src/protocol/examples.ts"
import { SchedulerApi } from "../../src/protocol/SchedulerApi.ts"
import { SspApi } from "../../src/protocol/SspApi.ts"

/** Schemas of an operation as the code declares them. */
interface Declared {
  readonly payload: Schema.Schema<unknown, unknown> | undefined
  readonly successes: ReadonlyMap<number, Schema.Schema<unknown, unknown>>
}

const declared = (api: typeof SspApi | typeof SchedulerApi): ReadonlyMap<string, Declared> => {
  const all = new Map<string, Declared>()
  HttpApi.reflect(api as never, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, successes }) =>
      void all.set(`${group.identifier}.${endpoint.name}`, {
        payload: Option.getOrUndefined(endpoint.payloadSchema) as never,
        successes: new Map(
          [...successes].flatMap(([status, { ast }]) =>
            Option.isSome(ast) ? [[status, Schema.make(ast.value)] as const] : []
          )
        )
      })
  })
  return all
}

/** Names of an object's fields, or of those of what a list holds. */
const keysOf = (value: unknown): unknown => {
  const one: unknown = Array.isArray(value) ? value[0] : value
  return typeof one === "object" && one !== null ? Object.keys(one).sort() : typeof one
}

/**
 * What cannot succeed here: nobody compares with a database where there is none, no view is set aside, and ids of
 * streams and numbers of registrations are never told before. `GET /feed` is asked with such a number.
 */
const refused = new Set([
  "integrity.compare",
  "integrity.reconcile",
  "view.free",
  "browser.changeStream",
  "ssp.applied"
])

const orders = {
  ssp: [
    "monitor.health",
    "monitor.version",
    "monitor.info",
    "data.log",
    "view.register",
    "data.ingest",
    "view.view",
    "view.stream",
    "browser.openStream",
    "browser.changeStream",
    "browser.token",
    "browser.revoke",
    "browser.touch",
    "view.views",
    "monitor.debugView",
    "monitor.debugDeps",
    "monitor.overview",
    "monitor.metrics",
    "monitor.progress",
    "integrity.nodes",
    "integrity.compare",
    "integrity.reconcile",
    "job.execute",
    "job.jobs",
    "job.job",
    "job.retry",
    "job.cancel",
    "view.free",
    "view.unregister",
    "data.reset"
  ],
  scheduler: [
    "monitor.health",
    "monitor.livez",
    "monitor.readyz",
    "monitor.info",
    "data.signin",
    "data.use",
    "data.ingest",
    "data.query",
    "view.register",
    "view.registerQuery",
    "view.views",
    "view.view",
    "view.stream",
    "browser.openStream",
    "browser.changeStream",
    "browser.token",
    "browser.revoke",
    "browser.touch",
    "monitor.debugView",
    "monitor.overview",
    "monitor.metrics",
    "monitor.progress",
    "integrity.nodes",
    "data.replica",
    "job.dispatch",
    "job.jobs",
    "job.job",
    "job.retry",
    "job.cancel",
    "job.result",
    "view.free",
    "view.unregister",
    "ssp.join",
    "ssp.heartbeat",
    "ssp.applied",
    "ssp.feed",
    "ssp.leave"
  ]
} as const

const folder = temporaryFolder()
const closers: Array<() => Promise<unknown>> = []
const later = (close: () => Promise<unknown>): void => void closers.push(close)
afterAll(async () => {
  for (const close of closers.reverse()) await close()
  removeFolder(folder)
})

/**
 * A configuration with the job table of the examples, whose backend refuses, and does not answer at all once it is told
 * to.
 */
const backend = async (name: string): Promise<{ readonly config: string; readonly hang: () => void }> => {
  let hangs = false
  const server = createServer(
    (asked, answer) => void asked.resume().on("end", () => (hangs ? undefined : answer.writeHead(503).end()))
  )
  const port = await listen(server)
  later(() => shut(server))
  mkdirSync(join(folder, name), { recursive: true })
  const config = join(folder, name, "svc.yml")
  writeFileSync(config, `job_tables:\n  mail_job:\n    name: mail\n    base_url: http://127.0.0.1:${port}\n`)
  return { config, hang: () => void (hangs = true) }
}

const suite = (
  which: "ssp" | "scheduler",
  api: typeof SspApi | typeof SchedulerApi,
  start: (config: string) => Promise<string>
): void => {
  describe(`the examples of the ${which}`, () => {
    const schemas = declared(api)
    let url: string
    let operations: ReadonlyArray<Operation>
    let hang: () => void
    beforeAll(async () => {
      const mail = await backend(which)
      hang = mail.hang
      url = await start(mail.config)
      operations = operationsOf((await request(url, { path: "/openapi.json" })).json)
    })

    it("are there for every body, every parameter that must be, and every answer, and each is read by its schema", () => {
      expect(operations.map(({ operationId }) => operationId).sort()).toEqual([...orders[which]].sort())
      for (const operation of operations) {
        const missing = operation.parameters.filter(({ example, required }) => required && example === undefined)
        // The feed goes on and is not asked below; numbers in its query have no example that the document shows.
        if (operation.operationId !== "ssp.feed")
          expect(missing.map(({ name }) => `${operation.path} ${name}`)).toEqual([])
        const { payload, successes } = schemas.get(operation.operationId)!
        const bodies = examplesIn(operation.requestBody?.content)
        expect([operation.operationId, bodies.length > 0]).toEqual([operation.operationId, payload !== undefined])
        for (const body of bodies)
          expect([
            operation.operationId,
            Either.getLeft(Schema.decodeUnknownEither(payload as Schema.Schema<unknown>)(body))
          ]).toEqual([operation.operationId, Option.none()])
        for (const [status, { content }] of Object.entries(operation.responses)) {
          const examples = examplesIn(content)
          expect([operation.operationId, status, examples.length > 0]).toEqual([operation.operationId, status, true])
          const success = successes.get(Number(status))
          if (success !== undefined)
            for (const example of examples)
              expect([
                operation.operationId,
                Either.getLeft(Schema.decodeUnknownEither(success as Schema.Schema<unknown>)(example))
              ]).toEqual([operation.operationId, Option.none()])
        }
      }
    })
    it("are taken by a running node, one after the other, and it answers as the example of its answer", async () => {
      for (const id of orders[which].filter((one) => one !== "ssp.feed")) {
        const operation = operations.find(({ operationId }) => operationId === id)!
        const path = pathOf(operation)
        if (id === "job.jobs")
          await until(
            "the example's job has failed",
            async () =>
              bodyOf(await request(url, { path: `/jobs/${encodeURIComponent(jobId)}`, token: secret }))["status"] ===
              "failed"
          )
        if (id === "job.retry") hang()
        for (const body of bodiesOf(operation)) {
          const answer =
            id === "view.stream" || id === "browser.openStream"
              ? await begunStream(url, path, body)
              : await request(url, {
                  method: operation.method,
                  path,
                  token: secret,
                  ...(body === undefined ? {} : { body })
                })
          expect(
            [
              id,
              answer.status >= 200 && answer.status < 300,
              Object.keys(operation.responses).includes(String(answer.status))
            ],
            answer.text.slice(0, 300)
          ).toEqual([id, !refused.has(id), true])
          if (!refused.has(id)) expectLike(operation, answer)
        }
      }
    })
    /** Read by its schema, the answer has the fields of one of the examples. */
    const expectLike = (operation: Operation, answer: Answer): void => {
      const { content } = operation.responses[String(answer.status)]!
      const [type] = Object.keys(content ?? {})
      expect([operation.operationId, String(answer.headers["content-type"]).split(";")[0]]).toEqual([
        operation.operationId,
        type
      ])
      const schema = schemas.get(operation.operationId)!.successes.get(answer.status)!
      const read = Schema.decodeUnknownSync(schema as Schema.Schema<unknown>)(
        type === "application/json" ? answer.json : answer.text
      )
      expect(examplesIn(content).map(keysOf), operation.operationId).toContainEqual(keysOf(read))
      if (operation.operationId === "view.view") expect((read as Body)["result_data"]).toHaveLength(1)
    }
  })
}

suite("ssp", SspApi, async (config) => {
  const door = await Door.start({ env: { SSP_ID: "ssp-1", SVC_CONFIG_PATH: config } })
  later(() => door.close())
  return door.url
})

suite("scheduler", SchedulerApi, async (config) => {
  const cluster = await ProcessCluster.start(1, { SVC_CONFIG_PATH: config }, () => ({ SVC_CONFIG_PATH: config }))
  later(() => cluster.close())
  return cluster.scheduler.url
})
