/**
 * Job store over records of this node: each job has a second record of the service beside it, the lease row.
 *
 * The row (`_svc_job:<job id>`) holds the lease, digests of the pending record, the outcome, and the stored part of the
 * answer. A change that is delivered again, and puts `pending` back over the outcome, therefore neither runs the job
 * again nor hides its outcome: the record is corrected from the row. The row is deleted in the commit that deletes the
 * job, so that a job created again under this id is another job. Record and row are written together, and only if
 * neither has changed since it was read.
 */
import { Clock, Effect, Layer } from "effect"
import * as Leases from "../../core/job/lease.ts"
import * as Result from "../../core/job/result.ts"
import { isStatus, type JobStatus, next } from "../../core/job/status.ts"
import * as JsonText from "../../core/jsonText.ts"
import type { Obj, RecordId, Value } from "../../core/surql/values/value.ts"
import * as Order from "../../node/jobs/jobOrder.ts"
import * as Rows from "../../node/jobs/jobRows.ts"
import {
  type JobListPosition,
  JobStore,
  type JobStoreError,
  type JobStoreShape,
  type JobWrite,
  type StoredJob
} from "../../ports/JobStore.ts"

/** A record to write, and its document when the write was decided. */
export interface RecordPut {
  readonly id: RecordId
  readonly doc: Obj
  readonly was: Obj | undefined
}

export interface JobRecords {
  readonly get: (id: RecordId) => Obj | undefined
  /** At most `size` records behind `after`, in key order. */
  readonly chunk: (table: string, after: RecordId | undefined, size: number) => ReadonlyArray<Obj>
  /**
   * Writes groups of records, each as a whole or, if one of its records has changed since, not at all. Answers for each
   * group whether it was written.
   */
  readonly put: (
    groups: ReadonlyArray<ReadonlyArray<RecordPut>>
  ) => Effect.Effect<ReadonlyArray<boolean>, JobStoreError>
}

/**
 * Records in memory, for tests and demonstrations. `remove` deletes a job with its lease row, as a node does in one
 * commit.
 */
export const memoryJobRecords = (records: Iterable<Obj>): JobRecords & { readonly remove: (id: RecordId) => void } => {
  const byId = new Map<string, Obj>()
  for (const doc of records) byId.set((doc["id"] as RecordId).text, doc)
  return {
    get: (id) => byId.get(id.text),
    remove: (id) => {
      for (const { text } of [id, Rows.leaseId(id)]) byId.delete(text)
    },
    chunk: (table, after, size) => {
      const all = [...byId.values()].filter((doc) => (doc["id"] as RecordId).table === table)
      const from = after === undefined ? 0 : all.findIndex((doc) => (doc["id"] as RecordId).text === after.text) + 1
      return all.slice(from, from + size)
    },
    put: (groups) =>
      Effect.sync(() =>
        groups.map((group) => {
          const same = group.every(({ id, was }) => byId.get(id.text) === was)
          if (same) for (const { doc, id } of group) byId.set(id.text, doc)
          return same
        })
      )
  }
}

/** The lease row, read leniently: others can write to its store. */
interface Row {
  readonly lease: Leases.Lease | undefined
  /** Digests of the pending record each time the job was claimed, the latest last. */
  readonly content: string | undefined
  readonly status: JobStatus | undefined
  readonly errors: ReadonlyArray<Value>
  /** JSON text, so that no string in it is typed as a value of the query language. */
  readonly result?: string | undefined
}

const list = (value: Value): ReadonlyArray<Value> => (Array.isArray(value) ? (value as ReadonlyArray<Value>) : [])

const rowOf = (doc: Obj | undefined): Row | undefined => {
  if (doc === undefined) return undefined
  const { content, errors, result, status } = doc
  return {
    lease: Rows.toLease(doc),
    content: typeof content === "string" ? content : undefined,
    status: isStatus(status) ? status : undefined,
    errors: list(errors),
    result: typeof result === "string" ? result : undefined
  }
}

