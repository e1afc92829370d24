/**
 * The address a database posts to: passes requests on to the node that is there, or answers for one that is not.
 *
 * Why between them: a node of a test has no port of its own, comes and goes, and what is posted meanwhile may be
 * refused or lost, as the test says.
 */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { listen, shut } from "./listening.ts"
import type { Answer } from "./nodeBeside.ts"

export interface Behind {
  readonly ask: (method: string, path: string, body?: unknown) => Promise<Answer>
}

/** Takes everything and does nothing with it: what is posted is lost. */
export const nobody: Behind = { ask: () => Promise.resolve({ status: 200, json: {} }) }

export class FeedPort {
  /** The receiver of posted changes. */
  behind: Behind = nobody
  readonly url: string
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on("request", (request, response) => {
      let text = ""
      request.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")))
      request.on("end", () => {
        this.behind.ask(request.method ?? "POST", request.url ?? "/", JSON.parse(text)).then(
          ({ json, status }) =>
            response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json)),
          (error: unknown) => response.writeHead(502).end(String(error))
        )
      })
    })
  }

  static async start(): Promise<FeedPort> {
    const server = createServer()
    await listen(server)
    return new FeedPort(server)
  }

  async close(): Promise<void> {
    await shut(this.#server)
  }
}
