/**
 * A database server for tests: the real engine behind a real socket, speaking the real protocol, able to misbehave.
 *
 * Why: the official SDK must meet a server that asks for passwords, dies, stops answering, is slow and ends sessions;
 * the embedded engine alone does none of it. WebSocket CBOR frames pass through as bytes; over HTTP there are
 * `/health`, `/status`, `/version`, `/rpc`, `/sql`. Not here: TLS, `/export`, JSON over WebSocket.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import type { Duplex } from "node:stream"
import { CborCodec, jsonify } from "surrealdb"
import * as Frames from "./frames.ts"
import { NativeEngine } from "./NativeEngine.ts"
import { refusal, Session } from "./Session.ts"

export interface ServerOptions {
  /** `mem://` (the default) or `surrealkv://folder`. */
  readonly path?: string
  /** 0 (the default) takes a free one. */
  readonly port?: number
  readonly user?: string
  readonly pass?: string
  /** How long what the root user gets on signing in is good for, as the database writes durations. */
  readonly tokenFor?: string
  readonly sessionFor?: string
  /** The engine's capabilities: `{ network_targets: true }` lets events post. */
  readonly capabilities?: object
}

interface Socket {
  readonly send: (bytes: Uint8Array) => void
  readonly close: (code: number) => void
  readonly terminate: () => void
  readonly on: (event: "message" | "close" | "error", listener: (data: Buffer) => void) => void
}

interface SocketServer {
  readonly handleUpgrade: (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    done: (socket: Socket) => void
  ) => void
}

const { WebSocketServer } = createRequire(import.meta.url)("ws") as {
  readonly WebSocketServer: new (options: object) => SocketServer
}
const codec = new CborCodec({})

interface Connection {
  readonly socket: Socket
  readonly own: Session
  /** Sessions the client has attached, by the uuid it gave them. */
  readonly attached: Map<string, Session>
}

export class RpcServer {
  readonly port: number
  readonly user: string
  readonly pass: string
  readonly #engine: NativeEngine
  /** What it says its version is; the engine's own when absent. */
  version: string | undefined = undefined
  readonly #http: Server
  readonly #connections = new Set<Connection>()
  readonly #sockets = new Set<Duplex>()
  #gate: Promise<void> = Promise.resolve()
  #openGate: () => void = () => undefined
  #delayMs = 0
  #stopped = false
  /** Requests answered, by method. */
  readonly calls = new Map<string, number>()

