/**
 * The scheduler's lease on the change table (D44), and how much of the table can be relied on at this start.
 *
 * Without a change table no lease is taken: posted changes need none. The lease is asked for while the node serves, so
 * that a scheduler without it still takes posted changes.
 */
import { Context, Deferred, Duration, Effect, Layer } from "effect"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import type { TakeRows } from "../../node/database/changeReader.ts"
import { ReaderLease, supersededFault } from "../../node/database/readerLease.ts"
import { Serving } from "../../ports/Front.ts"
import { Replica, type ReplicaError } from "../../ports/Replica.ts"
import { Upstream, type UpstreamError } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { Pool } from "../pool/Pool.ts"
import { retryUntilUsable } from "./Cloning.ts"

/** Pause between two checks whether there is a change table. */
const absentMs = 1_000
/** Position noted while the replica may differ from the database: no log reaches it, so the next start compares. */
const unknown = Number.MAX_SAFE_INTEGER

/**
 * `none`: there is no change table. `compare`: it may lack rows. `whole`: it holds every write since this replica last
 * took rows.
 */
type Worth = "none" | "compare" | "whole"

interface Shape {
  /** The table's worth when this node could first ask; if there is a table, the lease is held by then. */
  readonly worth: Effect.Effect<Worth>
  /** Whether rows may be taken now. */
  readonly holds: () => boolean
  readonly take: TakeRows
  /** Notes for the next start that the replica has the records of these tables. */
  readonly note: ReaderLease["note"]
  /** Notes that the replica equals the database but for rows in the change table; the next start relies on that. */
  readonly complete: Effect.Effect<void, UpstreamError>
}

const announcedAll = (
  upstream: Upstream["Type"],
  replica: Replica["Type"],
  lease: ReaderLease
): Effect.Effect<boolean, UpstreamError | ReplicaError> =>
  Effect.gen(function* () {
    const tables = yield* upstream.tables
    const there = new Set(tables.map(({ name }) => name))
    const gone = (yield* replica.names).some((name) => !isOwn(name) && !there.has(name))
    return !gone && lease.knows(tables) && tables.every(({ announced, derived }) => announced === true && !derived)
  })

const make = Effect.gen(function* () {
  const upstream = yield* Upstream
  const pool = yield* Pool
  const replica = yield* Replica
  const { databaseLeaseSecs, schedulerId } = yield* SchedulerConfig
  const { changes, lease: offered } = upstream
  const nothing: Shape = {
    worth: Effect.succeed("none"),
    holds: () => false,
    take: () => Effect.succeed(undefined),
    note: () => Effect.void,
    complete: Effect.void
  }
  if (changes === undefined || offered === undefined) return nothing
  const wasWhole = pool.state().phase !== "Cloning"
  const lease = new ReaderLease(upstream, {
    name: schedulerId,
    ttlMs: databaseLeaseSecs * 1_000,
    meanwhile: "takes only what is posted to it"
  })
  const told = yield* Deferred.make<Worth>()
  const head = (): number => pool.state().log.head
  let holds = false
  let isComplete = false
  const asking = retryUntilUsable("asking the database for its change table")
  const hold = Effect.gen(function* () {
    while (!(yield* asking(changes.installed))) {
      yield* Deferred.succeed(told, "none")
      yield* Effect.sleep(Duration.millis(absentMs))
    }
    yield* asking(upstream.prepare)
    const position = yield* asking(lease.hold)
    const whole =
      wasWhole &&
      position !== undefined &&
      position <= head() &&
      (yield* retryUntilUsable("reading the database's tables")(announcedAll(upstream, replica, lease)))
    holds = true
    yield* Deferred.succeed(told, whole ? "whole" : "compare")
  })
  yield* Effect.addFinalizer(() => lease.release)
  yield* Serving.fork(Effect.zipRight(Effect.orDie(hold), lease.keep))
  const take: TakeRows = (most, done, apart) => {
    const position = Effect.sync(() => (isComplete ? head() : unknown))
    const taken =
      done.length === 0
        ? changes.take(most, done, apart)
        : lease.during(position, (holding) => changes.take(most, done, apart, holding))
    return Effect.flatMap(taken, (read) => (read === "superseded" ? Effect.die(supersededFault) : Effect.succeed(read)))
  }
  const complete = Effect.suspend(() => {
    isComplete = true
    return lease.complete(head())
  })
  return { worth: Deferred.await(told), holds: () => holds, take, note: (tables) => lease.note(tables), complete }
})

export class ChangeTableLease extends Context.Tag("scheduler/replica/ChangeTableLease")<ChangeTableLease, Shape>() {
  static readonly layer: Layer.Layer<ChangeTableLease, never, Upstream | Pool | Replica | SchedulerConfig | Serving> =
    Layer.scoped(ChangeTableLease, make)
}
