/**
 * A backend for jobs: checks the token, counts calls, notes which run at the same time, and answers as it is told.
 *
 * Why it notes overlaps itself: that no job runs twice at once can only be seen where the calls arrive.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as JsonText from "../../src/core/jsonText.ts"
import { listen, shut } from "./listening.ts"

export interface Received {
  readonly path: string
  readonly key: string
  readonly headers: IncomingMessage["headers"]
  readonly body: unknown
}

export type Reply = (received: Received, response: ServerResponse, n: number) => void

export class TestBackend {
  readonly token: string
  readonly received: Array<Received> = []
  /** Keys that were called while a call with the same key was under way. */
  readonly overlaps: Array<string> = []
  reply: Reply = (_, response) => void response.end("{}")
  readonly #server: Server
  readonly #byKey = new Map<string, Array<Received>>()
  readonly #underWay = new Map<string, number>()

  private constructor(server: Server, token: string) {
    this.#server = server
    this.token = token
    server.on("request", (request, response) => void this.#take(request, response))
  }

  static async start(token = "backend-token"): Promise<TestBackend> {
    const server = createServer()
    await listen(server)
    return new TestBackend(server, token)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  calls(key: string): ReadonlyArray<Received> {
    return this.#byKey.get(key) ?? []
  }

  async close(): Promise<void> {
    await shut(this.#server)
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (request.headers.authorization !== `Bearer ${this.token}`) return void response.writeHead(401).end("wrong token")
    const key = String(request.headers["idempotency-key"])
    const received = {
      path: `${request.method} ${request.url}`,
      key,
      headers: request.headers,
      body: JsonText.parse(Buffer.concat(chunks).toString("utf8"))
    }
    this.received.push(received)
    this.#byKey.set(key, [...this.calls(key), received])
    if ((this.#underWay.get(key) ?? 0) > 0) this.overlaps.push(key)
    this.#underWay.set(key, (this.#underWay.get(key) ?? 0) + 1)
    response.on("close", () => void this.#underWay.set(key, (this.#underWay.get(key) ?? 1) - 1))
    this.reply(received, response, this.calls(key).length)
  }
}
