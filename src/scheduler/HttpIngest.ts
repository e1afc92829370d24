/**
 * `POST /ingest` of the scheduler: from body to answer, by callback, for the declared route and for the server's hot route alike.
 *
 * As on the SSP no Effect inside: a fiber per request costs more than everything that is done here.
 */
import { Effect, Either, Layer } from "effect"
import * as Change from "../core/change.ts"
import type { RawChange } from "../core/event.ts"
import * as Trace from "../core/traceContext.ts"
import { makeAuthorized } from "../ports/bearer.ts"
import { type Answer, type HotRoute, HotRoutes } from "../ports/Front.ts"
import * as Answers from "../ports/httpAnswers.ts"
import * as Bodies from "../ports/httpBodies.ts"
import { IngestTimes } from "../ports/IngestTimes.ts"
import { Meters } from "../ports/Meters.ts"
import { Tracing, type TracingShape } from "../ports/Tracing.ts"
import { SchedulerConfig } from "./Config.ts"
import { Declared } from "./Declared.ts"
import * as Errors from "./HttpErrors.ts"
import { Ingest } from "./Ingest.ts"
import { Pool } from "./Pool.ts"

/** The elements as they came, once they have been checked. */
const rawOf = (json: unknown): ReadonlyArray<RawChange> => (Array.isArray(json) ? json : [json]) as ReadonlyArray<RawChange>

/** Numbers that JSON reads and does not write: what an SSP gets must be what is kept here. */
const unwritable = /-0(?![.\d])|-0\.0*(?!\d)|\d[eE]\+?\d{3}/

const accept = (ingest: typeof Ingest.Service, schema: Change.Schema, body: string, done: (answer: Answer) => void, tracing: TracingShape | undefined, header: string | undefined): void => {
  const parsed = Bodies.parseJson(body)
  if (Either.isLeft(parsed)) return done(Answers.toAnswer(parsed.left))
  const json: unknown = unwritable.test(body) ? JSON.parse(JSON.stringify(parsed.right)) : parsed.right
  const changes = Change.decodeChanges(json, schema)
  if (Either.isLeft(changes)) return done(Answers.toAnswer(changes.left))
  const span = tracing?.begin("POST /ingest", { kind: "server", parent: header, attributes: { "svc.changes": changes.right.length } })
  ingest.offer(changes.right, rawOf(json), (outcome) => {
    const answer: Answer = Either.isRight(outcome) ? { status: 200, body: `{"seq":${outcome.right.seq},"delivered":${outcome.right.delivered}}` } : Answers.toAnswer(Errors.fromIngest(outcome.left))
    span?.end(answer.status < 500 ? undefined : `answered ${answer.status}`, { "http.response.status_code": answer.status })
    done(answer)
  }, span?.traceparent ?? (header === undefined ? undefined : Trace.valid(header)))
}

/** The declared route: readiness and body were seen to by its middlewares. */
export const handle = (ingest: typeof Ingest.Service, schema: Change.Schema, given: unknown) =>
  Effect.gen(function*() {
    const json: unknown = JSON.parse(JSON.stringify(given))
    const changes = Change.decodeChanges(json, schema)
    if (Either.isLeft(changes)) return yield* Effect.fail(refused(changes.left))
    return yield* Effect.mapError(ingest.ingest(changes.right, rawOf(json)), Errors.fromIngest)
  })

const refused = ({ code, details, message }: Change.ChangeRefused) => (code === "INVALID_OPERATION" ? { code, details, message } : { code, details, message })

export const layerHot: Layer.Layer<HotRoutes, never, Ingest | Pool | Declared | SchedulerConfig | IngestTimes> = Layer.effect(
  HotRoutes,
  Effect.gen(function*() {
    const ingest = yield* Ingest
    const pool = yield* Pool
    const declared = yield* Declared
    const { ingestRefused } = yield* Meters
    const tracing = yield* Tracing
    const { timed } = yield* IngestTimes
    const { bearers, maxBodyBytes } = yield* SchedulerConfig
    const authorized = bearers === undefined ? () => true : makeAuthorized(bearers)
    const unauthorized = Answers.toAnswer(Errors.unauthorized)
    const cloning = Answers.toAnswer(Errors.cloning)
    const route: HotRoute = {
      method: "POST",
      path: "/ingest",
      maxBodyBytes,
      admit: (authorization) => !authorized(authorization) ? unauthorized : (pool.state().phase === "Cloning" ? cloning : undefined),
      accept: (body, answer, traceparent) => accept(ingest, declared.schema, body, timed(answer), tracing, traceparent),
      answered: (status) => {
        if (status >= 400) ingestRefused[status < 500 ? "4xx" : "5xx"].add()
      },
      tooLarge: Answers.toAnswer(Answers.tooLarge(maxBodyBytes)),
      notText: Answers.toAnswer(Answers.notText)
    }
    return [route]
  })
)
