/**
 * Adapts Node's request and response to `ports/Front`.
 *
 * A connection that is idle for `silenceMs` is closed. The timer is set only for slow answers: a stream, a running
 * fiber, a client that does not take its bytes. A request body is bounded by the server's own limit, and a timer per
 * request would be a tenth of the cost of a short one.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Chunk, Effect, Stream } from "effect"
import type {
  Answer,
  BodySink,
  Headers,
  IncomingRequest,
  NoText,
  PiecesAnswer,
  Reply,
  SinkEvents
} from "../../ports/Front.ts"
import * as Compressed from "./compressed.ts"
import type { OpenBodies } from "./openBodies.ts"
import { readBody } from "./readBody.ts"

interface ExchangeParts {
  readonly silenceMs: number
  readonly bodies: OpenBodies
}

export class NodeExchange implements IncomingRequest, Reply {
  constructor(
    private readonly parts: ExchangeParts,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse
  ) {}

  get method(): string {
    return this.request.method ?? ""
  }

  get url(): string {
    return this.request.url ?? ""
  }

  /** Only `set-cookie` may be an array, and no request is judged by it. */
  get headers(): IncomingRequest["headers"] {
    return this.request.headers as IncomingRequest["headers"]
  }

  get address(): string | undefined {
    return this.request.socket.remoteAddress
  }

  text(maxBytes: number, done: (body: string | NoText) => void): void {
    readBody(this.request, maxBytes, done)
  }

  lines(contentType: string, most: number, take: (line: string) => boolean): void {
    this.parts.bodies.take(this.request, this.response, contentType, most, take)
  }

  send(answer: Answer | PiecesAnswer): void {
    const { response } = this
    if (response.headersSent || this.isGone) return
    const { headers, status } = answer
    if ("body" in answer) {
      this.head(status, headers, "application/json", Buffer.byteLength(answer.body))
      response.end(answer.body)
      return
    }
    const { pieces } = answer
    if (pieces.length === 0) {
      this.head(status, headers)
      response.end()
      return
    }
    let length = 0
    for (const piece of pieces) length += piece.length
    this.head(status, headers, "application/json", length)
    const last = pieces.length - 1
    for (let i = 0; i < last; i++) response.write(pieces[i])
    response.end(pieces[last])
    if (response.writableLength > 0) this.bound()
  }

  stream(headers: Headers, { drained, gone }: SinkEvents): BodySink {
    const { response } = this
    if (response.headersSent || this.isGone) {
      gone()
      return { write: () => false, end: () => {} }
    }
    this.bound()
    this.head(200, headers, "text/event-stream")
    response.on("drain", drained)
    response.once("close", gone)
    return {
      write: (bytes) => response.write(bytes),
      end: () => void response.end()
    }
  }

  flow(status: number, headers: Headers, body: Stream.Stream<Uint8Array, unknown>): Effect.Effect<void> {
    const { response } = this
    return Effect.suspend(() => {
      if (response.headersSent || this.isGone) return Effect.void
      this.bound()
      this.head(status, headers)
      if (this.method === "HEAD") return Effect.sync(() => void response.end())
      const drained = Effect.unsafeMakeLatch(true)
      response.on("drain", () => drained.unsafeOpen())
      const write = (chunk: Chunk.Chunk<Uint8Array>): Effect.Effect<void> => {
        for (const bytes of Chunk.toReadonlyArray(chunk)) if (!response.write(bytes)) drained.unsafeClose()
        return drained.await
      }
      return Effect.matchCause(Stream.runForEachChunk(body, write), {
        onSuccess: () => void response.end(),
        onFailure: () => void response.destroy()
      })
    })
  }

  whenGone(abandon: () => void): void {
    this.bound()
    this.response.once("close", abandon)
  }

  fail(answer: Answer): void {
    if (this.response.headersSent) this.response.destroy()
    else this.send(answer)
  }

  /** `type`: that of the body, unless a header says otherwise; `length`: its bytes, where they are known. */
  private head(status: number, headers: Headers = {}, type?: string, length?: number): void {
    const { parts, request, response } = this
    const flat = ["x-content-type-options", "nosniff"]
    if (type !== undefined && headers["content-type"] === undefined) flat.push("content-type", type)
    if (length !== undefined) flat.push("content-length", String(length))
    for (const name in headers) flat.push(name, headers[name]!)
    response.writeHead(status, Compressed.headersFor(request, response, status, flat, parts.silenceMs))
  }

  /** A response that waits behind another on its connection is not told when the connection is gone. */
  private get isGone(): boolean {
    return this.response.destroyed || this.request.socket.destroyed
  }

  private bound(): void {
    this.request.socket.setTimeout(this.parts.silenceMs)
  }
}