const rowDoc = (ref: RecordId, by: Leases.Holder, untilMs: number, row: Omit<Row, "lease">): Obj => ({
  id: Rows.leaseId(ref),
  job: ref,
  holder: by.holder,
  incarnation: by.incarnation,
  until: untilMs,
  content: row.content,
  status: row.status,
  errors: row.errors,
  ...(row.result === undefined ? {} : { result: row.result })
})

/** Most digests kept for a job: one for its creation, and one for each stop or operator that made it pending again. */
const maxDigests = 16

const isKnown = (content: string | undefined, digest: string): boolean => content?.split(" ").includes(digest) === true

const adding = (content: string | undefined, digest: string): string => {
  const known = content?.split(" ") ?? []
  return known.includes(digest) ? known.join(" ") : [...known, digest].slice(-maxDigests).join(" ")
}

const nobody: Leases.Holder = { holder: "", incarnation: "" }

type Errors = ReadonlyArray<Value>

const jobDoc = (doc: Obj, status: JobStatus, errors: Errors, nowMs: number): Obj => ({
  ...doc,
  status,
  errors,
  updated_at: Rows.datetime(nowMs)
})

/** Result of a claim of one job. `restore`: the job has run already, and its record is corrected. */
type Taking =
  | { readonly kind: "leave" }
  | { readonly kind: "restore"; readonly puts: ReadonlyArray<RecordPut> }
  | { readonly kind: "take"; readonly doc: Obj; readonly puts: ReadonlyArray<RecordPut> }

const leave: Taking = { kind: "leave" }

/** Whether a lease is void before it ends, because its holder has ended. */
type IsGone = (lease: Leases.Lease) => boolean

/** Whether a lease's holder has ended, in a store that only one process can open: true of every other process. */
export const isOfEarlierProcess =
  ({ incarnation }: Leases.Holder): IsGone =>
  (lease) =>
    lease.incarnation !== incarnation

const binding = (lease: Leases.Lease | undefined, isGone: IsGone): Leases.Lease | undefined =>
  lease === undefined || lease.holder === "" || isGone(lease) ? undefined : lease

interface Claimant {
  readonly by: Leases.Holder
  readonly leaseMs: number
  readonly isGone: IsGone
}

const taking = (records: JobRecords, ref: RecordId, { by, isGone, leaseMs }: Claimant, nowMs: number): Taking => {
  const doc = records.get(ref)
  const rowWas = records.get(Rows.leaseId(ref))
  const row = rowOf(rowWas)
  const status = doc?.["status"]
  if (doc === undefined || !isStatus(status)) return leave
  if (Leases.claim(status, binding(row?.lease, isGone), by, nowMs) !== "claim") return leave
  const digest = status === "pending" ? Rows.digest(doc) : undefined
  const content = digest === undefined ? row?.content : adding(row?.content, digest)
  const again = digest !== undefined && row !== undefined && isKnown(row.content, digest)
  if (again && (row.status === "success" || row.status === "failed"))
    return { kind: "restore", puts: [{ id: ref, was: doc, doc: jobDoc(doc, row.status, row.errors, nowMs) }] }
  const goesOn = row !== undefined && row.status === "processing" && (again || status === "processing")
  const errors = goesOn ? row.errors : list(doc["errors"])
  const claimed = jobDoc(doc, "processing", errors, nowMs)
  const lease: RecordPut = {
    id: Rows.leaseId(ref),
    was: rowWas,
    doc: rowDoc(ref, by, nowMs + leaseMs, { content, status: "processing", errors })
  }
  // A retry under a held lease changes nothing in the record, so only the lease is written.
  const renewed = goesOn && status === "processing" && Leases.isHeldBy(row.lease, by)
  return {
    kind: "take",
    doc: renewed ? doc : claimed,
    puts: renewed ? [lease] : [{ id: ref, was: doc, doc: claimed }, lease]
  }
}

