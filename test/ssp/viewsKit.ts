/**
 * The views service over a store that the test controls: slow, failing, counted, restarted.
 *
 * Why here: what HTTP cannot show (what is durable when, what happens in between) is shown on the service itself, by
 * several test files.
 */
import { Cause, Clock, Effect, Either, Exit, Layer, Scope } from "effect"
import { type Change, decodeChange } from "../../src/core/record/change.ts"
import { type Commit, Database, type DatabaseError, type DatabaseShape } from "../../src/ports/Database.ts"
import { SavedState } from "../../src/ports/SavedState.ts"
import { Turn } from "../../src/ports/Turn.ts"
import { type EdgesShape, noEdges } from "../../src/ssp/edges/EdgeWriter.ts"
import type { Views } from "../../src/ssp/views/Views.ts"
import type { ViewLimits } from "../../src/ssp/views/viewLimits.ts"
import { makeViews } from "../../src/ssp/views/viewService.ts"
import type { ViewRegistration } from "../../src/ssp/viewTypes.ts"

/** Small enough to be reached. */
const limits: ViewLimits = {
  streamBuffer: 5,
  maxViews: 3,
  databaseWaitMs: 4000,
  maxStreams: 2,
  maxPendingChanges: 10,
  maxTombstones: 1000,
  stateDebounceMs: 50,
  rowSteps: 1000,
  changeSteps: 100_000,
  querySteps: 100_000,
  queryBytes: 1_000_000,
  viewBytesTotal: 0,
  resultBytes: 1_000_000
}

export const change = (
  id: string,
  record: { readonly [key: string]: unknown },
  extra: { readonly [key: string]: unknown } = {},
  op = "CREATE"
): Change =>
  Either.getOrThrowWith(
    decodeChange({ table: id.slice(0, id.indexOf(":")), op, id, record, ...extra }),
    (refused) => new Error(JSON.stringify(refused))
  )

export const registration = (id: string, surql: string, more: Partial<ViewRegistration> = {}): ViewRegistration => ({
  id,
  surql,
  clientId: "c",
  ttlMs: 60_000,
  params: null,
  lastActiveAtMs: 0,
  format: "flat",
  ...more
})

export interface Controlled {
  readonly database: DatabaseShape
  readonly commits: Array<Commit>
  /** What the next commits do first; fails or waits. */
  before: Effect.Effect<void, DatabaseError>
}

const controlled = (database: DatabaseShape): Controlled => {
  const commits: Array<Commit> = []
  const self: Controlled = {
    commits,
    before: Effect.void,
    database: {
      ...database,
      commit: (commit) =>
        Effect.suspend(() => self.before).pipe(
          Effect.zipRight(database.commit(commit)),
          Effect.tap(() => Effect.sync(() => commits.push(commit)))
        )
    }
  }
  return self
}

export interface Kit {
  readonly views: Views["Type"]
  readonly store: Controlled
  /** Stops this service and starts another on the same store. */
  readonly restart: Effect.Effect<Views["Type"]>
  /** Stops this service. */
  readonly stop: Effect.Effect<void>
}

/**
 * A clock that moves 11 ms at every look, at either of its times: a slice is over at its first pause, however fast the
 * machine is.
 */
export const ticking = (): Clock.Clock => {
  let now = 0
  const clock = Clock.make()
  const millis = () => (now += 11)
  const nanos = () => BigInt(millis()) * 1_000_000n
  return {
    ...clock,
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: millis,
    currentTimeMillis: Effect.sync(millis),
    sleep: clock.sleep,
    unsafeCurrentTimeNanos: nanos,
    currentTimeNanos: Effect.sync(nanos)
  }
}

/**
 * Runs a body on a service over a store in memory. `clock` is the one that tells when a slice is over: by default it
 * stands still.
 */
export const withViews = <A>(
  body: (kit: Kit) => Effect.Effect<A, unknown, Scope.Scope>,
  clock?: Clock.Clock,
  edges: EdgesShape = noEdges
) =>
  Effect.gen(function* () {
    const store = controlled(yield* Database)
    const saved = yield* SavedState
    const turn = yield* Turn
    let scope = yield* Scope.make()
    const start = Effect.gen(function* () {
      const views = yield* makeViews(limits, store.database, saved, turn, edges, {
        fork: (loop) => Effect.asVoid(Effect.forkScoped(loop)),
        crash: (cause) => {
          throw new Error(Cause.pretty(cause))
        }
      }).pipe(Scope.extend(scope), clock === undefined ? (effect) => effect : Effect.withClock(clock))
      yield* views.restore.pipe(Effect.orDie)
      return views
    })
    const restart = Effect.gen(function* () {
      yield* Scope.close(scope, Exit.void)
      scope = yield* Scope.make()
      return yield* start
    })
    const result = yield* body({
      views: yield* start,
      store,
      restart,
      stop: Effect.suspend(() => Scope.close(scope, Exit.void))
    })
    yield* Scope.close(scope, Exit.void)
    return result
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.mergeAll(Layer.fresh(Database.layerMemory), Layer.fresh(SavedState.layerMemory), Turn.layerYield)
    )
  )

export const rows = (views: Views["Type"], id: string) =>
  Effect.map(views.read(id, undefined), (answer) => answer.result_data)
