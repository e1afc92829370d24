/**
 * Whether this SSP's records are those of others (D41): Merkle nodes to compare with another node, a compare with the database record by
 * record, and roots and first-level nodes written where anybody with access to the database can read them.
 *
 * Why the compare does not use the tree: the database has no hashes of its own, so every record has to be read anyhow. It shares what
 * counts as a difference with the reconcile, so that what one names the other repairs. Hashes are written when a table has been quiet for
 * a while: under steady writes they would be old by the time they arrive, and cost a hash of every bucket each time.
 */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { StoreTrees } from "../core/ivm/storeTrees.ts"
import { bucketLevel, empty } from "../core/merkle.ts"
import * as Compare from "../core/reconcile.ts"
import { isOwn } from "../core/surrealSchema.ts"
import type { RecordId, RecordKey } from "../core/surql/value.ts"
import { Serving } from "../ports/Front.ts"
import { defaultMomentMs } from "../ports/liveCompare.ts"
import { type IntegrityNode, Upstream, type UpstreamError } from "../ports/Upstream.ts"
import type * as Wire from "../protocol/integrity.ts"
import { SspConfig } from "./Config.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { Views } from "./Views.ts"

const chunkSize = 1_000
const lookSize = 500
/** Differences that an answer names; all are counted. */
const maxNamed = 10_000
/** A table that is never quiet is written this often all the same. */
const latestMs = 300_000

type Named = (typeof Wire.Comparison.Type)["differences"][number]

export interface IntegrityShape {
  /** False: there is no database to compare with. */
  readonly hasDatabase: boolean
  /** Whether what differs may be repaired from there: in a cluster records and their versions come from the scheduler alone (D4). */
  readonly repairs: boolean
  /** Roots of all tables that hold records, at one position. */
  readonly tables: Effect.Effect<typeof Wire.Tables.Type>
  readonly node: (table: string, level: number, index: number) => Effect.Effect<typeof Wire.Node.Type>
  /** Names what differs between memory and the database, in one table or in all, and still does a moment later. */
  readonly compare: (table: string | undefined) => Effect.Effect<typeof Wire.Comparison.Type, UpstreamError>
}

const nodeOf = (trees: StoreTrees, seq: number | null, table: string, level: number, index: number): typeof Wire.Node.Type => {
  const tree = trees.settle(table)
  const node = { seq, table, level, index, ...tree.node(level, index) }
  return level === bucketLevel ? { ...node, records: trees.leaves(table, index) } : { ...node, children: tree.children(level, index) }
}

/** Root and first level of a table, those that hold something. */
const written = (trees: StoreTrees, seq: number | null, table: string): ReadonlyArray<IntegrityNode> => {
  const tree = trees.settle(table)
  const children = tree.children(0, 0).map((child) => ({ table, level: 1, seq, ...child }))
  return [{ table, level: 0, index: 0, seq, ...tree.node(0, 0) }, ...children]
}

const placeText = ({ index, level }: IntegrityNode): string => `${level}/${index}`

/** What the writer knows of a table. */
interface Progress {
  /** Stamp of what was last written, and of what was seen at the last turn. */
  wrote: number | undefined
  seen: number | undefined
  /** When what is not written yet was first seen. */
  sinceMs: number
  /** Hashes as they are in the database, by place; undefined before they were read. */
  known: Map<string, string> | undefined
}

interface Parts {
  readonly views: Views["Type"]
  readonly upstream: Upstream["Type"]
  readonly momentMs: number
}

class Writer {
  private readonly progress = new Map<string, Progress>()
  private readonly parts: Parts

  constructor(parts: Parts) {
    this.parts = parts
  }

  /** Writes the tables that have changed and are quiet now; one that fails is tried at the next turn. */
  readonly turn: Effect.Effect<void> = Effect.suspend(() => {
    const { views } = this.parts
    for (const table of views.records.tableNames()) if (!isOwn(table) && !this.progress.has(table)) this.progress.set(table, { wrote: undefined, seen: undefined, sinceMs: 0, known: undefined })
    return Effect.forEach(this.progress, ([table, progress]) => this.look(table, progress), { discard: true })
  })

  private look(table: string, progress: Progress): Effect.Effect<void> {
    return Effect.gen(this, function*() {
      const { trees } = this.parts.views
      const stamp = trees.stamp(table)
      if (stamp === progress.wrote) return
      const nowMs = yield* Clock.currentTimeMillis
      if (progress.seen === undefined || progress.seen === progress.wrote) progress.sinceMs = nowMs
      const quiet = progress.seen === stamp
      progress.seen = stamp
      if (!quiet && nowMs - progress.sinceMs < latestMs) return
      yield* this.write(table, progress).pipe(
        Effect.catchAll(({ message }) => Effect.logWarning(`the hashes of ${table} cannot be written: ${message}; trying again`))
      )
    })
  }

