/**
 * The phase of this SSP (D18): the state machine of `core/cluster/phase.ts`, driven by loading and, in scheduler mode,
 * by membership.
 *
 * The phase can be read without an effect, by the guards before the routes.
 */
import { Context, Effect, Layer } from "effect"
import type * as Phase from "../../core/cluster/phase.ts"
import type { DatabaseError } from "../../ports/Database.ts"
import { Serving } from "../../ports/Front.ts"
import type { IngestTimes } from "../../ports/IngestTimes.ts"
import type { SchedulerClient } from "../../ports/SchedulerClient.ts"
import { exitCodeOf, StartFault } from "../../ports/StartFault.ts"
import type { Upstream } from "../../ports/Upstream.ts"
import { SspConfig } from "../Config.ts"
import type { DeclaredTypes } from "../reconcile/DeclaredTypes.ts"
import type { Reconcile } from "../reconcile/Reconcile.ts"
import { Views } from "../views/Views.ts"
import { Assignments } from "./Assignments.ts"
import type { Lease } from "./Lease.ts"
import * as Membership from "./Membership.ts"
import * as Standalone from "./Standalone.ts"

/** A store that cannot be opened or read, as a start fault (D22): damaged or newer content ends with exit code 3. */
export const fromDatabase = ({ message, reason }: DatabaseError): StartFault =>
  new StartFault({
    exitCode: exitCodeOf(reason),
    message: `${message}; ${advice[reason]}`
  })

/** Advice to the operator, by the reason of the fault. */
const advice: { readonly [R in DatabaseError["reason"]]: string } = {
  damaged: "it is refused, not repaired: restore a copy, or set SVC_DATA_DIR to another folder",
  newer: "start the version that wrote it, or set SVC_DATA_DIR to another folder",
  locked: "another process has it: stop that one, or set SVC_DATA_DIR to another folder",
  failed: "see SVC_DATA_DIR and STORE_ADDR"
}

/** Membership as other services see it; a standalone SSP has constants in its place. */
interface ClusterSide extends Pick<Membership.Membership, "isMeant" | "lost" | "writesHashes"> {
  readonly assignments: Assignments
}

export class Lifecycle extends Context.Tag("ssp/membership/Lifecycle")<
  Lifecycle,
  ClusterSide & {
    readonly phase: () => Phase.Phase
    readonly mode: "standalone" | "scheduler"
    /** Waits until the store is read, for work that changes it without asking for readiness (D6). */
    readonly loaded: Effect.Effect<void>
    /** Runs work that empties memory. If records can be loaded again, this SSP is not ready until they are. */
    readonly emptying: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>
  }
>() {
  /**
   * A standalone SSP is ready once its store is loaded, and compared with the database if there is one; the server
   * listens meanwhile, so that `/health` answers.
   */
  static readonly layer: Layer.Layer<
    Lifecycle,
    never,
    SspConfig | Views | DeclaredTypes | IngestTimes | Lease | Reconcile | SchedulerClient | Serving | Upstream
  > = Layer.scoped(
    Lifecycle,
    Effect.gen(function* () {
      const { mode } = yield* SspConfig
      return yield* mode === "standalone" ? standalone : inCluster
    })
  )
}

const standalone = Effect.gen(function* () {
  const life = yield* Standalone.make(restore(yield* Views))
  return {
    ...life,
    mode: "standalone" as const,
    isMeant: () => true,
    writesHashes: () => true,
    lost: () => Effect.void,
    assignments: new Assignments()
  }
})

/** Lifecycle in a cluster. No records are loaded at the start: the scheduler has them, and places the views (D20). */
const inCluster = Effect.gen(function* () {
  const assignments = new Assignments()
  const { isMeant, lost, phase, run, writesHashes } = yield* Membership.make(assignments)
  yield* Serving.fork(run)
  const emptying = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.zipRight(lost("it was reset"), work)
  const side = { phase, isMeant, lost, writesHashes, assignments }
  return { ...side, mode: "scheduler" as const, loaded: Effect.void, emptying }
})

const restore = (views: typeof Views.Service): Effect.Effect<void, StartFault> =>
  views.restore.pipe(
    Effect.flatMap(({ records, views }) => Effect.logInfo(`loaded ${records} records and ${views} views`)),
    Effect.catchTag("DatabaseError", (error) => Effect.fail(fromDatabase(error)))
  )
