/**
 * `POST /ingest`: from body to answer, by callback.
 *
 * No Effect inside: the cost of this route per request limits the service, and a fiber per request alone costs more
 * than everything done here.
 */
import { Effect, Either, Runtime } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import * as Change from "../../core/record/change.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import * as Answers from "../../node/http/answers.ts"
import * as IngestRoute from "../../node/http/ingestRoute.ts"
import type { Answer } from "../../ports/Front.ts"
import { SchedulerClient } from "../../ports/SchedulerClient.ts"
import { Tracing } from "../../ports/Tracing.ts"
import { JobIntake } from "../jobs/JobIntake.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import * as ChangeTraces from "../views/changeTraces.ts"
import { Views } from "../views/Views.ts"
import type { HeldTables } from "../views/viewTables.ts"
import { type IngestAnswer, type IngestError, SequenceGap } from "../viewTypes.ts"
import * as Errors from "./HttpErrors.ts"

const isError = (answer: IngestAnswer | IngestError): answer is IngestError => "_tag" in answer

const toAnswer = (answer: IngestAnswer | IngestError): Answer =>
  isError(answer)
    ? Answers.toAnswer(Errors.wireErrorOf(answer))
    : { status: 200, body: `{"views_affected":${answer.views_affected},"edges_updated":${answer.edges_updated}}` }

/** Changes of another log than the one this SSP bootstrapped from: the data held here is void (D5). */
const noticed = (lifecycle: Pick<typeof Lifecycle.Service, "lost">, error: IngestError): Effect.Effect<void> =>
  error._tag === "StaleEpoch" && error.otherLog
    ? lifecycle.lost(`the scheduler follows another log: ${error.message}`)
    : Effect.void

/** The refusal of log events, which are not pushed to an SSP that follows the feed (D61). */
const sent = (
  held: HeldTables | undefined,
  changes: ReadonlyArray<Change.Change>,
  figures: Views["Type"]["figures"]
) =>
  held === undefined || changes.every(({ position }) => position === undefined)
    ? undefined
    : Errors.wireErrorOf(
        new SequenceGap({
          message: "this SSP follows the scheduler's feed (SVC_CLUSTER_FEED=pull) and takes no events of its log here",
          expected: (figures().seq ?? 0) + 1
        })
      )

const isHeld = (held: HeldTables | undefined, changes: ReadonlyArray<Change.Change>): boolean =>
  held === undefined || held.isAll || changes.every(({ id }) => held.tables.includes(id.table))

/**
 * Hands a body on to the scheduler: changes of a table that no view here reads, and a client's changes of jobs, since a
 * job posted to two SSPs would be called by both. Whole bodies, so that none is half applied. The changes come back
 * through the log.
 */
const handOn = (
  { ingest }: Pick<typeof SchedulerClient.Service, "ingest">,
  body: string,
  why: keyof typeof reasons
): Effect.Effect<Answer> =>
  ingest === undefined
    ? Effect.succeed(Answers.toAnswer(notTaken(why, "send them to the scheduler")))
    : Effect.match(ingest(body), {
        onSuccess: () => toAnswer({ views_affected: 0, edges_updated: 0 }),
        onFailure: ({ message, reason, retryAfterMs = 1000 }) =>
          Answers.toAnswer(
            reason === "refused"
              ? notTaken(why, `the scheduler does not take them from this SSP: ${message}`)
              : Answers.overloaded({
                  message: `the scheduler, which takes changes of jobs and of tables that no view here reads, ${message}`,
                  retryAfterSecs: Math.max(1, Math.ceil(retryAfterMs / 1000))
                })
          )
      })

/** Why changes are handed on. */
const reasons = {
  jobs: "holds jobs, which all SSPs of a cluster share",
  unread: "is read by no view of this SSP (SVC_CLUSTER_FEED=pull)"
} as const

const notTaken = (why: keyof typeof reasons, hint: string) =>
  Answers.invalidRequest([{ path: "table", reason: `${reasons[why]}: ${hint}` }])

/** The route. */
export const make = Effect.gen(function* () {
  const jobs = (yield* JobIntake).tables
  const views = yield* Views
  const types = yield* DeclaredTypes
  const lifecycle = yield* Lifecycle
  const scheduler = yield* SchedulerClient
  const tracing = yield* Tracing
  const runFork = Runtime.runFork(yield* Effect.runtime<never>())
  const take: IngestRoute.IngestHandler = (json, done, header) => {
    const changes = Change.decodeChanges(json, types.of)
    if (Either.isLeft(changes)) return done(Answers.toAnswer(changes.left))
    // A scheduler's changes have a position in its log.
    const fromScheduler = lifecycle.mode === "scheduler" && changes.right[0]?.position !== undefined
    const refused = fromScheduler ? undefined : Definitions.refused(changes.right)
    if (refused !== undefined) return done(Answers.toAnswer(refused))
    const held = views.tables.held()
    const unwanted = sent(held, changes.right, views.figures)
    if (unwanted !== undefined) return done(Answers.toAnswer(unwanted))
    const isJobs =
      lifecycle.mode === "scheduler" && !fromScheduler && changes.right.some(({ id }) => jobs.has(id.table))
    // A scheduler of the specification alone sends changes without positions.
    const why = isJobs && !lifecycle.writesHashes() ? "jobs" : isHeld(held, changes.right) ? undefined : "unread"
    if (why !== undefined) return void runFork(Effect.map(handOn(scheduler, JsonText.write(json), why), done))
    const traced = ChangeTraces.ofRequest(tracing, header, changes.right)
    views.ingest(traced?.changes ?? changes.right, (answer) => {
      if (isError(answer)) runFork(noticed(lifecycle, answer))
      const given = toAnswer(answer)
      traced?.end(given.status)
      done(given)
    })
  }
  return yield* IngestRoute.make(take)
})
