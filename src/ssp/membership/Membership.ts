/**
 * This SSP as a member of a cluster: carries out the decisions of `core/cluster/enrolment.ts`.
 *
 * One attempt at a time (wait, register, pull, swap in), heartbeats beside it, a deregistration at the end. An attempt
 * that is superseded is interrupted at once; only the swap is always finished. Waits have full jitter, so that the SSPs
 * of a restarted cluster do not all come at once.
 */
import { Deferred, Duration, Effect, Random, Runtime } from "effect"
import * as Enrolment from "../../core/cluster/enrolment.ts"
import type { Phase } from "../../core/cluster/phase.ts"
import { atEnd, Serving } from "../../ports/Front.ts"
import { Progress } from "../../ports/Progress.ts"
import { SchedulerClient, type SchedulerError } from "../../ports/SchedulerClient.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { steadyOf } from "../../ports/Turn.ts"
import { SspConfig, type SspConfigShape } from "../Config.ts"
import { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import * as Bootstrap from "../tables/bootstrap.ts"
import { Views } from "../views/Views.ts"
import type { StoreFailed } from "../viewTypes.ts"
import type { Assignments } from "./Assignments.ts"
import * as Following from "./following.ts"
import * as Heartbeats from "./heartbeats.ts"
import { Lease } from "./Lease.ts"
import { type BeginOrder, MembershipState } from "./MembershipState.ts"

export interface Membership {
  readonly phase: () => Phase
  /**
   * Whether a call for this registration (undefined: names none) is for the data held here; a newer registration makes
   * this SSP start over.
   */
  readonly isMeant: (registration: number | undefined) => boolean
  /** Whether this SSP writes the hashes of records: its scheduler knows the specification alone. */
  readonly writesHashes: () => boolean
  /** Called when the records held here are void: registers and pulls again. */
  readonly lost: (reason: string) => Effect.Effect<void>
  /** Runs the membership until the process stops; fails if a newer process has its id, or the heap has no room. */
  readonly run: Effect.Effect<void, StartFault>
}

/** Time limit of the deregistration, which must not block a stop. */
const goodbyeWithin = Duration.seconds(2)

type Fault = SchedulerError | Bootstrap.SnapshotMoved | StoreFailed

/** A failed attempt as a fact for the enrolment; a scheduler that is not ready does not count as a failure (D18). */
const factOf = (attempt: number, error: Fault, config: SspConfigShape): Enrolment.Fact => {
  if (error._tag !== "SchedulerError")
    return { tag: "Failed", attempt, counts: true, waitMs: 0, message: error.message }
  const message = `${config.schedulerUrl}: ${error.message}`
  if (error.reason === "fenced") return { tag: "Fenced", message }
  return {
    tag: "Failed",
    attempt,
    counts: !["cloning", "overloaded", "notLeader"].includes(error.reason),
    waitMs: error.retryAfterMs ?? 0,
    message
  }
}

const hex = Effect.map(Effect.replicateEffect(Random.nextIntBetween(0, 16), 16), (digits) =>
  digits.map((digit) => digit.toString(16)).join("")
)

/** One attempt: registers, pulls, swaps in. */
const makeAttempts = (
  membership: MembershipState,
  identity: Heartbeats.Identity,
  assignments: Assignments,
  isStopping: () => boolean
) =>
  Effect.gen(function* () {
    const config = yield* SspConfig
    const views = yield* Views
    const client = yield* SchedulerClient
    const serving = yield* Serving
    const types = yield* DeclaredTypes

    const tables = yield* Following.make(membership, assignments, isStopping)

    const swapIn = (joined: Following.AcceptedRegistration, pulled: Bootstrap.PulledSnapshot) =>
      Effect.gen(function* () {
        // Called before `replace`, so that a view placed earlier, and still filling, finds that its assignment has
        // ended.
        const placed = assignments.clear()
        yield* views.replace({ ...pulled, stays: (key) => !placed(key), definitions: pulled.defined?.definitions })
        types.declare(pulled.defined?.tables ?? pulled.tables)
        yield* Effect.logInfo(
          `bootstrapped at position ${pulled.position.seq} of the scheduler's log: ${pulled.records.length} records`
        )
        // Called before any view is placed here, because a placed view asks for its tables.
        yield* tables.begin(joined, pulled)
        yield* membership.tell({ tag: "Loaded", attempt: joined.attempt })
      })

    const jobTables = config.jobTables.map(({ table }) => table)
    const attempt = ({ attempt, jitterMs, waitMs }: BeginOrder): Effect.Effect<void, StartFault> =>
      Effect.gen(function* () {
        yield* Effect.sleep(Duration.millis(Math.round(waitMs + (yield* Random.next) * jitterMs)))
        const url = config.advertisedUrl(yield* Serving.portFor(serving, "the registration with the scheduler"))
        const wanted = yield* tables.wanted
        const registering = client.register({
          ...identity,
          url,
          batch: true,
          job_tables: jobTables,
          ...Following.tablesField(wanted)
        })
        membership.isAsking = true
        const registered = yield* Effect.tapError(registering, () => Effect.sync(() => (membership.isAsking = false)))
        const joined = Following.acceptedAs(attempt, registered, wanted)
        membership.isRegistered(registered)
        yield* membership.tell({ tag: "Registered", attempt, registration: registered.registration })
        yield* Progress.during("bootstrap", "the scheduler's snapshot", "records", (step) =>
          Effect.flatMap(Bootstrap.pullSnapshot(client, registered, step, joined.held), (pulled) =>
            Effect.uninterruptible(swapIn(joined, pulled))
          )
        )
        yield* tables.run
      }).pipe(
        Effect.catchAll((error) =>
          error instanceof StartFault ? Effect.fail(error) : membership.tell(factOf(attempt, error, config))
        )
      )

    return Effect.gen(function* () {
      for (;;) {
        const { begin, over } = membership.attempt
        yield* Effect.raceFirst(Effect.zipRight(attempt(begin), Effect.never), Deferred.await(over))
      }
    })
  })

/** The membership of this SSP; its owner forks {@link Membership.run}. */
export const make = (assignments: Assignments) =>
  Effect.gen(function* () {
    const config = yield* SspConfig
    const views = yield* Views
    const client = yield* SchedulerClient
    const serving = yield* Serving
    const clock = yield* Effect.clock
    const runFork = Runtime.runFork(yield* Effect.runtime<never>())
    const identity = { ssp_id: config.sspId, incarnation: yield* hex }
    const lease = yield* Lease
    const membership = new MembershipState(steadyOf(clock), lease, config.heartbeatIntervalMs)
    let stops = false
    const attempts = yield* makeAttempts(membership, identity, assignments, () => stops)
    const beats = Heartbeats.loop(client, views, identity, config.heartbeatIntervalMs, membership)

    const goodbye = Effect.suspend(() => {
      const known =
        (membership.wasRegistered || membership.isAsking) && membership.state.step !== "fenced" && !membership.isPlain
      if (!known) return Effect.void
      const calling = lease.end()
      return atEnd(client.deregister({ ...identity, ...(calling.length === 0 ? {} : { calling }) }), goodbyeWithin)
    }).pipe(
      Effect.catchAll(({ message }) =>
        Effect.logWarning(
          `the goodbye did not reach the scheduler (${message}); it moves the views when heartbeats stay away`
        )
      )
    )

    const shape: Membership = {
      phase: () => membership.state.phase,
      writesHashes: () => membership.isPlain && membership.state.phase === "ready",
      isMeant: (named) => {
        const meant = Enrolment.isForRegistration(membership.state, named)
        if (!meant && named !== undefined) runFork(membership.tell({ tag: "Named", registration: named }))
        return meant
      },
      lost: (reason) => membership.tell({ tag: "Lost", reason }),
      run: Effect.raceFirst(
        Effect.all([attempts, beats, Deferred.await(membership.stopped)], { concurrency: "unbounded", discard: true }),
        Effect.tap(serving.stopping, () => Effect.sync(() => (stops = true)))
      ).pipe(Effect.ensuring(goodbye))
    }
    return shape
  })
