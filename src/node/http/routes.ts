/**
 * Routes that a node gives for the endpoints of its contract, by group and name, typed by the contract.
 *
 * A route is answered by an effect, in a fiber of its own, or by callback if a fiber would cost more than the answer.
 * Checks before it (caller, readiness, body, shape) are read off the endpoint.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import type { Cause, Effect, Scope, Stream } from "effect"
import type { Answer, Headers, IncomingRequest, PiecesAnswer, Reply } from "../../ports/Front.ts"
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
export type RouteAnswer = Answer | PiecesAnswer | FlowAnswer

/** A request that has passed the checks. */
export interface Call {
  /** Method and path as declared: `GET /view/:view_id`. */
  readonly endpoint: string
  /** Name in the audit line; undefined if the endpoint is not audited. */
  readonly operation: string | undefined
  readonly asked: IncomingRequest
  /** At an open endpoint a caller without a name that sees nothing. */
  readonly caller: Caller["Type"]
  /** The body; empty if the endpoint takes none. */
  readonly text: string
  /** The body parsed as JSON, not yet decoded by the schema. */
  readonly json: unknown
  /** Why the node no longer accepts such requests; undefined if it does. */
  readonly away: () => WireError | undefined
  /** Answers with a declared failure; any other cause is a fault of the node. */
  readonly fail: (cause: Cause.Cause<unknown>) => void
}

/** A call with path, query and body decoded by the contract. */
interface CallOf<E extends Endpoint> extends Call {
  readonly path: HttpApiEndpoint.HttpApiEndpoint.PathParsed<E>
  readonly urlParams: HttpApiEndpoint.HttpApiEndpoint.UrlParams<E>
  readonly payload: HttpApiEndpoint.HttpApiEndpoint.Payload<E>
}

/**
 * Answers by an effect, whose scope ends with the answer. `A`: the answer; `ApiError`: errors that every endpoint of
 * the Api may fail with.
 */
type Handler<E extends Endpoint, ApiError, A> = (
  call: CallOf<E>
) => Effect.Effect<A, HttpApiEndpoint.HttpApiEndpoint.Error<E> | ApiError, Scope.Scope>

interface ByEffect {
  /** Whether the effect goes on when the client leaves. */
  readonly isWhole?: boolean
}

/** A route whose effect returns a value, which is encoded as the contract declares. */
interface ByValue<E extends Endpoint, ApiError> extends ByEffect {
  readonly value: Handler<E, ApiError, HttpApiEndpoint.HttpApiEndpoint.Success<E>>
}

/** A route whose effect returns the response itself. */
interface ByResponse<E extends Endpoint, ApiError> extends ByEffect {
  readonly response: Handler<E, ApiError, RouteAnswer>
}

/** A route that answers by callback, or passes an effect that answers: exactly one of both, once, now or later. */
interface ByAttempt<E extends Endpoint, ApiError> extends ByEffect {
  /** The body is parsed JSON; it is decoded when an effect is passed. */
  readonly attempt: (
    call: Omit<CallOf<E>, "payload">,
    reply: Reply,
    pass: (respond: Handler<E, ApiError, RouteAnswer>) => void
  ) => void
}

interface ByCallback<E extends Endpoint> {
  readonly answer: (call: CallOf<E>, reply: Reply) => void
  /** Whether the route reads the text of the body itself. */
  readonly isRaw?: boolean
  /** Largest body of this route; absent for the server's limit. */
  readonly maxBodyBytes?: number
  /** Takes an endless body line by line; its media type is a feed's and it has no length. */
  readonly lines?: (call: Call) => (line: string) => boolean
  /** Called with the status of an answer that the route itself did not give. */
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

/** A route of any endpoint, as the dispatcher sees it; its types were checked by {@link routeGroup}. */
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

/** The routes of a group, one for each of its endpoints; checks their types. */
export const routeGroup = <
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
