/**
 * Names that stand for something else a moment later (D15): a secret goes only to the address that was judged.
 *
 * Real connections within 127.0.0.0/8: the test plays the name server, and the name is `localhost`,
 * because the machine itself would look that one up as 127.0.0.1. Whatever arrives there while the judge was told
 * 127.0.0.2 was looked up twice.
 */

import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Clock, Effect, Layer, Redacted, Stream } from "effect"
import { expect, it } from "vitest"
import { request } from "../../kit/checks/http.ts"
import { closing } from "../../kit/processes/closing.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import * as HttpSspClient from "../../src/drivers/httpSspClient.ts"
import type { SentRequest } from "../../src/drivers/shared/exchange.ts"
import * as Exchange from "../../src/host/http/exchange.ts"
import { layer } from "../../src/host/http/sspCalls.ts"
import { Names } from "../../src/ports/Names.ts"
import { type Options, SspClient, type SspClientShape } from "../../src/ports/SspClient.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { Node } from "../scheduler/node.ts"

const afterwards = closing()
const options: Options = { secret: () => Redacted.make("s3cret"), allowedHosts: undefined, timeoutMs: 5000 }

interface Place {
  readonly port: number
  readonly asked: Array<{
    readonly path: string
    readonly host: string | undefined
    readonly bearer: string | undefined
  }>
  connections: number
}

/** A server that says what reached it. */
const placeAt = async (address: string, port = 0): Promise<Place> => {
  const place: Place = { port: 0, asked: [], connections: 0 }
  const server = createServer((message: IncomingMessage, response) => {
    place.asked.push({ path: message.url ?? "", host: message.headers.host, bearer: message.headers.authorization })
    message.resume().on("end", () => response.end("{}"))
  })
  server.on("connection", () => place.connections++)
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, address, resolve))
  afterwards(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  )
  return Object.assign(place, { port: (server.address() as AddressInfo).port })
}

/** Two servers on one port; the second stands where the machine's own look-up of `localhost` leads. */
const twoPlaces = async (): Promise<{ readonly judged: Place; readonly other: Place; readonly url: string }> => {
  for (let attempt = 1; ; attempt++) {
    const judged = await placeAt("127.0.0.2")
    const other = await placeAt("127.0.0.1", judged.port).catch(() => undefined)
    if (other !== undefined) return { judged, other, url: `http://localhost:${judged.port}` }
    if (attempt === 5) throw new Error("no port is free on both addresses")
  }
}

/** Answers for every name, one list after the other; the last one stays. */
const answering = (...answers: ReadonlyArray<ReadonlyArray<string>>): Layer.Layer<Names> => {
  let n = 0
  return Layer.succeed(Names, { resolve: () => Effect.sync(() => answers[Math.min(n++, answers.length - 1)] ?? []) })
}

const asking = <A>(over: Layer.Layer<SspClient>, use: (client: SspClientShape) => Effect.Effect<A>): Promise<A> =>
  Effect.runPromise(Effect.provide(Effect.flatMap(SspClient, use), over))

const target = (url: string) => ({ ssp: "a", registration: 1, url })
const passed = {
  method: "GET",
  path: "/view/v",
  authorization: "Bearer caller",
  lastEventId: undefined,
  ifNoneMatch: undefined
} as const
const opened = (client: SspClientShape, url: string) =>
  Effect.async<void>((resume) => {
    const end = () => resume(Effect.void)
    Effect.runFork(
      client.open(target(url), { method: "POST", path: "/stream", body: "{}" }, { head: () => {}, data: () => {}, end })
    )
  })
const everyCall = (client: SspClientShape, url: string) =>
  Effect.all([
    client.health(target(url)),
    client.deliver(target(url), "{}"),
    client.registerView(target(url), {}),
    client.unregisterView(target(url), {}),
    client.executeJob(target(url), {}, {}),
    client.roots(target(url)),
    Effect.flatMap(client.forward("a", url, passed), ({ body }) => Stream.runDrain(body)).pipe(Effect.either),
    client.changeStream(target(url), "s", "{}"),
    opened(client, url)
  ])

