/**
 * The endpoints of a contract as a server needs them: which one a request names, its checks, its decoders and its
 * encoder.
 *
 * Read off the contract once. Targets are matched by the matcher that serves the routes beside the contract, so a path
 * means the same to both: exact, percent-encoding undone.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import { Context, Either, Option, type ParseResult, Schema, type SchemaAST } from "effect"
import * as FindMyWay from "find-my-way-ts"
import type { Scope } from "../../core/access/scopes.ts"
import type { Answer } from "../../ports/Front.ts"
import { Access, Audited, type Declaring, TakesToken } from "../../protocol/access.ts"
import { JsonBody } from "../../protocol/jsonBody.ts"
import { routerConfig } from "./bodies.ts"
import type { AnyRoute, AnyRoutes } from "./routes.ts"

type Decode = (value: unknown) => Either.Either<unknown, ParseResult.ParseError>

/** An endpoint and its route. */
export interface EndpointEntry {
  /** Method and path as declared: `GET /view/:view_id`. */
  readonly endpoint: string
  readonly path: string
  /** Undefined: no caller is judged. */
  readonly scope: Scope | undefined
  readonly takesTokens: boolean
  /** Name in audit lines; undefined if the endpoint is not audited. */
  readonly operation: string | undefined
  /** Keys of the middlewares that the endpoint declares. */
  readonly checks: ReadonlySet<string>
  readonly readsBody: boolean
  /** Undefined if there is nothing to decode, or text stays as it is. */
  readonly decodePath: Decode | undefined
  readonly decodeQuery: Decode | undefined
  /** An absent query, decoded; undefined if the endpoint needs one. */
  readonly noQuery: unknown
  readonly decodePayload: Decode | undefined
  /** Encodes a value; throws if the value breaks the contract. */
  readonly written: (value: unknown) => Answer
  readonly route: AnyRoute
}

/** The endpoint that a request names. */
export interface FoundEndpoint {
  readonly entry: EndpointEntry
  readonly params: { readonly [name: string]: string | undefined }
  readonly query: { readonly [name: string]: string | Array<string> | undefined } | undefined
}

const decoderOf = (schema: Option.Option<Schema.Schema.AnyNoContext>): Decode | undefined =>
  Option.getOrUndefined(Option.map(schema, (given) => Schema.decodeUnknownEither(given)))

const isPlainText = (schema: Option.Option<Schema.Schema.AnyNoContext>): boolean =>
  Option.exists(
    schema,
    ({ ast }) => ast._tag === "TypeLiteral" && ast.propertySignatures.every(({ type }) => type._tag === "StringKeyword")
  )

/** Encodes by the schemas of the statuses; the first that the value fits counts. */
const writerOf = (
  successes: ReadonlyMap<number, { readonly ast: Option.Option<SchemaAST.AST> }>
): EndpointEntry["written"] => {
  const ways = [...successes].map(([status, { ast }]) => ({
    status,
    encode: Option.map(ast, (given) => Schema.encodeUnknownEither(Schema.make<unknown, unknown, never>(given)))
  }))
  return (value) => {
    let failed: ParseResult.ParseError | undefined
    for (const { encode, status } of ways) {
      if (Option.isNone(encode)) return { status, body: "" }
      const encoded = encode.value(value)
      if (Either.isRight(encoded)) return { status, body: JSON.stringify(encoded.right) }
      failed ??= encoded.left
    }
    throw failed ?? new Error("broken invariant: an endpoint declares no success")
  }
}

type Endpoint = HttpApiEndpoint.HttpApiEndpoint.AnyWithProps

const entryOf = (
  { annotations, method, path, pathSchema, payloadSchema, urlParamsSchema, middlewares }: Endpoint,
  successes: Parameters<typeof writerOf>[0],
  route: AnyRoute
): EndpointEntry => {
  const access = Context.get(annotations as Context.Context<Access>, Access)
  const decodeQuery = decoderOf(urlParamsSchema as Option.Option<Schema.Schema.AnyNoContext>)
  const absent = decodeQuery?.({})
  const checks = new Set([...middlewares].map(({ key }) => key))
  return {
    endpoint: `${method} ${path}`,
    path,
    scope: access === "open" ? undefined : access,
    takesTokens: Option.isSome(Context.getOption(annotations, TakesToken)),
    operation: Option.getOrUndefined(Context.getOption(annotations, Audited)),
    checks,
    readsBody: checks.has(JsonBody.key),
    decodePath: isPlainText(pathSchema as Option.Option<Schema.Schema.AnyNoContext>)
      ? undefined
      : decoderOf(pathSchema as Option.Option<Schema.Schema.AnyNoContext>),
    decodeQuery,
    noQuery: absent !== undefined && Either.isRight(absent) ? absent.right : undefined,
    decodePayload: decoderOf(payloadSchema as Option.Option<Schema.Schema.AnyNoContext>),
    written: writerOf(successes),
    route
  }
}

/** A contract with any endpoints. */
export type AnyApi = HttpApi.HttpApi.Any & Declaring

const entriesOf = (api: AnyApi, routes: AnyRoutes): ReadonlyArray<EndpointEntry> => {
  const entries: Array<EndpointEntry> = []
  HttpApi.reflect(api as unknown as HttpApi.HttpApi<string, HttpApiGroup.HttpApiGroup.Any, unknown, unknown>, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, successes }) => {
      const route = routes[group.identifier]?.[endpoint.name]
      if (route === undefined)
        throw new Error(`broken invariant: ${endpoint.method} ${endpoint.path} is declared and has no route`)
      entries.push(entryOf(endpoint as unknown as Endpoint, successes, route))
    }
  })
  return entries
}

/** All endpoints, found by method and target. */
export class EndpointTable {
  readonly entries: ReadonlyArray<EndpointEntry>
  /** Endpoints whose path has no parameter, by method and target: a look-up is ten times faster than the matcher. */
  private readonly exact: ReadonlyMap<string, FoundEndpoint>
  private readonly matcher = FindMyWay.make<EndpointEntry>(routerConfig)

  constructor(api: AnyApi, routes: AnyRoutes) {
    this.entries = entriesOf(api, routes)
    this.exact = new Map(
      this.entries.flatMap((entry) =>
        entry.path.includes(":") ? [] : [[entry.endpoint, { entry, params: {}, query: undefined }] as const]
      )
    )
    for (const entry of this.entries)
      this.matcher.on(entry.endpoint.slice(0, entry.endpoint.indexOf(" ")), entry.path as `/${string}`, entry)
  }

  /** A HEAD without an endpoint is a GET without its body. */
  find(method: string, url: string): FoundEndpoint | undefined {
    const exact = this.exact.get(`${method} ${url}`)
    if (exact !== undefined) return exact
    const found = this.matcher.find(method, url) ?? (method === "HEAD" ? this.matcher.find("GET", url) : undefined)
    if (found === undefined) return undefined
    let query: FoundEndpoint["query"]
    for (const _ in found.searchParams) query = found.searchParams
    return { entry: found.handler, params: found.params, query }
  }
}
