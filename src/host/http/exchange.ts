/**
 * One HTTP request and its answer on a bare connection, for the calls a node makes a thousand times a second.
 *
 * Why beside the general client: there, with its fibers, streams and abort signals per request, the call cost more than
 * everything else that is done for a job or a delivery. Redirects are not followed; connections are kept.
 */
import { Readable } from "node:stream"
import * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Agent, type Dispatcher } from "@effect/platform-node/Undici"
import { Data, Effect, Layer, type Scope } from "effect"
import { reasonOf } from "../../core/reason.ts"
import type * as Http from "../../drivers/shared/httpSend.ts"
import type { Tls } from "../../node/config/tls.ts"
import type { Flow, Heard } from "../../ports/SspClient.ts"
import { Flowing } from "./flowing.ts"
import { JudgedPools } from "./judgedPools.ts"
import { connectorOf } from "./tlsClient.ts"

export interface Wanted {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly body: string | null
  /** From the beginning, connecting included, to the end. */
  readonly withinMs: number
  /** A time of its own for the body, which begins with the status: `withinMs` is for what comes before then. */
  readonly bodyWithinMs?: number
  /** How much of the body is handed on, and how much is read so that the connection can be used again. */
  readonly keptBytes: number
  readonly readBytes: number
  /** See `Sent`; absent: the name is looked up at each connection. */
  readonly addresses?: ReadonlyArray<string> | undefined
}

export interface Answered {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
  /** The body ended by itself, and `text` is all of it. */
  readonly whole: boolean
}

/** There was no status. `late`: not within its time. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{
  readonly message: string
  readonly late: boolean
  readonly cause?: unknown
}> {}

/** Settles once. */
class Exchange implements Dispatcher.DispatchHandler {
  private timer: ReturnType<typeof setTimeout>
  private controller: Dispatcher.DispatchController | undefined
  private status: number | undefined
  private retryAfter: string | undefined
  private readonly kept: Array<Uint8Array> = []
  private size = 0
  private over = false

  constructor(
    private readonly wanted: Wanted,
    private readonly settle: (answer: Answered | NoAnswer) => void
  ) {
    this.timer = setTimeout(() => this.cut(), wanted.withinMs)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.over) controller.abort(new Error("given up"))
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: { readonly [name: string]: string | string[] | undefined }
  ): void {
    // 102 and 103 announce an answer.
    if (status < 200 || this.over) return
    const after = headers["retry-after"]
    this.status = status
    this.retryAfter = typeof after === "string" ? after : after?.[0]
    if (this.wanted.bodyWithinMs === undefined) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.cut(), this.wanted.bodyWithinMs)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Uint8Array): void {
    // The chunk is a view of a buffer that is used again.
    if (this.size < this.wanted.keptBytes) this.kept.push(chunk.slice(0, this.wanted.keptBytes - this.size))
    this.size += chunk.length
    if (this.size >= this.wanted.readBytes) this.cut()
  }

  onResponseEnd(): void {
    this.finish(undefined, this.size <= this.wanted.keptBytes)
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(new NoAnswer({ message: reasonOf(error), late: false, cause: error }), false)
  }

  /** Cuts the connection: the rest of the answer would stand in the way of the next request. */
  cut(): void {
    if (this.over) return
    this.finish(undefined, false)
    this.controller?.abort(new Error("given up"))
  }

  /** Once there was a status it is the answer, however the body ended. */
  private finish(failure: NoAnswer | undefined, whole: boolean): void {
    if (this.over) return
    this.over = true
    clearTimeout(this.timer)
    if (this.status === undefined)
      return this.settle(failure ?? new NoAnswer({ message: `none within ${this.wanted.withinMs} ms`, late: true }))
    const decoder = new TextDecoder()
    this.settle({
      status: this.status,
      retryAfter: this.retryAfter,
      text: this.kept.map((chunk) => decoder.decode(chunk, { stream: true })).join(""),
      whole
    })
  }
}

export type Send = (wanted: Wanted) => Effect.Effect<Answered, NoAnswer>

/**
 * A request has bounds of its own, and connecting is part of them; a connection attempt that outlives its request must
 * end too.
 */
const unbounded = { headersTimeout: 0, bodyTimeout: 0 }
const connectTimeout = { timeout: 60_000 }

/**
 * Connections, which end with the scope: to what names stand for at that moment, and to addresses that were judged
 * before.
 */
