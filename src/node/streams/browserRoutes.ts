/**
 * The routes of {@link Browsers}, as both servers answer them; `POST /stream` by callback too, for hot streams.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Either, Schema } from "effect"
import { maxLength } from "../../core/access/viewToken.ts"
import type { Answer, HotStream, ReadReply } from "../../ports/Front.ts"
import { Caller } from "../../protocol/access.ts"
import * as ViewAccess from "../../protocol/viewAccess.ts"
import * as Answers from "../http/answers.ts"
import * as Bodies from "../http/bodies.ts"
import type * as Guard from "../http/guard.ts"
import { opens } from "../http/viewTokens.ts"
import type { BrowsersShape, Opening } from "./Browsers.ts"
import * as OpenStreams from "./openStreams.ts"
import { streamOf } from "./pulledSink.ts"
import { streamHeaders } from "./sse.ts"

const unsigned = {
  code: "FORBIDDEN" as const,
  message:
    "no secret can sign tokens: set one, or in SVC_AUTH_SECRETS one with the scope read that is not given as a hash"
}

const wrongViews = (reason: string) => Answers.invalidRequest([{ path: "views", reason }])

const decode = Schema.decodeUnknownEither(ViewAccess.StreamOpening, { errors: "all" })

const read = (body: string): Either.Either<Opening, Parameters<typeof Answers.toAnswer>[0]> =>
  Either.flatMap(Bodies.parseJson(body), (json) => Either.mapLeft(decode(json), Answers.undecodable))

export const path = "/stream"

/** `POST /stream` by callback. `notTaking`: why the server takes no stream now. */
export const hotStream = (
  { open, streams }: BrowsersShape,
  callerOf: Effect.Effect.Success<ReturnType<typeof Guard.makeHotCaller>>,
  maxBodyBytes: number,
  notTaking: (registration: string | undefined) => Answer | undefined = () => undefined
): HotStream => ({
  path,
  maxBodyBytes,
  admit: (authorization, registration, address) => {
    const caller = callerOf(authorization, address)
    if ("status" in caller) return caller
    const away = notTaking(registration)
    if (away !== undefined) return away
    return (body, reply) => {
      // Or not any more, since the request was let in.
      const gone = notTaking(registration)
      if (gone !== undefined) return gone
      const opening = read(body)
      if (Either.isLeft(opening)) return Answers.toAnswer(opening.left)
      const refused = streams.refusal(opening.right.views)
      if (refused !== undefined) return Answers.toAnswer(refused)
      let writing: Parameters<ReadReply["stream"]>[1] | undefined
      const sink = reply(streamHeaders, { drained: () => writing?.drained(), gone: () => writing?.gone() })
      writing = open(opening.right, caller.grant, sink)
      return undefined
    }
  },
  tooLarge: Answers.toAnswer(Answers.tooLarge(maxBodyBytes)),
  notText: Answers.toAnswer(Answers.notText)
})

/** Answers `POST /stream` where no hot stream does. */
export const openStream = ({ open, streams }: BrowsersShape, opening: Opening) =>
  Effect.gen(function* () {
    const { grant } = yield* Caller
    const refused = streams.refusal(opening.views)
    if (refused !== undefined) return yield* Effect.fail(refused)
    return HttpServerResponse.stream(
      streamOf((sink) => open(opening, grant, sink)),
      { contentType: "text/event-stream", headers: streamHeaders }
    )
  })

export const changeStream = ({ streams }: BrowsersShape, id: string, change: OpenStreams.StreamChange) =>
  Effect.flatMap(Caller, ({ grant }) => {
    const changed = streams.change(id, grant, change)
    return "code" in changed ? Effect.fail(changed) : Effect.succeed(changed)
  })

export const token = (
  { streams, tokens }: BrowsersShape,
  { once, subject, ttl_ms, views }: typeof ViewAccess.TokenAsked.Type
) =>
  Effect.gen(function* () {
    if (views.length > streams.maxViews)
      return yield* Effect.fail(
        wrongViews(`names ${views.length} views, the limit is ${streams.maxViews} (setting ${OpenStreams.setting})`)
      )
    const given = tokens.give(views, { subject, ttlMs: ttl_ms, isTicket: once })
    if (given === undefined) return yield* Effect.fail(unsigned)
    return given.token.length <= maxLength
      ? given
      : yield* Effect.fail(
          wrongViews(`has ids that take a token of more than ${maxLength} characters (fixed); ask for several`)
        )
  })

export const revoke = ({ revoke }: BrowsersShape, { subject }: typeof ViewAccess.TokenRevoked.Type) =>
  Effect.sync(() => {
    revoke(subject)
    return { status: "ok" as const }
  })

/** `touchOne`: whether the view is there, and lives on. */
export const touch = <E, R>(
  { views }: typeof ViewAccess.Touch.Type,
  touchOne: (view: string) => Effect.Effect<boolean, E, R>,
  concurrency: "unbounded" | 1
) =>
  Effect.gen(function* () {
    const { grant } = yield* Caller
    const asked = [...new Set(views)].filter((view) => grant === undefined || opens(grant, view))
    return { touched: yield* Effect.filter(asked, touchOne, { concurrency }) }
  })
