/**
 * Dispatches each request of the contract, on both servers and behind any adapter: route, caller, readiness, body,
 * shape, answer (D6).
 *
 * By callback. A fiber starts only for a route that is answered by an effect, behind all checks that may refuse the
 * request.
 */
import { Cause, Effect, Either, Exit, FiberId, Runtime, type Scope } from "effect"
import { reservedNames } from "../../core/access/scopedSecrets.ts"
import { Audit, unknownAddress } from "../../ports/Audit.ts"
import type { Answer, Front, IncomingRequest, NoText, PiecesAnswer, Reply } from "../../ports/Front.ts"
import type { Caller } from "../../protocol/access.ts"
import type { WireError } from "../../protocol/errors.ts"
import { JsonBody } from "../../protocol/jsonBody.ts"
import { feedType } from "../../protocol/wire.ts"
import * as Answers from "./answers.ts"
import * as Bodies from "./bodies.ts"
import type { Guard } from "./guard.ts"
import type { AnyCall, AnyRoutes, Call, RouteAnswer } from "./routes.ts"
import { type AnyApi, type EndpointEntry, EndpointTable, type FoundEndpoint } from "./table.ts"

export interface DispatchParts {
  readonly api: AnyApi
  readonly routes: AnyRoutes
  /** Guards by the key of the middleware that an endpoint declares. */
  readonly guards: { readonly [check: string]: Guard }
  /** Gates by the same key: why the node refuses a request now. */
  readonly gates: { readonly [check: string]: (asked: IncomingRequest) => WireError | undefined }
  /** Why the node answers nothing at this path now. Asked before all else, and again before an effect's answer. */
  readonly silent?: (path: string) => WireError | undefined
  readonly maxBodyBytes: number
}

interface Surroundings extends Omit<DispatchParts, "api" | "routes"> {
  readonly runFork: <A, E>(effect: Effect.Effect<A, E>) => ReturnType<typeof Effect.runFork<A, E>>
  readonly turnedAway: (typeof Audit.Service)["turnedAway"]
}

const nobody: Caller["Type"] = { name: reservedNames.open, onlySsp: undefined, sees: "kinds" }

const isAnswered = (answer: RouteAnswer): answer is Answer | PiecesAnswer => !("flow" in answer)

const unjudged = (endpoint: string): Error =>
  new Error(`broken invariant: ${endpoint} asks for a secret and nothing judges it`)

/**
 * Throws unless every check that an endpoint declares is carried out: a node that does less than its contract must not
 * start.
 */
const assertChecked = (
  { entries }: EndpointTable,
  { gates, guards }: Pick<DispatchParts, "gates" | "guards">
): void => {
  for (const { checks, endpoint, scope } of entries) {
    for (const check of checks)
      if (check !== JsonBody.key && gates[check] === undefined && guards[check] === undefined)
        throw new Error(`broken invariant: ${endpoint} declares ${check}, which nothing carries out`)
    if (scope !== undefined && ![...checks].some((check) => guards[check] !== undefined)) throw unjudged(endpoint)
  }
}

/** One request and its state. */
class Request implements Call {
  caller = nobody
  text = ""
  json: unknown = undefined
  path: unknown
  urlParams: unknown
  payload: unknown = undefined

  constructor(
    private readonly around: Surroundings,
    private readonly found: FoundEndpoint,
    readonly asked: IncomingRequest,
    private readonly reply: Reply
  ) {
    this.path = found.params
  }

  get endpoint(): string {
    return this.entry.endpoint
  }

  get operation(): string | undefined {
    return this.entry.operation
  }

  private get entry(): EndpointEntry {
    return this.found.entry
  }

  /** The request as its route's call, whose types the contract has checked. */
  private get call(): AnyCall {
    return this as unknown as AnyCall
  }

  private get isRaw(): boolean {
    const { route } = this.entry
    return "answer" in route && route.isRaw === true
  }

  begin(): void {
    this.guarded(() => {
      const refused = this.silenced() ?? this.judged() ?? this.closed()
      if (refused !== undefined) return this.refuse(refused)
      const { readsBody, route } = this.entry
      if (!readsBody) return this.shaped()
      const lines = "answer" in route ? route.lines : undefined
      const maxBytes = ("answer" in route ? route.maxBodyBytes : undefined) ?? this.around.maxBodyBytes
      if (lines !== undefined && this.asked.lines !== undefined && this.goesOn())
        return this.asked.lines(feedType, maxBytes, this.guardedTake(lines(this)))
      this.asked.text(maxBytes, (body) => this.guarded(() => this.read(body, maxBytes)))
    })
  }

  readonly away = (): WireError | undefined => this.silenced() ?? this.closed()

  private silenced(): WireError | undefined {
    return this.around.silent?.(this.entry.path)
  }

  private judged(): WireError | undefined {
    const { checks, endpoint, scope, takesTokens } = this.entry
    if (scope === undefined) return undefined
    const { guards, runFork, turnedAway } = this.around
    const view = this.found.params["view_id"]
    for (const check of checks) {
      const guard = guards[check]
      if (guard === undefined) continue
      const judged = guard({ endpoint, scope, takesTokens, view }, this.asked)
      if ("caller" in judged) {
        this.caller = judged.caller
        return undefined
      }
      const { address = unknownAddress } = this.asked
      runFork(turnedAway({ object: endpoint, secret: judged.name, address, outcome: judged.turned.code }))
      return judged.turned
    }
    throw unjudged(endpoint)
  }

