/**
 * How the calls between nodes go out: one request, its whole answer, one time for both.
 *
 * A seam, because a node makes thousands of them a second: over any HTTP client here, on bare connections in
 * `host/http/exchange.ts`.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { Duration, Effect, Fiber, Stream } from "effect"
import type { Flow, Heard } from "../../ports/SspClient.ts"

export interface Sent {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  /** JSON text. */
  readonly body: string | undefined
  /** For all of it: connecting, the request, the answer with its body; in milliseconds. */
  readonly withinMs: number
  /**
   * What the name in `url` stands for, as its caller has judged it: the connection goes to one of these, and the name
   * is not looked up again. Empty where the name is unknown; absent where the URL has an address, or names are not
   * judged.
   */
  readonly addresses?: ReadonlyArray<string> | undefined
}

export const json = "application/json"

/** Fails where there is no whole answer in time. Redirects are not followed. */
export type Send = (
  request: Sent
) => Effect.Effect<{ readonly status: number; readonly text: string }, { readonly message: string }>

/** A request whose answer goes on; `withinMs` is for what comes before its status. */
export interface Opening extends Sent {
  /** An answer that sends nothing for so long has broken off, unless it is paused. */
  readonly silenceMs: number
}

/** A request whose body goes on, and its answer with it. */
interface Pour extends Pick<Flow, "close"> {
  readonly write: (text: string) => void
  readonly end: () => void
}

/**
 * How the calls between nodes reach each other: whole exchanges, a client for answers that go on, which connects to
 * `addresses` only, and such answers by callback.
 */
export interface Transport {
  readonly send: Send
  /** Never calls back before it has returned. */
  readonly open: (opening: Opening, heard: Heard) => Flow
  /** As `open`, with a body that is written bit by bit. Absent: this client sends whole bodies. */
  readonly pour?: (opening: Omit<Opening, "body">, heard: Heard) => Pour
  readonly clientAt: (addresses: ReadonlyArray<string> | undefined) => HttpClient.HttpClient
}

/**
 * A client that asks the first of `addresses`, under the name it was asked for where the client lets us choose. A name
 * that is unknown is left to the client: hosts of a network in one process have no addresses.
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

/** How answers that go on are followed: by the clock of this runtime. */
type Run = (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>

export const transportOf = (client: HttpClient.HttpClient, run: Run = Effect.runFork): Transport => ({
  send: overClient(client),
  open: openOver(client, run),
  clientAt: (addresses) => clientAt(client, addresses)
})

const openOver =
  (client: HttpClient.HttpClient, run: Run): Transport["open"] =>
  ({ addresses, body, headers: sent, method, silenceMs, url, withinMs }, heard) => {
    const flowing = Effect.unsafeMakeLatch(true)
    const bare = HttpClientRequest.make(method)(url, { headers: sent })
    const answered = clientAt(client, addresses)
      .execute(body === undefined ? bare : HttpClientRequest.bodyText(bare, body, json))
      .pipe(
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        Effect.timeout(Duration.millis(withinMs))
      )
    const taken = Effect.flatMap(answered, ({ headers, status, stream }) => {
      heard.head(status, headers)
      return stream.pipe(
        Stream.timeoutFail(() => new Error("fell silent"), Duration.millis(silenceMs)),
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

export const overClient =
  (client: HttpClient.HttpClient): Send =>
  ({ addresses, body, headers, method, url, withinMs }) => {
    const bare = HttpClientRequest.make(method)(url, { headers })
    return clientAt(client, addresses)
      .execute(body === undefined ? bare : HttpClientRequest.bodyText(bare, body, json))
      .pipe(
        Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        Effect.timeout(Duration.millis(withinMs))
      )
  }