const transports = {
  "bare connections": (names: Layer.Layer<Names>) => layer(options).pipe(Layer.provide(names)),
  "any HTTP client": (names: Layer.Layer<Names>) =>
    HttpSspClient.layer(options).pipe(Layer.provide([names, FetchHttpClient.layer]))
}

for (const [what, over] of Object.entries(transports)) {
  it(`D15 a name is looked up once: every call goes to the address that was judged (${what})`, async () => {
    const { judged, other, url } = await twoPlaces()
    await asking(over(answering(["127.0.0.2"])), (client) => everyCall(client, url))
    // A runtime's `fetch` lets nobody choose the Host, so there it is the address.
    expect(judged.asked.map(({ host }) => host)).toEqual(
      Array(9).fill(`${what === "bare connections" ? "localhost" : "127.0.0.2"}:${judged.port}`)
    )
    expect(new Set(judged.asked.map(({ bearer }) => bearer))).toEqual(
      new Set([undefined, "Bearer s3cret", "Bearer caller"])
    )
    expect(judged.asked.find(({ path }) => path === "/health")?.bearer).toBeUndefined()
    expect(other.connections).toBe(0)
  })
}

/** A clock that a test sets forward: an answer for a name holds ten seconds. */
const timed = () => {
  let ahead = 0
  const real = Clock.make()
  return {
    later: (ms: number) =>
      Effect.sync(() => {
        ahead += ms
      }),
    clock: {
      ...real,
      currentTimeMillis: Effect.map(real.currentTimeMillis, (now) => now + ahead),
      unsafeCurrentTimeNanos: () => real.unsafeCurrentTimeNanos() + BigInt(ahead) * 1_000_000n
    }
  }
}

it("D15 a name that stands for a public address from now on gets no secret, also beside a private one, and not over the connection it had", async () => {
  const { judged, other, url } = await twoPlaces()
  const sent: Array<SentRequest> = []
  const request = (asked: SentRequest) =>
    Effect.sync(() => {
      sent.push(asked)
      return { status: 200, headers: {}, text: "{}" }
    })
  const over = HttpSspClient.layerOver(
    {
      request,
      open: () => {
        throw new Error("not asked")
      },
      clientAt: () => {
        throw new Error("not asked")
      }
    },
    options
  ).pipe(Layer.provide(answering(["10.0.0.1"], ["10.0.0.1", "203.0.113.5"], ["203.0.113.5"])))
  const { clock, later } = timed()
  await asking(over, (client) =>
    Effect.forEach([1, 2, 3, 4], () =>
      Effect.zipLeft(client.deliver(target("http://ssp.example"), "{}"), later(9000))
    ).pipe(Effect.withClock(clock))
  )
  expect(sent.map(({ addresses, headers }) => [addresses, headers["authorization"]])).toEqual([
    [["10.0.0.1"], "Bearer s3cret"],
    [["10.0.0.1"], "Bearer s3cret"],
    [["10.0.0.1", "203.0.113.5"], undefined],
    [["10.0.0.1", "203.0.113.5"], undefined]
  ])

  const call = (addresses: ReadonlyArray<string>, path: string): SentRequest => ({
    method: "GET",
    url: `${url}${path}`,
    headers: {},
    body: undefined,
    withinMs: 5000,
    addresses
  })
  await Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(Exchange.make(undefined), ({ request }) =>
        Effect.forEach(
          [
            call(["127.0.0.1"], "/1"),
            call(["127.0.0.1"], "/2"),
            call(["127.0.0.2"], "/3"),
            call(["127.0.0.2"], "/4"),
            call(["127.0.0.1"], "/5")
          ],
          request
        )
      )
    )
  )
  expect([other.asked.map(({ path }) => path), judged.asked.map(({ path }) => path)]).toEqual([
    ["/1", "/2", "/5"],
    ["/3", "/4"]
  ])
})

