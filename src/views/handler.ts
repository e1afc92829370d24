/**
 * The handler of named views: from a page's `{ view, params }` to a registered view, its token and its address.
 *
 * The page names only a declared view and its params, never a query; the handler makes the query, for the user that the
 * application knows. A view's id is a hash of query and values, so that users with the same query share one view, and a
 * token opens nothing but the result of its user's own query.
 */
import { Either, ParseResult, Schema } from "effect"
import { hashOf } from "../core/access/scopedSecrets.ts"
import * as JsonText from "../core/jsonText.ts"
import { corsHeaders, crossSiteRefusal, preflightHeaders } from "./crossSite.ts"
import type { AnyDeclaration, ViewQuery, ViewUser } from "./declaration.ts"
import { Holdings } from "./holdings.ts"
import { type Refusal, refusal, register, type Service, tokenFor, type World } from "./upstream.ts"

/** Options of {@link makeHandler}. */
export interface HandlerOptions<User extends ViewUser> {
  /** Address of the SSP or scheduler, as this process reaches it. */
  readonly url: string
  /** Secret of the service: SVC_AUTH_SECRET, or one that may register views. A function is called at each request. */
  readonly secret: string | (() => string | Promise<string>)
  /** Address of the service for pages; if absent, they use the `url` they gave to `connect`. */
  readonly publicUrl?: string
  /** Finds the user of a request, by a cookie or a header; undefined for none, which is answered 401. */
  readonly authenticate: (request: Request) => User | undefined | Promise<User | undefined>
  /** Other origins whose pages may use the handler, as `https://app.example.com`; none by default. */
  readonly origins?: ReadonlyArray<string>
  /** Largest body of a request, in bytes; 16,384 by default. */
  readonly maxBodyBytes?: number
  /** Most different views of one user at a time, counted by this process; 100 by default. */
  readonly viewsPerUser?: number
  /** Most users with views at a time; 100,000 by default. */
  readonly maxUsers?: number
  /** Lifetime of a token, 300,000 ms by default. A view lives three times as long after its last request. */
  readonly tokenMs?: number
  /** Milliseconds for the service's answer; 30,000 by default. */
  readonly timeoutMs?: number
  /** Receives lines for the operator: views and errors of the service, never a secret; `console.warn` by default. */
  readonly log?: (line: string) => void
}

/** Answers `{ view, params }` with `{ view, token, expires_in_ms, url }`, or `{ code, message, details? }`. */
export type ViewsHandler = (request: Request) => Promise<Response>

const sorted = (value: unknown): unknown =>
  typeof value !== "object" || value === null || "toJSON" in value
    ? value
    : Array.isArray(value)
      ? value.map(sorted)
      : Object.fromEntries(
          Object.entries(value)
            .map(([name, inner]) => [name, sorted(inner)] as const)
            .sort(([a], [b]) => (a < b ? -1 : 1))
        )

/** JSON with sorted fields, so that equal values have equal text. */
const canonical = (value: unknown): string => JsonText.write(sorted(value))

const idOf = (name: string, { params = {}, surql }: ViewQuery): string =>
  `incantation:${name}-${hashOf(`${surql}\n${canonical(params)}`).slice(0, 40)}`

/** The body's text; undefined if it is longer than the limit. */
const bodyOf = async (request: Request, limit: number): Promise<string | undefined> => {
  const decoder = new TextDecoder()
  let text = ""
  let bytes = 0
  const reader = request.body?.getReader()
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > limit) {
      await reader?.cancel()
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
}

const Asked = Schema.Struct({
  view: Schema.String.annotations({ message: () => "must be the name of a view" }),
  params: Schema.optionalWith(Schema.Unknown, { default: () => ({}) })
})

/** Faults of a value with their paths, below a field. */
const faultsIn = (error: ParseResult.ParseError, below: ReadonlyArray<string>) =>
  ParseResult.ArrayFormatter.formatErrorSync(error).map(({ message, path }) => ({
    path: [...below, ...path].join("."),
    reason: message
  }))

