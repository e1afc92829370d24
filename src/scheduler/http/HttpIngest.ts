/**
 * `POST /ingest` of the scheduler: from body to answer, by callback, for the declared route and for the server's hot
 * route alike.
 *
 * As on the SSP no Effect inside: a fiber per request costs more than everything that is done here.
 */
import { Effect, Either, Layer } from "effect"
import * as Change from "../../core/record/change.ts"
import * as Event from "../../core/record/event.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import * as Trace from "../../core/telemetry/traceContext.ts"
import * as Answers from "../../node/http/answers.ts"
import { makeJudge } from "../../node/http/bearer.ts"
import * as IngestRoute from "../../node/http/ingestRoute.ts"
import type { Audit } from "../../ports/Audit.ts"
import { type Answer, HotRoutes } from "../../ports/Front.ts"
import type { IngestTimes } from "../../ports/IngestTimes.ts"
import { Leadership } from "../../ports/SharedLog.ts"
import { Tracing } from "../../ports/Tracing.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig } from "../Config.ts"
import type { Feeds } from "../feed/Feeds.ts"
import * as HttpFeed from "../feed/HttpFeed.ts"
import * as Errors from "../HttpErrors.ts"
import { Ingest } from "../ingest/Ingest.ts"
import { Declared } from "../pool/Declared.ts"
import { Pool } from "../pool/Pool.ts"

/** What both routes do with a body. */
export const makeTake: Effect.Effect<IngestRoute.Take, never, Ingest | Declared> = Effect.gen(function* () {
  const ingest = yield* Ingest
  const { schema } = yield* Declared
  const tracing = yield* Tracing
  return (json, done, header) => {
    const changes = Change.decodeChanges(json, schema)
    if (Either.isLeft(changes)) return done(Answers.toAnswer(changes.left))
    const refused = Definitions.refused(changes.right)
    if (refused !== undefined) return done(Answers.toAnswer(refused))
    const span = tracing?.begin("POST /ingest", {
      kind: "server",
      parent: header,
      attributes: { "svc.changes": changes.right.length }
    })
    ingest.offer(
      Event.arrivedOf(changes.right, json),
      (outcome) => {
        const answer: Answer = Either.isRight(outcome)
          ? { status: 200, body: `{"seq":${outcome.right.seq},"delivered":${outcome.right.delivered}}` }
          : Answers.toAnswer(Errors.fromIngest(outcome.left))
        span?.end(answer.status < 500 ? undefined : `answered ${answer.status}`, {
          "http.response.status_code": answer.status
        })
        done(answer)
      },
      span?.traceparent ?? (header === undefined ? undefined : Trace.valid(header))
    )
  }
})

export const layerHot: Layer.Layer<
  HotRoutes,
  never,
  Ingest | Pool | Feeds | Declared | SchedulerConfig | IngestTimes | Audit
> = Layer.effect(
  HotRoutes,
  Effect.gen(function* () {
    const take = yield* makeTake
    const pool = yield* Pool
    const { bearers, maxBodyBytes } = yield* SchedulerConfig
    const { mayAnswer } = yield* Leadership
    const cloning = Answers.toAnswer(Errors.cloning)
    const notLeader = Answers.toAnswer(Errors.notLeader)
    const ingest = yield* IngestRoute.hot({
      api: SchedulerApi,
      judge: makeJudge(bearers, Errors.unauthorized),
      maxBodyBytes,
      notTaking: () => (!mayAnswer() ? notLeader : pool.state().phase === "Cloning" ? cloning : undefined),
      take
    })
    return [...ingest, yield* HttpFeed.hotApplied]
  })
)
