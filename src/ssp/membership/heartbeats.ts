/**
 * Heartbeats: one every `HEARTBEAT_INTERVAL_MS` from the first registration on, in every state (D19), with figures of
 * this process (D24).
 *
 * Heartbeats do not wait for each other: one that hangs must not delay the next. Their time limit is long, because a
 * busy scheduler reads them late: with a short limit it lost its SSPs, and their bootstraps made it busier.
 */
import { Deferred, Duration, Effect, FiberSet } from "effect"
import type { HeartbeatAnswer } from "../../core/cluster/enrolment.ts"
import { type Figures, ProcessFigures } from "../../ports/ProcessFigures.ts"
import { type SchedulerClientShape, SchedulerError } from "../../ports/SchedulerClient.ts"
import type { Views } from "../views/Views.ts"
import type { MembershipState } from "./MembershipState.ts"

/** Time limit of a heartbeat: so many periods, and at least this long. */
const periods = 3
const shortestWaitMs = 5000
/** Most heartbeats in flight at once. */
const maxUnderWay = 4

/** Heartbeat answer for each kind of failure. */
const saying = {
  unknown: "unknown",
  conflict: "conflict",
  fenced: "fenced",
  cloning: "none",
  overloaded: "none",
  notLeader: "none",
  refused: "none",
  unreachable: "none"
} as const satisfies { readonly [R in SchedulerError["reason"]]: HeartbeatAnswer }

/** This process as the scheduler knows it: its SSP id, and a number drawn at its start. */
export interface Identity {
  readonly ssp_id: string
  readonly incarnation: string
}

/** Rounds a figure to one decimal place. */
const round = (figure: number): number => Math.round(figure * 10) / 10

/** Percent of one core since the earlier figures, and resident megabytes. */
const usage = (
  before: Figures | undefined,
  now: Figures | undefined,
  ms: number
): { readonly cpu_usage?: number; readonly memory_usage?: number } =>
  now === undefined
    ? {}
    : {
        memory_usage: round(now.residentBytes / 1_048_576),
        ...(before === undefined || ms <= 0
          ? {}
          : { cpu_usage: round(Math.max(0, (now.cpuMicros - before.cpuMicros) / (ms * 10))) })
      }

/** Sends heartbeats for as long as it runs, and reports each answer to the enrolment. */
export const loop = (
  client: Pick<SchedulerClientShape, "heartbeat">,
  views: Pick<Views["Type"], "count">,
  identity: Identity,
  intervalMs: number,
  membership: MembershipState
): Effect.Effect<never> =>
  Effect.scoped(
    Effect.gen(function* () {
      const underWay = yield* FiberSet.make<void, never>()
      const read = yield* ProcessFigures
      const within = Duration.millis(Math.max(periods * intervalMs, shortestWaitMs))
      let before = yield* read
      let beforeAt = membership.nowMs()
      let lastSentAt = Number.NEGATIVE_INFINITY
      const beat = Effect.gen(function* () {
        const { attempt, registration, step } = membership.state
        const sentAt = membership.nowMs()
        const figures = yield* read
        const beating = {
          ...(membership.isPlain ? { ssp_id: identity.ssp_id } : identity),
          timestamp: Math.floor(sentAt / 1000),
          views: yield* views.count,
          ...usage(before, figures, sentAt - beforeAt),
          ...(registration === undefined || membership.wasHeard(lastSentAt) ? {} : { unheard: true }),
          ...(step === "member" && registration !== undefined ? { registration } : {})
        }
        before = figures
        beforeAt = sentAt
        lastSentAt = sentAt
        const answered = yield* client.heartbeat(beating).pipe(
          Effect.timeoutFail({
            duration: within,
            onTimeout: () =>
              new SchedulerError({ reason: "unreachable", message: `no answer within ${Duration.format(within)}` })
          }),
          Effect.match({
            onSuccess: () => ({ answer: "ok" as const, message: "" }),
            onFailure: ({ message, reason }) => ({ answer: saying[reason], message })
          })
        )
        if (answered.answer === "ok") membership.heard(sentAt)
        // A heartbeat sent during a registration concerns the registration before, which has ended.
        yield* membership.tell({ tag: "Answered", attempt: step === "registering" ? 0 : attempt, ...answered })
      })
      const every = Effect.gen(function* () {
        yield* Deferred.await(membership.registered)
        for (;;) {
          const dueAt = membership.nowMs() + intervalMs
          if ((yield* FiberSet.size(underWay)) < maxUnderWay) yield* FiberSet.run(underWay, beat)
          yield* Effect.sleep(Duration.millis(Math.max(0, dueAt - membership.nowMs())))
        }
      })
      return yield* Effect.raceFirst(every, Effect.zipRight(FiberSet.join(underWay), Effect.never))
    })
  )
