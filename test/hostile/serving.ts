/**
 * A real server in this process with the limits a test gives it, and clients that do as they are told.
 *
 * Clients have addresses of their own: all of 127.0.0.0/8 leads back here, so one machine is many clients.
 */

import { connect } from "node:net"
import { Context, Effect, Exit, Layer, Logger, LogLevel, Scope } from "effect"
import { afterEach } from "vitest"
import * as Server from "../../src/host/http/Server.ts"
import { Serving } from "../../src/ports/Front.ts"
import { fakeViews, node } from "../ssp/fakeViews.ts"

export interface Served {
  readonly url: string
  readonly port: number
  readonly close: () => Promise<void>
}

export const serve = async (
  options: Partial<Server.ListenOptions>,
  env: { readonly [name: string]: string } = {}
): Promise<Served> => {
  const scope = Effect.runSync(Scope.make())
  const whole = Server.layer({
    host: "127.0.0.1",
    port: 0,
    setting: "LISTEN_ADDR",
    maxConnections: 1000,
    ...options
  }).pipe(Layer.provideMerge(node(fakeViews(), env)))
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
    start: async (options: Parameters<typeof serve>[0]): Promise<Served> => {
      const one = await serve(options)
      served.push(one)
      return one
    }
  }
}
