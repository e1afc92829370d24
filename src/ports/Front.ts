/**
 * The contract between a node and the server in front of it: requests and their answers, and word of when the server
 * listens and stops.
 *
 * By callback, so that a request costs no fiber unless its route takes one. A server reads a request as {@link Asked},
 * and takes the answer as {@link Reply}; everything between is the node's (`node/http/dispatch.ts`).
 */
import { Cause, Context, Deferred, type Duration, Effect, Fiber, Layer, type Stream } from "effect"
import { StartFault } from "./StartFault.ts"

export type Headers = { readonly [name: string]: string }

/** A response as data. */
export interface Answer {
  readonly status: number
  /** Headers beside content type and length; a content type given here replaces JSON. */
  readonly headers?: Headers
  /** JSON text, unless the headers say otherwise. */
  readonly body: string
}

/** A response whose body was made in pieces. */
export interface PiecesAnswer {
  readonly status: number
  readonly headers: Headers
  readonly pieces: ReadonlyArray<Uint8Array>
}

/**
 * Why there is no text of a body. `too large`: beyond the bound; `not utf-8`: the bytes are no text; `aborted`: the
 * client went away; `overloaded`: see `message`.
 */
export interface NoText {
  readonly reason: "too large" | "not utf-8" | "overloaded" | "aborted"
  readonly message?: string
}

/** A request, as its server reads it. */
export interface Asked {
  readonly method: string
  /** The request target: path and query. */
  readonly url: string
  /** Header values by lower-case name. */
  readonly headers: { readonly [name: string]: string | undefined }
  /** The client's IP address; undefined if the server does not know it. */
  readonly address: string | undefined
  /** The body as text: `done` is called once, or not at all where the client leaves before the end. */
  readonly text: (maxBytes: number, done: (body: string | NoText) => void) => void
  /**
   * For a body that goes on: answers 200 at once and takes lines of at most `most` characters as they come. A line that
   * is not taken (false) cuts the connection. Absent: the server takes such a body whole, as any other.
   */
  readonly lines?: (contentType: string, most: number, take: (line: string) => boolean) => void
}

/** The body of an answer that is streamed. */
export interface Sink {
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

/** How a request is answered: once. */
export interface Reply {
  /** A whole answer. Does nothing where the client has left. */
  readonly send: (answer: Answer | PiecesAnswer) => void
  /** Opens an answer with 200 that goes on. */
  readonly stream: (headers: Headers, on: SinkEvents) => Sink
  /** Answers with a body that is pulled, and ends with it; one that fails is cut, so that it does not look whole. */
  readonly flow: (status: number, headers: Headers, body: Stream.Stream<Uint8Array, unknown>) => Effect.Effect<void>
  /** Calls back once when the client has left, or the answer has ended. */
  readonly whenGone: (abandon: () => void) => void
  /** A fault of the node: 500 where nothing was answered, else the answer is cut. */
  readonly fail: (answer: Answer) => void
}

/** A node as the server in front of it sees it. */
export class Front extends Context.Tag("ports/Front")<
  Front,
  {
    /** Answers what the contract names, once, now or later; false: the request is for something else. */
    readonly serve: (asked: Asked, reply: Reply) => boolean
    /** Headers that every answer of this target carries for pages of this origin. */
    readonly pageHeaders: (url: string, origin: string | undefined) => Headers | undefined
  }
>() {}

/** The fault that ends the process: the one that a loop failed with, else one that shows the defect. */
const asFault = (cause: Cause.Cause<unknown>): StartFault => {
  const error = Cause.squash(cause)
  return error instanceof StartFault
    ? error
    : new StartFault({ exitCode: 1, message: `a fault of the service itself: ${Cause.pretty(cause)}` })
}

/** How the server and the node tell each other where they stand: listening, stopping, broken. */
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
   * The port, once a server listens. A server that is not the package's has to say so itself, and without that word the
   * node would wait for ever, so a warning names what is missing. `purpose`: what waits.
   */
  static readonly portFor = ({ port }: Pick<typeof Serving.Service, "port">, purpose: string): Effect.Effect<number> =>
    Effect.raceFirst(
      port,
      Effect.logWarning(
        `no server has said yet that it listens, and ${purpose} waits for its port; a server that is not of this package says it with the layer Serving.layerListening(port)`
      ).pipe(Effect.delay("10 seconds"), Effect.zipRight(Effect.never))
    )

  /** For a server that is not ours: says which port others reach it at. An SSP of a cluster registers once it knows. */
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
 * Runs what a closing scope still has to do (a goodbye, a release) to its end, or for `within` at most.
 *
 * In a finalizer itself a time-out would wait for the work that it is to cut. Work made interruptible there is a child
 * of the closing fiber, and ends unsaid when that fiber is interrupted once more. A fiber of its own has neither fault.
 */
export const atEnd = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  within: Duration.DurationInput
): Effect.Effect<A, E | Cause.TimeoutException, R> =>
  Effect.flatMap(Effect.forkDaemon(Effect.interruptible(Effect.timeout(Effect.disconnect(work), within))), Fiber.join)
