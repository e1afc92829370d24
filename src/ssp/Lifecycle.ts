/**
 * Where this SSP stands (D18): the machine of `core/cluster/phase.ts`, driven by loading and by registration.
 *
 * The phase is also readable without an effect, for the hot route. In scheduler mode registration is tried for ever,
 * with full jitter, so that a cluster that comes back is not met by all SSPs at once.
 */
import { Context, Deferred, Duration, Effect, Layer, Random } from "effect"
import * as Phase from "../core/cluster/phase.ts"
import type { DatabaseError } from "../ports/Database.ts"
import { Serving } from "../ports/Front.ts"
import { SchedulerClient, type SchedulerError } from "../ports/SchedulerClient.ts"
import { StartFault } from "../ports/StartFault.ts"
import { SspConfig } from "./Config.ts"
import { Views } from "./Views.ts"

const baseMs = 500
const capMs = 30_000

/** Longest wait after `failures` failures in a row; the wait itself is drawn evenly below it. */
export const backoffCeilingMs = (failures: number): number => Math.min(capMs, baseMs * 2 ** Math.min(failures, 16))

const backoff = (failures: number): Effect.Effect<void> =>
  Effect.flatMap(Random.next, (part) => Effect.sleep(Duration.millis(Math.round(part * backoffCeilingMs(failures)))))

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
      else yield* Effect.zipRight(Deferred.succeed(loaded, undefined), Serving.fork(register(happened)))
      return { phase: () => phase, mode, loaded: Deferred.await(loaded) }
    })
  )
}

const restore = (views: typeof Views.Service): Effect.Effect<void, StartFault> =>
  views.restore.pipe(
    Effect.flatMap(({ records, views }) => Effect.logInfo(`loaded ${records} records and ${views} views`)),
    Effect.catchTag("DatabaseError", (error) => Effect.fail(fromDatabase(error)))
  )

/** Registers until a scheduler answers; then waits, because bootstrap is not built yet. */
const register = (happened: (event: Phase.PhaseEvent) => Effect.Effect<void>) =>
  Effect.gen(function*() {
    const config = yield* SspConfig
    const client = yield* SchedulerClient
    const url = config.advertisedUrl(yield* (yield* Serving).port)
    let failures = 0
    let tries = 0
    const failed = (error: SchedulerError): Effect.Effect<void> =>
      Effect.gen(function*() {
        tries++
        if (error.reason !== "cloning") failures++
        yield* Effect.logWarning(`registration at ${config.schedulerUrl} failed (${failures} in a row): ${error.message}; trying again`)
        if (failures === Phase.maxFailures) {
          yield* Effect.logError(`registration failed ${failures} times in a row; /health reports failed until it succeeds. Check SCHEDULER_URL`)
          yield* happened("AttemptsExhausted")
        }
        yield* backoff(tries - 1)
      })
    for (;;) {
      const answered = yield* Effect.either(client.register({ ssp_id: config.sspId, url, batch: true }))
      if (answered._tag === "Left") {
        yield* failed(answered.left)
        continue
      }
      yield* Effect.logWarning(
        `registered as ${config.sspId} at ${url} with snapshot_seq ${answered.right.snapshot_seq}, but bootstrap from a scheduler is not built yet in this version: this SSP stays bootstrapping. Unset SCHEDULER_URL to run standalone`
      )
      return yield* Effect.never
    }
  })
