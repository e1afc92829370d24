/**
 * A node's front behind any server that takes an `HttpApp`: the web handlers and servers of composers.
 *
 * The other adapter is `host/http/nodeExchange.ts`; both lead to `dispatch.ts`.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Chunk, Deferred, Effect, Exit, Option, Runtime, Stream } from "effect"
import type {
  Answer,
  BodySink,
  Front,
  Headers,
  IncomingRequest,
  NoText,
  PiecesAnswer,
  Reply,
  SinkEvents
} from "../../ports/Front.ts"
import { RequestBody } from "../../ports/RequestBody.ts"
import { respond } from "./answers.ts"

type Response = HttpServerResponse.HttpServerResponse

const withType = ({ "content-type": contentType = "application/json", ...headers }: Headers) => ({
  contentType,
  headers
})

const ofPieces = ({ headers, pieces, status }: PiecesAnswer): Response => {
  const [first] = pieces
  if (first === undefined) return HttpServerResponse.empty({ status, headers })
  const whole = { status, ...withType(headers) }
  if (pieces.length === 1) return HttpServerResponse.uint8Array(first, whole)
  const contentLength = pieces.reduce((sum, { length }) => sum + length, 0)
  return HttpServerResponse.stream(Stream.fromIterable(pieces), { ...whole, contentLength })
}

const streamed = (status: number, headers: Headers, body: Stream.Stream<Uint8Array, unknown>): Response => {
  const { "content-length": length, ...rest } = headers
  return HttpServerResponse.stream(body, {
    status,
    ...withType(rest),
    ...(length === undefined ? {} : { contentLength: Number(length) })
  })
}

/**
 * A sink whose bytes are pulled. It holds the bytes written since the last pull: a writer that is answered false writes
 * nothing until it is drained, except a comment or an end.
 */
class PulledSink implements BodySink {
  private held: Array<Uint8Array> = []
  private isOver = false
  private wake: (() => void) | undefined

  constructor(private readonly drained: () => void) {}

  readonly write = (bytes: Uint8Array): boolean => {
    this.held.push(bytes)
    this.wake?.()
    return false
  }

  readonly end = (): void => {
    this.isOver = true
    this.wake?.()
  }

  readonly next: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<never>> = Effect.async((resume) => {
    const give = (): boolean => {
      if (this.held.length > 0) resume(Effect.succeed(Chunk.unsafeFromArray(this.held.splice(0))))
      else if (this.isOver) resume(Effect.fail(Option.none()))
      else return false
      this.wake = undefined
      return true
    }
    if (give()) return
    this.wake = () => void give()
    // The callback may write more bytes, which wake the reader.
    this.drained()
  })
}

class WebExchange implements IncomingRequest, Reply {
  private isAnswered = false
  private isGone = false
  private readonly onGone: Array<() => void> = []

  constructor(
    private readonly request: HttpServerRequest.HttpServerRequest,
    private readonly body: RequestBody["Type"],
    private readonly runFork: <A, E>(effect: Effect.Effect<A, E>) => ReturnType<typeof Effect.runFork<A, E>>,
    private readonly resume: (response: Response) => void
  ) {}

  get method(): string {
    return this.request.method
  }

  get url(): string {
    return this.request.url
  }

  get headers(): IncomingRequest["headers"] {
    return this.request.headers
  }

  get address(): string | undefined {
    return Option.getOrUndefined(this.request.remoteAddress)
  }

  text(maxBytes: number, done: (body: string | NoText) => void): void {
    const reading = this.runFork(Effect.either(this.body.text(this.request, maxBytes)))
    this.whenGone(() => reading.unsafeInterruptAsFork(reading.id()))
    reading.addObserver((exit) => {
      if (Exit.isSuccess(exit)) done(exit.value._tag === "Right" ? exit.value.right : exit.value.left)
    })
  }

  send(answer: Answer | PiecesAnswer): void {
    this.answer("body" in answer ? respond(answer) : ofPieces(answer))
  }

  stream(headers: Headers, { drained, gone }: SinkEvents): BodySink {
    const sink = new PulledSink(drained)
    this.whenGone(gone)
    const body = Stream.ensuring(
      Stream.repeatEffectChunkOption(sink.next),
      Effect.sync(() => this.left())
    )
    this.answer(streamed(200, { "content-type": "text/event-stream", ...headers }, body))
    return sink
  }

  flow(status: number, headers: Headers, body: Stream.Stream<Uint8Array, unknown>): Effect.Effect<void> {
    return Effect.flatMap(Deferred.make<void>(), (over) => {
      const end = Deferred.succeed(over, undefined)
      this.answer(streamed(status, headers, Stream.ensuring(body, end)))
      // The body of a HEAD is not pulled.
      return this.method === "HEAD" ? Effect.void : Deferred.await(over)
    })
  }

  whenGone(abandon: () => void): void {
    if (this.isGone) abandon()
    else this.onGone.push(abandon)
  }

  fail(answer: Answer): void {
    this.send(answer)
  }

  /** Called when the client has left, or the answer has ended. */
  left(): void {
    this.isGone = true
    for (const abandon of this.onGone.splice(0)) abandon()
  }

  private answer(response: Response): void {
    if (this.isAnswered) return
    this.isAnswered = true
    this.resume(response)
  }
}

/** Answers requests of the front, and leaves the others to `app`. */
export const make = ({ serve }: Pick<typeof Front.Service, "serve">) =>
  Effect.map(
    Effect.all([RequestBody, Effect.runtime<never>()]),
    ([body, runtime]) =>
      <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          Effect.async<Response, E, R | HttpServerRequest.HttpServerRequest>((resume) => {
            const exchange = new WebExchange(request, body, Runtime.runFork(runtime), (response) =>
              resume(Effect.succeed(response))
            )
            if (!serve(exchange, exchange)) resume(app)
            return Effect.sync(() => exchange.left())
          })
        )
  )