const malformed = (faults: ReadonlyArray<{ readonly path: string; readonly reason: string }>): Refusal =>
  refusal(
    "INVALID_REQUEST",
    faults.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`)).join("; "),
    {
      details: faults
    }
  )

const answerOf = ({ code, details, message, retryAfterMs, status }: Refusal): Response =>
  Response.json(
    { code, message, ...(details === undefined ? {} : { details }) },
    { status, headers: retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) } }
  )

class Handler<User extends ViewUser> {
  private readonly service: Service
  private readonly holdings: Holdings
  private readonly tokenMs: number

  constructor(
    private readonly declarations: { readonly [name: string]: AnyDeclaration },
    private readonly options: HandlerOptions<User>,
    world: World
  ) {
    const { maxUsers = 100_000, secret, tokenMs = 300_000, viewsPerUser = 100 } = options
    this.tokenMs = tokenMs
    this.holdings = new Holdings({ viewsPerUser, users: maxUsers })
    this.service = {
      world,
      url: options.url.replace(/\/+$/, ""),
      secret: typeof secret === "function" ? secret : () => secret,
      timeoutMs: options.timeoutMs ?? 30_000
    }
  }

  async handle(request: Request): Promise<Response> {
    const { origins = [] } = this.options
    const cors = corsHeaders(request, origins)
    if (request.method === "OPTIONS")
      return new Response(null, { status: 204, headers: { ...cors, ...preflightHeaders } })
    let answer: Response
    try {
      const given = await this.give(request, origins)
      answer = "status" in given ? answerOf(given) : Response.json(given)
    } catch (error) {
      this.service.world.say(`the handler failed: ${error instanceof Error ? (error.stack ?? error.message) : error}`)
      answer = answerOf(refusal("INTERNAL", "the application's handler of views failed; its log says why"))
    }
    for (const [name, value] of Object.entries({ ...cors, "cache-control": "no-store" }))
      answer.headers.set(name, value)
    return answer
  }

  private async give(request: Request, origins: ReadonlyArray<string>): Promise<Refusal | object> {
    if (request.method !== "POST") return refusal("NOT_FOUND", "views are asked for with POST", { status: 405 })
    const foreign = crossSiteRefusal(request, origins)
    if (foreign !== undefined) return refusal("FORBIDDEN", foreign)
    // Any page's form could send another content type without a preflight request.
    if (!/^application\/json(?:\s*;|$)/i.test(request.headers.get("content-type") ?? ""))
      return refusal("UNSUPPORTED_MEDIA_TYPE", "the body must be application/json")
    const user = await this.options.authenticate(request)
    if (user === undefined || user === null)
      return refusal("UNAUTHORIZED", "the application knows no user of this request")
    const { maxBodyBytes = 16_384 } = this.options
    const text = await bodyOf(request, maxBodyBytes)
    if (text === undefined)
      return refusal("PAYLOAD_TOO_LARGE", `the body is larger than ${maxBodyBytes} bytes (option \`maxBodyBytes\`)`)
    const read = this.read(text)
    if ("status" in read) return read
    const params = Schema.decodeUnknownEither(read.declaration.params, { errors: "all" })(read.params)
    if (Either.isLeft(params)) return malformed(faultsIn(params.left, ["params"]))
    const query: ViewQuery | undefined = await read.declaration.query(params.right, user as never)
    if (query === undefined) return refusal("FORBIDDEN", `this user may not have the view ${read.name}`)
    return this.grant(read.name, user, query)
  }

  private read(text: string): Refusal | { name: string; params: unknown; declaration: AnyDeclaration } {
    let body: unknown
    try {
      body = JsonText.parse(text, JsonText.maxDepth)
    } catch (error) {
      if (error instanceof JsonText.NumberRefused) return malformed([error])
      return malformed([{ path: "", reason: "the body is no JSON" }])
    }
    const asked = Schema.decodeUnknownEither(Asked, { errors: "all" })(body)
    if (Either.isLeft(asked)) return malformed(faultsIn(asked.left, []))
    const { params, view: name } = asked.right
    const declaration = Object.hasOwn(this.declarations, name) ? this.declarations[name] : undefined
    if (declaration === undefined)
      return refusal("VIEW_NOT_FOUND", `the application declares no view ${JSON.stringify(name.slice(0, 64))}`)
    return { name, params, declaration }
  }

  private async grant(name: string, user: User, query: ViewQuery): Promise<Refusal | object> {
    const { publicUrl, viewsPerUser = 100 } = this.options
    const { world } = this.service
    const id = idOf(name, query)
    const lifeMs = 3 * this.tokenMs
    const held = this.holdings.hold(user.id, id, world.now(), world.now() + lifeMs)
    if ("full" in held)
      return held.full === "user"
        ? refusal("RATE_LIMITED", `a user has at most ${viewsPerUser} views at a time (option \`viewsPerUser\`)`, held)
        : refusal("OVERLOADED", "more users have views than are counted (option `maxUsers`)", held)
    // A user's id may be an e-mail address, so only its hash leaves the application.
    const subject = `user:${hashOf(user.id).slice(0, 40)}`
    const refused =
      (await register(this.service, {
        id,
        surql: query.surql,
        params: query.params ?? {},
        // The same for all users of a view, since they share one registration.
        clientId: `views:${name}`,
        ttl: `${Math.ceil(lifeMs / 1000)}s`
      })) ?? (await tokenFor(this.service, { views: [id], subject, ttl_ms: this.tokenMs }))
    if ("token" in refused)
      return { view: id, token: refused.token, expires_in_ms: refused.expires_in_ms, url: publicUrl }
    held.undo()
    return refused
  }
}

/** Makes the handler of these views. Throws if a name cannot be part of a view id. */
export const makeHandler = <User extends ViewUser>(
  declarations: { readonly [name: string]: AnyDeclaration },
  options: HandlerOptions<User>,
  world: World
): ViewsHandler => {
  const handler = new Handler(declarations, options, world)
  return (request) => handler.handle(request)
}
