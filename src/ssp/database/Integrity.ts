/**
 * Whether this SSP's records equal those of others (D41): Merkle nodes for other nodes, a compare with the database
 * record by record, and hashes written for all readers of the database.
 *
 * The compare uses no tree: the database has no hashes of its own, so every record has to be read anyway. It shares the
 * rule of what counts as a difference with the reconcile, so that each repairs what the other names.
 */
import { Context, Duration, Effect, Layer } from "effect"
import { bucketLevel } from "../../core/integrity/merkle.ts"
import type { StoreTrees } from "../../core/integrity/storeTrees.ts"
import * as Compare from "../../core/record/reconcile.ts"
import type { RecordId } from "../../core/surql/values/value.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import * as Writer from "../../node/database/integrityWriter.ts"
import { defaultMomentMs, readStretches, roomToCompare } from "../../node/database/liveCompare.ts"
import { Serving } from "../../ports/Front.ts"
import { Heap, type HeapShape } from "../../ports/ProcessFigures.ts"
import { Upstream, type UpstreamError } from "../../ports/Upstream.ts"
import type * as Wire from "../../protocol/integrity.ts"
import { SspConfig } from "../Config.ts"
import { Lifecycle } from "../membership/Lifecycle.ts"
import { Views } from "../views/Views.ts"
import { shortOfMemory } from "../views/viewLimits.ts"
import type { Overloaded } from "../viewTypes.ts"

const chunkSize = 1_000
const lookSize = 500
/** Most differences named in an answer; all are counted. */
const maxNamed = 10_000

type Named = (typeof Wire.Comparison.Type)["differences"][number]

export interface IntegrityShape {
  /** False: there is no database to compare with. */
  readonly hasDatabase: boolean
  /**
   * Whether differences may be repaired from the database: in a cluster records and versions come from the scheduler
   * alone (D4).
   */
  readonly repairs: boolean
  /** Roots of all tables with records, at one position. */
  readonly tables: Effect.Effect<typeof Wire.Tables.Type, Overloaded>
  readonly node: (table: string, level: number, index: number) => Effect.Effect<typeof Wire.Node.Type, Overloaded>
  /** Whether this SSP has the records of a table. */
  readonly holds: (table: string) => boolean
  /** Names records that differ between memory and the database, in one table or in all, and still do a moment later. */
  readonly compare: (
    table: string | undefined
  ) => Effect.Effect<typeof Wire.Comparison.Type, UpstreamError | Overloaded>
}

const nodeOf = (
  trees: StoreTrees,
  seq: number | null,
  table: string,
  level: number,
  index: number
): typeof Wire.Node.Type => {
  const tree = trees.settle(table)
  const node = { seq, table, level, index, ...tree.node(level, index) }
  return level === bucketLevel
    ? { ...node, records: trees.leaves(table, index) }
    : { ...node, children: tree.children(level, index) }
}

/** The trees as the writer of hashes reads them. */
const treesOf = ({ records, trees }: Views["Type"]): Writer.HashedTables<Overloaded> => ({
  tables: Effect.sync(() => records.tableNames()),
  stamp: (table) => trees.stamp(table),
  root: (table) =>
    trees.read([table], (all, seq) => ({ node: nodeOf(all, seq, table, 0, 0), stamp: trees.stamp(table) }))
})

interface CompareOptions {
  readonly views: Views["Type"]
  readonly upstream: Upstream["Type"]
  readonly momentMs: number
  readonly heap: HeapShape
}

/** A difference as the report lists it: the versions in memory and in the database. */
const differenceEntry = ({ found, id, known }: Compare.Difference): Named => ({
  id: id.text,
  kind: known === undefined ? "missing" : found === undefined ? "extra" : "different",
  version: known?.version ?? null,
  database_version: found?.version ?? null
})

