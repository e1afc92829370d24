/**
 * `GET /feed` and `POST /ssp/applied` (D61): the declared handlers, and both by callback for the server's hot routes.
 *
 * By callback, because an SSP says what it has applied for every batch of the log, and no fiber stands between the log
 * and the connections that follow it. What is refused is refused by the declared route of the feed.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Either, Schema } from "effect"
import { isCount, isMapping, isText } from "../../core/typeGuards.ts"
import * as Answers from "../../node/http/answers.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as Bodies from "../../node/http/bodies.ts"
import * as Guard from "../../node/http/guard.ts"
import { streamOf } from "../../node/streams/pulledSink.ts"
import type { Answer, HotReads, HotRoute } from "../../ports/Front.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { scopeOf } from "../../protocol/access.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import * as Wire from "../../protocol/wire.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import * as Speaking from "../pool/speaking.ts"
import { type FeedAsked, Feeds, tablesOf } from "./Feeds.ts"

const noTables = Answers.invalidRequest([
  { path: "tables", reason: "must be names with commas between them, each percent-encoded" }
])

type Asked = typeof Wire.FeedAsked.Type

/** The handlers of the declared routes. */
export const handlers = Effect.gen(function* () {
  const feeds = yield* Feeds
  const speakingFor = yield* Speaking.make
  return {
    feed: ({ after, registration, tables: names }: Asked) =>
      Effect.gen(function* () {
        const tables = tablesOf(names)
        if (tables === undefined) return yield* Effect.fail(noTables)
        const home = feeds.homeOf(registration)
        if (home !== undefined) yield* speakingFor(home.ssp)
        const asked = { after, registration, tables }
        const refused = feeds.refusal(asked)
        if (refused !== undefined) return yield* Effect.fail(refused)
        const body = streamOf((sink) => {
          let writing = { drained: (): void => {}, gone: (): void => {} }
          // What refuses it since then ends it.
          const now = feeds.open(asked, (_, on) => {
            writing = on
            return sink
          })
          if (now !== undefined) sink.end()
          return writing
        })
        return HttpServerResponse.stream(body, { contentType: Wire.feedType })
      }),
    applied: ({ registration, seq, ssp_id }: typeof Wire.SspApplied.Type) =>
      Effect.gen(function* () {
        yield* speakingFor(ssp_id)
        if (feeds.applied({ ssp: ssp_id, registration, seq })) return { status: "ok" } as const
        return yield* Effect.fail(Errors.notRegistered(ssp_id))
      })
  }
})

const decodeAsked = Schema.decodeUnknownEither(Wire.FeedAsked)

const askedOf = (url: string): FeedAsked | undefined => {
  const given = Object.fromEntries(new URL(url, "http://scheduler").searchParams)
  const asked = decodeAsked(given)
  const tables = Either.isRight(asked) ? tablesOf(asked.right.tables) : undefined
  return Either.isRight(asked) && tables !== undefined ? { ...asked.right, tables } : undefined
}

/** The feed by callback, of a scheduler that may answer; false: the declared route answers. */
export const hotFeed: Effect.Effect<typeof HotReads.Service, never, Feeds | SchedulerConfig> = Effect.gen(function* () {
  const feeds = yield* Feeds
  const { bearers } = yield* SchedulerConfig
  const judge = makeJudge(bearers, Errors.unauthorized)
  const scope = scopeOf(SchedulerApi, "GET /feed")
  return ({ authorization, url }, reply) => {
    if (!url.startsWith("/feed?")) return false
    const judged = judge(authorization, scope)
    const asked = "caller" in judged ? askedOf(url) : undefined
    if (!("caller" in judged) || asked === undefined || feeds.refusal(asked) !== undefined) return false
    const { onlySsp } = judged.caller
    if (onlySsp !== undefined && onlySsp !== feeds.homeOf(asked.registration)?.ssp) return false
    feeds.open(asked, reply.stream)
    return true
  }
})

const decodeApplied = Schema.decodeUnknownEither(Wire.SspApplied, { errors: "all" })
const ok = JSON.stringify({ status: "ok" })

/**
 * What a line says; undefined where it says anything else. Judged by hand: a schema names each fault, which takes
 * longer than all the rest, and no fault of a line is answered.
 */
const wordIn = (line: string): typeof Wire.SspApplied.Type | undefined => {
  try {
    const json: unknown = JSON.parse(line)
    if (!isMapping(json)) return undefined
    const { registration, seq, ssp_id } = json
    return isText(ssp_id) && isCount(registration) && isCount(seq) ? { ssp_id, registration, seq } : undefined
  } catch {
    return undefined
  }
}

/** A few numbers and a name. */
const maxBodyBytes = 4096

/** What an SSP has applied, by callback. */
export const hotApplied = Effect.gen(function* () {
  const feeds = yield* Feeds
  const { bearers } = yield* SchedulerConfig
  const { mayAnswer } = yield* Leadership
  const turnedAway = yield* Guard.makeHotCaller(
    SchedulerApi,
    "POST /ssp/applied",
    makeJudge(bearers, Errors.unauthorized)
  )
  const notLeader = Answers.toAnswer(Errors.notLeader)
  const take = (body: string, onlySsp: string | undefined): Answer => {
    const json = Bodies.parseJson(body)
    if (Either.isLeft(json)) return Answers.toAnswer(json.left)
    const applied = decodeApplied(json.right)
    if (Either.isLeft(applied)) return Answers.toAnswer(Answers.undecodable(applied.left))
    const { registration, seq, ssp_id } = applied.right
    if (onlySsp !== undefined && onlySsp !== ssp_id) return Answers.toAnswer(Speaking.forbidden(onlySsp, ssp_id))
    if (feeds.applied({ ssp: ssp_id, registration, seq })) return { status: 200, body: ok }
    return Answers.toAnswer(Errors.notRegistered(ssp_id))
  }
  const route: HotRoute = {
    method: "POST",
    path: "/ssp/applied",
    maxBodyBytes,
    admit: (authorization, _, address) => {
      if (!mayAnswer()) return notLeader
      const caller = turnedAway(authorization, address)
      if ("status" in caller) return caller
      // Another scheduler may lead since the request was let in.
      return (body, answer) => answer(mayAnswer() ? take(body, caller.onlySsp) : notLeader)
    },
    lines: (authorization, address) => {
      if (!mayAnswer()) return notLeader
      const caller = turnedAway(authorization, address)
      if ("status" in caller) return caller
      const { onlySsp } = caller
      return (line) => {
        const word = wordIn(line)
        if (word === undefined || !mayAnswer() || (onlySsp !== undefined && onlySsp !== word.ssp_id)) return false
        return feeds.applied({ ssp: word.ssp_id, registration: word.registration, seq: word.seq })
      }
    },
    tooLarge: Answers.toAnswer(Answers.tooLarge(maxBodyBytes)),
    notText: Answers.toAnswer(Answers.notText)
  }
  return route
})
