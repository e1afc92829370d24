/**
 * `POST /ingest`: from body to answer, by callback, for the declared route and for the server's hot route alike.
 *
 * Why no Effect inside: this is the one route whose cost per request decides how much the service can take. A fiber per
 * request alone costs more than everything that is done here.
 */
import { Effect, Either, Layer, Runtime } from "effect"
import * as Change from "../../core/record/change.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import * as Answers from "../../node/httpAnswers.ts"
import * as IngestRoute from "../../node/ingestRoute.ts"
import type { Audit } from "../../ports/Audit.ts"
import { type Answer, HotRoutes } from "../../ports/Front.ts"
import type { IngestTimes } from "../../ports/IngestTimes.ts"
import { Tracing } from "../../ports/Tracing.ts"
import { SspApi } from "../../protocol/SspApi.ts"
import { SspConfig } from "../Config.ts"
import { DeclaredTypes } from "../database/DeclaredTypes.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import * as ChangeTraces from "../views/changeTraces.ts"
import { Views } from "../views/Views.ts"
import type { HeldTables } from "../views/viewTables.ts"
import { type IngestAnswer, type IngestError, SequenceGap } from "../views/viewTypes.ts"
import * as Errors from "./HttpErrors.ts"
import * as Guards from "./HttpGuards.ts"

const isError = (answer: IngestAnswer | IngestError): answer is IngestError => "_tag" in answer

const toAnswer = (answer: IngestAnswer | IngestError): Answer =>
  isError(answer)
    ? Answers.toAnswer(Errors.fromWorld(answer))
    : { status: 200, body: `{"views_affected":${answer.views_affected},"edges_updated":${answer.edges_updated}}` }

/** Changes of another log than the one this SSP bootstrapped from: what it holds is of no use any more (D5). */
const noticed = (lifecycle: Pick<typeof Lifecycle.Service, "lost">, error: IngestError): Effect.Effect<void> =>
  error._tag === "StaleEpoch" && error.otherLog
    ? lifecycle.lost(`the scheduler follows another log: ${error.message}`)
    : Effect.void

/** Why an SSP that follows the feed (D61) does not take changes that are sent to it. */
const notHeld = (
  held: HeldTables | undefined,
  changes: ReadonlyArray<Change.Change>,
  figures: Views["Type"]["figures"]
) => {
  if (held === undefined) return undefined
  if (changes.some(({ position }) => position !== undefined))
    return Errors.fromWorld(
      new SequenceGap({
        message: "this SSP follows the scheduler's feed (SVC_CLUSTER_FEED=pull) and takes no events of its log here",
        expected: (figures().seq ?? 0) + 1
      })
    )
  const other = held.isAll ? undefined : changes.find(({ id }) => !held.tables.includes(id.table))
  return other === undefined
    ? undefined
    : Answers.invalidRequest([
        {
          path: "table",
          reason: `is ${JSON.stringify(other.id.table)}, which this SSP does not hold, because no view reads it (SVC_CLUSTER_FEED=pull): send changes to the scheduler`
        }
      ])
}

/** What both routes do with a body. */
export const makeTake: Effect.Effect<IngestRoute.Take, never, Views | DeclaredTypes | Lifecycle> = Effect.gen(
  function* () {
    const views = yield* Views
    const types = yield* DeclaredTypes
    const lifecycle = yield* Lifecycle
    const tracing = yield* Tracing
    const runFork = Runtime.runFork(yield* Effect.runtime<never>())
    return (json, done, header) => {
      const changes = Change.decodeChanges(json, types.of)
      if (Either.isLeft(changes)) return done(Answers.toAnswer(changes.left))
      // A scheduler's changes have a position in its log.
      const fromScheduler = lifecycle.mode === "scheduler" && changes.right[0]?.position !== undefined
      const refused = fromScheduler ? undefined : Definitions.refused(changes.right)
      if (refused !== undefined) return done(Answers.toAnswer(refused))
      const unwanted = notHeld(views.tables.held(), changes.right, views.figures)
      if (unwanted !== undefined) return done(Answers.toAnswer(unwanted))
      const traced = ChangeTraces.ofRequest(tracing, header, changes.right)
      views.offer(traced?.changes ?? changes.right, (answer) => {
        if (isError(answer)) runFork(noticed(lifecycle, answer))
        const given = toAnswer(answer)
        traced?.end(given.status)
        done(given)
      })
    }
  }
)

export const layerHot: Layer.Layer<
  HotRoutes,
  never,
  Views | DeclaredTypes | Lifecycle | SspConfig | IngestTimes | Audit
> = Layer.effect(
  HotRoutes,
  Effect.gen(function* () {
    const take = yield* makeTake
    const lifecycle = yield* Lifecycle
    const config = yield* SspConfig
    return yield* IngestRoute.hot({
      api: SspApi,
      judge: Guards.judgeOf(config),
      maxBodyBytes: config.bodyLimitBytes,
      notTaking: (registration) => {
        const refused = Guards.notTaking(lifecycle, registration)
        return refused === undefined ? undefined : Answers.toAnswer(refused)
      },
      take
    })
  })
)
