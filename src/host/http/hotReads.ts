/**
 * Reads and streams by callback: Node's request and response as what `ports/Front` asks of a server.
 *
 * A connection on which nothing moves for `silenceMs` is closed: a stream at once has that timer, an answer gets it
 * only where its client does not take it, since a timer per request is a tenth of the cost of a short one.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import type { HotReads, ReadReply, Sink } from "../../ports/Front.ts"
import { registrationHeader } from "../../protocol/wire.ts"

export interface ReadParts {
  readonly reads: typeof HotReads.Service
  /** Serves what the hot route leaves. */
  readonly declared: RequestListener
  readonly silenceMs: number
  /** Hears what the route throws; the client gets what the declared route answers, or a cut answer. */
  readonly onDefect: (error: unknown) => void
}

const one = (header: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof header === "string" ? header : undefined

/** As on declared routes; those for pages of other origins are there before, as for every request. */
const always = { "x-content-type-options": "nosniff" }

/** Opens an answer that goes on. */
export const streamReply =
  (silenceMs: number, request: IncomingMessage, response: ServerResponse): ReadReply["stream"] =>
  (headers, { drained, gone }): Sink => {
    request.socket.setTimeout(silenceMs)
    response.writeHead(200, { ...always, "content-type": "text/event-stream", ...headers })
    response.on("drain", drained)
    response.once("close", gone)
    return {
      write: (bytes) => response.write(bytes),
      end: () => void response.end()
    }
  }

export const replyOf = (
  { declared, silenceMs }: ReadParts,
  request: IncomingMessage,
  response: ServerResponse
): ReadReply => ({
  json: (headers, pieces) => {
    let length = 0
    for (const piece of pieces) length += piece.length
    response.writeHead(200, { ...always, "content-type": "application/json", ...headers, "content-length": length })
    const last = pieces.length - 1
    for (let i = 0; i < last; i++) response.write(pieces[i])
    response.end(pieces[last])
    if (response.writableLength > 0) request.socket.setTimeout(silenceMs)
  },
  notModified: (headers) => void response.writeHead(304, { ...always, ...headers }).end(),
  stream: streamReply(silenceMs, request, response),
  whenGone: (abandon) => void response.once("close", abandon),
  pass: () => declared(request, response)
})

/** Whether the hot route has taken the request. One behind another on its connection is left to the declared one. */
export const serveRead = (parts: ReadParts, request: IncomingMessage, response: ServerResponse): boolean => {
  if (response.socket === null) return false
  const {
    authorization,
    [registrationHeader]: registration,
    "last-event-id": lastEventId,
    "if-none-match": ifNoneMatch
  } = request.headers
  try {
    return parts.reads(
      {
        url: request.url ?? "",
        authorization,
        registration: one(registration),
        lastEventId: one(lastEventId),
        ifNoneMatch
      },
      replyOf(parts, request, response)
    )
  } catch (error) {
    parts.onDefect(error)
    if (!response.headersSent) return false
    response.destroy()
    return true
  }
}
