/**
 * The contract between a node and the server in front of it: requests and their answers, and signals when the server
 * listens and stops.
 *
 * By callback, so that a request costs no fiber unless its route takes one. A server reads a request as {@link
 * IncomingRequest}, and takes the answer as {@link Reply}; everything between is the node's (`node/http/dispatch.ts`).
 */
import { Cause, Context, Deferred, type Duration, Effect, Fiber, Layer, type Stream } from "effect"
import { StartFault } from "./StartFault.ts"

/** Header values by name. */
export type Headers = { readonly [name: string]: string }

/** A response as data. */
export interface Answer {
  readonly status: number
  /** Headers beside content type and length; a content type given here replaces JSON. */
  readonly headers?: Headers
  /** JSON text, unless the headers say otherwise. */
  readonly body: string
}

/** A response with a body in pieces. */
export interface PiecesAnswer {
  readonly status: number
  readonly headers: Headers
  readonly pieces: ReadonlyArray<Uint8Array>
}

/**
 * Why a body has no text. `too large`: beyond the bound; `not utf-8`: invalid bytes; `aborted`: the client left;
 * `overloaded`: see `message`.
 */
export interface NoText {
  readonly reason: "too large" | "not utf-8" | "overloaded" | "aborted"
  readonly message?: string
}

/** A request as the server has read it. */
export interface IncomingRequest {
  readonly method: string
  /** The request target: path and query. */
  readonly url: string
  /** Header values by lower-case name. */
  readonly headers: { readonly [name: string]: string | undefined }
  /** The client's IP address; undefined if the server does not know it. */
  readonly address: string | undefined
  /** Reads the body as text. `done` is called once, or never if the client leaves before the end. */
  readonly text: (maxBytes: number, done: (body: string | NoText) => void) => void
  /**
   * Reads a body that goes on line by line: answers 200 at once and passes on lines of at most `most` characters as
   * they come. If `take` answers false, the connection is cut. Absent: the server reads such a body whole.
   */
  readonly lines?: (contentType: string, most: number, take: (line: string) => boolean) => void
}

/** The body of an answer that is streamed. */
export interface BodySink {
  /** Sends bytes. Returns false while the client does not keep up; `drained` is called once it does again. */
  readonly write: (bytes: Uint8Array) => boolean
  readonly end: () => void
}

/** Callbacks of a streamed answer. */
export interface SinkEvents {
  readonly drained: () => void
  /** Called once, when the connection is closed or the answer ended. */
  readonly gone: () => void
}

/** Answers one request, with one of these methods, once. */
export interface Reply {
  /** Sends a whole answer. Does nothing if the client has left. */
  readonly send: (answer: Answer | PiecesAnswer) => void
  /** Opens an endless answer with status 200. */
  readonly stream: (headers: Headers, on: SinkEvents) => BodySink
  /** Sends a body pulled from a stream. A failing stream cuts the connection, so that it does not look whole. */
  readonly flow: (status: number, headers: Headers, body: Stream.Stream<Uint8Array, unknown>) => Effect.Effect<void>
  /** Calls back once when the client has left, or the answer has ended. */
  readonly whenGone: (abandon: () => void) => void
  /** Reports a fault of the node: sends the answer (500), or cuts an answer already begun. */
  readonly fail: (answer: Answer) => void
}

/** A node as the server in front of it sees it. */
export class Front extends Context.Tag("ports/Front")<
  Front,
  {
    /** Handles a request of the contract, and answers it once, now or later; false: no route takes the request. */
    readonly serve: (asked: IncomingRequest, reply: Reply) => boolean
    /** Headers that every answer of this target carries for pages of this origin. */
    readonly pageHeaders: (url: string, origin: string | undefined) => Headers | undefined
  }
>() {}

/** The fault that ends the process: the {@link StartFault} that a loop failed with, or one made from the defect. */
const asFault = (cause: Cause.Cause<unknown>): StartFault => {
  const error = Cause.squash(cause)
  return error instanceof StartFault
    ? error
    : new StartFault({ exitCode: 1, message: `a fault of the service itself: ${Cause.pretty(cause)}` })
}

