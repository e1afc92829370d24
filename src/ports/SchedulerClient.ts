/**
 * The scheduler as an SSP sees it. For now: registration.
 *
 * The layer over HTTP has no schedule of its own; who calls decides when to try again.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Context, Data, Duration, Effect, Layer, type Schema } from "effect"
import { SspRegistered, type SspRegistration } from "../protocol/wire.ts"

/**
 * `cloning`: there, but has no snapshot yet (no failure, D18); `refused`: answered with a client error;
 * `unreachable`: no answer, a server error, or an answer that is not the contract's.
 */
export class SchedulerError extends Data.TaggedError("SchedulerError")<{
  readonly reason: "cloning" | "refused" | "unreachable"
  readonly message: string
}> {}

const timeout = Duration.seconds(10)

/** The innermost message says most: `connect ECONNREFUSED 127.0.0.1:9667`. */
const reasonOf = (error: unknown): string => {
  let inner = error
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause !== undefined; depth++) inner = inner.cause
  return inner instanceof Error && inner.message !== "" ? inner.message : String(error)
}

const unreachable = (message: string): SchedulerError => new SchedulerError({ reason: "unreachable", message })

export class SchedulerClient extends Context.Tag("ports/SchedulerClient")<SchedulerClient, {
  /** Answers the position of the snapshot frozen for this SSP. */
  readonly register: (registration: typeof SspRegistration.Type) => Effect.Effect<typeof SspRegistered.Type, SchedulerError>
}>() {
  /** For a standalone SSP, which never calls it. */
  static readonly layerNone: Layer.Layer<SchedulerClient> = Layer.succeed(SchedulerClient, {
    register: () => Effect.fail(unreachable("no scheduler is configured (setting SCHEDULER_URL)"))
  })

  /** `url` without a trailing slash. */
  static readonly layerHttp = (url: string): Layer.Layer<SchedulerClient, never, HttpClient.HttpClient> =>
    Layer.effect(
      SchedulerClient,
      Effect.map(HttpClient.HttpClient, (client) => ({
        register: (registration) =>
          HttpClientRequest.post(`${url}/ssp/register`).pipe(
            HttpClientRequest.bodyUnsafeJson(registration),
            client.execute,
            Effect.timeoutFail({ duration: timeout, onTimeout: () => unreachable(`no answer within ${Duration.format(timeout)}`) }),
            Effect.catchTag("RequestError", (error) => Effect.fail(unreachable(reasonOf(error)))),
            Effect.catchTag("ResponseError", (error) => Effect.fail(unreachable(error.message))),
            Effect.flatMap(answered),
            Effect.scoped
          )
      }))
    )
}

const answered = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<Schema.Schema.Type<typeof SspRegistered>, SchedulerError> =>
  Effect.gen(function*() {
    if (response.status >= 200 && response.status < 300) {
      return yield* HttpClientResponse.schemaBodyJson(SspRegistered)(response).pipe(Effect.mapError((error) => unreachable(`answered ${response.status}, but not as agreed: ${error.message}`)))
    }
    const body = yield* response.text.pipe(Effect.orElseSucceed(() => ""))
    const message = `answered ${response.status} ${body.slice(0, 300)}`
    if (response.status === 503 && body.includes("SCHEDULER_CLONING")) return yield* new SchedulerError({ reason: "cloning", message })
    return yield* response.status >= 400 && response.status < 500 ? new SchedulerError({ reason: "refused", message }) : unreachable(message)
  })
