/**
 * Jobs in the tables of a SurrealDB: the database decides which of many runners gets a job (D35).
 *
 * A claim, and every write after it, is one transaction over the job record and its lease row; two at once conflict,
 * and the runner that repeats finds the other's lease. A lease counts only while the record is processing: beside a
 * pending one it belongs to a deleted job of this id. Time is the database's own, so runners' clocks need not agree.
 * Errors are added as to a set, so a write whose answer was lost can be repeated. No query orders by a field or filters
 * by two: with an index on one of them the engine (3.0.2) loses rows; and rows are read before they are written,
 * because in the same transaction they would come without their id afterwards.
 */
import { Effect, Layer } from "effect"
import type { Holder } from "../core/job/lease.ts"
import { isOver, type JobStatus, next, statuses } from "../core/job/status.ts"
import { Duration, isObj, type Obj, RecordId, type Value } from "../core/surql/values/value.ts"
import * as Schema from "../core/surreal/surrealSchema.ts"
import * as Order from "../node/jobs/jobOrder.ts"
import * as Rows from "../node/jobs/jobRows.ts"
import {
  type AmendResult,
  DatabaseJobs,
  type JobListPosition,
  JobStore,
  JobStoreError,
  type JobStoreShape,
  type JobWrite,
  type StoredJob
} from "../ports/JobStore.ts"
import { type Bindings, SurrealClient, type SurrealError, type SurrealShape } from "../ports/SurrealClient.ts"
import * as Rights from "./shared/surrealRights.ts"

const failure = (error: SurrealError): JobStoreError =>
  new JobStoreError({
    transient: error.transient || error.reason === "unauthorized",
    message: error.message,
    cause: error
  })

const duration = (ms: number): Duration => new Duration(Math.floor(ms / 1000), (ms % 1000) * 1_000_000)

/** The last list among the answers; empty if the table does not exist. */
const listOf = (
  client: SurrealShape,
  statements: string,
  bindings: Bindings
): Effect.Effect<ReadonlyArray<Value>, JobStoreError> =>
  client.query(statements, bindings).pipe(
    Effect.map((answers) => answers.findLast((answer): answer is ReadonlyArray<Value> => Array.isArray(answer)) ?? []),
    Effect.catchIf(
      (error) => error.reason === "missing",
      () => Effect.succeed([])
    ),
    Effect.mapError(failure),
    Effect.withTracerEnabled(false)
  )

const ids = (values: ReadonlyArray<Value>): ReadonlyArray<RecordId> =>
  values.filter((value) => value instanceof RecordId)
const texts = (values: ReadonlyArray<Value>): ReadonlySet<string> => new Set(ids(values).map(({ text }) => text))

const byTable = <A>(items: ReadonlyArray<A>, table: (item: A) => string): ReadonlyArray<ReadonlyArray<A>> => {
  const found = new Map<string, Array<A>>()
  for (const item of items) {
    const list = found.get(table(item))
    if (list === undefined) found.set(table(item), [item])
    else list.push(item)
  }
  return [...found.values()]
}

const mine = "holder = $holder AND incarnation = $incarnation"
const held = ({ holder, incarnation }: Holder): Bindings => ({ holder, incarnation })

/** Jobs with their leases' ids, so that statements need not make the ids. */
const pairs = (refs: ReadonlyArray<RecordId>): ReadonlyArray<Obj> =>
  refs.map((ref) => ({ job: ref, lease: Rows.leaseId(ref) }))

const openStatements = `
  LET $begun = (SELECT VALUE id FROM type::table($table) WHERE status = 'processing' LIMIT $scan);
  LET $pending = (SELECT VALUE id FROM type::table($table) WHERE status = 'pending' LIMIT $limit);
  RETURN array::concat([array::len($begun)], $begun, $pending)`

const claimStatements = `BEGIN;
  LET $held = (SELECT VALUE job FROM $leases WHERE until > time::now() AND !(${mine}) AND job.status = 'processing');
  LET $open = (SELECT VALUE id FROM $refs WHERE status IN ['pending', 'processing']);
  LET $won = array::complement($open, $held);
  LET $jobs = (SELECT *, 'processing' AS status FROM $won);
  LET $begun = (UPDATE $won SET status = 'processing', updated_at = time::now() RETURN VALUE status = 'processing');
  IF count($begun) < array::len($won) { THROW 'the database user of this service may not update status in the job table ' + record::tb($won[0]) + ': --print-database-setup --least-privilege shows what it needs' };
  FOR $pair IN $pairs { IF $pair.job IN $won { UPSERT $pair.lease CONTENT { job: $pair.job, holder: $holder, incarnation: $incarnation, until: time::now() + $for } RETURN NONE } };
  RETURN $jobs; COMMIT`

