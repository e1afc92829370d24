/**
 * Compares the SSPs with the replica again and again while changes flow (D41); an SSP that differs bootstraps anew.
 *
 * Both sides move during the compare, so positions are never simply equal. An SSP's answer belongs to a position that
 * the replica has passed. From before the question changed records are noted, and those that changed behind the
 * answer's position are ignored; all others are as they were there, so a hash that differs in them is a difference. It
 * is found by descending where nodes differ, places that no change explains first, and counts when a second descent, a
 * moment later, finds it again. Cost: two roots per table if all is equal; under steady writes some nodes more.
 */
import { Duration, Effect, Layer } from "effect"
import * as State from "../../core/cluster/state.ts"
import { bucketLevel, bucketOf, differing, differingLeaves, fanOut } from "../../core/integrity/merkle.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { Serving } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { SspClient, type SspClientShape, type Target } from "../../ports/SspClient.ts"
import { SchedulerConfig } from "../Config.ts"
import { Pool } from "../pool/Pool.ts"
import { type ChangedRecords, RecordTrees, type RecordTreesShape, type TreeError } from "./RecordTrees.ts"

/** How long a difference must last to count. */
const defaultMomentMs = 1_000
/** Retries for an SSP that is behind the position where the compare began; then it is left to the next round. */
const catchUp = { tries: 20, pauseMs: 100 }
/**
 * Limits of one descent, in nodes asked for and records found: a damaged SSP is recognized long before its last record
 * is named.
 */
const maxNodes = 400
const maxNamed = 100
/** The pause after a compare is this many times as long as the compare, which bounds its share of the process. */
const pauseTimes = 19
/** Most ids named in a log line. */
const shownIds = 5

interface ComparisonOptions {
  readonly client: Pick<SspClientShape, "roots" | "node">
  readonly trees: Omit<RecordTreesShape, "stamp">
  readonly momentMs: number
}

/** Records that differ, as far as the descent went; `all`: there are no others. */
interface Differing {
  readonly ids: ReadonlyArray<string>
  readonly all: boolean
}

interface Place {
  readonly level: number
  readonly index: number
}

/** Index of the node above a bucket on a level. */
const above = (bucket: number, level: number): number => Math.floor(bucket / fanOut ** (bucketLevel - level))

/** One descent through the tables of one SSP. */
class Descent {
  readonly ids: Array<string> = []
  private asked = 0

  constructor(
    private readonly parts: ComparisonOptions,
    private readonly target: Target,
    private readonly moves: ChangedRecords
  ) {}

  get all(): boolean {
    return this.asked < maxNodes && this.ids.length < maxNamed
  }

  /** Roots of the SSP's tables, once it has passed the position where noting began. */
  readonly theirRoots = Effect.suspend(() =>
    Effect.gen(this, function* () {
      for (let tries = 0; tries < catchUp.tries; tries++) {
        const roots = yield* this.parts.client.roots(this.target)
        if (roots === undefined || roots.seq === null) return undefined
        if (roots.seq >= this.moves.from) return roots
        yield* Effect.sleep(Duration.millis(catchUp.pauseMs))
      }
      return undefined
    })
  )

  /** Descends into a table; false if the SSP stopped answering. */
  table(table: string): Effect.Effect<boolean, TreeError> {
    return Effect.gen(this, function* () {
      const places: Array<Place> = [{ level: 0, index: 0 }]
      for (let place = places.pop(); place !== undefined && this.all; place = places.pop()) {
        const below = yield* this.place(table, place)
        if (below === undefined) return false
        places.push(...below)
      }
      return true
    })
  }

  /** Child nodes that differ, the most suspicious last; undefined if the SSP does not answer. */
  private place(table: string, { index, level }: Place): Effect.Effect<ReadonlyArray<Place> | undefined, TreeError> {
    return Effect.gen(this, function* () {
      this.asked++
      const theirs = yield* this.parts.client.node(this.target, table, level, index)
      const seq = theirs?.seq ?? -1
      // An SSP whose position went back was started anew meanwhile.
      if (theirs === undefined || seq < this.moves.from) return undefined
      const ours = yield* this.parts.trees.node(table, level, index)
      if (theirs.hash === ours.hash) return []
      if (level === bucketLevel) {
        this.ids.push(
          ...differingLeaves(ours.records ?? [], theirs.records ?? []).filter((id) => !this.moves.movedAfter(id, seq))
        )
        return []
      }
      const moved = this.moves.after(seq)
      const explained = new Set(moved?.map((id) => above(bucketOf(id), level + 1)))
      const places = differing(ours.children ?? [], theirs.children ?? []).map((child) => ({
        level: level + 1,
        index: child
      }))
      return [
        ...places.filter((place) => explained.has(place.index)),
        ...places.filter((place) => !explained.has(place.index))
      ]
    })
  }
}

