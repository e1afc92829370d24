/**
 * One HTTP request and its answer on a bare connection, for the calls a node makes a thousand times a second.
 *
 * The general client, with its fibers, streams and abort signals per request, cost more than everything else done for a
 * job or a delivery. Redirects are not followed; connections are kept.
 */
import { Readable } from "node:stream"
import * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Agent, type Dispatcher } from "@effect/platform-node/Undici"
import { Effect, Layer, type Scope } from "effect"
import { reasonOf } from "../../core/reason.ts"
import * as Http from "../../drivers/shared/exchange.ts"
import type { Tls } from "../../node/config/tls.ts"
import type { AnswerEvents, OpenCall } from "../../ports/SspClient.ts"
import { JudgedPools } from "./judgedPools.ts"
import { connectorOf } from "./tlsClient.ts"

/** Handles one answer; settles once. */
class Answering implements Dispatcher.DispatchHandler {
  private timer: ReturnType<typeof setTimeout>
  private controller: Dispatcher.DispatchController | undefined
  private status: number | undefined
  private headers: Http.Answered["headers"] = {}
  private readonly kept: Array<Uint8Array> = []
  private size = 0
  private over = false

  constructor(
    private readonly sent: Http.SentRequest,
    private readonly settle: (answer: Http.Answered | Http.NoAnswer) => void
  ) {
    this.timer = setTimeout(() => this.cut(), sent.withinMs)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.over) controller.abort(new Error("given up"))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Http.Answered["headers"]): void {
    // Statuses 102 and 103 only announce the answer.
    if (status < 200 || this.over) return
    this.status = status
    this.headers = headers
    const { beginning } = this.sent
    if (beginning === undefined) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.cut(), beginning.withinMs)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Uint8Array): void {
    const { beginning, mostBytes = Http.usualMostBytes } = this.sent
    const { keptBytes, readBytes } = beginning ?? { keptBytes: mostBytes, readBytes: mostBytes }
    // Copied: the chunk is a view of a buffer that is used again.
    if (this.size < keptBytes) this.kept.push(chunk.slice(0, keptBytes - this.size))
    this.size += chunk.length
    if (this.size >= readBytes) this.cut()
  }

  onResponseEnd(): void {
    this.finish(undefined, true)
  }

  onResponseError(_: unknown, error: Error): void {
    this.finish(new Http.NoAnswer({ message: reasonOf(error), late: false, cause: error }), false)
  }

  /** Cuts the connection: the rest of the answer would block the next request. */
  cut(): void {
    if (this.over) return
    this.finish(undefined, false)
    this.controller?.abort(new Error("given up"))
  }

  private finish(failure: Http.NoAnswer | undefined, isWhole: boolean): void {
    if (this.over) return
    this.over = true
    clearTimeout(this.timer)
    const { beginning, withinMs } = this.sent
    if (this.status === undefined) this.settle(failure ?? Http.timedOut(withinMs))
    else if (!isWhole && beginning === undefined)
      this.settle(new Http.NoAnswer({ message: "the answer was cut", late: false }))
    else this.settle({ status: this.status, headers: this.headers, text: Http.textOf(this.kept) })
  }
}

/**
 * Requests have limits of their own, which include connecting; an attempt to connect must not outlive its request for
 * long.
 */
const unbounded = { headersTimeout: 0, bodyTimeout: 0 }
const connectTimeout = { timeout: 60_000 }

/**
 * Connections, which end with the scope: to names as they resolve at that moment, and to addresses that were judged
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

const requestOn =
  ({ agent, judged }: Connections): Http.Exchange["request"] =>
  (sent) =>
    Effect.async((resume) => {
      const { addresses, body = null, headers, method, url } = sent
      const { origin, pathname, search } = new URL(url)
      const running = new Answering(sent, (answer) =>
        resume("status" in answer ? Effect.succeed(answer) : Effect.fail(answer))
      )
      const dispatcher = addresses === undefined ? agent : judged.at(origin, addresses)
      dispatcher.dispatch({ origin, path: `${pathname}${search}`, method, headers, body }, running)
      // The request was interrupted.
      return Effect.sync(() => running.cut())
    })

/** An exchange on connections of its own, which end with the scope; nodes may verify each other by certificate. */
export const make = (tls: Tls | undefined): Effect.Effect<Http.Exchange, never, Scope.Scope> =>
  Effect.map(connections(tls), (open) => ({
    request: requestOn(open),
    open: ({ body, ...opening }, heard) => flowOn(open, opening, body ?? null, heard),
    pour: pourOn(open),
    clientAt: (addresses) =>
      Http.withoutSpans(
        NodeHttpClient.makeUndici(addresses === undefined ? open.agent : open.judged.dispatcher(addresses))
      )
  }))

/** Long answers, each on a connection of its own. */
const pourOn =
  (connections: Connections): NonNullable<Http.Exchange["pour"]> =>
  (opening, heard) => {
    const body = new Readable({ read: () => {} })
    // The HTTP client limits the time to a status only once the body has been written.
    const late = setTimeout(() => {
      flow.close()
      heard.end(Http.timedOut(opening.withinMs))
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

/**
 * An answer that goes on. Streams of a scheduler's clients pass through here byte for byte, at the cost of a few calls
 * and no fiber.
 */
class FlowHandler implements OpenCall, Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined
  private isPaused = false
  private isOver = false

  constructor(private readonly heard: AnswerEvents) {}

  readonly pause = (): void => {
    this.isPaused = true
    this.controller?.pause()
  }

  readonly resume = (): void => {
    this.isPaused = false
    this.controller?.resume()
  }

  readonly close = (): void => {
    if (this.isOver) return
    this.isOver = true
    this.controller?.abort(new Error("closed"))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.isOver) controller.abort(new Error("closed"))
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: { readonly [name: string]: string | string[] | undefined }
  ): void {
    // 102 and 103 announce an answer.
    if (status < 200 || this.isOver) return
    this.heard.head(status, headers)
    if (this.isPaused) controller.pause()
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (!this.isOver) this.heard.data(chunk)
  }

  onResponseEnd(): void {
    this.end(undefined)
  }

  onResponseError(_: unknown, error: Error): void {
    this.end(error)
  }

  private end(error: unknown): void {
    if (this.isOver) return
    this.isOver = true
    this.heard.end(error)
  }
}

const flowOn = (
  { agent, judged }: Connections,
  { addresses, headers, method, silenceMs, url, withinMs }: Omit<Http.OpeningRequest, "body">,
  body: string | Readable | null,
  heard: AnswerEvents
): OpenCall => {
  const { origin, pathname, search } = new URL(url)
  const flowing = new FlowHandler(heard)
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
    Effect.map(make(tls), ({ clientAt }) => clientAt(undefined))
  )
