/**
 * Fills the replica from the database, if it is empty or incomplete (D25).
 *
 * Reads tables in stretches of keys and compares each with the replica. Differences go straight into the replica: no
 * SSP has these records yet, so no event announces them and the log does not move. The walk is repeated until it finds
 * no difference, because changes posted meanwhile were refused (D20). A database that cannot be reached is retried for
 * ever, from the key where the walk stopped; lost versions restart above the highest that a client may have seen (D4).
 * A complete replica is compared while the node serves, in `Reconcile.ts`.
 */
import { Effect } from "effect"
import * as Event from "../../core/record/event.ts"
import * as Compare from "../../core/record/reconcile.ts"
import * as Version from "../../core/record/version.ts"
import * as JsonTypes from "../../core/surql/values/jsonTypes.ts"
import { identical } from "../../core/surql/values/order.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { readStretches, type Stretch, withoutStrays } from "../../node/database/liveCompare.ts"
import * as Backoff from "../../node/work/backoff.ts"
import type { ReplicaError, ReplicaRecord, ReplicaShape } from "../../ports/Replica.ts"
import type { UpstreamShape } from "../../ports/Upstream.ts"

interface Cloned {
  /** Records of the database that were read, over all walks. */
  readonly compared: number
  /** Records that were written or removed. */
  readonly written: number
}

export interface CloneProgress {
  readonly walk: number
  readonly table: string
  readonly compared: number
  readonly written: number
}

/** A failure of any type, by its message. */
interface Trouble {
  readonly message: string
}

interface CloneOptions {
  readonly upstream: UpstreamShape
  readonly replica: ReplicaShape
  /** Setting `bootstrap_chunk_size`. */
  readonly chunkSize: number
  readonly onProgress?: (progress: CloneProgress) => void
}

/** Most walks; fewer if one finds no difference. */
const maxWalks = 4
const failing = { baseMs: 500, capMs: 30_000 }

const hopeless = (error: Trouble): error is ReplicaError =>
  "_tag" in error &&
  error._tag === "ReplicaError" &&
  "reason" in error &&
  (error.reason === "damaged" || error.reason === "newer")

/** Retries with full jitter until success; fails only if the replica is unusable. */
export const retryUntilUsable = (what: string) =>
  Backoff.untilSuccess(failing, (error: Trouble, before): Effect.Effect<void, ReplicaError> => {
    if (hopeless(error)) return Effect.fail(error)
    const text = `${what} failed (${before + 1} in a row): ${error.message}; trying again`
    return before % 10 === 9
      ? Effect.logError(`${text}. Check db.url, db.namespace, db.database and the credentials`)
      : Effect.logWarning(text)
  })

const inReplica = retryUntilUsable("reading or writing the replica")

type Difference = Compare.Difference

/** Whether two records differ in more than what JSON loses on the way to SSPs. */
export const differsBeyondJson = ({ found, known }: Difference): boolean =>
  known === undefined ||
  found === undefined ||
  (found.version !== undefined && found.version > known.version) ||
  !identical(JsonTypes.asSent(known.doc), JsonTypes.asSent(found.doc))

/** A difference as an event for the log, with the change that a reader of the event decodes. */
export const repairOf = (difference: Difference): Event.ReceivedChange => {
  const { doc, id, op, version } = Compare.changeOf(difference)
  const { json, types } = JsonTypes.jsonWithTypes(doc)
  const raw: Event.RawChange = {
    table: id.table,
    id: id.text,
    record: version === undefined ? json : { ...json, _svc_rv: version },
    types
  }
  return Event.fromRaw(raw, op, () => types)
}

/** Records of the replica in a stretch of keys, by id text. */
export const recordsInStretch = (
  replica: ReplicaShape,
  table: string,
  { after, found: { length }, last }: Stretch
): Effect.Effect<ReadonlyMap<string, ReplicaRecord>, ReplicaError> =>
  Effect.gen(function* () {
    const found = new Map<string, ReplicaRecord>()
    // Records read at once: about as many as the database has in the stretch, few if they are large. Behind the table's
    // last key there may be many.
    const size = last === undefined ? Math.max(100, length + 1) : length + 1
    for (let from = after; ; ) {
      const records = yield* replica.records(table, from, size)
      for (const record of records) {
        if (last !== undefined && Ids.compareKeys(record.id.key, last) > 0) return found
        found.set(record.id.text, record)
      }
      if (records.length < size) return found
      from = records.at(-1)!.id.key
    }
  })

/** Stores the tables that the database declares now in the replica; returns the tables. */
export const storeDeclaredTables = ({
  replica,
  upstream
}: Pick<CloneOptions, "replica" | "upstream">): Effect.Effect<ReadonlyArray<string>, ReplicaError> =>
  Effect.gen(function* () {
    const tables = yield* retryUntilUsable("reading the database's tables")(upstream.tables)
    yield* inReplica(replica.putTables(tables.map(({ name, types }) => ({ name, types }))))
    return tables.map(({ name }) => name)
  })

