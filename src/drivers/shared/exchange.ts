/**
 * Outgoing calls of a node: one request and its answer, whole or as it comes.
 *
 * An interface, because a node makes thousands of calls a second: over any HTTP client here, on bare connections in
 * `host/http/exchange.ts`. Redirects are never followed.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Data, Duration, Effect, Fiber, Stream } from "effect"
import { reasonOf } from "../../core/reason.ts"
import type { AnswerEvents, OpenCall } from "../../ports/SspClient.ts"
import { isWireError, type WireError } from "../../protocol/errors.ts"

interface Request {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  /** JSON text. */
  readonly body: string | undefined
  /**
   * Addresses of the name in `url` that the caller has judged: the connection goes to one of these, and the name is not
   * resolved again. Empty if the name is unknown; absent if the URL holds an address, or names are not judged.
   */
  readonly addresses?: ReadonlyArray<string> | undefined
}

/** A request whose whole answer must arrive in time. */
export interface SentRequest extends Request {
  /** Time limit for everything from connecting to the end of the body, in milliseconds. */
  readonly withinMs: number
  /** Most bytes of an answer: a longer one is a failure, except for a client that reads whole bodies. */
  readonly mostBytes?: number
  /** Present if the status is the answer, however its body ends; `withinMs` then limits the time until the status. */
  readonly beginning?: Beginning
}

/** Bytes of a body that are returned, bytes that are read so that the connection can be reused, and time for it all. */
interface Beginning {
  readonly keptBytes: number
  readonly readBytes: number
  readonly withinMs: number
}

/** A request whose answer is read as it comes. */
export interface OpeningRequest extends Request {
  /** Time limit until the status of the answer, in milliseconds. */
  readonly withinMs: number
  /** An answer that is silent for so long has broken off, unless it is paused. */
  readonly silenceMs: number
}

/** Headers by lower-case name. */
type Headers = Parameters<AnswerEvents["head"]>[1]

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** There was no status, or no whole body. `late`: not within the time limit. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{
  readonly message: string
  readonly late: boolean
  readonly cause?: unknown
}> {}

/** A request whose body is written bit by bit, and its answer. */
interface Pour extends Pick<OpenCall, "close"> {
  readonly write: (text: string) => void
  readonly end: () => void
}

export interface Exchange {
  readonly request: (sent: SentRequest) => Effect.Effect<Answered, NoAnswer>
  /** Opens an answer by callback, which is never called before this returns. */
  readonly open: (opening: OpeningRequest, heard: AnswerEvents) => OpenCall
  /** {@link open} with a body that is written bit by bit. Absent: this client sends whole bodies. */
  readonly pour?: (opening: Omit<OpeningRequest, "body">, heard: AnswerEvents) => Pour
  /** A client for answers that are passed on; it connects to `addresses` only. */
  readonly clientAt: (addresses: ReadonlyArray<string> | undefined) => HttpClient.HttpClient
}

/** Usual limit of an answer, far above the longest usual answer: the hashes of a node's children. */
export const usualMostBytes = 64 * 1024 * 1024

export const json = "application/json"

export const timedOut = (withinMs: number): NoAnswer =>
  new NoAnswer({ message: `no answer within ${withinMs} ms`, late: true })

export const headerOf = ({ headers }: Pick<Answered, "headers">, name: string): string | undefined => {
  const found = headers[name]
  return typeof found === "string" ? found : found?.[0]
}

export const isSuccess = ({ status }: Pick<Answered, "status">): boolean => status >= 200 && status < 300

/** The error of a refusal; undefined if the body is none of the contract's. */
export const errorOf = ({ text }: Pick<Answered, "text">): WireError | undefined => {
  const body = jsonOf(text)
  return isWireError(body) ? body : undefined
}

/** The JSON of an answer; undefined if it is none. */
export const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Spans are built even when none are collected; the node passes trace contexts on by itself. */
export const withoutSpans = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.withTracerPropagation(
    HttpClient.withTracerDisabledWhen(client, () => true),
    false
  )

/**
 * A client that connects to the first of `addresses`, with the original name as host if the client allows it. An
 * unknown name is left to the client: hosts of a network in one process have no addresses.
 */
