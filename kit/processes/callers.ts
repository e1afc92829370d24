/** Callers that ask a server all the time, each on a connection that it keeps or on a new one for each request. */
import { Agent, request } from "node:http"
import type { Socket } from "node:net"
import { secret, sleep } from "./Door.ts"

interface Ask {
  readonly method?: "GET" | "POST"
  readonly path: string
  readonly body?: object
}

/** Between two requests of a caller. */
const pauseMs = 5

export class Callers {
  /** What callers met that is no answer. */
  readonly failures: Array<string> = []
  /** Of answers: their status, and the code of a refusal that says when to come again. */
  readonly answers: Array<string> = []
  /** Connections of callers that keep theirs: one each, unless it was cut. */
  readonly kept = new Set<Socket>()
  private isOver = false
  private readonly calls: Array<Promise<void>> = []

  constructor(private readonly url: string) {}

  /** Two callers: one keeps its connection. */
  ask(ask: Ask): this {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    this.calls.push(
      this.call(ask, agent).finally(() => agent.destroy()),
      this.call(ask, false)
    )
    return this
  }

  async end(): Promise<void> {
    this.isOver = true
    await Promise.all(this.calls)
  }

  private async call(ask: Ask, agent: Agent | false): Promise<void> {
    while (!this.isOver) {
      await this.once(ask, agent).then(
        (answer) => void this.answers.push(answer),
        (error: unknown) => void this.failures.push(`${ask.path}: ${String(error)}`)
      )
      await sleep(pauseMs)
    }
  }

  private once({ body, method = "GET", path }: Ask, agent: Agent | false): Promise<string> {
    return new Promise((done, failed) => {
      const headers = { authorization: `Bearer ${secret}`, ...(body && { "content-type": "application/json" }) }
      const outgoing = request(`${this.url}${path}`, { method, headers, agent }, (answer) => {
        let text = ""
        answer.on("data", (chunk: Buffer) => void (text += chunk.toString("utf8")))
        answer.on("error", failed)
        answer.on("end", () => {
          const code = /"code":"(\w+)"/.exec(text)?.[1] ?? ""
          const isWhole = answer.complete && (answer.statusCode !== 503 || answer.headers["retry-after"] !== undefined)
          if (isWhole) done(`${answer.statusCode} ${code}`.trim())
          else failed(new Error(`${answer.statusCode} ${text.slice(0, 300)}`))
        })
      })
      if (agent !== false) outgoing.once("socket", (socket) => void this.kept.add(socket))
      outgoing.on("error", failed)
      outgoing.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}
