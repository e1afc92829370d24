/**
 * Applies the change table of the scheduler's database (D44): each read goes through ingest as one step of the log, and
 * rows are deleted only when the log has it.
 *
 * A record that has changed here between its read and its turn is left out and read again. Equal records are not
 * logged. A registration deleted in the database removes its view if it is still missing a moment later: a client may
 * have registered it again.
 */
import { Context, Duration, Effect, HashMap, Layer } from "effect"
import { stepBytes } from "../../core/record/memory.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import type { TableDefinition } from "../../core/surreal/databaseSchema.ts"
import { ChangeReader, type NamedRecord, type ReaderFigures } from "../../node/database/changeReader.ts"
import { DerivedTables } from "../../node/database/derivedTables.ts"
import { Serving } from "../../ports/Front.ts"
import { Heap } from "../../ports/ProcessFigures.ts"
import { Replica, type ReplicaError, type ReplicaRecord } from "../../ports/Replica.ts"
import { Upstream, type UpstreamError } from "../../ports/Upstream.ts"
import { SchedulerConfig } from "../Config.ts"
import { Ingest, type Refusal } from "../ingest/Ingest.ts"
import { Pool, type PoolShape } from "../pool/Pool.ts"
import { carryOut } from "../pool/viewCalls.ts"
import * as Views from "../pool/viewRequests.ts"
import { ChangeTableLease } from "./ChangeTableLease.ts"
import { differsBeyondJson, repairOf } from "./Cloning.ts"
import { isSameState, liveRecord, Reconcile } from "./Reconcile.ts"

const momentMs = 1_000

const apply =
  (replica: Replica["Type"], ingest: Ingest["Type"]["ingest"]) =>
  (named: ReadonlyArray<NamedRecord>): Effect.Effect<ReadonlySet<string>, ReplicaError | Refusal> =>
    Effect.gen(function* () {
      const states: ReadonlyMap<string, ReplicaRecord> = yield* replica.current(named.map(({ id }) => id))
      const knownOf = (id: RecordId) => {
        const state = states.get(id.text)
        return state === undefined ? undefined : liveRecord(state)
      }
      const repairs = named
        .map(({ found, id }) => ({ id, found, known: knownOf(id) }))
        .filter(
          (difference) =>
            (difference.found !== undefined || difference.known !== undefined) && differsBeyondJson(difference)
        )
        .map(repairOf)
      const again = new Set<string>()
      if (repairs.length === 0) return again
      yield* ingest(repairs, {
        holds: ({ id }, was) => {
          const holds = isSameState(states.get(id.text), was)
          if (!holds) again.add(id.text)
          return holds
        },
        answers: "durable",
        asOne: true
      })
      return again
    })

/** Ids of these tables' records in the replica; undefined if there are more than `most`. */
const heldIn =
  (replica: Replica["Type"]) =>
  (tables: ReadonlySet<string>, most: number): Effect.Effect<ReadonlyArray<RecordId> | undefined, ReplicaError> =>
    Effect.gen(function* () {
      const held: Array<RecordId> = []
      for (const table of tables) {
        for (const { id } of yield* replica.records(table, undefined, most + 1 - held.length)) held.push(id)
        if (held.length > most) return undefined
      }
      return held
    })

/** Unregisters those views whose registration the database lacks now and a moment later. */
const withdraw = (
  upstream: Upstream["Type"],
  pool: PoolShape,
  rows: ReadonlyArray<RecordId>
): Effect.Effect<void, UpstreamError | { readonly message: string }> =>
  Effect.gen(function* () {
    const missing = (of: ReadonlyArray<RecordId>): Effect.Effect<ReadonlyArray<RecordId>, UpstreamError> =>
      Effect.map(upstream.find(of), (found) => {
        const there = new Set(found.map(({ id }) => id.text))
        return of.filter(({ text }) => !there.has(text))
      })
    const distinct = [...new Map(rows.map((row) => [row.text, row])).values()]
    const ours = distinct.filter(({ key }) => typeof key === "string" && HashMap.has(pool.state().views, key))
    const first = yield* missing(ours)
    if (first.length === 0) return
    yield* Effect.sleep(Duration.millis(momentMs))
    for (const { key } of yield* missing(first))
      yield* Views.unregister(pool, `incantation:${String(key)}`).pipe(
        Effect.catchIf(
          ({ code }) => code === "VIEW_NOT_FOUND",
          () => Effect.void
        )
      )
  })

export class ChangeFeed extends Context.Tag("scheduler/replica/ChangeFeed")<
  ChangeFeed,
  {
    /** Sets the tables that are defined AS SELECT, with their queries. */
    readonly derive: (tables: ReadonlyArray<TableDefinition>) => Effect.Effect<void>
    /** Reads these tables and logs differences; undefined without a database. */
    readonly refresh: DerivedTables["refresh"] | undefined
    /** Undefined without a database. */
    readonly figures: () => ReaderFigures | undefined
  }
>() {
  static readonly layer: Layer.Layer<
    ChangeFeed,
    never,
    Upstream | Replica | Ingest | Pool | ChangeTableLease | Reconcile | SchedulerConfig | Serving
  > = Layer.scoped(
    ChangeFeed,
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const { changes } = upstream
      if (changes === undefined) return { derive: () => Effect.void, figures: () => undefined, refresh: undefined }
      const pool = yield* Pool
      const { ingest } = yield* Ingest
      const { holds, take } = yield* ChangeTableLease
      const { now, refresh } = yield* Reconcile
      const replica = yield* Replica
      const derived = new DerivedTables((tables) => reader.refresh(tables))
      const applied = apply(replica, ingest)
      const { changesBehindSecs, changesPerRead, maxBodyBytes, maxPendingChanges } = yield* SchedulerConfig
      const heap = yield* Heap
      const serving = yield* Serving
      const scope = yield* Effect.scope
      const reader = new ChangeReader<ReplicaError | Refusal>(
        { listen: changes.listen, answer: changes.answer, take, whole: changes.whole },
        {
          held: heldIn(replica),
          refresh,
          call: carryOut(pool, maxBodyBytes),
          apply: (named) => Effect.tap(applied(named), () => Effect.sync(() => derived.written(named))),
          // Until the replica is complete its clone reads everything anyway, so rows wait.
          open: () => holds() && pool.state().phase !== "Cloning",
          room: () => stepBytes(heap.measured()),
          compare: (asked) => (asked === "everything" ? Effect.asVoid(now) : withdraw(upstream, pool, asked)),
          fork: (later) => Effect.asVoid(Effect.forkIn(Effect.interruptible(Serving.guard(serving, later)), scope))
        },
        { size: Math.min(changesPerRead, maxPendingChanges), warnMs: changesBehindSecs * 1_000 }
      )
      yield* Serving.fork(reader.run)
      yield* Serving.fork(derived.run)
      return {
        derive: (tables) => Effect.sync(() => derived.define(tables)),
        figures: reader.figures,
        refresh: (tables) => reader.refresh(tables)
      }
    })
  )
}