  private closed(): WireError | undefined {
    for (const check of this.entry.checks) {
      const refused = this.around.gates[check]?.(this.asked)
      if (refused !== undefined) return refused
    }
    return undefined
  }

  private goesOn(): boolean {
    const { headers } = this.asked
    return headers["content-type"] === feedType && headers["content-length"] === undefined
  }

  private guardedTake(take: (line: string) => boolean): (line: string) => boolean {
    return (line) => {
      try {
        return take(line)
      } catch (error) {
        this.log(Cause.die(error))
        return false
      }
    }
  }

  private read(body: string | NoText, maxBytes: number): void {
    if (typeof body !== "string") return this.refuse(Answers.fromBody(body, maxBytes))
    this.text = body
    if (!this.isRaw) {
      const json = Bodies.parseJson(body)
      if (Either.isLeft(json)) return this.refuse(json.left)
      this.json = json.right
    }
    this.shaped()
  }

  /** Decodes path and query, and lets the route answer. */
  private shaped(): void {
    const { decodePath, decodeQuery, noQuery, route } = this.entry
    if (decodePath !== undefined) {
      const path = decodePath(this.found.params)
      if (Either.isLeft(path)) return this.refuse(Answers.undecodable(path.left))
      this.path = path.right
    }
    // The body is decoded first: of faults in both, those of the body are answered.
    if (!("attempt" in route) && !this.isPayloadTaken()) return
    if (decodeQuery !== undefined) {
      if (this.found.query === undefined && noQuery !== undefined) this.urlParams = noQuery
      else {
        const query = decodeQuery(this.found.query ?? {})
        if (Either.isLeft(query)) return this.refuse(Answers.undecodable(query.left))
        this.urlParams = query.right
      }
    }
    if ("answer" in route) route.answer(this.call, this.reply)
    else if ("value" in route) this.run(() => Effect.map(route.value(this.call), this.entry.written), route.isWhole)
    else if ("response" in route) this.run(() => route.response(this.call), route.isWhole)
    else
      route.attempt(this.call, this.reply, (respond) =>
        this.guarded(() => {
          if (this.isPayloadTaken()) this.run(() => respond(this.call), route.isWhole)
        })
      )
  }

  private isPayloadTaken(): boolean {
    const { decodePayload, readsBody } = this.entry
    if (!readsBody || decodePayload === undefined || this.isRaw) return true
    const payload = decodePayload(this.json)
    if (Either.isRight(payload)) this.payload = payload.right
    else this.refuse(Answers.undecodable(payload.left))
    return Either.isRight(payload)
  }

  /** Answers by an effect. */
  private run(respond: () => Effect.Effect<RouteAnswer, unknown, Scope.Scope>, isWhole = false): void {
    const work = Effect.suspend(respond)
    const fiber = this.around.runFork(
      Effect.matchCauseEffect(isWhole ? Effect.uninterruptible(work) : work, {
        onFailure: (cause) => Effect.sync(() => this.fail(cause)),
        onSuccess: (given) => this.answered(given)
      }).pipe(Effect.scoped, Effect.interruptible)
    )
    fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) this.fail(exit.cause)
    })
    if (fiber.unsafePoll() === null) this.reply.whenGone(() => fiber.unsafeInterruptAsFork(FiberId.none))
  }

  private answered(answer: RouteAnswer): Effect.Effect<void> {
    const refused = this.silenced()
    if (refused !== undefined) return Effect.sync(() => this.refuse(refused))
    return isAnswered(answer)
      ? Effect.sync(() => this.reply.send(answer))
      : this.reply.flow(answer.status, answer.headers, answer.flow)
  }

  readonly fail = (cause: Cause.Cause<unknown>): void => {
    // Usually the client has left; one that has not gets a 503.
    if (Cause.isInterruptedOnly(cause)) return this.reply.send({ status: 503, headers: {}, pieces: [] })
    const refused = this.silenced()
    if (refused !== undefined) return this.refuse(refused)
    const answer = Answers.ofFailure(cause)
    if (answer !== undefined) return this.reply.send(answer)
    this.log(cause)
    this.reply.fail(Answers.internal)
  }

  private refuse(error: WireError): void {
    const answer = Answers.toAnswer(error)
    const { route } = this.entry
    if ("answer" in route) route.refused?.(answer.status)
    this.reply.send(answer)
  }

  private guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.log(Cause.die(error))
      const { route } = this.entry
      if ("answer" in route) route.refused?.(Answers.internal.status)
      this.reply.fail(Answers.internal)
    }
  }

  private log(cause: Cause.Cause<unknown>): void {
    this.around.runFork(Answers.logFault(cause))
  }
}

/** Makes the function that serves the contract. */
export const make = ({
  api,
  routes,
  ...parts
}: DispatchParts): Effect.Effect<(typeof Front.Service)["serve"], never, Audit> =>
  Effect.gen(function* () {
    const { turnedAway } = yield* Audit
    const runFork = Runtime.runFork(yield* Effect.runtime<never>())
    const table = new EndpointTable(api, routes)
    assertChecked(table, parts)
    const around: Surroundings = { ...parts, runFork, turnedAway }
    return (asked, reply) => {
      const found = table.find(asked.method, asked.url)
      if (found === undefined) return false
      new Request(around, found, asked, reply).begin()
      return true
    }
  })