it("D15 a name that stands for a metadata address from now on is not called at all, health polls included", async () => {
  const { judged, url } = await twoPlaces()
  const { clock, later } = timed()
  const outcome = await asking(
    transports["bare connections"](answering(["127.0.0.2"], ["169.254.169.254"])),
    (client) =>
      Effect.gen(function* () {
        const before = yield* client.deliver(target(url), "{}")
        yield* later(11_000)
        return [
          before,
          yield* client.deliver(target(url), "{}"),
          yield* client.health(target(url)),
          yield* Effect.flip(Effect.asVoid(client.forward("a", url, passed))).pipe(
            Effect.orDieWith(() => "it was passed on")
          )
        ]
      }).pipe(Effect.withClock(clock))
  )
  expect(outcome).toEqual([
    { kind: "applied" },
    { kind: "unavailable" },
    "unreachable",
    expect.objectContaining({ message: expect.stringContaining("never called") })
  ])
  expect(judged.asked).toHaveLength(1)
})

it("D15 while no name server answers, a name keeps the addresses it was last judged by; a name that was never known is not called", async () => {
  const { judged, other, url } = await twoPlaces()
  const { clock, later } = timed()
  const calls = (client: SspClientShape) =>
    Effect.forEach([1, 2], () => Effect.zipLeft(client.deliver(target(url), "{}"), later(11_000))).pipe(
      Effect.withClock(clock)
    )
  expect(await asking(transports["bare connections"](answering(["127.0.0.2"], [])), calls)).toEqual([
    { kind: "applied" },
    { kind: "applied" }
  ])
  expect(await asking(transports["bare connections"](answering([])), calls)).toEqual([
    { kind: "unavailable" },
    { kind: "unavailable" }
  ])
  expect([judged.asked.length, other.connections]).toEqual([2, 0])
})

it("a name with several addresses is reached at the one where somebody listens", async () => {
  const place = await placeAt("127.0.0.3")
  expect(
    await asking(transports["bare connections"](answering(["127.0.0.4", "127.0.0.3"])), (client) =>
      client.deliver(target(`http://ssp.internal:${place.port}`), "{}")
    )
  ).toEqual({ kind: "applied" })
})

it("D15 with the scheduler's secret set an SSP shows it before it is told anything; without, a private address that registers is told the secret", async () => {
  const closed = await Node.start({ env: { SVC_SCHEDULER_AUTH_SECRET: "own" } })
  afterwards(() => closed.close())
  const open = await Node.start()
  afterwards(() => open.close())
  const stranger = await FakeSsp.start("stranger")
  afterwards(() => stranger.close())
  stranger.health = "ready"
  const register = (url: string, token?: string) =>
    request(url, {
      method: "POST",
      path: "/ssp/register",
      body: { ssp_id: stranger.id, url: stranger.url, batch: true },
      ...(token === undefined ? {} : { token })
    })
  const bearers = () => stranger.told.map(({ authorization }) => authorization).filter((bearer) => bearer !== undefined)
  expect([(await register(closed.url)).status, (await register(closed.url, secret)).status]).toEqual([401, 401])
  expect(
    (
      await request(closed.url, {
        method: "POST",
        path: "/ingest",
        token: "own",
        body: { table: "t", op: "CREATE", id: "t:1", record: {} }
      })
    ).json
  ).toEqual({ seq: 1, delivered: 0 })
  expect(stranger.told).toEqual([])
  expect((await register(open.url)).status).toBe(202)
  await until("it is ready", async () => (await request(open.url, { path: "/health" })).status === 200)
  await request(open.url, {
    method: "POST",
    path: "/ingest",
    body: { table: "t", op: "CREATE", id: "t:1", record: {} }
  })
  await until("it is told", () => bearers().length > 0)
  expect(new Set(bearers())).toEqual(new Set([`Bearer ${secret}`]))
})
