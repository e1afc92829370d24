/**
 * Whom a node trusts when it connects: other nodes by the authority and for their host, itself by its own certificate.
 *
 * Real servers in this process; what arrives at them is what was sent in trust.
 */

import { createServer } from "node:https"
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Either, Redacted } from "effect"
import { expect, it } from "vitest"
import { authority, type Issued, issue } from "../../../kit/data/certificates.ts"
import { closing } from "../../../kit/processes/closing.ts"
import { listen, shut } from "../../../kit/processes/listening.ts"
import { layer as sspCalls } from "../../../src/host/http/sspCalls.ts"
import * as TlsClient from "../../../src/host/http/tlsClient.ts"
import type { Tls } from "../../../src/node/config/tls.ts"
import { Names } from "../../../src/ports/Names.ts"
import { SspClient, type SspClientShape } from "../../../src/ports/SspClient.ts"

const afterwards = closing()
const { node, root } = authority()

const tlsOf = ({ cert, key }: Issued, ca?: string): Tls => ({
  current: () => ({ cert, key, ca }),
  isMutual: ca !== undefined,
  onReplaced: () => () => {}
})

const serve = async ({ cert, key }: Issued) => {
  const told: Array<string | undefined> = []
  const server = createServer(
    { cert, key, ca: root.cert, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      told.push(
        `${request.socket instanceof Object && "authorized" in request.socket && request.socket.authorized === true} ${request.headers.host?.split(":")[0]} ${request.headers.authorization}`
      )
      request.resume().on("end", () => response.end("{}"))
    }
  )
  afterwards(() => shut(server))
  return { told, port: await listen(server) }
}

const asking = <A>(tls: Tls, use: (client: SspClientShape) => Effect.Effect<A>): Promise<A> =>
  Effect.flatMap(SspClient, use).pipe(
    Effect.provide(
      sspCalls({ tls, secret: () => Redacted.make("s3cret"), allowedHosts: undefined, timeoutMs: 10_000 })
    ),
    Effect.provide(Names.layerOf({ "ssp.internal": ["127.0.0.1"], "other.internal": ["127.0.0.1"] })),
    Effect.runPromise
  )

const kinds = (client: SspClientShape, urls: ReadonlyArray<string>) =>
  Effect.forEach(urls, (url) =>
    Effect.map(client.deliver({ ssp: "a", registration: 1, url }, "{}"), ({ kind }) => kind)
  )

it("D52 an SSP is told something only when its certificate is the authority's and for the name it registered; ours is shown", async () => {
  const right = await serve(node({ hosts: ["ssp.internal"] }))
  const wrong = await serve(authority().node({ hosts: ["ssp.internal"] }))
  const mine = tlsOf(node(), root.cert)
  const at = (name: string, { port }: { readonly port: number }): string => `https://${name}:${port}`
  const urls = [
    at("ssp.internal", right),
    at("other.internal", right),
    at("other.internal", right),
    at("127.0.0.1", right),
    at("ssp.internal", wrong),
    `http://ssp.internal:${right.port}`
  ]
  expect(await asking(mine, (client) => kinds(client, urls))).toEqual([
    "applied",
    "unavailable",
    "unavailable",
    "unavailable",
    "unavailable",
    "unavailable"
  ])
  expect([right.told, wrong.told]).toEqual([["true ssp.internal Bearer s3cret"], []])
})

it("D52 without an authority an SSP at https:// is verified against those that the machine trusts", async () => {
  const unknown = await serve(node({ hosts: ["ssp.internal"] }))
  expect(await asking(tlsOf(node()), (client) => kinds(client, [`https://ssp.internal:${unknown.port}`]))).toEqual([
    "unavailable"
  ])
  expect(unknown.told).toEqual([])
})

it("D52 a registration in the clear is refused where nodes show certificates", async () => {
  const checked = (url: string) => asking(tlsOf(node(), root.cert), (client) => client.check(url))
  expect(await checked("https://127.0.0.1:1")).toEqual(Either.right("https://127.0.0.1:1"))
  expect(await checked("http://127.0.0.1:1")).toEqual(
    Either.left("must be an https:// address where SVC_TLS_CA_FILE is set")
  )
})

it("D52 a command trusts the process that has its own certificate, for whatever name, and no other server that it would not trust anyway", async () => {
  const own = issue({ common: "self", hosts: ["elsewhere.example"] })
  const [itself, stranger] = [await serve(own), await serve(node({ hosts: ["127.0.0.1"] }))]
  const get = (port: number, tls: Tls) =>
    HttpClient.get(`https://127.0.0.1:${port}/`).pipe(
      Effect.map(({ status }) => status),
      Effect.scoped,
      Effect.either,
      Effect.provide(TlsClient.layerOwn(tls)),
      Effect.runPromise
    )
  expect(await get(itself.port, tlsOf(own))).toEqual(Either.right(200))
  expect(Either.isLeft(await get(stranger.port, tlsOf(own)))).toBe(true)
  expect(await get(stranger.port, tlsOf(node(), root.cert))).toEqual(Either.right(200))
  expect([itself.told.length, stranger.told.length]).toEqual([1, 1])
})
