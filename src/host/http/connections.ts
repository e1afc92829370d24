/**
 * Answers to requests that the HTTP parser refuses, and the end of connections: the parts of a server below its routes.
 *
 * Node answers a broken request with an empty body or a closed socket; here every client gets JSON with a code.
 */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import { Server as NetServer, Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Server as TlsServer } from "node:tls"
import type { Answer } from "../../ports/Front.ts"
import { plainSocketOf, tcpSocketOf } from "./tlsServer.ts"

/** How long a refused connection may go on sending before it is cut. */
const lingerMs = 1000

/** A whole response as text, for a connection without a parser. */
const rawResponse = ({ body, headers, status }: Answer): string => {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "connection: close",
    "content-type: application/json",
    "x-content-type-options: nosniff",
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`)
  ]
  return `${lines.join("\r\n")}\r\n\r\n${body}`
}

const refusal = (status: number, reason: string): Answer => ({
  status,
  body: JSON.stringify({ code: "INVALID_REQUEST", message: `request ${reason}`, details: [{ path: "", reason }] })
})

const byParser = (code: string, detail: string): Answer => {
  if (code === "HPE_HEADER_OVERFLOW")
    return refusal(431, "has headers larger than the limit of 16384 bytes (fixed, no setting)")
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return refusal(408, "was not received in time (setting SVC_REQUEST_TIMEOUT_SECS)")
  return refusal(400, `is not valid HTTP: ${detail}`)
}

/**
 * Lets `end` call back when the connection is gone, too. Node calls back only when an answer is written, never when its
 * client has left before: the waiting fiber would stay for ever, and the request's body with it.
 */
export const endsWithConnection = (response: ServerResponse): void => {
  const end = response.end.bind(response) as (...args: ReadonlyArray<unknown>) => ServerResponse
  let gone = false
  let waiting: (() => void) | undefined
  response.once("close", () => {
    gone = true
    waiting?.()
  })
  response.end = (...args: ReadonlyArray<unknown>): ServerResponse => {
    const last = args.at(-1)
    if (typeof last === "function") {
      waiting = last as () => void
      if (gone) waiting()
    }
    return gone ? response : end(...args)
  }
}

/** Whether an answer has begun on this connection. */
const answering = (socket: Duplex): boolean => {
  const message: unknown = "_httpMessage" in socket ? socket._httpMessage : undefined
  return typeof message === "object" && message !== null && "headersSent" in message && message.headersSent === true
}

/** Answers requests that the parser refuses, one per connection, and closes the connection without a reset. */
export const answerBrokenRequests = (server: Server): void => {
  const refused = new WeakSet<Duplex>()
  server.on("clientError", (error: Error & { readonly code?: string; readonly reason?: string }, socket) => {
    if (refused.has(socket)) return
    refused.add(socket)
    const plain = plainSocketOf(socket, error.code)
    if (plain === undefined && (!socket.writable || error.code === "ECONNRESET" || answering(socket)))
      return void socket.destroy()
    const answer =
      plain === undefined
        ? byParser(error.code ?? "", error.reason ?? "it could not be read")
        : refusal(400, "is plain HTTP, and this port speaks TLS: ask https://")
    ;(plain ?? socket).end(rawResponse(answer))
    // A timer that outlives the connection would keep it, and the body received on it, in memory.
    const cut = setTimeout(() => socket.destroy(), lingerMs).unref()
    socket.once("close", () => clearTimeout(cut))
  })
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => socket.destroy())
    socket.end(
      rawResponse({
        status: 404,
        body: JSON.stringify({
          code: "NOT_FOUND",
          message: `CONNECT ${String(request.url).slice(0, 300)}: no such route`
        })
      })
    )
  })
}

/** Interval of looks at connections while stopping, and how long idle ones may stay. */
const sweepMs = 25
const graceMs = 150

/** An HTTP server's own `close` closes idle connections at once; that of the server below it does not. */
const stopAccepting = (server: Server, done: () => void): void => {
  if (server instanceof NetServer) NetServer.prototype.close.call(server, done)
  else (server as Server).close(done)
}

/** Waits for requests until a deadline; `done` gets the number of requests cut then. */
export type FinishRequests = (deadlineMs: number, done: (cut: number) => void) => void

/** Follows requests in flight, so that a stop can be clean. */
export class Connections {
  /** Open connections, each with its latest response, so that a request needs no clean-up. */
  private readonly sockets = new Map<Socket, ServerResponse | undefined>()
  /** Responses that wait behind others on their connection. */
  private readonly queued = new WeakMap<Socket, Array<ServerResponse>>()
  /** Connections whose TLS handshake is not finished. */
  private readonly shaking = new Set<Socket>()

  constructor(readonly server: Server) {
    const isTls = server instanceof TlsServer
    server.on(isTls ? "secureConnection" : "connection", (socket: Socket) => {
      this.sockets.set(socket, undefined)
      socket.once("close", () => this.sockets.delete(socket))
    })
    if (isTls) this.followHandshakes()
    const begun = ({ socket }: IncomingMessage, response: ServerResponse): void => {
      this.sockets.set(socket, response)
      if (response.socket === null) this.follow(socket, response)
    }
    server.on("request", begun)
    // Node reports a request with an unknown `Expect` by this event alone.
    server.on("checkExpectation", begun)
  }

  /**
   * Follows a response that waits behind another on its connection: it has no socket yet, and Node never tells it that
   * the connection is gone, so a stream that waits there would be served and counted for ever.
   */
  private follow(socket: Socket, response: ServerResponse): void {
    const waiting = this.queued.get(socket)
    if (waiting !== undefined) {
      while (waiting[0]?.writableFinished === true) waiting.shift()
      return void waiting.push(response)
    }
    const responses = [response]
    this.queued.set(socket, responses)
    socket.once("close", () => {
      for (const each of responses) if (!each.closed && !each.writableFinished) each.emit("close")
    })
  }

  private followHandshakes(): void {
    this.server.on("connection", (socket: Socket) => {
      this.shaking.add(socket)
      socket.once("close", () => this.shaking.delete(socket))
    })
    this.server.on("secureConnection", (socket: Socket) => {
      const raw = tcpSocketOf(socket)
      if (raw instanceof Socket) this.shaking.delete(raw)
    })
  }

  /** Requests and streams that are not answered yet. */
  inFlight(): ReadonlyArray<ServerResponse> {
    return [...this.sockets.values()].filter(
      (response): response is ServerResponse =>
        response !== undefined && !response.writableFinished && !response.destroyed
    )
  }

  /** Waits for the requests that are in flight now, not for later ones. */
  finishing(): FinishRequests {
    const open = new Set(this.inFlight())
    let onEnd = (): void => undefined
    for (const response of open)
      response.once("close", () => {
        open.delete(response)
        if (open.size === 0) onEnd()
      })
    return (deadlineMs, done) => {
      if (open.size === 0) return done(0)
      const deadline = setTimeout(() => {
        onEnd = () => undefined
        const cut = open.size
        for (const response of [...open]) response.destroy()
        done(cut)
      }, deadlineMs)
      onEnd = () => {
        clearTimeout(deadline)
        done(0)
      }
    }
  }

  /** Clients open connections ahead of a request; Node counts one without any bytes as a request under way. */
  private closeUnused(): void {
    for (const [socket, response] of this.sockets)
      if (response === undefined && socket.bytesRead === 0) socket.destroy()
  }

  /**
   * Stops accepting, lets requests in flight finish, closes connections as they become idle, and cuts the rest after
   * `deadlineMs`. `done` gets the number of connections cut. Idle connections stay for a moment, so that a request
   * already sent gets a 503 and not a reset.
   */
  close(deadlineMs: number, done: (cut: number) => void): void {
    let cut = 0
    for (const socket of this.shaking) socket.destroy()
    for (const response of this.inFlight()) if (!response.headersSent) response.setHeader("connection", "close")
    let waitedMs = 0
    const idle = setInterval(() => {
      waitedMs += sweepMs
      if (waitedMs < graceMs) return
      this.server.closeIdleConnections()
      this.closeUnused()
    }, sweepMs)
    const deadline = setTimeout(() => {
      cut = this.sockets.size
      for (const socket of this.sockets.keys()) socket.destroy()
    }, deadlineMs)
    stopAccepting(this.server, () => {
      clearInterval(idle)
      clearTimeout(deadline)
      done(cut)
    })
  }
}