const clientAt = (
  client: HttpClient.HttpClient,
  addresses: ReadonlyArray<string> | undefined
): HttpClient.HttpClient => {
  const [first] = addresses ?? []
  return first === undefined
    ? client
    : HttpClient.mapRequest(client, (request) => {
        const url = new URL(request.url)
        const name = url.host
        url.hostname = first.includes(":") ? `[${first}]` : first
        return HttpClientRequest.setHeader(HttpClientRequest.setUrl(request, url.href), "host", name)
      })
}

/** Forks the reading of an answer in this runtime. */
type Run = (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>

/** An exchange over any HTTP client. */
export const over = (client: HttpClient.HttpClient, run: Run = Effect.runFork): Exchange => ({
  request: requestOver(client),
  open: openOver(client, run),
  clientAt: (addresses) => clientAt(client, addresses)
})

const started = (
  client: HttpClient.HttpClient,
  { addresses, body, headers, method, url }: Request
): Effect.Effect<HttpClientResponse.HttpClientResponse, NoAnswer> => {
  const bare = HttpClientRequest.make(method)(url, { headers })
  return clientAt(client, addresses)
    .execute(body === undefined ? bare : HttpClientRequest.bodyText(bare, body, json))
    .pipe(
      // The fetch client would follow redirects, and as GET. Other clients ignore this option.
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      Effect.mapError(broken)
    )
}

const broken = (error: HttpClientError.HttpClientError): NoAnswer =>
  new NoAnswer({
    message: error._tag === "RequestError" ? reasonOf(error) : error.message,
    late: false,
    cause: error
  })

const within = (withinMs: number) =>
  Effect.timeoutFail({ duration: Duration.millis(withinMs), onTimeout: () => timedOut(withinMs) })

const requestOver =
  (client: HttpClient.HttpClient): Exchange["request"] =>
  (sent) => {
    const { beginning, withinMs } = sent
    const answered = (text: (response: HttpClientResponse.HttpClientResponse) => Effect.Effect<string, NoAnswer>) =>
      Effect.flatMap((response: HttpClientResponse.HttpClientResponse) =>
        Effect.map(text(response), (text): Answered => ({ status: response.status, headers: response.headers, text }))
      )
    return beginning === undefined
      ? started(client, sent).pipe(
          answered(({ text }) => Effect.mapError(text, broken)),
          within(withinMs)
        )
      : started(client, sent).pipe(
          within(withinMs),
          answered((response) => beginningOf(response, beginning))
        )
  }

const beginningOf = (
  { stream }: HttpClientResponse.HttpClientResponse,
  { keptBytes, readBytes, withinMs }: Beginning
): Effect.Effect<string> => {
  const kept: Array<Uint8Array> = []
  let size = 0
  return stream.pipe(
    Stream.takeUntil((chunk) => {
      if (size < keptBytes) kept.push(chunk.subarray(0, keptBytes - size))
      size += chunk.length
      return size >= readBytes
    }),
    Stream.runDrain,
    Effect.timeout(Duration.millis(withinMs)),
    Effect.ignore,
    Effect.map(() => textOf(kept))
  )
}

export const textOf = (chunks: ReadonlyArray<Uint8Array>): string => {
  const decoder = new TextDecoder()
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("")
}

const openOver =
  (client: HttpClient.HttpClient, run: Run): Exchange["open"] =>
  (opening, heard) => {
    const flowing = Effect.unsafeMakeLatch(true)
    const taken = Effect.flatMap(within(opening.withinMs)(started(client, opening)), ({ headers, status, stream }) => {
      heard.head(status, headers)
      return stream.pipe(
        Stream.timeoutFail(() => new Error("fell silent"), Duration.millis(opening.silenceMs)),
        Stream.runForEach((bytes) =>
          Effect.zipLeft(
            Effect.sync(() => heard.data(bytes)),
            flowing.await
          )
        )
      )
    })
    const fiber = run(
      Effect.zipRight(
        Effect.yieldNow(),
        Effect.match(taken, { onFailure: (error) => heard.end(error), onSuccess: () => heard.end(undefined) })
      )
    )
    return {
      pause: () => void flowing.unsafeClose(),
      resume: () => void flowing.unsafeOpen(),
      close: () => void run(Fiber.interruptFork(fiber))
    }
  }
