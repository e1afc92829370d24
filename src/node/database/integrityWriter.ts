/**
 * Writes roots and first-level nodes of the records' Merkle trees to `_svc_integrity` of the database, for all its
 * readers (D41).
 *
 * One writer per database: a standalone SSP writes hashes of its memory, in a cluster the scheduler writes those of its
 * replica. Under a scheduler of the specification alone each SSP does, and all hold the same records. A table's hashes
 * are written when it has been quiet for a while: under steady writes they would be old when they arrive, and cost a
 * hash of every bucket each time.
 */
import { Duration, Effect } from "effect"
import { empty } from "../../core/integrity/merkle.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { steadyMs } from "../../ports/Turn.ts"
import type { IntegrityNode, UpstreamError, UpstreamShape } from "../../ports/Upstream.ts"
import type * as Wire from "../../protocol/integrity.ts"

/** Longest delay of a table that is never quiet. */
const latestMs = 300_000

/** The trees whose nodes are written. */
export interface HashedTables<E> {
  /** Tables that hold records. */
  readonly tables: Effect.Effect<ReadonlyArray<string>, E>
  /** A number that changes with every change of the table. */
  readonly stamp: (table: string) => number
  /** Root of a table and its non-empty children, with the stamp of a state that is not later. */
  readonly root: (table: string) => Effect.Effect<{ readonly node: typeof Wire.Node.Type; readonly stamp: number }, E>
}

const nodesOf = ({ children = [], count, hash, seq, table }: typeof Wire.Node.Type): ReadonlyArray<IntegrityNode> => [
  { table, level: 0, index: 0, seq, hash, count },
  ...children.map((child) => ({ table, level: 1, seq, ...child }))
]

const placeText = ({ index, level }: IntegrityNode): string => `${level}/${index}`

/** Progress of the writer in a table. */
interface Progress {
  /** Stamp of the hashes last written, and of the hashes seen in the last round. */
  wrote: number | undefined
  seen: number | undefined
  /** When unwritten hashes were first seen. */
  sinceMs: number
  /** Hashes in the database, by place; undefined until they are read. */
  known: Map<string, string> | undefined
}

class Writer<E extends { readonly message: string }> {
  private readonly progress = new Map<string, Progress>()
  private complained = false

  constructor(
    private readonly trees: HashedTables<E>,
    private readonly upstream: UpstreamShape
  ) {}

  /** Writes the tables that have changed and are quiet; a failed one is tried in the next round. */
  readonly turn: Effect.Effect<void> = Effect.suspend(() => this.trees.tables).pipe(
    Effect.flatMap((tables) => {
      for (const table of tables)
        if (!isOwn(table) && !this.progress.has(table))
          this.progress.set(table, { wrote: undefined, seen: undefined, sinceMs: 0, known: undefined })
      return Effect.forEach(this.progress, ([table, progress]) => this.look(table, progress), { discard: true })
    }),
    Effect.catchAll((error) =>
      this.complain(`the hashes of the records cannot be written: ${error.message}; trying again`)
    )
  )

  /** Warns once until a write succeeds: rounds are short. */
  private complain(message: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.complained) return Effect.logDebug(message)
      this.complained = true
      return Effect.logWarning(message)
    })
  }

  private look(table: string, progress: Progress): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const stamp = this.trees.stamp(table)
      if (stamp === progress.wrote) return
      const nowMs = yield* steadyMs
      if (progress.seen === undefined || progress.seen === progress.wrote) progress.sinceMs = nowMs
      const quiet = progress.seen === stamp
      progress.seen = stamp
      if (!quiet && nowMs - progress.sinceMs < latestMs) return
      yield* this.write(table, progress).pipe(
        Effect.tap(() => Effect.sync(() => void (this.complained = false))),
        Effect.catchAll(({ message }) =>
          this.complain(`the hashes of ${table} cannot be written: ${message}; trying again`)
        )
      )
    })
  }

  /** Writes only the nodes that differ from the database. */
  private write(table: string, progress: Progress): Effect.Effect<void, E | UpstreamError> {
    return Effect.gen(this, function* () {
      const known = (progress.known ??= new Map(
        (yield* this.upstream.nodes(table)).map((node) => [placeText(node), node.hash])
      ))
      const { node: root, stamp } = yield* this.trees.root(table)
      const nodes = nodesOf(root)
      const places = new Set(nodes.map(placeText))
      const gone = [...known]
        .filter(([place, hash]) => !places.has(place) && hash !== empty)
        .map(([place]): IntegrityNode => {
          const [level, index] = place.split("/")
          return { table, level: Number(level), index: Number(index), hash: empty, count: 0, seq: root.seq }
        })
      const changed = [...nodes.filter((node) => known.get(placeText(node)) !== node.hash), ...gone]
      if (changed.length > 0) yield* this.upstream.putNodes(changed)
      for (const node of changed) known.set(placeText(node), node.hash)
      progress.wrote = progress.seen = stamp
    })
  }
}

/** Looks every `quietSecs` for tables that have changed and were quiet since the last look, while `isWriter`. */
export const loop = <E extends { readonly message: string }>(
  trees: HashedTables<E>,
  upstream: UpstreamShape,
  quietSecs: number,
  isWriter: () => boolean = () => true
): Effect.Effect<never> =>
  Effect.suspend(() => {
    const writer = new Writer(trees, upstream)
    const turn = Effect.suspend(() => (isWriter() ? writer.turn : Effect.void))
    return Effect.forever(Effect.zipRight(Effect.sleep(Duration.seconds(quietSecs)), turn))
  })