const connections = (tls: Tls | undefined) =>
  Effect.acquireRelease(
    Effect.sync(() => ({
      agent: new Agent({ ...unbounded, connect: connectorOf(tls, connectTimeout) }),
      judged: new JudgedPools((lookup) => ({ ...unbounded, connect: connectorOf(tls, { ...connectTimeout, lookup }) }))
    })),
    ({ agent, judged }) => Effect.promise(() => Promise.all([agent.destroy(), judged.destroy()]))
  )

type Connections = Effect.Effect.Success<ReturnType<typeof connections>>

const sendOn =
  ({ agent, judged }: Connections): Send =>
  (wanted) =>
    Effect.async((resume) => {
      const { origin, pathname, search } = new URL(wanted.url)
      const running = new Exchange(wanted, (answer) =>
        resume("status" in answer ? Effect.succeed(answer) : Effect.fail(answer))
      )
      const dispatcher = wanted.addresses === undefined ? agent : judged.at(origin, wanted.addresses)
      dispatcher.dispatch(
        { origin, path: `${pathname}${search}`, method: wanted.method, headers: wanted.headers, body: wanted.body },
        running
      )
      // No request waits any more.
      return Effect.sync(() => running.cut())
    })

/** Sends on connections of its own, which end with the scope. */
export const make: Effect.Effect<Send, never, Scope.Scope> = Effect.map(connections(undefined), sendOn)

/**
 * An answer of another node is taken whole, or it is none; the hashes of a node's children are the longest, and far
 * below.
 */
const mostBytes = 64 * 1024 * 1024

const whole =
  (send: Send): Http.Send =>
  (request) =>
    Effect.filterOrFail(
      send({ ...request, body: request.body ?? null, keptBytes: mostBytes, readBytes: mostBytes }),
      (answer) => answer.whole,
      () => new NoAnswer({ message: "the answer was cut", late: false })
    )

/** {@link make} for the calls between nodes, which may know each other by certificate. */
export const between = (tls: Tls | undefined): Effect.Effect<Http.Send, never, Scope.Scope> =>
  Effect.map(connections(tls), (open) => whole(sendOn(open)))

/** {@link between}, and a client on the same connections. */
export const transport = (tls: Tls | undefined): Effect.Effect<Http.Transport, never, Scope.Scope> =>
  Effect.map(connections(tls), (open) => ({
    send: whole(sendOn(open)),
    open: openOn(open),
    pour: pourOn(open),
    clientAt: (addresses) =>
      withoutSpans(NodeHttpClient.makeUndici(addresses === undefined ? open.agent : open.judged.dispatcher(addresses)))
  }))

/** Answers that go on, each on a connection of its own. */
const openOn =
  (connections: Connections): Http.Transport["open"] =>
  ({ body, ...opening }, heard) =>
    flowOn(connections, opening, body ?? null, heard)

const pourOn =
  (connections: Connections): NonNullable<Http.Transport["pour"]> =>
  (opening, heard) => {
    const body = new Readable({ read: () => {} })
    // The client below bounds the time to a status only once the body has been written.
    const late = setTimeout(() => {
      flow.close()
      heard.end(new NoAnswer({ message: `none within ${opening.withinMs} ms`, late: true }))
    }, opening.withinMs)
    const flow = flowOn(connections, opening, body, {
      head: (status, headers) => {
        clearTimeout(late)
        heard.head(status, headers)
      },
      data: heard.data,
      end: (error) => {
        clearTimeout(late)
        heard.end(error)
      }
    })
    return {
      write: (text) => void body.push(text),
      end: () => void body.push(null),
      close: () => {
        clearTimeout(late)
        flow.close()
      }
    }
  }

const flowOn = (
  { agent, judged }: Connections,
  { addresses, headers, method, silenceMs, url, withinMs }: Omit<Http.Opening, "body">,
  body: string | Readable | null,
  heard: Heard
): Flow => {
  const { origin, pathname, search } = new URL(url)
  const flowing = new Flowing(heard)
  const dispatcher = addresses === undefined ? agent : judged.at(origin, addresses)
  dispatcher.dispatch(
    {
      origin,
      path: `${pathname}${search}`,
      method,
      headers,
      body,
      headersTimeout: withinMs,
      bodyTimeout: silenceMs
    },
    flowing
  )
  return flowing
}

/** A client for calls to nodes whose address is trusted, on connections of its own. */
export const layerClient = (tls: Tls | undefined): Layer.Layer<HttpClient.HttpClient> =>
  Layer.scoped(
    HttpClient.HttpClient,
    Effect.map(transport(tls), ({ clientAt }) => clientAt(undefined))
  )

const withoutSpans = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.withTracerPropagation(
    HttpClient.withTracerDisabledWhen(client, () => true),
    false
  )