  private constructor(engine: NativeEngine, http: Server, user: string, pass: string) {
    this.#engine = engine
    this.#http = http
    this.user = user
    this.pass = pass
    this.port = (http.address() as AddressInfo).port
    const webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: 64 * 1024 * 1024,
      handleProtocols: (offered: Set<string>) => (offered.has("cbor") ? "cbor" : false)
    })
    http.on("connection", (socket) => {
      this.#sockets.add(socket)
      socket.on("close", () => this.#sockets.delete(socket))
    })
    http.on("upgrade", (request, socket, head) =>
      this.#mood().then(() => webSockets.handleUpgrade(request, socket, head, (opened) => void this.#connect(opened)))
    )
    http.on(
      "request",
      (request, response) =>
        void this.#request(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
    )
    void engine.listen((notification) => this.#notify(notification))
  }

  static async start(options: ServerOptions = {}): Promise<RpcServer> {
    const { pass = "root", port = 0, sessionFor = "12h", tokenFor = "1h", user = "root" } = options
    const engine = await NativeEngine.open(
      options.path ?? "mem://",
      options.capabilities === undefined ? {} : { capabilities: options.capabilities }
    )
    const define = `DEFINE USER OVERWRITE ${user} ON ROOT PASSWORD '${pass}' ROLES OWNER DURATION FOR TOKEN ${tokenFor}, FOR SESSION ${sessionFor}`
    const setup = await engine.call("query", codec.encode([define, {}]), undefined, undefined)
    const [defined] = codec.decode(setup.bytes) as ReadonlyArray<{ readonly status: string; readonly result: unknown }>
    if (setup.failed || defined?.status !== "OK")
      throw new Error(`the root user cannot be defined: ${String(defined?.result)}`)
    const http = createServer()
    await new Promise<void>((listening, failed) => http.once("error", failed).listen(port, "127.0.0.1", listening))
    return new RpcServer(engine, http, user, pass)
  }

  /** For the SDK over WebSocket. */
  get url(): string {
    return `ws://127.0.0.1:${this.port}`
  }

  get httpUrl(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get connections(): number {
    return this.#connections.size
  }

  /** Nothing is answered any more, no connection accepted, until {@link resume}. */
  pause(): void {
    this.#gate = new Promise((open) => (this.#openGate = open))
  }

  resume(): void {
    this.#openGate()
    this.#gate = Promise.resolve()
  }

  /** Every request takes this much longer. */
  slow(delayMs: number): void {
    this.#delayMs = delayMs
  }

  /** Ends the time of every session that has signed in. */
  expireSessions(): void {
    for (const { attached, own } of this.#connections)
      for (const session of [own, ...attached.values()]) session.expire()
  }

  /** Cuts every connection; the server goes on. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Dies in mid-sentence: what was not answered never is. The port and the data are free when it returns. */
  async kill(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.#openGate()
    const closed = new Promise<void>((done) => this.#http.close(() => done()))
    this.cut()
    await closed
    await this.#engine.close()
  }

  /** Every session and statement that is not a test's: for looking into the engine beside the server. */
  async ask<A>(
    namespace: string,
    database: string,
    query: string,
    bindings: { readonly [name: string]: unknown } = {}
  ): Promise<A> {
    const session = await Session.attach(this.#engine, this.version)
    await session.ask("signin", { user: this.user, pass: this.pass })
    await session.ask("use", namespace, database)
    const answers = await session.ask<ReadonlyArray<{ readonly status: string; readonly result: unknown }>>(
      "query",
      query,
      bindings
    )
    await session.detach()
    const failed = answers.find((answer) => answer.status !== "OK")
    if (failed !== undefined) throw new Error(String(failed.result))
    return answers.map((answer) => answer.result) as A
  }

  async #mood(): Promise<void> {
    await this.#gate
    if (this.#delayMs > 0) await new Promise((done) => setTimeout(done, this.#delayMs))
    await this.#gate
  }

  async #connect(socket: Socket): Promise<void> {
    const early: Array<Buffer> = []
    let take = (data: Buffer): void => void early.push(data)
    socket.on("message", (data) => take(data))
    socket.on("error", () => socket.terminate())
    const connection: Connection = {
      socket,
      own: await Session.attach(this.#engine, this.version),
      attached: new Map()
    }
    this.#connections.add(connection)
    socket.on("close", () => {
      this.#connections.delete(connection)
      if (!this.#stopped) for (const session of [connection.own, ...connection.attached.values()]) void session.detach()
    })
    // What a server that dies was in the middle of fails with it.
    const answered = (data: Uint8Array): Promise<void> =>
      this.#frame(connection, data).catch((error: unknown) => {
        if (!this.#stopped) throw error
      })
    take = (data) => void answered(data)
    for (const data of early) take(data)
  }

  async #frame(connection: Connection, data: Uint8Array): Promise<void> {
    const frame = Frames.entries(data)
    const method = Frames.text(frame?.get("method"))
    const id = frame?.get("id")
    if (frame === undefined || method === undefined || id === undefined) return connection.socket.close(1003)
    await this.#mood()
    if (this.#stopped) return
    const { bytes, failed } = await this.#dispatch(
      connection,
      method,
      Frames.uuid(frame.get("session")),
      frame.get("params"),
      frame.get("txn")
    )
    this.calls.set(method, (this.calls.get(method) ?? 0) + 1)
    if (!this.#stopped)
      connection.socket.send(
        Frames.join([
          ["id", id],
          [failed ? "error" : "result", bytes]
        ])
      )
  }

  async #dispatch(
    { attached, own }: Connection,
    method: string,
    named: string | undefined,
    params: Uint8Array | undefined,
    txn: Uint8Array | undefined
  ) {
    if (method === "attach" && named !== undefined) {
      attached.set(named, await Session.attach(this.#engine, this.version))
      return { failed: false, bytes: Frames.none }
    }
    const session = named === undefined ? own : attached.get(named)
    if (session === undefined) return refusal("No such session", "SessionNotFound")
    if (method === "detach" && named !== undefined) {
      attached.delete(named)
      await session.detach()
      return { failed: false, bytes: Frames.none }
    }
    return session.call(method, params, txn)
  }

  #notify(notification: Uint8Array): void {
    const session = Frames.uuid(Frames.entries(notification)?.get("session"))
    for (const connection of this.#connections) {
      const owns = [connection.own, ...connection.attached.values()].some((one) => one.id === session)
      // A killed live query names no session; clients ignore what they do not know.
      if (session === undefined || owns) connection.socket.send(Frames.join([["result", notification]]))
    }
  }

  async #request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    await this.#mood()
    if (this.#stopped) return
    const route = `${request.method} ${new URL(request.url ?? "/", "http://any").pathname}`
    if (route === "GET /health" || route === "GET /status") return void response.writeHead(200).end()
    if (route === "GET /version") return void response.writeHead(200).end(`surrealdb-${this.version ?? "3.0.2"}`)
    if (route !== "POST /rpc" && route !== "POST /sql") return void response.writeHead(404).end()
    const session = await Session.attach(this.#engine, this.version)
    try {
      await this.#introduce(session, request.headers)
      await (route === "POST /rpc"
        ? rpc(session, Buffer.concat(chunks), response)
        : sql(session, Buffer.concat(chunks).toString("utf8"), response))
    } catch (error) {
      response
        .writeHead(401, { "content-type": "text/plain" })
        .end(error instanceof Error ? error.message : String(error))
    } finally {
      if (!this.#stopped) await session.detach()
    }
  }

  /** Signs in as the headers say, and selects the database they name. */
  async #introduce(session: Session, headers: IncomingMessage["headers"]): Promise<void> {
    const [scheme, token = ""] = (headers.authorization ?? "").split(" ")
    if (scheme === "Bearer") await session.ask("authenticate", token)
    if (scheme === "Basic") {
      const [user, pass] = Buffer.from(token, "base64").toString("utf8").split(":")
      await session.ask("signin", { user, pass })
    }
    const [namespace, database] = [headers["surreal-ns"], headers["surreal-db"]]
    if (typeof namespace === "string") await session.ask("use", namespace, database)
  }
}

const rpc = async (session: Session, body: Uint8Array, response: ServerResponse): Promise<void> => {
  const frame = Frames.entries(body)
  const method = Frames.text(frame?.get("method"))
  if (frame === undefined || method === undefined) return void response.writeHead(400).end()
  const { bytes, failed } = await session.call(method, frame.get("params"), frame.get("txn"))
  response.writeHead(200, { "content-type": "application/cbor" }).end(
    Frames.join([
      ["id", frame.get("id") ?? Frames.none],
      [failed ? "error" : "result", bytes]
    ])
  )
}

const sql = async (session: Session, query: string, response: ServerResponse): Promise<void> => {
  const answers = await session.ask("query", query, {})
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(jsonify(answers)))
}
