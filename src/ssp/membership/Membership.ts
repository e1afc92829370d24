/**
 * This SSP as a member of a cluster: carries out what `core/cluster/enrolment.ts` decides.
 *
 * One attempt at a time (wait, register, pull, swap in), heartbeats beside it, a goodbye at the end. An attempt that is
 * over is interrupted wherever it stands; only the swap is always finished. The waits have full jitter, so that a
 * cluster that comes back is not met by all SSPs at once.
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
import { type Begin, Enrolled } from "./enrolled.ts"
import * as Following from "./following.ts"
import * as Heartbeats from "./heartbeats.ts"
import { Lease } from "./Lease.ts"

export interface Membership {
  readonly phase: () => Phase
  /**
   * Whether a call that names this registration (undefined: none) means the data held here; a newer one makes it start
   * over.
   */
  readonly isMeant: (registration: number | undefined) => boolean
  /** Whether hashes of the records are this SSP's to write: its scheduler knows the specification alone. */
  readonly writesHashes: () => boolean
  /** The records held here are of no use any more: register and pull again. */
  readonly lost: (reason: string) => Effect.Effect<void>
  /** Lives as a member until the process stops; fails when a newer process has its id, or without room. */
  readonly run: Effect.Effect<void, StartFault>
}

/** A goodbye must not hold up a stop. */
const goodbyeWithin = Duration.seconds(2)

type Fault = SchedulerError | Bootstrap.SnapshotMoved | StoreFailed

/** The fact that a failed attempt is; a scheduler that is not ready itself is no failure of this SSP (D18). */
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

/** Registers and pulls, once. */
const makeAttempts = (
  enrolled: Enrolled,
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

    const tables = yield* Following.make(enrolled, assignments, isStopping)

    const swapIn = (joined: Following.Registered, pulled: Bootstrap.Pulled) =>
      Effect.gen(function* () {
        // First, so that a view placed before, and still filling, finds out that its placing is over.
        const placed = assignments.clear()
        yield* views.replace({ ...pulled, stays: (key) => !placed(key), definitions: pulled.defined?.definitions })
        types.declare(pulled.defined?.tables ?? pulled.tables)
        yield* Effect.logInfo(
          `bootstrapped at position ${pulled.position.seq} of the scheduler's log: ${pulled.records.length} records`
        )
        // Before a view is placed here, which asks for its tables.
        yield* tables.begin(joined, pulled)
        yield* enrolled.tell({ tag: "Loaded", attempt: joined.attempt })
      })

    const jobTables = config.jobTables.map(({ table }) => table)
    const attempt = ({ attempt, jitterMs, waitMs }: Begin): Effect.Effect<void, StartFault> =>
      Effect.gen(function* () {
        yield* Effect.sleep(Duration.millis(Math.round(waitMs + (yield* Random.next) * jitterMs)))
        const url = config.advertisedUrl(yield* Serving.portFor(serving, "the registration with the scheduler"))
        const wanted = yield* tables.wanted
        const registering = client.register({
          ...identity,
          url,
          batch: true,
          job_tables: jobTables,
          ...Following.asked(wanted)
        })
        enrolled.isAsking = true
        const registered = yield* Effect.tapError(registering, () => Effect.sync(() => (enrolled.isAsking = false)))
        const joined = Following.joinedAs(attempt, registered, wanted)
        enrolled.isRegistered(registered)
        yield* enrolled.tell({ tag: "Registered", attempt, registration: registered.registration })
        yield* Progress.during("bootstrap", "the scheduler's snapshot", "records", (step) =>
          Effect.flatMap(Bootstrap.pull(client, registered, step, joined.held), (pulled) =>
            Effect.uninterruptible(swapIn(joined, pulled))
          )
        )
        yield* tables.run
      }).pipe(
        Effect.catchAll((error) =>
          error instanceof StartFault ? Effect.fail(error) : enrolled.tell(factOf(attempt, error, config))
        )
      )

    return Effect.gen(function* () {
      for (;;) {
        const { begin, over } = enrolled.attempt
        yield* Effect.raceFirst(Effect.zipRight(attempt(begin), Effect.never), Deferred.await(over))
      }
    })
  })

/** Runs only where its owner forks {@link Membership.run}. */
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
    const enrolled = new Enrolled(steadyOf(clock), lease, config.heartbeatIntervalMs)
    let stops = false
    const attempts = yield* makeAttempts(enrolled, identity, assignments, () => stops)
    const beats = Heartbeats.loop(client, views, identity, config.heartbeatIntervalMs, enrolled)

    const goodbye = Effect.suspend(() => {
      const known =
        (enrolled.wasRegistered || enrolled.isAsking) && enrolled.state.step !== "fenced" && !enrolled.isPlain
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

    const membership: Membership = {
      phase: () => enrolled.state.phase,
      writesHashes: () => enrolled.isPlain && enrolled.state.phase === "ready",
      isMeant: (named) => {
        const meant = Enrolment.isMeant(enrolled.state, named)
        if (!meant && named !== undefined) runFork(enrolled.tell({ tag: "Named", registration: named }))
        return meant
      },
      lost: (reason) => enrolled.tell({ tag: "Lost", reason }),
      run: Effect.raceFirst(
        Effect.all([attempts, beats, Deferred.await(enrolled.stopped)], { concurrency: "unbounded", discard: true }),
        Effect.tap(serving.stopping, () => Effect.sync(() => (stops = true)))
      ).pipe(Effect.ensuring(goodbye))
    }
    return membership
  })
