/**
 * Keeps the replica equal to the database while the scheduler serves: a compare at the start and every
 * `SVC_RECONCILE_INTERVAL_SECS` (D25, D20).
 *
 * The compare finds lost events and writes made while the scheduler was down. A difference becomes an ordinary change:
 * logged with a new position, sent to every SSP, and only if its record is unchanged since the difference was seen.
 * After a clone the first compare comes soon: changes posted during its last walk were refused.
 */
import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { chunksOf } from "../../core/chunksOf.ts"
import * as DeliveryQueue from "../../core/cluster/deliveryQueue.ts"
import * as State from "../../core/cluster/state.ts"
import type * as Compare from "../../core/record/reconcile.ts"
import type * as Version from "../../core/record/version.ts"
import { identical } from "../../core/surql/values/order.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import {
  type Compared,
  defaultMomentMs,
  LiveCompare,
  makeFailureLog,
  roomToCompare,
  type Side,
  type Suspect,
  withoutStrays
} from "../../node/database/liveCompare.ts"
import { Serving } from "../../ports/Front.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import { Replica, type ReplicaError, type ReplicaRecord, type ReplicaShape } from "../../ports/Replica.ts"
import { Upstream, type UpstreamError, type UpstreamShape } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { Overloaded } from "../errors.ts"
import { Ingest, type Refusal } from "../ingest/Ingest.ts"
import { Pool } from "../pool/Pool.ts"
import { ChangeTableLease } from "./ChangeTableLease.ts"
import { differsBeyondJson, recordsInStretch, repairOf, retryUntilUsable } from "./Cloning.ts"

const soonSecs = 30
/** First pause after a failure of the first compare; later pauses double. */
const retryMs = 500

type Alive = Compare.Known

export const isSameState = (a: Version.Known | undefined, b: Version.Known | undefined): boolean =>
  a === undefined || b === undefined
    ? a === b
    : a.version === b.version &&
      (a.doc === undefined || b.doc === undefined ? a.doc === b.doc : identical(a.doc, b.doc))

export const liveRecord = ({ doc, id, version }: ReplicaRecord): Alive | undefined =>
  doc === undefined ? undefined : { id, doc, version }

const shortOfMemory = (message: string): Overloaded => new Overloaded({ message, retryAfterSecs: 5 })

/** Most records repaired as one step, and the wait before a step of `count` records. */
interface Steps {
  readonly most: number
  readonly begin: (count: number) => Effect.Effect<void>
}

/** The replica as one side of the compare. */
export const replicaSide = (
  replica: ReplicaShape,
  chunkSize: number,
  ingest: Ingest["Type"]["ingest"],
  heap: HeapShape,
  steps: Steps = { most: Number.MAX_SAFE_INTEGER, begin: () => Effect.void }
): Side<Alive, ReplicaRecord, ReplicaError, Refusal | ReplicaError> => {
  const repairAtOnce = (suspects: ReadonlyArray<Suspect<Alive, ReplicaRecord>>) => {
    const repairs = suspects.map(repairOf)
    const states = new Map(suspects.map(({ id, state }) => [id.text, state]))
    const made: Array<RecordId> = []
    return ingest(repairs, {
      holds: ({ id }, was) => {
        const holds = isSameState(states.get(id.text), was)
        if (holds) made.push(id)
        return holds
      },
      asOne: true
    }).pipe(Effect.as(made))
  }
  const repair = (suspects: ReadonlyArray<Suspect<Alive, ReplicaRecord>>) =>
    Effect.map(
      Effect.forEach(chunksOf(suspects, steps.most), (step) =>
        Effect.zipRight(steps.begin(step.length), repairAtOnce(step))
      ),
      (made) => made.flat()
    )
  return {
    chunkSize,
    room: roomToCompare(heap, shortOfMemory),
    // Types stay those of the last clone (D28), which SSPs know.
    declare: () => {},
    names: replica.names,
    between: (table, stretch) =>
      Effect.map(recordsInStretch(replica, table, stretch), (found) =>
        Array.from(found.values()).flatMap((record) => liveRecord(record) ?? [])
      ),
    states: replica.current,
    known: liveRecord,
    unmoved: isSameState,
    differs: differsBeyondJson,
    repair
  }
}

/** Pause between two checks whether SSPs have taken the earlier steps, and most checks. */
const lacking = { lookMs: 50, looks: 200 }

/**
 * Steps no larger than the backlog at which an SSP must bootstrap again, each begun when every SSP has room for it. An
 * SSP that takes nothing for long is not waited for.
 */
