/**
 * `POST /ingest` of the scheduler: from body to answer, by callback, for the declared route and for the server's hot
 * route alike.
 *
 * As on the SSP no Effect inside: a fiber per request costs more than everything that is done here.
 */
import { Effect, Either, Layer } from "effect"
import * as Change from "../../core/record/change.ts"
import type { RawChange } from "../../core/record/event.ts"
import * as Trace from "../../core/telemetry/traceContext.ts"
import { makeJudge } from "../../node/bearer.ts"
import { type Answer, type HotRoute, HotRoutes } from "../../ports/Front.ts"
import * as Answers from "../../node/httpAnswers.ts"
import type { Audit } from "../../ports/Audit.ts"
import * as Guard from "../../node/guard.ts"
import * as Bodies from "../../node/httpBodies.ts"
import { IngestTimes } from "../../ports/IngestTimes.ts"
import * as IngestRoute from "../../node/ingestRoute.ts"
import { Tracing } from "../../ports/Tracing.ts"
import { SchedulerApi } from "../../protocol/SchedulerApi.ts"
import { SchedulerConfig } from "../Config.ts"
import { Declared } from "../ingest/Declared.ts"
import * as Errors from "./HttpErrors.ts"
import { Ingest } from "../ingest/Ingest.ts"
import { Pool } from "../pool/Pool.ts"

/** The elements as they came, once they have been checked. */
const rawOf = (json: unknown): ReadonlyArray<RawChange> =>
  (Array.isArray(json) ? json : [json]) as ReadonlyArray<RawChange>

/** Numbers that JSON reads and does not write: what an SSP gets must be what is kept here. */
const unwritable = /-0(?![.\d])|-0\.0*(?!\d)|\d[eE]\+?\d{3}/

/** What both routes do with a body. */
const makeTake: Effect.Effect<IngestRoute.Take, never, Ingest | Declared> = Effect.gen(function* () {
  const ingest = yield* Ingest
  const { schema } = yield* Declared
  const tracing = yield* Tracing
  return (json, done, header) => {
    const changes = Change.decodeChanges(json, schema)
    if (Either.isLeft(changes)) return done(Answers.toAnswer(changes.left))
    const span = tracing?.begin("POST /ingest", {
      kind: "server",
      parent: header,
      attributes: { "svc.changes": changes.right.length }
    })
    ingest.offer(
      changes.right,
      rawOf(json),
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

const rewritten = (json: unknown): unknown => JSON.parse(JSON.stringify(json))

/** For the declared route, which has no text to look at. */
export const makeTakeRewritten: Effect.Effect<IngestRoute.Take, never, Ingest | Declared> = Effect.map(
  makeTake,
  (take) => (json, done, traceparent) => take(rewritten(json), done, traceparent)
)

export const layerHot: Layer.Layer<HotRoutes, never, Ingest | Pool | Declared | SchedulerConfig | IngestTimes | Audit> =
  Layer.effect(
    HotRoutes,
    Effect.gen(function* () {
      const take = yield* makeTake
      const pool = yield* Pool
      const { timed } = yield* IngestTimes
      const { bearers, maxBodyBytes } = yield* SchedulerConfig
      const turnedAway = yield* Guard.makeHot(SchedulerApi, "POST /ingest", makeJudge(bearers, Errors.unauthorized))
      const cloning = Answers.toAnswer(Errors.cloning)
      const route: HotRoute = {
        method: "POST",
        path: "/ingest",
        maxBodyBytes,
        admit: (authorization, _, address) =>
          turnedAway(authorization, address) ?? (pool.state().phase === "Cloning" ? cloning : undefined),
        accept: (body, answer, traceparent) => {
          const done = timed(answer)
          const json = Bodies.parseJson(body)
          if (Either.isLeft(json)) done(Answers.toAnswer(json.left))
          else take(unwritable.test(body) ? rewritten(json.right) : json.right, done, traceparent)
        },
        answered: yield* IngestRoute.refusals,
        tooLarge: Answers.toAnswer(Answers.tooLarge(maxBodyBytes)),
        notText: Answers.toAnswer(Answers.notText)
      }
      return [route]
    })
  )
