/**
 * Which callers may call an endpoint: its scope, declared with the endpoint (D15).
 *
 * One declaration, read by the guard, the OpenAPI documents and the reference page, so that they cannot differ. A
 * server does not start if one of its endpoints declares no scope.
 */
import * as OpenApi from "@effect/platform/OpenApi"
import { Context, Option } from "effect"
import type { Scope } from "../core/access/scopes.ts"
import type { ViewGrant } from "../core/access/viewToken.ts"

/** The scope that an endpoint requires; `open` requires none. */
export class Access extends Context.Tag("protocol/Access")<Access, Scope | "open">() {}

/** Operation of an endpoint for its audit lines (D53). */
export class Audited extends Context.Tag("protocol/Audited")<Audited, string>() {}

/** Marks an endpoint that accepts a view token too, for the views that the token names (D49). */
export class TakesToken extends Context.Tag("protocol/TakesToken")<TakesToken, true>() {}

/**
 * How much a caller is told about rows that a view leaves out: `whole`, the full reason with ids and values; `kinds`,
 * only the kind of failure, without any record or value (D72).
 */
export type Sees = "whole" | "kinds"

/** The caller, once the guard has admitted the request. */
export class Caller extends Context.Tag("protocol/Caller")<
  Caller,
  {
    /** Name of the secret that let the caller in. */
    readonly name: string
    /** The only SSP that the caller may speak for; undefined for any. */
    readonly onlySsp: string | undefined
    /** `whole` with the scope admin. */
    readonly sees: Sees
    /** Views that the caller's token opens; absent for a caller with a secret. */
    readonly grant?: ViewGrant
  }
>() {}

/** Adds the scope to the operation's bearer, as OpenAPI 3.1 writes roles. */
const withScope =
  (scope: Scope) =>
  (operation: Record<string, unknown>): Record<string, unknown> => ({
    ...operation,
    security: (operation["security"] as ReadonlyArray<object>).map((way) =>
      Object.fromEntries(Object.keys(way).map((scheme) => [scheme, [scope]]))
    )
  })

/** For an endpoint with a bearer. */
export const requiresScope = (scope: Scope) =>
  Context.make(Access, scope).pipe(Context.add(OpenApi.Transform, withScope(scope)))

/** For an endpoint with a bearer whose calls are audited: calls that change something an operator owns. */
export const audits = (operation: string, scope: Scope) => Context.add(requiresScope(scope), Audited, operation)

/** For an endpoint that reads views, by a secret or by a token for them. */
export const opensViews = Context.add(requiresScope("read"), TakesToken, true)

/** For an endpoint without a bearer. */
export const open: Context.Context<Access> = Context.make(Access, "open")

/** The part of an `HttpApi` that is read here: groups, endpoints, annotations. */
export interface Declaring {
  readonly groups: {
    readonly [name: string]: {
      readonly endpoints: {
        readonly [name: string]: {
          readonly method: string
          readonly path: string
          readonly annotations: Context.Context<never>
        }
      }
    }
  }
}

/** The operation of each endpoint that is audited, by method and path as declared. */
export const auditedOf = (api: Declaring): ReadonlyMap<string, string> =>
  new Map(
    Object.values(api.groups).flatMap((group) =>
      Object.values(group.endpoints).flatMap(({ annotations, method, path }) =>
        Option.match(Context.getOption(annotations, Audited), {
          onNone: () => [],
          onSome: (operation) => [[`${method} ${path}`, operation] as const]
        })
      )
    )
  )

/** Required scope of each endpoint, by method and path as declared: `GET /view/:view_id`. */
export const accessOf = (api: Declaring): ReadonlyMap<string, Scope | "open"> =>
  new Map(
    Object.values(api.groups).flatMap((group) =>
      Object.values(group.endpoints).map(
        (endpoint) =>
          [
            `${endpoint.method} ${endpoint.path}`,
            Context.get(endpoint.annotations as Context.Context<Access>, Access)
          ] as const
      )
    )
  )
