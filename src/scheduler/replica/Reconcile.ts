/**
 * What keeps the replica equal to the database while the scheduler serves: a compare at the start and every
 * `SVC_RECONCILE_INTERVAL_SECS` (D25, D20).
 *
 * An event that never came shows here, and so does what happened while the scheduler was down. What differs goes the
 * way of any change: logged with a new position, told to every SSP, and only if its record is still what it was when
 * the difference was seen. Behind a clone the first compare comes soon: what changed during its last walk was refused
 * at the door.
 */
import { Context, Duration, Effect, Layer, Schedule } from "effect"
import type * as Compare from "../../core/record/reconcile.ts"
import type * as Version from "../../core/record/version.ts"
import { identical } from "../../core/surql/values/order.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import {
  type Compared,
  defaultMomentMs,
  LiveCompare,
  type Side,
  type Suspect,
  withoutStrays
} from "../../node/database/liveCompare.ts"
import { Serving } from "../../ports/Front.ts"
import { Replica, type ReplicaError, type ReplicaRecord, type ReplicaShape } from "../../ports/Replica.ts"
import { Upstream, type UpstreamError, type UpstreamShape } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { Ingest, type Refusal } from "../ingest/Ingest.ts"
import { Pool } from "../pool/Pool.ts"
import { between, patiently, reallyDiffers, repairOf } from "./Cloning.ts"
import { Following } from "./Following.ts"

const soonSecs = 30
/** Pauses after failures of the first compare begin with this and double. */
const retryMs = 500

type Alive = Compare.Known

export const same = (a: Version.Known | undefined, b: Version.Known | undefined): boolean =>
  a === undefined || b === undefined
    ? a === b
    : a.version === b.version &&
      (a.doc === undefined || b.doc === undefined ? a.doc === b.doc : identical(a.doc, b.doc))

export const alive = ({ doc, id, version }: ReplicaRecord): Alive | undefined =>
  doc === undefined ? undefined : { id, doc, version }

/** The replica as a side of the compare. */
export const sideOf = (
  replica: ReplicaShape,
  chunkSize: number,
  ingest: Ingest["Type"]["ingest"]
): Side<Alive, ReplicaRecord, ReplicaError, Refusal | ReplicaError> => {
  const repair = (suspects: ReadonlyArray<Suspect<Alive, ReplicaRecord>>) => {
    if (suspects.length === 0) return Effect.succeed([])
    const repairs = suspects.map(repairOf)
    const states = new Map(suspects.map(({ id, state }) => [id.text, state]))
    const made: Array<RecordId> = []
    return ingest(repairs, {
      holds: ({ id }, was) => {
        const holds = same(states.get(id.text), was)
        if (holds) made.push(id)
        return holds
      },
      asOne: true
    }).pipe(Effect.as(made))
  }
  return {
    chunkSize,
    // Types stay those of the last clone (D28): SSPs have been told those.
    declare: () => {},
    names: replica.names,
    between: (table, stretch) =>
      Effect.map(between(replica, table, stretch), (found) =>
        Array.from(found.values()).flatMap((record) => alive(record) ?? [])
      ),
    states: replica.current,
    known: alive,
    unmoved: same,
    differs: reallyDiffers,
    repair
  }
}

/** Between two looks whether a clone is at its end. */
const cloningMs = 100

type Failure = UpstreamError | ReplicaError | Refusal

interface Shape {
  /** One compare of everything, now; one at a time. */
  readonly now: Effect.Effect<Compared, Failure>
  /** One compare of these tables, those that are gone among them. */
  readonly tables: (names: ReadonlySet<string>) => Effect.Effect<Compared, Failure>
  /** Reads these tables now and logs what differs; for those that raise no events. */
  readonly refresh: (names: ReadonlySet<string>) => Effect.Effect<void, Failure>
}

const nothingCompared: Compared = { compared: 0, repaired: [] }
/** Without a database. */
const nothing: Shape = {
  now: Effect.succeed(nothingCompared),
  tables: () => Effect.succeed(nothingCompared),
  refresh: () => Effect.void
}

type ReplicaSide = ReturnType<typeof sideOf>

