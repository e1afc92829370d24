/**
 * The routes of {@link Browsers}; `POST /stream` by callback too, for the server's hot streams.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Clock, Effect, Either, Layer, Schema } from "effect"
import { maxLength } from "../../core/access/viewToken.ts"
import * as Guard from "../../node/guard.ts"
import * as Answers from "../../node/httpAnswers.ts"
import * as Bodies from "../../node/httpBodies.ts"
import * as OpenStreams from "../../node/streams/openStreams.ts"
import { streamOf } from "../../node/streams/pulledSink.ts"
import { opens } from "../../node/viewTokens.ts"
import * as Audit from "../../ports/Audit.ts"
import { type Answer, HotStreams, type ReadReply } from "../../ports/Front.ts"
import { Caller } from "../../protocol/access.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import * as ViewAccess from "../../protocol/viewAccess.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Views } from "../views/Views.ts"
import { Browsers, type Opening } from "./Browsers.ts"
import { mapped } from "./HttpErrors.ts"
import * as Guards from "./HttpGuards.ts"
import { streamHeaders } from "./HttpStream.ts"

const unsigned = {
  code: "FORBIDDEN" as const,
  message:
    "no secret can sign tokens: set SVC_AUTH_SECRET, or in SVC_AUTH_SECRETS one with the scope read that is not given as a hash"
}

const wrongViews = (reason: string) => Answers.invalidRequest([{ path: "views", reason }])

const decode = Schema.decodeUnknownEither(ViewAccess.StreamOpening, { errors: "all" })

const read = (body: string): Either.Either<Opening, Parameters<typeof Answers.toAnswer>[0]> =>
  Either.flatMap(Bodies.parseJson(body), (json) => Either.mapLeft(decode(json), Answers.undecodable))

const path = "/stream"

export const layerHot: Layer.Layer<HotStreams, never, Browsers | Lifecycle | SspConfig | Audit.Audit> = Layer.effect(
  HotStreams,
  Effect.gen(function* () {
    const { open, streams, tokens } = yield* Browsers
    const lifecycle = yield* Lifecycle
    const config = yield* SspConfig
    const callerOf = yield* Guard.makeHotCaller(SspApi, `POST ${path}`, Guards.judgeOf(config), tokens)
    const admit = (
      authorization: string | undefined,
      registration: string | undefined,
      address: string | undefined
    ): Answer | ((body: string, reply: ReadReply["stream"]) => Answer | undefined) => {
      const caller = callerOf(authorization, address)
      if ("status" in caller) return caller
      const notTaking = Guards.notTaking(lifecycle, registration)
      if (notTaking !== undefined) return Answers.toAnswer(notTaking)
      return (body, reply) => {
        const opening = read(body)
        if (Either.isLeft(opening)) return Answers.toAnswer(opening.left)
        const refused = streams.refusal(opening.right.views)
        if (refused !== undefined) return Answers.toAnswer(refused)
        let writing: Parameters<ReadReply["stream"]>[1] | undefined
        const sink = reply(streamHeaders, { drained: () => writing?.drained(), gone: () => writing?.gone() })
        writing = open(opening.right, caller.grant, sink)
        return undefined
      }
    }
    return [
      {
        path,
        maxBodyBytes: config.bodyLimitBytes,
        admit,
        tooLarge: Answers.toAnswer(Answers.tooLarge(config.bodyLimitBytes)),
        notText: Answers.toAnswer(Answers.notText)
      }
    ]
  })
)

export const layer = HttpApiBuilder.group(SspApi, "browser", (handlers) =>
  Effect.gen(function* () {
    const { open, revoke, streams, tokens } = yield* Browsers
    const { streamViews } = yield* SspConfig
    const views = yield* Views
    const audited = yield* Audit.make(SspApi)
    return handlers
      .handle("openStream", ({ payload }) =>
        Effect.gen(function* () {
          const { grant } = yield* Caller
          const refused = streams.refusal(payload.views)
          if (refused !== undefined) return yield* Effect.fail(refused)
          return HttpServerResponse.stream(
            streamOf((sink) => open(payload, grant, sink)),
            { contentType: "text/event-stream", headers: streamHeaders }
          )
        })
      )
      .handle("changeStream", ({ path: { stream_id }, payload }) =>
        Effect.suspend(() => {
          const changed = streams.change(stream_id, payload)
          return "code" in changed ? Effect.fail(changed) : Effect.succeed(changed)
        })
      )
      .handle("token", ({ payload: { subject, ttl_ms, views: named } }) =>
        Effect.gen(function* () {
          if (named.length > streamViews)
            return yield* Effect.fail(
              wrongViews(`names ${named.length} views, the limit is ${streamViews} (setting ${OpenStreams.setting})`)
            )
          const given = tokens.give(named, subject, ttl_ms)
          if (given === undefined) return yield* Effect.fail(unsigned)
          return given.token.length <= maxLength
            ? given
            : yield* Effect.fail(
                wrongViews(`has ids that take a token of more than ${maxLength} characters (fixed); ask for several`)
              )
        })
      )
      .handle("revoke", ({ payload: { subject } }) =>
        audited(subject)(
          Effect.sync(() => {
            revoke(subject)
            return { status: "ok" as const }
          })
        )
      )
      .handle(
        "touch",
        ({ payload }) =>
          Effect.gen(function* () {
            const { grant } = yield* Caller
            const nowMs = yield* Clock.currentTimeMillis
            const asked = [...new Set(payload.views)].filter((view) => grant === undefined || opens(grant, view))
            const touched = yield* Effect.filter(asked, (view) => mapped(views.touch(view, nowMs)))
            return { touched }
          }),
        { uninterruptible: true }
      )
  })
)