  /** Only the nodes that are not there as they are. */
  private write(table: string, progress: Progress): Effect.Effect<void, UpstreamError> {
    return Effect.gen(this, function*() {
      const { upstream, views: { trees } } = this.parts
      const known = progress.known ??= new Map((yield* upstream.nodes(table)).map((node) => [placeText(node), node.hash]))
      const { nodes, stamp } = yield* trees.read([table], (all, seq) => ({ nodes: written(all, seq, table), stamp: trees.stamp(table) }))
      const places = new Set(nodes.map(placeText))
      const gone = [...known].filter(([place, hash]) => !places.has(place) && hash !== empty).map(([place]): IntegrityNode => {
        const [level, index] = place.split("/")
        return { table, level: Number(level), index: Number(index), hash: empty, count: 0, seq: nodes[0]?.seq ?? null }
      })
      const changed = [...nodes.filter((node) => known.get(placeText(node)) !== node.hash), ...gone]
      if (changed.length > 0) yield* upstream.putNodes(changed)
      for (const node of changed) known.set(placeText(node), node.hash)
      progress.wrote = progress.seen = stamp
    })
  }
}

/** A record with the two states it is in. */
const named = ({ found, id, known }: Compare.Difference): Named => ({
  id: id.text, kind: known === undefined ? "missing" : found === undefined ? "extra" : "different", version: known?.version ?? null, database_version: found?.version ?? null
})

/** What still differs a moment later: what is on its way arrives in between. */
const lookAgain = ({ momentMs, upstream, views }: Parts, ids: ReadonlyArray<RecordId>): Effect.Effect<ReadonlyArray<Compare.Difference>, UpstreamError> =>
  ids.length === 0 ? Effect.succeed([]) : Effect.gen(function*() {
    yield* Effect.sleep(Duration.millis(momentMs))
    const found = new Map((yield* upstream.find(ids)).map((record) => [record.id.text, record]))
    return ids.map((id) => ({ id, known: views.records.get(id), found: found.get(id.text) })).filter(({ found, known }) => Compare.differs(known, found))
  })

const compare = (parts: Parts, only: string | undefined): Effect.Effect<typeof Wire.Comparison.Type, UpstreamError> =>
  Effect.gen(function*() {
    const { upstream, views: { records } } = parts
    const tables = only !== undefined ? [only] : [...new Set([...(yield* upstream.tables).map(({ name }) => name), ...records.tableNames().filter((name) => !isOwn(name))])].sort()
    const differences: Array<Named> = []
    let compared = 0
    let different = 0
    let suspects: ReadonlyArray<RecordId> = []
    const look = Effect.suspend(() => Effect.map(lookAgain(parts, suspects), (real) => {
      suspects = []
      different += real.length
      differences.push(...real.slice(0, maxNamed - differences.length).map(named))
    }))
    for (const table of tables) {
      let after: RecordKey | undefined
      for (;;) {
        const found = yield* upstream.chunk(table, after, chunkSize)
        const last = found.length < chunkSize ? undefined : found.at(-1)?.id.key
        compared += found.length
        const here = Compare.compare(found, records.rowsBetween(table, Compare.stretch(after, last)), (id) => records.get(id))
        suspects = [...suspects, ...here.map(({ id }) => id)]
        if (suspects.length >= lookSize) yield* look
        if (last === undefined) break
        after = last
      }
    }
    yield* look
    return { tables, compared, different, differences }
  })

export class Integrity extends Context.Tag("ssp/Integrity")<Integrity, IntegrityShape>() {
  /** `momentMs`: how long a difference has to last to count. */
  static readonly layerOf = (momentMs: number): Layer.Layer<Integrity, never, Views | Upstream | Lifecycle | SspConfig | Serving> =>
    Layer.scoped(
      Integrity,
      Effect.gen(function*() {
        const views = yield* Views
        const upstream = yield* Upstream
        const { loaded, mode } = yield* Lifecycle
        const { integrityQuietSecs } = yield* SspConfig
        const parts = { views, upstream, momentMs }
        // In a cluster the SSPs are compared by the scheduler; each writing the same rows would only make them fight.
        if (upstream.present && mode === "standalone" && integrityQuietSecs > 0) {
          const writer = new Writer(parts)
          yield* Serving.fork(Effect.zipRight(loaded, Effect.forever(Effect.zipRight(Effect.sleep(Duration.seconds(integrityQuietSecs)), writer.turn))))
        }
        const all = Effect.suspend(() => {
          const names = views.records.tableNames()
          return views.trees.read(names, (trees, seq) => ({ seq, tables: names.map((table) => ({ table, ...trees.settle(table).node(0, 0) })) }))
        })
        return {
          hasDatabase: upstream.present,
          repairs: upstream.present && mode === "standalone",
          tables: all,
          node: (table, level, index) => views.trees.read([table], (trees, seq) => nodeOf(trees, seq, table, level, index)),
          compare: (table) => compare(parts, table)
        }
      })
    )

  static readonly layer = Integrity.layerOf(defaultMomentMs)
}
