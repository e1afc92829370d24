/**
 * A scheduler of another maker, who knows the specification alone, over HTTP: a body with a field beyond it is refused,
 * and `/proxy/query` answers as the database does.
 *
 * The test calls the SSP for it, with {@link told} as the bodies.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Effect, Either } from "effect"
import type { Body } from "../checks/http.ts"
import * as Specification from "../data/specification.ts"
import { FakeScheduler } from "./fakeScheduler.ts"
import { listen, shut } from "./listening.ts"

const textOf = async (message: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of message) text += String(chunk)
  return text
}

const kinds = {
  "/ssp/register": "sspRegistration",
  "/ssp/heartbeat": "heartbeat",
  "/job/result": "jobResult",
  "/proxy/query": "query"
} as const

export class StrictScheduler {
  /** What was accepted, by path. */
  readonly accepted: Array<readonly [path: string, body: Body]> = []
  /** Paths that the specification does not have. */
  readonly unknown: Array<string> = []
  /** Status of the next heartbeat's answer. */
  heartbeat: 200 | 404 | 409 = 200
  /** What a statement fails with. */
  failure: string | undefined
  private readonly snapshot = new FakeScheduler()
  private readonly server: Server
  private port = 0

  private constructor() {
    this.snapshot.says = { header: false, exact: false }
    this.server = createServer((message, response) => void this.serve(message, response))
  }

  static async start(): Promise<StrictScheduler> {
    const scheduler = new StrictScheduler()
    scheduler.port = await listen(scheduler.server)
    return scheduler
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  set rows(rows: FakeScheduler["rows"]) {
    this.snapshot.rows = rows
  }

  calls(path: string): ReadonlyArray<Body> {
    return this.accepted.flatMap(([at, body]) => (at === path ? [body] : []))
  }

  close(): Promise<void> {
    return shut(this.server)
  }

  private async serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const json: unknown = JSON.parse((await textOf(message)) || "null")
    const [status, body] = await this.answer(message.url ?? "", json)
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  }

  private async answer(path: string, json: unknown): Promise<readonly [status: number, body: unknown]> {
    if (path === "/proxy/signin" || path === "/proxy/use") return [200, {}]
    const kind = kinds[path as keyof typeof kinds]
    if (kind === undefined) {
      this.unknown.push(path)
      return [404, {}]
    }
    const read = Specification.read(kind, json)
    if (Either.isLeft(read)) return [400, { error: read.left }]
    this.accepted.push([path, read.right])
    if (kind === "sspRegistration") return [202, { snapshot_seq: 3 }]
    if (kind === "heartbeat") {
      const status = this.heartbeat
      this.heartbeat = 200
      return [status, {}]
    }
    return [200, kind === "query" ? [await this.statement((json as { readonly query: string }).query)] : {}]
  }

  private async statement(query: string): Promise<Body> {
    if (this.failure !== undefined) return { status: "ERR", time: "12µs", result: this.failure }
    const { text } = await Effect.runPromise(this.snapshot.client.query(query))
    return { status: "OK", time: "12µs", result: JSON.parse(text) as unknown }
  }
}