const written = (
  records: JobRecords,
  { error, event, ref, result }: JobWrite,
  by: Leases.Holder,
  nowMs: number
): ReadonlyArray<RecordPut> | undefined => {
  const doc = records.get(ref)
  const rowWas = records.get(Rows.leaseId(ref))
  const row = rowOf(rowWas)
  const status = next("processing", event)
  if (
    doc === undefined ||
    row === undefined ||
    row.status !== "processing" ||
    status === undefined ||
    !Leases.isHeldBy(row.lease, by)
  )
    return undefined
  const errors: Errors = error === undefined ? row.errors : [...row.errors, Rows.fromError(error)]
  const keeps = status === "processing"
  const holder = keeps ? by : nobody
  return [
    { id: ref, was: doc, doc: jobDoc(doc, status, errors, nowMs) },
    {
      id: Rows.leaseId(ref),
      was: rowWas,
      doc: rowDoc(ref, holder, keeps ? row.lease!.untilMs : 0, {
        content: row.content,
        status,
        errors,
        result: result === undefined ? undefined : JsonText.write(result)
      })
    }
  ]
}

const amended = (
  records: JobRecords,
  ref: RecordId,
  doc: Obj,
  status: JobStatus,
  error: Obj,
  nowMs: number
): ReadonlyArray<RecordPut> => {
  const rowWas = records.get(Rows.leaseId(ref))
  const row = rowOf(rowWas)
  const errors: Errors = [...(row?.status === "processing" ? row.errors : list(doc["errors"])), error]
  // Keeps the digest, so that a cancelled job does not run when its change is delivered again.
  const content = doc["status"] === "pending" ? adding(row?.content, Rows.digest(doc)) : row?.content
  return [
    { id: ref, was: doc, doc: jobDoc(doc, status, errors, nowMs) },
    { id: Rows.leaseId(ref), was: rowWas, doc: rowDoc(ref, nobody, 0, { content, status, errors }) }
  ]
}

const chunkSize = 2_000

/** Limit of new decisions about a record that others keep changing. */
const tries = 5

/** Decides each item from the current records, writes, and decides again for items whose records changed meanwhile. */
const decided = <A>(
  records: JobRecords,
  items: ReadonlyArray<A>,
  decide: (item: A, nowMs: number) => ReadonlyArray<RecordPut> | undefined
): Effect.Effect<ReadonlySet<A>, JobStoreError> =>
  Effect.gen(function* () {
    const done = new Set<A>()
    let left = items
    for (let i = 0; i < tries && left.length > 0; i++) {
      const nowMs = yield* Clock.currentTimeMillis
      const planned = left.flatMap((item) => {
        const puts = decide(item, nowMs)
        return puts === undefined ? [] : [{ item, puts }]
      })
      if (planned.length === 0) break
      const results = yield* records.put(planned.map(({ puts }) => puts))
      for (const [n, { item }] of planned.entries()) if (results[n] === true) done.add(item)
      left = planned.flatMap(({ item }, n) => (results[n] === true ? [] : [item]))
    }
    return done
  })

const storedOf = (records: JobRecords, doc: Obj, isGone: IsGone): StoredJob | undefined => {
  const ref = doc["id"] as RecordId
  const row = rowOf(records.get(Rows.leaseId(ref)))
  const job = Rows.toJob(ref, doc, binding(row?.lease, isGone))
  const result = job?.status === "success" && row?.status === "success" ? Result.fromText(row.result) : undefined
  return job === undefined || result === undefined ? job : { ...job, result }
}

/** Visits a table's records chunk by chunk and yields between chunks. */
const walk = (
  records: JobRecords,
  table: string,
  after: RecordId | undefined,
  each: (doc: Obj) => boolean
): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let last = after; ; ) {
      const chunk = records.chunk(table, last, chunkSize)
      for (const doc of chunk) if (!each(doc)) return
      if (chunk.length < chunkSize) return
      last = chunk.at(-1)!["id"] as RecordId
      yield* Effect.yieldNow()
    }
  })