/** Differences at this moment, except by changes in flight; undefined if they cannot be told. */
const descend = (parts: ComparisonOptions, target: Target): Effect.Effect<Differing | undefined, TreeError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const descent = new Descent(parts, target, yield* parts.trees.follow)
      const theirs = yield* descent.theirRoots
      if (theirs === undefined) return undefined
      const ours = (yield* parts.trees.roots).tables
      const rootOf = (of: typeof ours) => new Map(of.map(({ hash, table }) => [table, hash]))
      const [here, there] = [rootOf(ours), rootOf(theirs.tables)]
      // An SSP that holds only some tables answers for these (D61).
      for (const table of new Set(theirs.holds ?? [...here.keys(), ...there.keys()])) {
        if (isOwn(table) || here.get(table) === there.get(table)) continue
        if (!(yield* descent.table(table))) return undefined
      }
      return { ids: descent.ids, all: descent.all }
    })
  )

/** Records in which an SSP differs from the replica now and a moment later; undefined if that cannot be told now. */
export const compareSsp = (parts: ComparisonOptions, target: Target): Effect.Effect<Differing | undefined, TreeError> =>
  Effect.gen(function* () {
    const first = yield* descend(parts, target)
    if (first === undefined || first.ids.length === 0) return first
    yield* Effect.sleep(Duration.millis(parts.momentMs))
    const second = yield* descend(parts, target)
    if (second === undefined) return undefined
    const before = new Set(first.ids)
    return { ids: second.ids.filter((id) => before.has(id)), all: first.all && second.all }
  })

const text = ({ all, ids }: Differing): string =>
  `${all ? "" : "at least "}${ids.length} record${ids.length === 1 ? "" : "s"}: ${ids.slice(0, shownIds).join(", ")}${ids.length > shownIds ? ", …" : ""}`

const layerOf = (
  momentMs: number
): Layer.Layer<never, never, Pool | RecordTrees | SspClient | SchedulerConfig | Serving> =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const pool = yield* Pool
      const parts = { client: yield* SspClient, trees: yield* RecordTrees, momentMs }
      const { integrityIntervalSecs } = yield* SchedulerConfig
      const { integrityCompares } = yield* Meters
      if (integrityIntervalSecs === 0) return
      const one = ({ registration, ssp, url }: Target) =>
        Effect.gen(function* () {
          const found = yield* compareSsp(parts, { ssp, registration, url })
          integrityCompares[found === undefined ? "unknown" : found.ids.length === 0 ? "equal" : "different"].add()
          if (found === undefined) return yield* Effect.logDebug(`${ssp} cannot be compared with the replica now`)
          const equal = found.ids.length === 0
          yield* equal
            ? Effect.logDebug(`${ssp} holds what the replica holds`)
            : Effect.logError(`${ssp} differs from the replica in ${text(found)}`)
          yield* pool.tell({ tag: "Compared", ssp, registration, equal })
        }).pipe(
          Effect.catchAll(({ message }) =>
            Effect.logWarning(`${ssp} could not be compared with the replica: ${message}`)
          )
        )
      // SSPs are compared one after the other, because they share the replica's hashes.
      const all = Effect.suspend(() => Effect.forEach(State.ready(pool.state()), one, { discard: true }))
      const turn = (pause: Duration.Duration) =>
        Effect.zipRight(
          Effect.sleep(pause),
          Effect.map(Effect.timed(all), ([took]) =>
            Duration.max(Duration.seconds(integrityIntervalSecs), Duration.times(took, pauseTimes))
          )
        )
      yield* Serving.fork(
        Effect.iterate(Duration.seconds(integrityIntervalSecs), { while: () => true, body: turn }).pipe(
          Effect.zipRight(Effect.never)
        )
      )
    })
  )

export const layer = layerOf(defaultMomentMs)
