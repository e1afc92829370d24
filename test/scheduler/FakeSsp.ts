/**
 * An SSP as a scheduler meets it: a server that answers as its test says and remembers what it was told, in order.
 *
 * Why a fake: it refuses, hangs, forgets and comes back on demand. It applies events by the rules of D5, so what it
 * holds at the end shows whether every event came, once and in order.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { type Answer, type Body, bodyOf } from "../../kit/checks/http.ts"
import { until } from "../../kit/processes/Door.ts"
import { listen, shut } from "../../kit/processes/listening.ts"
import type { Node } from "./node.ts"

export interface Told {
  readonly path: string
  readonly authorization: string | undefined
  readonly registration: string | undefined
  readonly json: unknown
}

interface Answering {
  readonly status: number
  readonly body?: unknown
  readonly headers?: { readonly [name: string]: string }
}

/** What an endpoint answers instead of the usual; undefined: the usual. `never`: it hangs. */
export type Behaviour = (told: Told) => Answering | "never" | undefined

const textOf = async (message: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of message) text += String(chunk)
  return text
}

export class FakeSsp {
  readonly id: string
  readonly batch: boolean
  readonly told: Array<Told> = []
  /** Positions applied, in the order they were. */
  readonly applied: Array<number> = []
  /** Requests to `/ingest` that were open at once, at most. */
  mostAtOnce = 0
  health = "bootstrapping"
  behaviour: Behaviour = () => undefined
  snapshotSeq = 0
  registration = 0
  private open = 0
  private readonly server: Server
  private hanging: Array<ServerResponse> = []

  private constructor(id: string, batch: boolean) {
    this.id = id
    this.batch = batch
    this.server = createServer((message, response) => {
      // A caller that gives up half-way takes its request along; anything else is a fault of this file.
      this.serve(message, response).catch((error: unknown) => {
        if (!message.destroyed) throw error
      })
    })
  }

  static async start(id: string, { batch = true }: { readonly batch?: boolean } = {}): Promise<FakeSsp> {
    const ssp = new FakeSsp(id, batch)
    await listen(ssp.server)
    return ssp
  }

  get url(): string {
    const address = this.server.address()
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
  }

  get last(): number {
    return this.applied.at(-1) ?? this.snapshotSeq
  }

  /** Registers; what was applied before is forgotten. */
  async register(node: Node, more: Body = {}): Promise<Answer> {
    const answer = await node.post("/ssp/register", { ssp_id: this.id, url: this.url, batch: this.batch, ...more })
    if (answer.status !== 202) return answer
    this.snapshotSeq = Number(bodyOf(answer)["snapshot_seq"])
    this.registration = Number(bodyOf(answer)["registration"])
    this.applied.length = 0
    return answer
  }

  /** Registers, is polled ready and has caught up. */
  async join(node: Node): Promise<this> {
    this.health = "ready"
    await this.register(node)
    await this.shown(node, "ready")
    return this
  }

  /** Waits until `/info` shows this SSP so; undefined: not at all. */
  async shown(node: Node, status: string | undefined): Promise<void> {
    await until(`${this.id} is ${status ?? "gone"}`, async () => {
      const entries = (await node.get("/info")).json as ReadonlyArray<{ id: string; status: string }>
      return entries.find((entry) => entry.id === this.id)?.status === status
    })
  }

  beat(node: Node, more: Body = {}): Promise<Answer> {
    return node.post("/ssp/heartbeat", { ssp_id: this.id, timestamp: 1, views: 0, ...more })
  }

  calls(path: string): ReadonlyArray<Told> {
    return this.told.filter((each) => each.path === path)
  }

  /** Lets go of requests that hang. */
  release(): void {
    for (const response of this.hanging.splice(0)) response.destroy()
  }

  async close(): Promise<void> {
    this.release()
    await shut(this.server)
  }

  private async serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await textOf(message)
    const registration = message.headers["svc-registration"]
    const told: Told = {
      path: message.url ?? "",
      authorization: message.headers.authorization,
      registration: typeof registration === "string" ? registration : undefined,
      json: text === "" ? undefined : JSON.parse(text)
    }
    this.told.push(told)
    if (told.path === "/ingest") this.mostAtOnce = Math.max(this.mostAtOnce, ++this.open)
    response.on("close", () => void (told.path === "/ingest" && this.open--))
    const given = this.behaviour(told)
    if (given === "never") return void this.hanging.push(response)
    const { body = { status: "ok" }, headers = {}, status } = given ?? this.usual(told)
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body))
  }

  private usual({ json, path }: Told): Answering {
    if (path === "/health") return { status: this.health === "ready" ? 200 : 503, body: { status: this.health } }
    if (path === "/ingest") return this.apply(Array.isArray(json) ? (json as ReadonlyArray<Body>) : [json as Body])
    // A result that is whole has a tag.
    return path.startsWith("/view/") ? { status: 200, headers: { etag: '"1"' } } : { status: 200 }
  }

  private apply(events: ReadonlyArray<Body>): Answering {
    for (const event of events) {
      const seq = Number(event["seq"])
      if (seq > this.last + 1)
        return { status: 409, body: { code: "SEQUENCE_GAP", message: "gap", details: { expected: this.last + 1 } } }
      if (seq === this.last + 1) this.applied.push(seq)
    }
    return { status: 200, body: { views_affected: 0, edges_updated: 0 } }
  }
}

/** Positions from `from` to `to`, both included. */
export const range = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i)