/** Stores the database's definitions as the record that SSPs pull (D57); does nothing if they cannot be known. */
export const storeDefinitions = ({
  replica,
  upstream
}: Pick<CloneOptions, "replica" | "upstream">): Effect.Effect<void, ReplicaError> =>
  Effect.gen(function* () {
    if (upstream.schema === undefined) return
    const text = Definitions.textOf(
      yield* retryUntilUsable("reading the database's definitions")(upstream.schema(undefined))
    )
    const id = Definitions.definitionsId
    const before = (yield* inReplica(replica.current([id]))).get(id.text)
    const records = [{ id, version: (before?.version ?? 0) + 1, doc: Definitions.docOf(text) }]
    yield* inReplica(Effect.flatMap(replica.applied, (through) => replica.commit({ records, through })))
  })

class Walk {
  /** Highest version that clients may have seen of lost records. */
  private lost = 0
  private compared = 0
  private written = 0
  private walks = 0

  constructor(private readonly parts: CloneOptions) {}

  run(): Effect.Effect<Cloned, ReplicaError> {
    return Effect.gen(this, function* () {
      const { replica, upstream } = this.parts
      yield* inReplica(this.rememberLost)
      for (let before = -1; this.walks < maxWalks && (this.walks < 2 || before !== this.written); ) {
        before = this.written
        this.walks++
        const tables = yield* storeDeclaredTables({ replica, upstream })
        const names = new Set([...tables, ...(yield* inReplica(replica.names))].filter((name) => !isOwn(name)))
        yield* this.walk(names)
        yield* Effect.logInfo(
          `clone, walk ${this.walks}: ${this.compared} records read so far, ${this.written} written or removed`
        )
      }
      yield* inReplica(replica.markWhole)
      return { compared: this.compared, written: this.written }
    })
  }

  /** If records were lost with their versions, new ones continue above the versions that clients may have seen. */
  private readonly rememberLost: Effect.Effect<void, ReplicaError> = Effect.suspend(() => {
    const { replica, upstream } = this.parts
    return Effect.gen(this, function* () {
      const known = (yield* replica.current([Compare.lostId])).get(Compare.lostId.text)?.version
      this.lost =
        known ?? (yield* retryUntilUsable("reading the versions that clients have seen")(upstream.highestVersion))
      if (this.lost === 0) return
      if (known === undefined)
        yield* Effect.logWarning(
          `the versions of records are not known any more, but clients have seen some: they go on above ${this.lost}`
        )
      yield* replica.commit({
        records: [{ id: Compare.lostId, version: this.lost, doc: undefined }],
        through: yield* replica.applied
      })
    })
  })

  private walk(tables: Iterable<string>): Effect.Effect<number, ReplicaError> {
    const { chunkSize, onProgress, upstream } = this.parts
    return readStretches(
      tables,
      chunkSize,
      (table, after, size) => retryUntilUsable(`reading table ${table}`)(upstream.chunk(table, after, size)),
      (stretch) =>
        Effect.gen(this, function* () {
          const { found, table } = stretch
          this.compared += found.length
          const differences = yield* inReplica(this.differences(stretch))
          yield* retryUntilUsable(`applying what differs in table ${table}`)(this.write(differences))
          onProgress?.({ walk: this.walks, table, compared: this.compared, written: this.written })
        })
    )
  }

  private differences(stretch: Stretch): Effect.Effect<ReadonlyArray<Difference>, ReplicaError> {
    return Effect.gen(this, function* () {
      const { replica, upstream } = this.parts
      const { found, table } = stretch
      const known = yield* recordsInStretch(replica, table, stretch)
      const missing = found.filter(({ id }) => !known.has(id.text)).map(({ id }) => id)
      // Keys that the database sorts in another order are looked up by id.
      const others = known.size === 0 ? new Map<string, ReplicaRecord>() : yield* replica.current(missing)
      const alive = (id: RecordId): Compare.Known | undefined => {
        const record = known.get(id.text) ?? others.get(id.text)
        return record?.doc === undefined ? undefined : { id, doc: record.doc, version: record.version }
      }
      const differences = Compare.compare(
        found,
        Array.from(known.values(), ({ id }) => alive(id)!),
        alive
      ).filter(differsBeyondJson)
      return yield* withoutStrays(differences, (ids) => retryUntilUsable(`reading table ${table}`)(upstream.find(ids)))
    })
  }

  /** Writes straight into the replica, at its current position: no SSP has any record yet. */
  private write(differences: ReadonlyArray<Difference>): Effect.Effect<void, ReplicaError> {
    if (differences.length === 0) return Effect.void
    const { replica } = this.parts
    return Effect.gen(this, function* () {
      const known = yield* replica.current(differences.map(({ id }) => id))
      const records = differences.flatMap((difference): ReadonlyArray<ReplicaRecord> => {
        const before = known.get(difference.id.text)
        const next = Version.after(before, Compare.changeOf(difference), this.lost)
        return next === undefined ? [] : [{ id: difference.id, ...next }]
      })
      yield* replica.commit({ records, through: yield* replica.applied })
      this.written += records.length
    })
  }
}

/** Returns when a walk has found no difference; fails only if the replica is unusable. */
export const clone = (parts: CloneOptions): Effect.Effect<Cloned, ReplicaError> =>
  Effect.suspend(() => new Walk(parts).run())