const open = (records: JobRecords, table: string, limit: number, isGone: IsGone) =>
  Effect.gen(function* () {
    const nowMs = yield* Clock.currentTimeMillis
    const left: Array<RecordId> = [],
      pending: Array<RecordId> = []
    yield* walk(records, table, undefined, (doc) => {
      const ref = doc["id"] as RecordId
      const status = doc["status"]
      if (
        (status === "pending" || status === "processing") &&
        !Leases.isLive(binding(rowOf(records.get(Rows.leaseId(ref)))?.lease, isGone), nowMs)
      ) {
        const into = status === "pending" ? pending : left
        if (into.length < limit) into.push(ref)
      }
      return left.length < limit
    })
    return [...left, ...pending].slice(0, limit)
  })

export const make = (records: JobRecords, isGone: IsGone = () => false): JobStoreShape => ({
  prepare: Effect.void,
  open: (table, limit) => open(records, table, limit, isGone),
  claim: (refs, by, leaseMs) =>
    Effect.gen(function* () {
      const taken = new Map<RecordId, Obj>()
      const done = yield* decided(records, refs, (ref, nowMs) => {
        taken.delete(ref)
        const found = taking(records, ref, { by, leaseMs, isGone }, nowMs)
        if (found.kind === "leave") return undefined
        if (found.kind === "take") taken.set(ref, found.doc)
        return found.puts
      })
      return [...taken].flatMap(([ref, doc]) => {
        const job = done.has(ref) ? Rows.toJob(ref, doc, rowOf(records.get(Rows.leaseId(ref)))?.lease) : undefined
        return job === undefined ? [] : [job]
      })
    }),
  renew: (refs, by, leaseMs) =>
    Effect.map(
      decided(records, refs, (ref, nowMs) => {
        const was = records.get(Rows.leaseId(ref))
        const row = rowOf(was)
        return was === undefined ||
          row?.status !== "processing" ||
          !Leases.isHeldBy(row.lease, by) ||
          records.get(ref) === undefined
          ? undefined
          : [{ id: Rows.leaseId(ref), was, doc: { ...was, until: nowMs + leaseMs } }]
      }),
      (done) => new Set([...done].map(({ text }) => text))
    ),
  write: (writes, by) =>
    Effect.map(
      decided(records, writes, (write, nowMs) => written(records, write, by, nowMs)),
      (done) => new Set([...done].map(({ ref }) => ref.text))
    ),
  find: (ref) =>
    Effect.sync(() => {
      const doc = records.get(ref)
      return doc === undefined ? undefined : storedOf(records, doc, isGone)
    }),
  list: (table, status, after, limit) =>
    Effect.gen(function* () {
      const page = new Order.JobPage<JobListPosition & { readonly doc: Obj }>(limit)
      yield* walk(records, table, undefined, (doc) => {
        const place = { at: Order.updatedAtOf(doc["updated_at"]), ref: doc["id"] as RecordId, doc }
        const wanted = isStatus(doc["status"]) && (status === undefined || doc["status"] === status)
        if (wanted && (after === undefined || Order.compare(place, after) > 0)) page.add(place)
        return true
      })
      return page.jobs.flatMap(({ doc }) => storedOf(records, doc, isGone) ?? [])
    }),
  amend: (ref, event, error) =>
    Effect.gen(function* () {
      let refused: JobStatus | undefined
      const done = yield* decided(records, [ref], (_, nowMs) => {
        refused = undefined
        const doc = records.get(ref)
        const status = doc?.["status"]
        if (doc === undefined || !isStatus(status)) return undefined
        const to = next(status, event)
        if (to === undefined) {
          refused = status
          return undefined
        }
        return amended(records, ref, doc, to, Rows.fromError(error), nowMs)
      })
      return done.size > 0
        ? { kind: "done" }
        : refused === undefined
          ? { kind: "missing" }
          : { kind: "refused", status: refused }
    })
})

/** Job store over these records. */
export const layer = (records: JobRecords): Layer.Layer<JobStore> => Layer.succeed(JobStore, make(records))