const renewStatements = `BEGIN;
  UPDATE $leases SET until = time::now() + $for WHERE ${mine} RETURN NONE;
  LET $mine = (SELECT VALUE job FROM $leases WHERE ${mine});
  RETURN $mine; COMMIT`

const writeStatements = `BEGIN;
  LET $mine = (SELECT VALUE job FROM $leases WHERE ${mine});
  LET $there = (SELECT VALUE id FROM $mine WHERE status = 'processing');
  FOR $write IN $writes {
    IF $write.job IN $there {
      UPDATE $write.job SET status = $write.status, errors = array::union(errors ?? [], $write.errors), updated_at = time::now() RETURN NONE;
      IF $write.ends { DELETE $write.lease RETURN NONE }
    } ELSE IF $write.job IN $mine { DELETE $write.lease RETURN NONE }
  };
  RETURN $there; COMMIT`

const amendStatements = `BEGIN;
  LET $status = (SELECT VALUE status FROM $refs);
  IF $status[0] IN $from {
    UPDATE $refs SET status = $to, errors = array::union(errors ?? [], $errors), updated_at = time::now() RETURN NONE;
    DELETE $leases RETURN NONE
  };
  RETURN $status; COMMIT`

const jobsOf = (rows: ReadonlyArray<Value>, leases: ReadonlyMap<string, Value> = new Map()): ReadonlyArray<StoredJob> =>
  rows.flatMap((row) => {
    if (!isObj(row) || !(row["id"] instanceof RecordId)) return []
    return Rows.toJob(row["id"], row, Rows.toLease(leases.get(row["id"].text))) ?? []
  })

const withLeases = (
  client: SurrealShape,
  rows: ReadonlyArray<Value>
): Effect.Effect<ReadonlyArray<StoredJob>, JobStoreError> => {
  const refs = ids(rows.map((row) => (isObj(row) ? row["id"] : undefined)))
  return Effect.map(
    listOf(client, "LET $rows = (SELECT * FROM $leases); RETURN $rows", { leases: refs.map(Rows.leaseId) }),
    (leases) =>
      jobsOf(
        rows,
        new Map(
          leases.flatMap((row) =>
            isObj(row) && row["job"] instanceof RecordId ? [[row["job"].text, row] as const] : []
          )
        )
      )
  )
}

/** Most rows searched for leases that ran out. */
const scanLimit = 50_000

/** Lease ids are made here: the engine writes the text of some ids differently. */
const open = (
  client: SurrealShape,
  table: string,
  limit: number
): Effect.Effect<ReadonlyArray<RecordId>, JobStoreError> =>
  Effect.gen(function* () {
    const [begun, ...found] = yield* listOf(client, openStatements, { table, limit, scan: scanLimit })
    const left = ids(found.slice(0, Number(begun ?? 0)))
    const pending = ids(found.slice(left.length))
    if (left.length === 0) return pending
    const taken = texts(
      yield* listOf(client, "LET $held = (SELECT VALUE job FROM $leases WHERE until > time::now()); RETURN $held", {
        leases: left.map(Rows.leaseId)
      })
    )
    return [...left.filter(({ text }) => !taken.has(text)), ...pending].slice(0, limit)
  })

const claim = (client: SurrealShape, refs: ReadonlyArray<RecordId>, by: Holder, leaseMs: number) =>
  Effect.map(
    listOf(client, claimStatements, {
      refs,
      leases: refs.map(Rows.leaseId),
      pairs: pairs(refs),
      for: duration(leaseMs),
      ...held(by)
    }),
    (rows) => jobsOf(rows)
  )

const bound = ({ error, event, ref }: JobWrite): Obj => {
  const status = next("processing", event) ?? "processing"
  return {
    job: ref,
    lease: Rows.leaseId(ref),
    status,
    ends: isOver(status) || status === "pending",
    errors: error === undefined ? [] : [Rows.fromError(error)]
  }
}