/** The differences left a moment later: changes under way arrive in between. */
const lookAgain = (
  { momentMs, upstream, views }: CompareOptions,
  ids: ReadonlyArray<RecordId>
): Effect.Effect<ReadonlyArray<Compare.Difference>, UpstreamError> =>
  ids.length === 0
    ? Effect.succeed([])
    : Effect.gen(function* () {
        yield* Effect.sleep(Duration.millis(momentMs))
        const found = new Map((yield* upstream.find(ids)).map((record) => [record.id.text, record]))
        return ids
          .map((id) => ({ id, known: views.records.get(id), found: found.get(id.text) }))
          .filter(({ found, known }) => Compare.differs(known, found))
      })

/** The tables that an SSP answers for, if it holds only some (D61). */
const holdsOf = (views: Views["Type"]): { readonly holds?: ReadonlyArray<string> } => {
  const held = views.tables.held()
  return held === undefined || held.isAll ? {} : { holds: held.tables.filter((table) => !isOwn(table)) }
}

const compare = (
  parts: CompareOptions,
  only: string | undefined
): Effect.Effect<typeof Wire.Comparison.Type, UpstreamError | Overloaded> =>
  Effect.gen(function* () {
    const {
      heap,
      upstream,
      views: { records }
    } = parts
    const { holds } = holdsOf(parts.views)
    const all = new Set(
      holds ?? [
        ...(yield* upstream.tables).map(({ name }) => name),
        ...records.tableNames().filter((name) => !isOwn(name))
      ]
    )
    const tables = only !== undefined ? [only] : [...all].sort()
    const differences: Array<Named> = []
    let different = 0
    let suspects: ReadonlyArray<RecordId> = []
    const look = Effect.suspend(() =>
      Effect.map(lookAgain(parts, suspects), (real) => {
        suspects = []
        different += real.length
        differences.push(...real.slice(0, maxNamed - differences.length).map(differenceEntry))
      })
    )
    const room = roomToCompare(heap, shortOfMemory)
    const compared = yield* readStretches(
      tables,
      chunkSize,
      (table, after, size) => Effect.zipRight(room, upstream.chunk(table, after, size)),
      ({ after, found, last, table }) => {
        const between = records.rowsBetween(table, Compare.stretchRange(after, last))
        const here = Compare.compare(found, between, (id) => records.get(id))
        suspects = [...suspects, ...here.map(({ id }) => id)]
        return suspects.length >= lookSize ? look : Effect.void
      }
    )
    yield* look
    return { tables, compared, different, differences }
  })

export class Integrity extends Context.Tag("ssp/database/Integrity")<Integrity, IntegrityShape>() {
  /** `momentMs`: how long a difference has to last to count. */
  static readonly layerOf = (
    momentMs: number
  ): Layer.Layer<Integrity, never, Views | Upstream | Lifecycle | SspConfig | Serving> =>
    Layer.scoped(
      Integrity,
      Effect.gen(function* () {
        const views = yield* Views
        const upstream = yield* Upstream
        const { loaded, mode, writesHashes } = yield* Lifecycle
        const { integrityQuietSecs } = yield* SspConfig
        const parts = { views, upstream, momentMs, heap: yield* Heap }
        // In a cluster the scheduler writes the hashes and compares the SSPs, because SSPs that write the same rows
        // conflict. A scheduler of the specification alone leaves them to the SSPs (D77).
        if (upstream.present && integrityQuietSecs > 0)
          yield* Serving.fork(
            Effect.zipRight(loaded, Writer.loop(treesOf(views), upstream, integrityQuietSecs, writesHashes))
          )
        const all = Effect.suspend(() => {
          const names = views.records.tableNames()
          return views.trees.read(names, (trees, seq) => ({
            seq,
            tables: names.map((table) => ({ table, ...trees.settle(table).node(0, 0) })),
            ...holdsOf(views)
          }))
        })
        return {
          hasDatabase: upstream.present,
          repairs: upstream.present && mode === "standalone",
          tables: all,
          node: (table, level, index) =>
            views.trees.read([table], (trees, seq) => nodeOf(trees, seq, table, level, index)),
          holds: (table) => holdsOf(views).holds?.includes(table) ?? true,
          compare: (table) => compare(parts, table)
        }
      })
    )

  static readonly layer = Integrity.layerOf(defaultMomentMs)
}
