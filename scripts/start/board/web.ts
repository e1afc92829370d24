/**
 * Node's server as one that takes a `Request` and gives a `Response`, which handlers of named views are written for.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Readable } from "node:stream"

export type Handler = (request: Request) => Promise<Response>

const requestOf = (incoming: IncomingMessage, signal: AbortSignal): Request => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value))
  const method = incoming.method ?? "GET"
  const body = method === "GET" || method === "HEAD" ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>)
  // A body that is a stream asks for `duplex`, which Node's types do not know.
  const init = { method, headers, body, signal, duplex: "half" }
  return new Request(new URL(incoming.url ?? "/", "http://board"), init as RequestInit)
}

const answer = async (handler: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
  const gone = new AbortController()
  outgoing.once("close", () => gone.abort())
  const response = await handler(requestOf(incoming, gone.signal)).catch((error: unknown) => {
    console.error(error)
    return new Response("the board failed; its terminal says why", { status: 500 })
  })
  const text = Buffer.from(await response.arrayBuffer())
  outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(text)
}

/** Listens on loopback, at `port` or a free one for 0. */
export const listen = (port: number, handler: Handler): Promise<{ readonly port: number; readonly server: Server }> =>
  new Promise((done, failed) => {
    const server = createServer((incoming, outgoing) => void answer(handler, incoming, outgoing))
    server.on("error", failed).listen(port, "127.0.0.1", () => {
      done({ server, port: (server.address() as AddressInfo).port })
    })
  })