/** A write that the database refuses must not block the others. */
const write = (
  client: SurrealShape,
  writes: ReadonlyArray<JobWrite>,
  by: Holder
): Effect.Effect<ReadonlySet<string>, JobStoreError> =>
  listOf(client, writeStatements, {
    writes: writes.map(bound),
    leases: writes.map(({ ref }) => Rows.leaseId(ref)),
    ...held(by)
  }).pipe(
    Effect.map(texts),
    Effect.catchIf(
      (error) => !error.transient && writes.length > 1,
      () =>
        Effect.map(
          Effect.forEach(writes, (one) => Effect.either(write(client, [one], by))),
          (results) => new Set(results.flatMap((result) => (result._tag === "Right" ? [...result.right] : [])))
        )
    )
  )

const amend = (
  client: SurrealShape,
  ref: RecordId,
  event: "Retried" | "Cancelled",
  error: Obj
): Effect.Effect<AmendResult, JobStoreError> => {
  const from = statuses.filter((status) => next(status, event) !== undefined)
  const to = next(from[0]!, event)
  return Effect.map(
    listOf(client, amendStatements, { refs: [ref], leases: [Rows.leaseId(ref)], from, to, errors: [error] }),
    ([status]): AmendResult => {
      const found = statuses.find((known) => known === status)
      return found === undefined
        ? { kind: "missing" }
        : from.includes(found)
          ? { kind: "done" }
          : { kind: "refused", status: found }
    }
  )
}

/** Orders the rows of the first statement, never the table itself (see above); a list that takes longer is given up. */
const listStatements = (status: JobStatus | undefined, after: JobListPosition | undefined): string => `
  LET $all = (SELECT id, IF type::is_datetime(updated_at) { updated_at } ELSE { NONE } AS at FROM type::table($table) ${status === undefined ? "" : "WHERE status = $status"} TIMEOUT 10s);
  LET $page = (SELECT id, at FROM $all ${after === undefined ? "" : `WHERE ${after.at === undefined ? "" : "at < $at OR "}(at = $at AND id < $id)`} ORDER BY at DESC, id DESC LIMIT $limit);
  LET $rows = (SELECT * FROM $page.id);
  RETURN $rows`

const make = (client: SurrealShape): JobStoreShape => ({
  prepare: Effect.mapError(Rights.defineTables(client, Schema.jobDefinitions, [Schema.jobTable]), failure),
  open: (table, limit) => open(client, table, limit),
  claim: (refs, by, leaseMs) =>
    Effect.map(
      Effect.forEach(
        byTable(refs, ({ table }) => table),
        (list) => claim(client, list, by, leaseMs)
      ),
      (jobs) => jobs.flat()
    ),
  renew: (refs, by, leaseMs) =>
    Effect.map(
      listOf(client, renewStatements, { leases: refs.map(Rows.leaseId), for: duration(leaseMs), ...held(by) }),
      texts
    ),
  write: (writes, by) =>
    Effect.map(
      Effect.forEach(
        byTable(writes, ({ ref }) => ref.table),
        (list) => write(client, list, by)
      ),
      (sets) => new Set(sets.flatMap((set) => [...set]))
    ),
  find: (ref) =>
    listOf(client, "LET $rows = (SELECT * FROM $refs); RETURN $rows", { refs: [ref] }).pipe(
      Effect.flatMap((rows) => withLeases(client, rows)),
      Effect.map(([job]) => job)
    ),
  list: (table, status, after, limit) =>
    listOf(client, listStatements(status, after), { table, status, limit, at: after?.at, id: after?.ref }).pipe(
      Effect.flatMap((rows) => withLeases(client, rows)),
      Effect.map((jobs) => jobs.toSorted(Order.compare))
    ),
  amend: (ref, event, error) => amend(client, ref, event, Rows.fromError(error))
})

/** Jobs in the tables of a SurrealDB. */
export const layer: Layer.Layer<JobStore, never, SurrealClient> = Layer.effect(
  JobStore,
  Effect.map(SurrealClient, make)
)

/** {@link layer} for the database beside this node. */
export const layerDatabaseJobs: Layer.Layer<DatabaseJobs, never, SurrealClient> = Layer.effect(
  DatabaseJobs,
  Effect.map(SurrealClient, make)
)
