/**
 * A real server in this process with the limits a test gives it, and clients that do as they are told.
 *
 * Clients have addresses of their own: all of 127.0.0.0/8 leads back here, so one machine is many clients.
 */

import { connect } from "node:net"
import { Context, Effect, Exit, Layer, Logger, LogLevel, Scope } from "effect"
import { afterEach } from "vitest"
import type { Answer } from "../../kit/checks/http.ts"
import { until } from "../../kit/processes/Door.ts"
import type { ListenOptions } from "../../src/host/http/Listener.ts"
import * as Server from "../../src/host/http/Server.ts"
import { Serving } from "../../src/ports/Front.ts"
import { fakeViews, node } from "../ssp/fakeViews.ts"

export interface Served {
  readonly url: string
  readonly port: number
  readonly close: () => Promise<void>
}

export const serve = async (options: Partial<ListenOptions>, views = fakeViews()): Promise<Served> => {
  const scope = Effect.runSync(Scope.make())
  const whole = Server.layer({
    host: "127.0.0.1",
    port: 0,
    setting: "LISTEN_ADDR",
    maxConnections: 1000,
    ...options
  }).pipe(Layer.provideMerge(node(views)))
  const context = await Effect.runPromise(
    Layer.buildWithScope(Layer.fresh(whole.pipe(Layer.provide(Logger.minimumLogLevel(LogLevel.None)))), scope)
  )
  const port = await Effect.runPromise(Context.get(context, Serving).port)
  return { url: `http://127.0.0.1:${port}`, port, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

export interface Client {
  readonly text: string
  readonly status: number | undefined
  readonly closed: boolean
  readonly send: (bytes: string) => void
  readonly destroy: () => void
}

/** Connects from `from`, sends `bytes`, and says what came back. */
export const clientOf = (port: number, bytes: string, from = "127.0.0.1"): Promise<Client> =>
  new Promise((done) => {
    let text = "",
      closed = false
    const socket = connect({ port, host: "127.0.0.1", localAddress: from }, () => {
      if (bytes !== "") socket.write(bytes)
      done({
        get text() {
          return text
        },
        get closed() {
          return closed
        },
        get status() {
          return text === "" ? undefined : Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
        },
        send: (more) => void socket.write(more),
        destroy: () => void socket.destroy()
      })
    })
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
    })
    socket.on("error", () => {})
    socket.on("close", () => {
      closed = true
    })
  })

/** A client that sends and reads nothing. */
export const unread = (port: number, bytes: string, from: string): Promise<Pick<Client, "destroy">> =>
  new Promise((done) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from }, () => {
      socket.pause()
      socket.write(bytes)
      done({ destroy: () => void socket.destroy() })
    })
    socket.on("error", () => {})
  })

/** Clients from one address, one after the other. */
export const hold = async (port: number, count: number, from: string, bytes = ""): Promise<ReadonlyArray<Client>> => {
  const opened: Array<Client> = []
  for (let n = 0; n < count; n++) opened.push(await clientOf(port, bytes, from))
  return opened
}

/** The first answer with this status among those that a client has been given, one behind the other. */
export const answered = async (client: Client, status: number, boundMs = 20_000): Promise<Answer> => {
  const at = (): number => client.text.indexOf(`HTTP/1.1 ${status} `)
  await until(`an answer with ${status}`, () => at() >= 0 && client.text.indexOf("\r\n\r\n", at()) >= 0, boundMs)
  const text = client.text.slice(at())
  const [head = "", ...rest] = text.split("\r\n\r\n")
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
  await until("the whole answer", () => client.text.length >= at() + head.length + 4 + length, boundMs)
  const body = rest.length === 0 ? "" : client.text.slice(at() + head.length + 4).slice(0, length)
  return { status, headers: {}, text: body, json: body === "" ? undefined : JSON.parse(body) }
}

/** Servers and clients of one test file, which end with each test. */
export const staged = () => {
  const served: Array<Served> = []
  const clients: Array<Client> = []
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    for (const one of served.splice(0)) await one.close()
  })
  return {
    clients,
    start: async (...args: Parameters<typeof serve>): Promise<Served> => {
      const one = await serve(...args)
      served.push(one)
      return one
    }
  }
}
