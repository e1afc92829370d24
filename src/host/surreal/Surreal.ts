/**
 * The drivers of `SurrealClient`: a server through the official SDK, or the database inside this process.
 *
 * A lost connection is replaced after a growing random pause; requests wait meanwhile, up to their time-out. An attempt
 * to connect does not belong to the requests that wait for it: it goes on when they give up, or it might never succeed.
 * Only a request that the server refused unread, because the session had expired, is sent again. A request without an
 * answer in time gives up the whole connection: the server then drops it, so that it is not applied behind a request
 * sent later.
 */
import { Deferred, Duration, Effect, Either, FiberId, Layer, Random, Schedule, type Scope } from "effect"
import { ceilingMs } from "../../core/backoff.ts"
import type { EmbeddedStore, ServerStore } from "../../core/settings/address.ts"
import { Uuid, type Value } from "../../core/surql/values/value.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { type Bindings, fromAsk, SurrealClient, SurrealError, type SurrealShape } from "../../ports/SurrealClient.ts"
import { steadyMs } from "../../ports/Turn.ts"
import { type Access, type AuthLevel, embeddedEngines, SurrealLink, type Timeouts } from "./SurrealLink.ts"
import { failureOf } from "./surrealFailures.ts"

export const defaultTimeouts: Timeouts = { connectTimeoutMs: 10_000, requestTimeoutMs: 30_000, maxPauseMs: 5_000 }

const pauseBaseMs = 50

const timedOut = (what: string, ms: number): SurrealError =>
  new SurrealError({
    reason: "timeout",
    message: `${what} within ${Duration.format(Duration.millis(ms))}`,
    uncertain: true
  })

const send = (
  link: SurrealLink,
  statements: string,
  bindings: Bindings
): Effect.Effect<ReadonlyArray<Either.Either<Value, SurrealError>>, SurrealError> =>
  Effect.tryPromise({ try: () => link.query(statements, bindings), catch: failureOf }).pipe(
    Effect.map((responses) =>
      responses.map((response) =>
        response.success ? Either.right(response.result as Value) : Either.left(failureOf(response.error))
      )
    )
  )

/** Reports notifications of a live query of this connection, until `heard` returns `enough`. */
const hear = (link: SurrealLink, query: string, heard: () => "more" | "enough"): Effect.Effect<void, SurrealError> =>
  Effect.async((resume) => {
    const ended = new SurrealError({ reason: "unreachable", message: "the live query ended", uncertain: false })
    const stop = link.hear(query, (isOver) => {
      if (!isOver && heard() === "more") return
      stop()
      resume(isOver ? Effect.fail(ended) : Effect.void)
    })
    if (link.broken) resume(Effect.fail(ended))
    return Effect.sync(stop)
  })

/** The one connection shared by all: made when it is needed, replaced when it breaks. */
class Line {
  private link: SurrealLink | undefined
  private level: AuthLevel | undefined
  private failures = 0
  private wasMade = false
  private notBeforeMs = 0
  /** The attempt under way. */
  private attempt: Deferred.Deferred<SurrealLink, SurrealError> | undefined
  /** Why the last attempt failed, for the errors of requests that have waited in vain. */
  lastFailure = "no attempt was made yet"

  constructor(
    private readonly address: ServerStore,
    private readonly access: Access,
    private readonly patience: Timeouts,
    private readonly scope: Scope.Scope
  ) {
    this.level = access.user === undefined ? "root" : access.authLevel
  }

  /** The connection, or why the attempt to make it failed. One attempt at a time, with a pause after each failure. */
  readonly get: Effect.Effect<SurrealLink, SurrealError> = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      if (this.link !== undefined && !this.link.broken) return Effect.succeed(this.link)
      if (this.attempt !== undefined) return restore(Deferred.await(this.attempt))
      const attempt = Deferred.unsafeMake<SurrealLink, SurrealError>(FiberId.none)
      this.attempt = attempt
      const trying = Effect.interruptible(this.replace()).pipe(
        Effect.ensuring(Effect.sync(() => void (this.attempt = undefined))),
        Effect.intoDeferred(attempt)
      )
      return Effect.zipRight(Effect.forkIn(trying, this.scope), restore(Deferred.await(attempt)))
    })
  )

  readonly close: Effect.Effect<void> = Effect.suspend(() => this.link?.close ?? Effect.void)

  private replace(): Effect.Effect<SurrealLink, SurrealError> {
    return Effect.gen(this, function* () {
      if (this.link !== undefined) {
        this.link = undefined
        yield* Effect.logWarning(`the connection to the database at ${this.address.url} is lost; making a new one`)
      }
      const pauseMs = this.notBeforeMs - (yield* steadyMs)
      if (pauseMs > 0) yield* Effect.sleep(Duration.millis(pauseMs))
      const made = yield* Effect.either(this.connect())
      if (Either.isRight(made)) {
        yield* Effect.logInfo(
          `connected to the database at ${this.address.url}${this.failures > 0 ? ` after ${this.failures} failed attempts` : ""}`
        )
        this.failures = 0
        this.wasMade = true
        return (this.link = made.right)
      }
      const { message, reason } = made.left
      const what = reason === "unauthorized" ? "does not take the credentials" : "cannot be reached"
      if (this.failures++ === 0)
        yield* Effect.logWarning(`the database at ${this.address.url} ${what}: ${message}; trying again`)
      this.lastFailure = message
      this.notBeforeMs =
        (yield* steadyMs) +
        (yield* Random.next) * ceilingMs({ baseMs: pauseBaseMs, capMs: this.patience.maxPauseMs }, this.failures)
      return yield* made.left
    })
  }

  /**
   * At the first connection a wrong version, namespace or database is a fault. A service that was connected before
   * waits instead: they may come back, and its state is of use meanwhile. Refused credentials are retried even at the
   * first: an owner of the database may define the user only then.
   */
  private unusable(fault: StartFault): Effect.Effect<never, SurrealError> {
    return this.wasMade
      ? Effect.fail(new SurrealError({ reason: "unreachable", message: fault.message, uncertain: false }))
      : Effect.die(fault)
  }

  private connect(): Effect.Effect<SurrealLink, SurrealError> {
    const { connectTimeoutMs } = this.patience
    const at = (level: AuthLevel) =>
      SurrealLink.toServer(this.address, this.access, level, this.patience).pipe(
        Effect.timeoutFail({
          duration: connectTimeoutMs,
          onTimeout: () => timedOut("no connection was made", connectTimeoutMs)
        }),
        Effect.tap(() => Effect.sync(() => void (this.level = level))),
        Effect.catchTag("StartFault", (fault) => this.unusable(fault))
      )
    if (this.level !== undefined) return at(this.level)
    const wrongLevel = (error: SurrealError): boolean => error.reason === "unauthorized"
    return at("root").pipe(
      Effect.catchIf(wrongLevel, () => at("namespace")),
      Effect.catchIf(wrongLevel, () => at("database"))
    )
  }
}

