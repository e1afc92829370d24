/**
 * What a node asks of the server in front of its routes: the routes too hot for a fiber each, and word of when it
 * stops.
 *
 * The same decisions serve the declared routes, so a server without a front (tests, other deployments) behaves alike;
 * it is only slower.
 */
import { Cause, Context, Deferred, type Duration, Effect, Fiber, Layer } from "effect"
import { StartFault } from "./StartFault.ts"

/** A response as data. */
export interface Answer {
  readonly status: number
  /** Beyond content type and length. */
  readonly headers?: { readonly [name: string]: string }
  /** JSON text. */
  readonly body: string
}

/** Takes a body; `answer` is called exactly once, now or later. */
export type Accept = (body: string, answer: (answer: Answer) => void, traceparent?: string) => void

/** One exact method and path, answered by callbacks. */
export interface HotRoute {
  readonly method: string
  readonly path: string
  readonly maxBodyBytes: number
  /**
   * Refuses before the body is read, or answers what takes it. `registration`: the header of that meaning between
   * scheduler and SSP; `address`: the client's.
   */
  readonly admit: (
    authorization: string | undefined,
    registration: string | undefined,
    address?: string
  ) => Answer | Accept
  /** Told of the status of every answer, of the route and of the server alike. */
  readonly answered?: (status: number) => void
  readonly tooLarge: Answer
  readonly notText: Answer
  /**
   * Admits a body that goes on, of the media type of a feed and no length: each of its lines is taken as it comes. One
   * that is not (false) cuts the connection. Absent: such a body is one like any other.
   */
  readonly lines?: (authorization: string | undefined, address?: string) => Answer | ((line: string) => boolean)
}

/** The routes that a server may answer by callback; one that does not serves the declared ones, which answer alike. */
export class HotRoutes extends Context.Tag("ports/HotRoutes")<HotRoutes, ReadonlyArray<HotRoute>>() {
  static readonly layerNone: Layer.Layer<HotRoutes> = Layer.succeed(HotRoutes, [])
}

/** A `GET` as far as a hot read looks at it. */
export interface ReadAsked {
  /** The request target: path and query. */
  readonly url: string
  readonly authorization: string | undefined
  /** As in {@link HotRoute}. */
  readonly registration: string | undefined
  readonly lastEventId: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** An open answer. */
export interface Sink {
  /** False: the client does not keep up; `drained` is called when it does again. */
  readonly write: (bytes: Uint8Array) => boolean
  readonly end: () => void
}

/** How a hot read answers: by `json`, `notModified`, `stream` or `pass`, once. */
export interface ReadReply {
  /** JSON in pieces, with 200. */
  readonly json: (headers: { readonly [name: string]: string }, pieces: ReadonlyArray<Uint8Array>) => void
  /** 304. */
  readonly notModified: (headers: { readonly [name: string]: string }) => void
  /** Opens an answer that goes on; `gone` is called once, when the connection is closed or the answer ended. */
  readonly stream: (
    headers: { readonly [name: string]: string },
    on: { readonly drained: () => void; readonly gone: () => void }
  ) => Sink
  /** Calls back when the client has left before it was answered. */
  readonly whenGone: (abandon: () => void) => void
  /** Leaves it to the declared route after all. */
  readonly pass: () => void
}

/**
 * Reads that a server may answer by callback; false: the declared route answers it. So whatever is refused is refused
 * in one place.
 */
export class HotReads extends Context.Reference<HotReads>()("ports/HotReads", {
  defaultValue: (): ((asked: ReadAsked, reply: ReadReply) => boolean) => () => false
}) {}

/** A `POST` that most often says again what is known: answered by callback then, else left to the declared route. */
export interface HotRepeat {
  /** Exact. */
  readonly path: string
  /** A request whose body is longer, or does not say how long, is the declared route's. */
  readonly maxBodyBytes: number
  /** Judged before the body is read; false: the declared route answers, and refuses what is to be refused. */
  readonly wants: (authorization: string | undefined, registration: string | undefined) => boolean
  /** Answers by `json` or `pass`, once; the declared route gets the body as it came. */
  readonly accept: (body: string, reply: Pick<ReadReply, "json" | "pass" | "whenGone">) => void
  readonly tooLarge: Answer
  readonly notText: Answer
}

/** Such routes of a node; a server that has none serves the declared ones, which answer alike. */
export class HotRepeats extends Context.Reference<HotRepeats>()("ports/HotRepeats", {
  defaultValue: (): ReadonlyArray<HotRepeat> => []
}) {}

/** A `POST` whose answer goes on, answered by callbacks. */
export interface HotStream {
  /** Exact. */
  readonly path: string
  readonly maxBodyBytes: number
  /** Refuses before the body is read, or takes it: what it answers then refuses too, or the stream is open. */
  readonly admit: (
    authorization: string | undefined,
    registration: string | undefined,
    address?: string
  ) => Answer | ((body: string, open: ReadReply["stream"]) => Answer | undefined)
  readonly tooLarge: Answer
  readonly notText: Answer
}

/** The streams that a server may open by callback; one that does not serves the declared routes. */
export class HotStreams extends Context.Reference<HotStreams>()("ports/HotStreams", {
  defaultValue: (): ReadonlyArray<HotStream> => []
}) {}

/** What the process ends with: the fault itself where a loop named one. */
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
    /** A loop met a defect: the process must not go on as if nothing had happened. */
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
