/**
 * An SSP of another maker, who knows the specification alone: a body with a field beyond it is refused.
 *
 * It keeps the records that it has pulled and was sent, so that a test compares them with the replica's.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Either } from "effect"
import { type Answer, type Body, bodyOf, client } from "../checks/http.ts"
import * as Specification from "../data/specification.ts"
import { listen, shut } from "./listening.ts"

const textOf = async (message: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of message) text += String(chunk)
  return text
}

export class StrictSsp {
  readonly id: string
  readonly records = new Map<string, Body>()
  readonly views = new Map<string, Body>()
  /** Jobs of `job` that it was told are pending, each of which it would run, in order. */
  readonly jobs: Array<string> = []
  /** Bodies that were refused, with the reason. */
  readonly refused: Array<string> = []
  status: "bootstrapping" | "ready" = "bootstrapping"
  private readonly scheduler: ReturnType<typeof client>
  private readonly server: Server
  private port = 0

  private constructor(id: string, scheduler: string) {
    this.id = id
    this.scheduler = client(scheduler, undefined)
    this.server = createServer((message, response) => void this.serve(message, response))
  }

  static async start(id: string, scheduler: string): Promise<StrictSsp> {
    const ssp = new StrictSsp(id, scheduler)
    ssp.port = await listen(ssp.server)
    return ssp
  }

  /** Registers, pulls every table, and says that it is ready. */
  async bootstrap(): Promise<void> {
    this.status = "bootstrapping"
    this.records.clear()
    this.views.clear()
    const url = `http://127.0.0.1:${this.port}`
    const registered = await this.scheduler.post("/ssp/register", { ssp_id: this.id, url })
    Either.getOrThrowWith(Specification.read("sspRegistered", registered.json), (reason) => new Error(reason))
    await this.scheduler.post("/proxy/signin", { user: "any", pass: "any" })
    await this.scheduler.post("/proxy/use", { ns: "any", db: "any" })
    const { tables } = bodyOf(await this.query("INFO FOR DB")) as { readonly tables: Body }
    for (const table of Object.keys(tables))
      for (const row of (await this.query(`SELECT * FROM ${table}`)).json as ReadonlyArray<Body>)
        this.records.set(String(row["id"]), row)
    this.status = "ready"
  }

  heartbeat(): Promise<Answer> {
    const timestamp = Math.floor(Date.now() / 1000)
    return this.scheduler.post("/ssp/heartbeat", { ssp_id: this.id, timestamp, views: this.views.size })
  }

  close(): Promise<void> {
    return shut(this.server)
  }

  private query(query: string): Promise<Answer> {
    return this.scheduler.post("/proxy/query", { query })
  }

  private async serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const json: unknown = JSON.parse((await textOf(message)) || "null")
    const [status, body] = this.answer(message.url ?? "", json)
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  }

  private answer(path: string, json: unknown): readonly [status: number, body: unknown] {
    if (path === "/health") return [this.status === "ready" ? 200 : 503, { status: this.status }]
    if (path === "/ingest") return this.taken("change", json, (change) => this.apply(change))
    if (path === "/view/register")
      return this.taken("viewRegistration", json, (view) => void this.views.set(view.id, view))
    if (path === "/view/unregister")
      return this.taken("viewUnregistration", json, ({ id }) => void this.views.delete(id))
    return [404, {}]
  }

  private taken<K extends "change" | "viewRegistration" | "viewUnregistration">(
    kind: K,
    json: unknown,
    take: (body: Either.Either.Right<ReturnType<typeof Specification.read<K>>>) => void
  ): readonly [status: number, body: unknown] {
    if (this.status !== "ready") return [503, { code: "SSP_NOT_READY" }]
    const read = Specification.read(kind, json)
    if (Either.isRight(read)) {
      take(read.right)
      return [200, []]
    }
    this.refused.push(read.left)
    return [400, {}]
  }

  private apply({ id, op, record, table }: Specification.Change): void {
    if (op !== "DELETE" && table === "job" && record["status"] === "pending") this.jobs.push(id)
    if (op === "DELETE") this.records.delete(id)
    else this.records.set(id, { ...record, id })
  }
}