/** Makes the replica what these tables are, but for records that have moved since they were read. */
const refreshing =
  (
    comparing: LiveCompare<Alive, ReplicaRecord, ReplicaError, Refusal | ReplicaError>,
    side: ReplicaSide,
    upstream: UpstreamShape,
    replica: ReplicaShape
  ): Shape["refresh"] =>
  (names) => {
    const repair = (differences: ReadonlyArray<Compare.Difference<Alive>>) =>
      Effect.gen(function* () {
        const real = yield* withoutStrays(differences, upstream.find)
        const states = yield* replica.current(real.map(({ id }) => id))
        const suspects = real.map((difference) => ({ ...difference, state: states.get(difference.id.text) }))
        yield* side.repair(suspects.filter(({ known, state }) => side.unmoved(known, state && alive(state))))
      })
    return Effect.asVoid(comparing.each((effect) => effect, repair, undefined, names))
  }

export class Reconcile extends Context.Tag("scheduler/replica/Reconcile")<Reconcile, Shape>() {}

const layerOf = (
  momentMs: number
): Layer.Layer<Reconcile, never, Upstream | Replica | Ingest | Pool | Following | SchedulerConfig | Serving> =>
  Layer.scoped(
    Reconcile,
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const replica = yield* Replica
      const pool = yield* Pool
      const serving = yield* Serving
      const scope = yield* Effect.scope
      const { ingest } = yield* Ingest
      const { bootstrapChunkSize, changesPerRead, maxPendingChanges, reconcileIntervalSecs } = yield* SchedulerConfig
      if (!upstream.present) return nothing
      const following = yield* Following
      const { withPermits } = yield* Effect.makeSemaphore(1)
      const side = sideOf(replica, bootstrapChunkSize, ingest)
      const comparing = new LiveCompare({
        upstream,
        momentMs,
        together: Math.min(changesPerRead, maxPendingChanges),
        side,
        fork: (later) => Effect.asVoid(Effect.forkIn(Serving.guard(serving, later), scope))
      })
      const now = withPermits(1)(comparing.now)
      const soon = reconcileIntervalSecs === 0 ? soonSecs : Math.min(soonSecs, reconcileIntervalSecs)
      const failed = ({ message }: { readonly message: string }): Effect.Effect<void> =>
        Effect.logWarning(`the compare with the database failed: ${message}; trying again`)
      const compare = now.pipe(
        Effect.as(reconcileIntervalSecs),
        Effect.catchAll((error) => Effect.as(failed(error), soon))
      )
      const turn = (pauseSecs: number): Effect.Effect<number> =>
        Effect.zipRight(
          Effect.sleep(Duration.seconds(pauseSecs)),
          Effect.suspend(() => (pool.state().phase === "Cloning" ? Effect.succeed(soon) : compare))
        )
      const atStart = now.pipe(
        Effect.tapError(failed),
        Effect.retry(
          Schedule.union(
            Schedule.jittered(Schedule.exponential(Duration.millis(retryMs))),
            Schedule.spaced(Duration.seconds(soon))
          )
        ),
        Effect.orDie,
        Effect.flatMap(({ compared, repaired }) =>
          Effect.logInfo(
            `replica and database are compared: ${compared} records, ${repaired.length} of them written or removed`
          )
        )
      )
      const wasCloning = pool.state().phase === "Cloning"
      const cloned = Effect.sync(() => pool.state().phase !== "Cloning").pipe(
        Effect.repeat({ until: (yes) => yes, schedule: Schedule.spaced(Duration.millis(cloningMs)) })
      )
      const complete = Effect.orDie(patiently("writing to the lease on the database")(following.complete))
      // A replica that was there before the start may lack what happened while the scheduler was down; so may one whose
      // clone began before the rows of the change table were this scheduler's to delete.
      const first = Effect.flatMap(following.worth, (worth) => {
        if (worth === "none") return wasCloning ? Effect.void : atStart
        const equal =
          worth === "whole"
            ? Effect.logInfo("no compare with the database: the change table held what was written meanwhile")
            : Effect.zipRight(cloned, atStart)
        return Effect.zipRight(equal, complete)
      })
      const then =
        reconcileIntervalSecs === 0
          ? Effect.never
          : Effect.zipRight(Effect.iterate(soon, { while: () => true, body: turn }), Effect.never)
      yield* Serving.fork(Effect.zipRight(first, then))
      return {
        now,
        tables: (names) => withPermits(1)(comparing.some(names)),
        refresh: refreshing(comparing, side, upstream, replica)
      }
    })
  )

export const layer = layerOf(defaultMomentMs)
