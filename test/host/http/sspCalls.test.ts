/**
 * Calls to SSPs on bare connections: an answer counts when all of it came, in time; connections are kept; nothing is
 * followed.
 *
 * What calls mean is tested over both clients (`test/scheduler/delivery.test.ts` on this one, the simulation on the
 * general one).
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { closing } from "../../../kit/processes/closing.ts"
import { listen, shut } from "../../../kit/processes/listening.ts"
import { layer } from "../../../src/host/http/sspCalls.ts"
import { Names } from "../../../src/ports/Names.ts"
import { SspClient, type SspClientShape, type Target } from "../../../src/ports/SspClient.ts"

const afterwards = closing()
const limitMs = 300

const serve = async (answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Target> => {
  const server = createServer((request, response) => void request.resume().on("end", () => answer(request, response)))
  afterwards(() => shut(server))
  return { ssp: "a", registration: 1, url: `http://127.0.0.1:${await listen(server)}` }
}

const asked = <A>(use: (client: SspClientShape) => Effect.Effect<A>): Promise<A> =>
  Effect.flatMap(SspClient, use).pipe(
    Effect.provide(layer({ secret: () => undefined, allowedHosts: undefined, timeoutMs: limitMs })),
    Effect.provide(Names.layerOf({})),
    Effect.runPromise
  )

const gap = JSON.stringify({ code: "SEQUENCE_GAP", message: "a gap", details: { expected: 7 } })

it("D26 a refusal whose body is cut off is no answer: what it said is not known", async () => {
  let cut = true
  const target = await serve((_, response) => {
    response.writeHead(409, { "content-type": "application/json", "content-length": gap.length })
    if (cut) response.write(gap.slice(0, 20), () => void response.destroy())
    else response.end(gap)
  })
  expect(await asked((client) => client.deliver(target, "{}"))).toEqual({ kind: "unavailable" })
  cut = false
  expect(await asked((client) => client.deliver(target, "{}"))).toEqual({ kind: "gap", expected: 7 })
})

it("D26 the time of a call includes the body, however slowly it comes", async () => {
  const target = await serve((_, response) => {
    response.writeHead(200)
    const drip = setInterval(() => response.write(" "), 20)
    response.on("close", () => clearInterval(drip))
  })
  const began = performance.now()
  expect(await asked((client) => client.deliver(target, "{}"))).toEqual({ kind: "unavailable" })
  expect(performance.now() - began).toBeGreaterThan(limitMs / 2)
})

it("D15 a redirect is not followed, and connections are kept", async () => {
  const sockets = new Set<unknown>()
  const paths: Array<string> = []
  const target = await serve((request, response) => {
    sockets.add(request.socket)
    paths.push(`${request.method} ${request.url} ${request.headers["x-svc-registration"] ?? ""}`)
    if (paths.length === 1) response.writeHead(307, { location: "/elsewhere" }).end()
    else response.end("{}")
  })
  const kinds = await asked((client) =>
    Effect.forEach(["1", "2", "3", "4", "5", "6", "7", "8"], (body) =>
      Effect.map(client.deliver(target, body), ({ kind }) => kind)
    )
  )
  expect(kinds).toEqual(["unavailable", ...Array(7).fill("applied")])
  expect(paths).toHaveLength(8)
  expect(new Set(paths.map((path) => path.split(" ")[1]))).toEqual(new Set(["/ingest"]))
  // A second one where the next call begins before the last one has left its own.
  expect(sockets.size).toBeLessThanOrEqual(2)
})