const stepsOf = (pool: Pool["Type"], maxBuffer: number): Steps => {
  const isLacking = (count: number): boolean => {
    const state = pool.state()
    return State.ready(state).some(({ queue }) => DeliveryQueue.waiting(queue, state.log) > maxBuffer - count)
  }
  const again = Schedule.spaced(Duration.millis(lacking.lookMs)).pipe(Schedule.upTo(lacking.looks * lacking.lookMs))
  return {
    most: maxBuffer,
    begin: (count) =>
      Effect.asVoid(
        Effect.repeat(
          Effect.sync(() => isLacking(count)),
          { while: (yes) => yes, schedule: again }
        )
      )
  }
}

/** Pause between two looks whether a clone has ended. */
const cloningMs = 100

const clonedBy = (pool: Pool["Type"]) =>
  Effect.sync(() => pool.state().phase !== "Cloning").pipe(
    Effect.repeat({ until: (yes) => yes, schedule: Schedule.spaced(Duration.millis(cloningMs)) })
  )

type Failure = UpstreamError | ReplicaError | Refusal

interface Shape {
  /** Compares everything once; one compare at a time. */
  readonly now: Effect.Effect<Compared, Failure>
  /** Compares these tables once, also deleted ones. */
  readonly tables: (names: ReadonlySet<string>) => Effect.Effect<Compared, Failure>
  /** Reads these tables and logs differences, for tables that raise no events. */
  readonly refresh: (names: ReadonlySet<string>) => Effect.Effect<void, Failure>
}

const nothingCompared: Compared = { compared: 0, repaired: [] }
/** Without a database. */
const nothing: Shape = {
  now: Effect.succeed(nothingCompared),
  tables: () => Effect.succeed(nothingCompared),
  refresh: () => Effect.void
}

type ReplicaSide = ReturnType<typeof replicaSide>

/** Brings the replica to the state of these tables, except records that have changed since they were read. */
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
        yield* side.repair(suspects.filter(({ known, state }) => side.unmoved(known, state && liveRecord(state))))
      })
    return Effect.asVoid(comparing.each(comparing.asRoomAllows, repair, undefined, names))
  }

export class Reconcile extends Context.Tag("scheduler/replica/Reconcile")<Reconcile, Shape>() {}

const layerOf = (
  momentMs: number
): Layer.Layer<Reconcile, never, Upstream | Replica | Ingest | Pool | ChangeTableLease | SchedulerConfig | Serving> =>
  Layer.scoped(
    Reconcile,
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const replica = yield* Replica
      const pool = yield* Pool
      const serving = yield* Serving
      const scope = yield* Effect.scope
      const { ingest } = yield* Ingest
      const { bootstrapChunkSize, changesPerRead, maxBufferPerSsp, maxPendingChanges, reconcileIntervalSecs } =
        yield* SchedulerConfig
      if (!upstream.present) return nothing
      const lease = yield* ChangeTableLease
      const { withPermits } = yield* Effect.makeSemaphore(1)
      const side = replicaSide(replica, bootstrapChunkSize, ingest, yield* Heap, stepsOf(pool, maxBufferPerSsp))
      const comparing = new LiveCompare({
        upstream,
        momentMs,
        together: Math.min(changesPerRead, maxPendingChanges),
        side,
        fork: (later) => Effect.asVoid(Effect.forkIn(Serving.guard(serving, later), scope))
      })
      const now = withPermits(1)(comparing.now)
      const soon = reconcileIntervalSecs === 0 ? soonSecs : Math.min(soonSecs, reconcileIntervalSecs)
      const failed = makeFailureLog()
      const compare = now.pipe(
        Effect.as(reconcileIntervalSecs),
        Effect.tap(failed.over),
        Effect.catchAll((error) => Effect.as(failed.say(error), soon))
      )
      const turn = (pauseSecs: number): Effect.Effect<number> =>
        Effect.zipRight(
          Effect.sleep(Duration.seconds(pauseSecs)),
          Effect.suspend(() => (pool.state().phase === "Cloning" ? Effect.succeed(soon) : compare))
        )
      const atStart = now.pipe(
        Effect.tapError((error) => failed.say(error)),
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
      const complete = Effect.orDie(retryUntilUsable("writing to the lease on the database")(lease.complete))
      // A replica from before the start may lack writes made while the scheduler was down; so may one whose clone began
      // before this scheduler had the lease on the change table.
      const first = Effect.flatMap(lease.worth, (worth) => {
        if (worth === "none") return wasCloning ? Effect.void : atStart
        const equal =
          worth === "whole"
            ? Effect.logInfo("no compare with the database: the change table held what was written meanwhile")
            : Effect.zipRight(clonedBy(pool), atStart)
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
