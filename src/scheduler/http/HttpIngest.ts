/**
 * `POST /ingest` of the scheduler: from body to answer, by callback.
 *
 * No Effect inside, as on the SSP: a fiber per request costs more than everything done here.
 */
import { Effect, Either } from "effect"
import * as Change from "../../core/record/change.ts"
import * as Event from "../../core/record/event.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import * as Trace from "../../core/telemetry/traceContext.ts"
import * as Answers from "../../node/http/answers.ts"
import * as IngestRoute from "../../node/http/ingestRoute.ts"
import type { Answer } from "../../ports/Front.ts"
import { Tracing } from "../../ports/Tracing.ts"
import * as Errors from "../HttpErrors.ts"
import { Ingest } from "../ingest/Ingest.ts"
import { DeclaredTables } from "../pool/DeclaredTables.ts"

/** The route. */
export const make = Effect.gen(function* () {
  const ingest = yield* Ingest
  const { schema } = yield* DeclaredTables
  const tracing = yield* Tracing
  const take: IngestRoute.IngestHandler = (json, done, header) => {
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
      Event.receivedChangesOf(changes.right, json),
      (outcome) => {
        const answer: Answer = Either.isRight(outcome)
          ? { status: 200, body: `{"seq":${outcome.right.seq},"delivered":${outcome.right.delivered}}` }
          : Answers.toAnswer(Errors.ingestError(outcome.left))
        span?.end(answer.status < 500 ? undefined : `answered ${answer.status}`, {
          "http.response.status_code": answer.status
        })
        done(answer)
      },
      span?.traceparent ?? (header === undefined ? undefined : Trace.valid(header))
    )
  }
  return yield* IngestRoute.make(take)
})
