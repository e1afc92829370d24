/**
 * What a node gives for the endpoints of its contract: a route for each, by group and name, as the contract types it.
 *
 * A route is answered by an effect, in a fiber of its own, or by callback, where a fiber would cost more than the
 * answer. What stands before it (caller, readiness, body, shape) is read off the endpoint and is the same for both.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import type { Cause, Effect, Scope, Stream } from "effect"
import type { Answer, Asked, Headers, PiecesAnswer, Reply } from "../../ports/Front.ts"
import type { Caller } from "../../protocol/access.ts"
import type { WireError } from "../../protocol/errors.ts"

type Endpoint = HttpApiEndpoint.HttpApiEndpoint.Any

/** A response whose body is pulled. */
interface FlowAnswer {
  readonly status: number
  readonly headers: Headers
  readonly flow: Stream.Stream<Uint8Array, unknown>
}

/** A response that a handler makes itself. */
export type Given = Answer | PiecesAnswer | FlowAnswer

/** A request that was let in. */
export interface Call {
  /** Method and path as declared: `GET /view/:view_id`. */
  readonly endpoint: string
  /** Of its audit line; undefined where the endpoint declares none. */
  readonly operation: string | undefined
  readonly asked: Asked
  /** Of an open endpoint: a caller without a name that sees nothing. */
  readonly caller: Caller["Type"]
  /** The body; empty where the endpoint takes none. */
  readonly text: string
  /** The same as JSON, before it is decoded. */
  readonly json: unknown
  /** Why the node takes no such request any more; undefined where it does. */
  readonly away: () => WireError | undefined
  /** Answers with a declared failure; with anything else as a fault of the node. */
  readonly fail: (cause: Cause.Cause<unknown>) => void
}

/** The same, with what the contract makes of it. */
interface CallOf<E extends Endpoint> extends Call {
  readonly path: HttpApiEndpoint.HttpApiEndpoint.PathParsed<E>
  readonly urlParams: HttpApiEndpoint.HttpApiEndpoint.UrlParams<E>
  readonly payload: HttpApiEndpoint.HttpApiEndpoint.Payload<E>
}

/** Its scope ends with the answer. `A`: what it answers; `ApiError`: what every endpoint of the Api may fail with. */
type Handler<E extends Endpoint, ApiError, A> = (
  call: CallOf<E>
) => Effect.Effect<A, HttpApiEndpoint.HttpApiEndpoint.Error<E> | ApiError, Scope.Scope>

interface ByEffect {
  /** A client that leaves does not interrupt it. */
  readonly isWhole?: boolean
}

/** A route whose effect returns a value, which is encoded as the contract declares. */
interface ByValue<E extends Endpoint, ApiError> extends ByEffect {
  readonly value: Handler<E, ApiError, HttpApiEndpoint.HttpApiEndpoint.Success<E>>
}

/** A route whose effect returns the response itself. */
interface ByResponse<E extends Endpoint, ApiError> extends ByEffect {
  readonly response: Handler<E, ApiError, Given>
}

/** A route that answers by callback, or passes the effect that answers: one of both, once, now or later. */
interface ByAttempt<E extends Endpoint, ApiError> extends ByEffect {
  /** The body is JSON and not decoded yet; it is when an effect is passed. */
  readonly attempt: (
    call: Omit<CallOf<E>, "payload">,
    reply: Reply,
    pass: (respond: Handler<E, ApiError, Given>) => void
  ) => void
}

interface ByCallback<E extends Endpoint> {
  readonly answer: (call: CallOf<E>, reply: Reply) => void
  /** The route reads the text of the body itself. */
  readonly isRaw?: boolean
  /** Largest body of this route; absent for the server's limit. */
  readonly maxBodyBytes?: number
  /** Takes a body that goes on, of the media type of a feed and no length, line by line. */
  readonly lines?: (call: Call) => (line: string) => boolean
  /** Told of the status of what the route itself did not answer. */
  readonly refused?: (status: number) => void
}

/** A route of one endpoint. */
type Route<E extends Endpoint, ApiError> =
  | ByValue<E, ApiError>
  | ByResponse<E, ApiError>
  | ByAttempt<E, ApiError>
  | ByCallback<E>

/** A call of any endpoint. */
export type AnyCall = CallOf<Endpoint>

/** A route of any endpoint, as the dispatcher looks at it: its types were checked where it was given. */
export type AnyRoute =
  | (ByEffect & { readonly value: Handler<Endpoint, unknown, unknown> })
  | ByResponse<Endpoint, unknown>
  | ByAttempt<Endpoint, unknown>
  | ByCallback<Endpoint>

/** Routes of all groups, by group and name of the endpoint. */
export type AnyRoutes = { readonly [group: string]: { readonly [name: string]: AnyRoute } }

type GroupRoutes<Groups extends HttpApiGroup.HttpApiGroup.Any, Name extends string, ApiError> = {
  readonly [N in HttpApiGroup.HttpApiGroup.EndpointsWithName<Groups, Name>["name"]]: Route<
    HttpApiEndpoint.HttpApiEndpoint.WithName<HttpApiGroup.HttpApiGroup.EndpointsWithName<Groups, Name>, N>,
    ApiError
  >
}

/** The routes of a group, one for each of its endpoints, whose types are checked here. */
export const group = <
  Id extends string,
  Groups extends HttpApiGroup.HttpApiGroup.Any,
  ApiError,
  R,
  const Name extends HttpApiGroup.HttpApiGroup.Name<Groups>
>(
  _: HttpApi.HttpApi<Id, Groups, ApiError, R>,
  __: Name,
  routes: GroupRoutes<Groups, Name, ApiError>
): { readonly [name: string]: AnyRoute } => routes
