/**
 * What the fronts of the nodes serve is what their contracts declare: each endpoint, and nothing else.
 *
 * A front that leaves a request does so at once; so each is asked without a secret, and what it answers is its own.
 */

import { HttpClient, HttpClientError } from "@effect/platform"
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import { Context, Effect, Layer, Logger, LogLevel, Scope } from "effect"
import { describe, expect, it } from "vitest"
import { makeJudge } from "../../src/node/http/bearer.ts"
import * as Dispatch from "../../src/node/http/dispatch.ts"
import * as Guard from "../../src/node/http/guard.ts"
import { EndpointTable } from "../../src/node/http/table.ts"
import { Audit } from "../../src/ports/Audit.ts"
import {
  type Answer,
  Front,
  type IncomingRequest,
  type PiecesAnswer,
  type Reply,
  Serving
} from "../../src/ports/Front.ts"
import { Meters } from "../../src/ports/Meters.ts"
import { Progress } from "../../src/ports/Progress.ts"
import type { Declaring } from "../../src/protocol/access.ts"
import { SchedulerApi } from "../../src/protocol/SchedulerApi.ts"
import { Bearer, Ready, SspApi } from "../../src/protocol/SspApi.ts"
import { StandbyApi } from "../../src/protocol/StandbyApi.ts"
import * as SchedulerMemory from "../../src/scheduler/Memory.ts"
import type { FollowerReplica, LeaderElection } from "../../src/scheduler/standby/LeaderElection.ts"
import * as Standby from "../../src/scheduler/standby/Standby.ts"
import * as SspMemory from "../../src/ssp/Memory.ts"

const quiet = Logger.minimumLogLevel(LogLevel.None)
const noClient = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) => new HttpClientError.RequestError({ request, reason: "Transport" }))
)

const election = {
  leaderUrl: () => undefined,
  otherLeader: Effect.never,
  reach: undefined,
  status: () => undefined,
  log: { logId: "log" }
} as unknown as LeaderElection
const following = { applied: () => 0 } as unknown as FollowerReplica

const env = { SVC_AUTH_SECRET: "s3cret", SVC_SCHEDULER_AUTH_SECRET: "another" }
const standby = Standby.layer(election, following).pipe(
  Layer.provide(Layer.mergeAll(Serving.layer, Progress.layer, Meters.layer)),
  Layer.provide(Layer.provideMerge(SchedulerMemory.ports(env, noClient), noClient))
)

const fronts: ReadonlyArray<readonly [name: string, api: Declaring, node: Layer.Layer<Front, unknown>]> = [
  ["an SSP", SspApi, SspMemory.layer(env, noClient)],
  ["a scheduler", SchedulerApi, SchedulerMemory.layer(env, noClient)],
  ["a scheduler that stands by", StandbyApi, standby]
]

/** Runs with the front of a node that is built for it. */
const withFront = <A>(node: Layer.Layer<Front, unknown>, body: (front: Front["Type"]) => A): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const context = yield* Layer.buildWithScope(Layer.fresh(Layer.provide(node, quiet)), yield* Scope.Scope)
        return body(Context.get(context, Front))
      })
    ) as Effect.Effect<A>
  )

/** Whether the front takes the request; and the status, where it is answered at once. */
const asked = ({ serve }: Front["Type"], method: string, url: string): readonly [isTaken: boolean, status?: number] => {
  let status: number | undefined
  const send = (answer: Answer | PiecesAnswer): void => {
    status = answer.status
  }
  const headers = { accept: "text/plain" }
  const request: IncomingRequest = { method, url, headers, address: "127.0.0.1", text: () => {} }
  const reply: Reply = {
    send,
    fail: send,
    stream: () => ({ write: () => false, end: () => {} }),
    flow: () => Effect.void,
    whenGone: () => {}
  }
  const isTaken = serve(request, reply)
  return status === undefined ? [isTaken] : [isTaken, status]
}

const endpointsOf = (api: Declaring) =>
  Object.values(api.groups).flatMap(({ endpoints }) =>
    Object.values(endpoints).map(({ method, path }) => ({ method, path, url: path.replace(/:[a-z_]+/g, "some%20id") }))
  )

const patternOf = (path: string): RegExp => new RegExp(`^${path.replace(/:[a-z_]+/g, "[^/]*")}$`)

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

describe.each(fronts)("the front of %s", (_, api, node) => {
  it("D6 serves every endpoint of its contract", () =>
    withFront(node, (front) => {
      for (const { method, url } of endpointsOf(api)) {
        const [isTaken, status] = asked(front, method, url)
        expect([method, url, isTaken, status === 404]).toEqual([method, url, true, false])
      }
    }))
  it("D6 serves no other method of these paths, and no other path", () =>
    withFront(node, (front) => {
      const all = endpointsOf(api).map((each) => ({ ...each, pattern: patternOf(each.path) }))
      /** A path may be one of several: `/view/register` is a view's too. */
      const isDeclared = (method: string, url: string): boolean =>
        all.some(
          (each) => (each.method === method || (each.method === "GET" && method === "HEAD")) && each.pattern.test(url)
        )
      for (const { url } of all) {
        const capital = url.replace(/^\/[a-z]/, (start) => start.toUpperCase())
        for (const other of [url, `${url}/`, `/${url}`, `${url}/more/of/it`, capital])
          for (const method of methods)
            expect([method, other, asked(front, method, other)[0]]).toEqual([method, other, isDeclared(method, other)])
      }
      for (const other of ["/", "/docs", "/openapi.json", "/nothing", "*", ""])
        expect([other, asked(front, "GET", other)[0]]).toEqual([other, false])
    }))
})

it("D6 a contract with an endpoint that has no route does not start", () => {
  const [first] = Object.values(SspApi.groups)
  const { method, path } = Object.values(first!.endpoints)[0] as HttpApiEndpoint.HttpApiEndpoint.AnyWithProps
  expect(() => new EndpointTable(SspApi, {})).toThrow(`${method} ${path} is declared and has no route`)
})

describe("D15 a contract that declares more than its node does", () => {
  const route = { answer: () => {} }
  const routes = Object.fromEntries(
    Object.entries(SspApi.groups).map(([group, { endpoints }]) => [
      group,
      Object.fromEntries(Object.keys(endpoints).map((name) => [name, route]))
    ])
  )
  const guard = { [Bearer.key]: Guard.make(makeJudge(undefined, { code: "UNAUTHORIZED", message: "" })) }
  const ready = { [Ready.key]: () => undefined }
  const started = (parts: Pick<Dispatch.DispatchParts, "gates" | "guards">): Promise<unknown> =>
    Effect.runPromise(Effect.provide(Dispatch.make({ api: SspApi, routes, maxBodyBytes: 1, ...parts }), Audit.layer(1)))
  it("does not start", async () => {
    expect(await started({ guards: guard, gates: ready })).toBeInstanceOf(Function)
    await expect(started({ guards: guard, gates: {} })).rejects.toThrow(
      `declares ${Ready.key}, which nothing carries out`
    )
    await expect(started({ guards: {}, gates: { ...ready, [Bearer.key]: () => undefined } })).rejects.toThrow(
      "asks for a secret and nothing judges it"
    )
  })
})
