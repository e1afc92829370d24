/**
 * A reader of server-sent events: opens a stream, keeps every event in order, waits for what a test needs.
 *
 * Why it keeps all of them: the law about deltas is checked by replaying a stream from its first event.
 */
import { type ClientRequest, type IncomingMessage, request } from "node:http"
import * as JsonText from "../../src/core/jsonText.ts"
import { until } from "../processes/Door.ts"

export interface StreamEvent {
  readonly event: string
  readonly id: string | undefined
  readonly data: { readonly [key: string]: unknown }
}

export class EventStream {
  readonly events: Array<StreamEvent> = []
  readonly headers: IncomingMessage["headers"]
  /** Called with each event as it comes. */
  heard: (event: StreamEvent) => void = () => undefined
  readonly #close: () => void
  #rest = ""
  #ended = false

  private constructor(headers: IncomingMessage["headers"], close: () => void) {
    this.headers = headers
    this.#close = close
  }

  static #over(outgoing: ClientRequest, message: IncomingMessage): EventStream {
    const stream = new EventStream(message.headers, () => outgoing.destroy())
    message.setEncoding("utf8")
    message.on("data", (chunk: string) => stream.#read(chunk))
    message.on("close", () => {
      stream.#ended = true
    })
    message.on("error", () => {
      stream.#ended = true
    })
    return stream
  }

  /** Of a node in this process. */
  static of(response: Response): EventStream {
    if (response.status !== 200 || response.body === null) throw new Error(`stream answered ${response.status}`)
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    const stream = new EventStream(Object.fromEntries(response.headers), () => void reader.cancel())
    const read = async (): Promise<void> => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        stream.#read(value)
      }
    }
    void read()
      .catch(() => undefined)
      .finally(() => {
        stream.#ended = true
      })
    return stream
  }

  static open(url: string, path: string, token: string, lastEventId?: string): Promise<EventStream> {
    return new Promise((done, failed) => {
      const headers = {
        authorization: `Bearer ${token}`,
        accept: "text/event-stream",
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId })
      }
      const outgoing = request(new URL(path, url), { headers, agent: false }, (message) => {
        if (message.statusCode === 200) return done(EventStream.#over(outgoing, message))
        outgoing.destroy()
        failed(new Error(`stream answered ${message.statusCode}`))
      })
      outgoing.on("error", failed)
      outgoing.end()
    })
  }

  /** How many rows a stream of a flat view has shown, of an empty view first: one figure for each delta from here on. */
  sizes(): ReadonlyArray<number> {
    const sizes: Array<number> = []
    const shown = new Set<string>()
    this.heard = ({ data, event }) => {
      if (event !== "delta") return
      for (const [id] of data["additions"] as ReadonlyArray<readonly [string]>) shown.add(id)
      for (const id of data["removals"] as ReadonlyArray<string>) shown.delete(id)
      sizes.push(shown.size)
    }
    return sizes
  }

  #read(chunk: string): void {
    this.#rest += chunk
    for (let end = this.#rest.indexOf("\n\n"); end >= 0; end = this.#rest.indexOf("\n\n")) {
      const event = parse(this.#rest.slice(0, end))
      this.#rest = this.#rest.slice(end + 2)
      if (event === undefined) continue
      this.events.push(event)
      this.heard(event)
    }
  }

  /** The server has closed the stream. */
  get ended(): boolean {
    return this.#ended
  }

  /** Waits until at least `count` events came. */
  async atLeast(count: number): Promise<ReadonlyArray<StreamEvent>> {
    await until(`${count} events, have ${this.events.length}`, () => this.events.length >= count)
    return this.events
  }

  /** Waits for an event after position `from` that `wanted` takes. */
  find(what: string, wanted: (event: StreamEvent) => boolean, from = 0): Promise<StreamEvent> {
    return until(what, () => this.events.slice(from).find(wanted))
  }

  close(): void {
    this.#close()
  }
}

const parse = (block: string): StreamEvent | undefined => {
  const fields = new Map<string, string>()
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":")
    if (colon <= 0) continue
    const name = line.slice(0, colon)
    const value = line.slice(colon + 1).replace(/^ /, "")
    fields.set(name, fields.has(name) ? `${fields.get(name)}\n${value}` : value)
  }
  const data = fields.get("data")
  if (data === undefined) return undefined
  return {
    event: fields.get("event") ?? "message",
    id: fields.get("id"),
    data: JsonText.parse(data) as StreamEvent["data"]
  }
}