const overServer = (
  address: ServerStore,
  access: Access,
  patience: Timeouts
): Effect.Effect<SurrealShape, never, Scope.Scope> =>
  Effect.gen(function* () {
    const line = new Line(address, access, patience, yield* Effect.scope)
    yield* Effect.addFinalizer(() => line.close)
    const { requestTimeoutMs } = patience
    const connected = line.get.pipe(
      Effect.retry({ while: (error) => error.transient }),
      Effect.timeoutFail({
        duration: requestTimeoutMs,
        onTimeout: () =>
          new SurrealError({
            reason: "unreachable",
            message: `no connection to ${address.url} within ${Duration.format(Duration.millis(requestTimeoutMs))}: ${line.lastFailure}`,
            uncertain: false
          })
      })
    )
    const deliver = (link: SurrealLink, statements: string, bindings: Bindings) =>
      send(link, statements, bindings).pipe(
        Effect.timeoutFail({
          duration: requestTimeoutMs,
          onTimeout: () => timedOut("the database did not answer", requestTimeoutMs)
        }),
        Effect.tapError(({ reason }) =>
          Effect.sync(() => (reason === "timeout" || reason === "unauthorized" ? link.cut() : undefined))
        )
      )
    const listen: SurrealShape["listen"] = (statement, heard) =>
      Effect.gen(function* () {
        const link = yield* connected
        if (!link.notifies) return yield* Effect.never
        const [answer] = yield* deliver(link, statement, {})
        const id = answer === undefined ? undefined : yield* answer
        if (!(id instanceof Uuid)) return yield* Effect.dieMessage(`${statement} is no live query`)
        yield* hear(link, id.text, heard)
        yield* deliver(link, "KILL $id", { id })
      })
    return fromAsk(
      (statements, bindings = {}) =>
        Effect.flatMap(connected, (link) =>
          deliver(link, statements, bindings).pipe(
            // Refused before anything was run: the session has expired, and the next connection has a new one.
            Effect.catchIf(
              (error) => error.reason === "unauthorized",
              () => Effect.flatMap(connected, (next) => deliver(next, statements, bindings))
            )
          )
        ),
      listen
    )
  })

/** A server. Nothing is connected before the first statement, so that a node starts without its database. */
export const layerServer = (
  address: ServerStore,
  access: Access,
  patience: Timeouts = defaultTimeouts
): Layer.Layer<SurrealClient> => Layer.scoped(SurrealClient, overServer(address, access, patience))

const loadNode = () => import("@surrealdb/node")

/** The database inside this process, opened at once: a locked or damaged folder is a start fault. */
export const layerEmbedded = (
  address: EmbeddedStore,
  access: Access,
  load: Parameters<typeof embeddedEngines>[1] = loadNode
): Layer.Layer<SurrealClient, SurrealError | StartFault> =>
  Layer.scoped(
    SurrealClient,
    Effect.gen(function* () {
      const engines = yield* embeddedEngines(address, load)
      const open = SurrealLink.inProcess(address, access, engines, defaultTimeouts).pipe(
        // An engine releases its folder a moment after it is closed, and so does a process that was just replaced.
        Effect.retry({
          while: (error) => error.reason === "locked",
          schedule: Schedule.spaced("50 millis").pipe(Schedule.upTo("1 second"))
        }),
        Effect.timeoutFail({
          duration: defaultTimeouts.requestTimeoutMs,
          onTimeout: () => timedOut("the database was not opened", defaultTimeouts.requestTimeoutMs)
        })
      )
      const link = yield* Effect.acquireRelease(open, (opened) => opened.closeBehind)
      return fromAsk((statements, bindings = {}) => send(link, statements, bindings))
    })
  )
