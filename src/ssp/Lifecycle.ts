/**
 * Where this SSP stands (D18): the machine of `core/cluster/phase.ts`, driven by loading and, in scheduler mode, by membership.
 *
 * The phase is also readable without an effect, for the hot route.
 */
import { Context, Deferred, Effect, Layer } from "effect"
import * as Phase from "../core/cluster/phase.ts"
import type { DatabaseError } from "../ports/Database.ts"
import { Serving } from "../ports/Front.ts"
import type { SchedulerClient } from "../ports/SchedulerClient.ts"
import { StartFault } from "../ports/StartFault.ts"
import { SspConfig } from "./Config.ts"
import * as Membership from "./Membership.ts"
import { Views } from "./Views.ts"

/** A store that cannot be opened or read, as a reason not to start (D22): damaged or newer content is refused with 3. */
export const fromDatabase = ({ message, reason }: DatabaseError): StartFault =>
  new StartFault({ exitCode: reason === "damaged" || reason === "newer" ? 3 : 1, message: `${message}; ${advice[reason]}` })

/** What an operator can do, by reason. */
const advice: { readonly [R in DatabaseError["reason"]]: string } = {
  damaged: "it is refused, not repaired: restore a copy, or set SVC_DATA_DIR to another folder",
  newer: "start the version that wrote it, or set SVC_DATA_DIR to another folder",
  locked: "another process has it: stop that one, or set SVC_DATA_DIR to another folder",
  failed: "see SVC_DATA_DIR and STORE_ADDR"
}

export class Lifecycle extends Context.Tag("ssp/Lifecycle")<Lifecycle, {
  readonly phase: () => Phase.Phase
  readonly mode: "standalone" | "scheduler"
  /** Waits until the store is read; what changes it without asking for readiness (D6) waits here. */
  readonly loaded: Effect.Effect<void>
}>() {
  /** A standalone SSP is ready once its store is loaded; the server listens meanwhile, so that `/health` can say so. */
  static readonly layer: Layer.Layer<Lifecycle, never, SspConfig | Views | SchedulerClient | Serving> = Layer.scoped(
    Lifecycle,
    Effect.gen(function*() {
      const { mode } = yield* SspConfig
      const views = yield* Views
      const loaded = yield* Deferred.make<void>()
      let phase: Phase.Phase = "bootstrapping"
      const happened = (event: Phase.PhaseEvent): Effect.Effect<void> =>
        Effect.suspend(() => {
          const step = Phase.next(phase, event)
          const from = phase
          phase = step.state
          return step.changed ? Effect.logInfo(`${from} -> ${step.state}: ${step.note}`) : Effect.void
        })
      if (mode === "standalone") yield* Serving.fork(Effect.all([restore(views), Deferred.succeed(loaded, undefined), happened("Loaded")]))
      else yield* Effect.zipRight(Deferred.succeed(loaded, undefined), Serving.fork(Membership.run(happened)))
      return { phase: () => phase, mode, loaded: Deferred.await(loaded) }
    })
  )
}

const restore = (views: typeof Views.Service): Effect.Effect<void, StartFault> =>
  views.restore.pipe(
    Effect.flatMap(({ records, views }) => Effect.logInfo(`loaded ${records} records and ${views} views`)),
    Effect.catchTag("DatabaseError", (error) => Effect.fail(fromDatabase(error)))
  )