/** Signals between the server and the node: listening, stopping, broken. */
export class Serving extends Context.Tag("ports/Serving")<
  Serving,
  {
    readonly listening: (port: number) => Effect.Effect<void>
    /** Waits until the server listens; its port. */
    readonly port: Effect.Effect<number>
    /** Called before the server waits for requests in flight, so that long answers end. */
    readonly stop: Effect.Effect<void>
    /** Returns once {@link stop} was called. */
    readonly stopping: Effect.Effect<void>
    /** Ends the process with `cause`, a defect of a loop: it must not go on as if nothing had happened. */
    readonly crash: (cause: Cause.Cause<unknown>) => Effect.Effect<void>
    /** Fails with the first crash, else waits for ever. */
    readonly crashed: Effect.Effect<never, StartFault>
  }
>() {
  static readonly layer: Layer.Layer<Serving> = Layer.effect(
    Serving,
    Effect.gen(function* () {
      const port = yield* Deferred.make<number>()
      const stop = yield* Deferred.make<void>()
      const crash = yield* Deferred.make<never, StartFault>()
      return {
        listening: (bound) => Effect.asVoid(Deferred.succeed(port, bound)),
        port: Deferred.await(port),
        stop: Effect.asVoid(Deferred.succeed(stop, undefined)),
        stopping: Deferred.await(stop),
        crash: (cause) => Effect.asVoid(Deferred.fail(crash, asFault(cause))),
        crashed: Deferred.await(crash)
      }
    })
  )

  /**
   * The port, once a server listens. A foreign server has to report that itself (`layerListening`); without the report
   * the node would wait for ever, so a warning names what is missing. `purpose`: what waits.
   */
  static readonly portFor = ({ port }: Pick<typeof Serving.Service, "port">, purpose: string): Effect.Effect<number> =>
    Effect.raceFirst(
      port,
      Effect.logWarning(
        `no server has said yet that it listens, and ${purpose} waits for its port; a server that is not of this package says it with the layer Serving.layerListening(port)`
      ).pipe(Effect.delay("10 seconds"), Effect.zipRight(Effect.never))
    )

  /** Reports, for a foreign server, the port that others reach it at. An SSP of a cluster registers only after this. */
  static readonly layerListening = (port: number): Layer.Layer<never, never, Serving> =>
    Layer.effectDiscard(Effect.flatMap(Serving, ({ listening }) => listening(port)))

  /** Runs `effect`; a defect in it, or a fault it names, ends the process. An interruption ends it alone. */
  static readonly guard = <R>(
    { crash }: Pick<typeof Serving.Service, "crash">,
    effect: Effect.Effect<void, StartFault, R>
  ): Effect.Effect<void, never, R> =>
    Effect.catchAllCause(effect, (cause) => (Cause.isInterruptedOnly(cause) ? Effect.void : crash(cause)))

  /** Runs `loop` as long as the scope lives; a defect in it, or a fault it names, ends the process. */
  static readonly fork = <R>(loop: Effect.Effect<unknown, StartFault, R>) =>
    Effect.gen(function* () {
      const serving = yield* Serving
      yield* loop.pipe(
        Effect.catchAllCause((cause) =>
          Cause.isInterruptedOnly(cause) ? Effect.failCause(cause) : serving.crash(cause)
        ),
        Effect.forkScoped
      )
    })
}

/**
 * Runs the last work of a closing scope (a goodbye, a release) to its end, or for `within` at most.
 *
 * Runs in a fiber of its own: a time-out in a finalizer would wait for the work that it is to cut, and interruptible
 * work there would be lost when the closing fiber is interrupted a second time.
 */
export const atEnd = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  within: Duration.DurationInput
): Effect.Effect<A, E | Cause.TimeoutException, R> =>
  Effect.flatMap(Effect.forkDaemon(Effect.interruptible(Effect.timeout(Effect.disconnect(work), within))), Fiber.join)
