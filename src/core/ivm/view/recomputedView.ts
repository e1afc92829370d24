/**
 * One view whose query is not maintained row by row: the plain evaluator runs it again whenever a table it reads
 * changes, and the new rows are compared with the shown ones (law L6: the result is exact, and the view says why it is
 * recomputed).
 *
 * State: the shown rows by key with a digest of their content. Cost per change: a whole run of the query.
 */
import { longestRun } from "../../longestRun.ts"
import { addTo, removeFrom } from "../../multimap.ts"
import { plainFailure } from "../../surql/evaluate/failure.ts"
import { drain, type Slices } from "../../surql/evaluate/scope.ts"
import type { Value } from "../../surql/values/value.ts"
import { noSlot } from "../../view/watch.ts"
import type { EngineContext } from "../context.ts"
import { type Delta, DeltaBuilder, type Shown } from "../delta/delta.ts"
import * as Hashes from "../delta/hash.ts"
import type { FailingViews } from "../failingViews.ts"
import type { KeptBytes } from "../keptBytes.ts"
import type { PlanRow } from "../query/explain.ts"
import type { ResultRow, RowError, View } from "./view.ts"

/** Result of one run of the query: rows in order, and the rows left out. */
export interface Outcome {
  /** `version` undefined for a row that is no record: its version is the generation that last changed it. */
  readonly rows: ReadonlyArray<{
    readonly key: string
    readonly version: number | undefined
    readonly value: Value
    readonly digest: string
  }>
  readonly errors: ReadonlyArray<RowError>
  /** Evaluation steps of the run. */
  readonly cost: number
  /** Bytes that the rows hold. */
  readonly bytes: number
}

/** How often a first run starts over because a step was applied in a pause. */
const maxTries = 3

interface ShownRow extends Shown {
  readonly value: Value
  readonly hash: Hashes.Hash64
}

/** Name for all tables: a query that follows links may read any of them. */
const anyTable = ""

export class RecomputedView implements View {
  readonly key: string
  readonly shape: string
  readonly mainTables: ReadonlyArray<string>
  readonly otherTables: ReadonlyArray<string>
  /** The tables whose changes rerun the query; {@link anyTable} if it follows links or computes its sources. */
  readonly tables: ReadonlySet<string>
  readonly only: boolean
  readonly repeats = true
  readonly ranking = undefined
  generation: number
  /** Watchdog slot of the view it is evaluated for. */
  watchSlot = noSlot
  /** How many callers hold the view; rows that show it as a subquery are noted as readers. */
  uses = 0
  readonly isNeeded = false
  private readonly reason: string
  private readonly evaluate: () => Slices<Outcome>
  private filled = false
  private shown = new Map<string, ShownRow>()
  private failing: ReadonlyArray<RowError> = []
  /** Bytes that its rows hold. */
  kept = 0
  private readonly room: KeptBytes
  private readonly failingViews: FailingViews
  /** Evaluation steps of the last run. */
  lastCost = 0
  private totalCost = 0
  readonly sum: Hashes.HashSum = { high: 0, low: 0 }
  /** Hash of the order of the rows, a part of `sum`: a run may return rows that sort as equal in another order. */
  private order = Hashes.noSum

  constructor(
    about: Pick<View, "key" | "shape" | "mainTables" | "otherTables" | "only" | "generation"> & {
      readonly readsAnyTable: boolean
    },
    reason: string,
    { failing, kept }: Pick<EngineContext, "failing" | "kept">,
    evaluate: () => Slices<Outcome>
  ) {
    this.key = about.key
    this.shape = about.shape
    this.mainTables = about.mainTables
    this.otherTables = about.otherTables
    this.tables = new Set(about.readsAnyTable ? [anyTable] : [...about.mainTables, ...about.otherTables])
    this.only = about.only
    this.reason = reason
    this.room = kept
    this.failingViews = failing
    this.evaluate = evaluate
    this.generation = about.generation
  }

  get ownSlot(): number {
    return this.watchSlot
  }

  /**
   * The first run, with pauses. `steps` answers the engine's count of steps: a run during which a step was applied
   * starts over; after {@link maxTries} it runs without a pause, so that it ends.
   */
  *fill(steps: () => number): Slices<void> {
    for (let tries = 0; tries < maxTries; tries++) {
      const began = steps()
      const slices = this.evaluate()
      let slice = slices.next()
      while (slice.done !== true && steps() === began) {
        yield
        if (steps() === began) slice = slices.next()
      }
      if (slice.done === true) return this.begin(slice.value)
    }
    this.begin(drain(this.evaluate()))
  }

  private begin(outcome: Outcome): void {
    const { generation } = this
    this.generation = generation - 1
    this.show(outcome)
    this.generation = generation
    this.filled = true
  }

  get size(): number {
    return this.shown.size
  }

  hash(): string {
    return Hashes.hashText(this.sum)
  }

  /** Runs the query again. The delta is undefined if nothing shown changed, or before the first run has ended. */
  recompute(): Delta | undefined {
    return this.filled ? this.show(drain(this.evaluate())) : undefined
  }

  private show(outcome: Outcome): Delta | undefined {
    const { room } = this
    const { bytes, cost, errors, rows } = room.hasRoom(outcome.bytes - this.kept)
      ? outcome
      : { rows: [], errors: [{ id: "", failure: plainFailure(room.reason) }], cost: outcome.cost, bytes: 0 }
    room.used += bytes - this.kept
    this.kept = bytes
    this.lastCost = cost
    this.totalCost += cost
    const before = this.shown
    const moved = movedKeys(
      [...before.keys()],
      rows.map((row) => row.key)
    )
    const after = new Map<string, ShownRow>()
    const builder = new DeltaBuilder()
    for (const row of rows) {
      const old = before.get(row.key)
      const { digest } = row
      const version = row.version ?? (old?.digest === digest ? old.version : this.generation + 1)
      // The version is left out of the hash: generations differ between SSPs, hashes must not.
      const now: ShownRow = {
        key: row.key,
        version,
        digest,
        value: row.value,
        hash: Hashes.rowHash(row.key, row.version ?? 0, digest)
      }
      after.set(row.key, now)
      if (old !== undefined) this.drop(builder, old)
      Hashes.add(this.sum, now.hash)
      builder.entered(moved.has(row.key) ? { ...now, digest: `${digest} moved` } : now)
    }
    for (const old of before.values()) if (!after.has(old.key)) this.drop(builder, old)
    this.shown = after
    this.failing = errors
    if (errors.length > 0) this.failingViews.add(this)
    Hashes.remove(this.sum, this.order)
    this.order = orderHash(rows.map((row) => row.key))
    Hashes.add(this.sum, this.order)
    const delta = builder.finish()
    if (delta !== undefined) this.generation++
    return delta
  }

  /** The rows are always in order. */
  *arrange(): Slices<void> {}

  rows(): ReadonlyArray<ResultRow> {
    return [...this.each()]
  }

  *each(): Generator<ResultRow, void, void> {
    for (const { key, value, version } of this.shown.values()) yield { key, version, value: () => value }
  }

  errors(): ReadonlyArray<RowError> {
    return this.failing
  }

  failures(): Iterable<RowError> {
    return this.failing
  }

  plan(): ReadonlyArray<PlanRow> {
    return [
      {
        operator: "run the whole query",
        incremental: false,
        reason: this.reason,
        rows: this.size,
        last_cost: this.lastCost,
        total_cost: this.totalCost
      }
    ]
  }

  /** The evaluator does not tell which subquery rows belong to which row. */
  children(): Iterable<never> {
    return []
  }

  childEntries(): Iterable<never> {
    return []
  }

  private drop(builder: DeltaBuilder, row: ShownRow): void {
    Hashes.remove(this.sum, row.hash)
    builder.left(row)
  }
}

/** The recomputed views, by the tables that they read. */
export class RecomputedViews {
  private readonly byTable = new Map<string, Set<RecomputedView>>()

  get empty(): boolean {
    return this.byTable.size === 0
  }

  add(view: RecomputedView): void {
    for (const table of view.tables) addTo(this.byTable, table, view)
  }

  remove(view: RecomputedView): void {
    for (const table of view.tables) removeFrom(this.byTable, table, view)
  }

  clear(): void {
    this.byTable.clear()
  }

  /** The views that read one of these tables, each once. */
  of(tables: ReadonlyArray<string>): Iterable<RecomputedView> {
    const found = new Set<RecomputedView>()
    for (const table of [anyTable, ...tables]) for (const view of this.byTable.get(table) ?? []) found.add(view)
    return found
  }
}

const orderHash = (keys: ReadonlyArray<string>): Hashes.Hash64 =>
  keys.length < 2 ? Hashes.noSum : Hashes.rowHash("", 0, keys.join("\n"))

/**
 * Keys that changed places: all but a longest run of common keys that are in the same order in both lists. Cost:
 * O(n log n).
 */
const movedKeys = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ReadonlySet<string> => {
  const places = new Map(before.map((key, place) => [key, place]))
  const common = after.filter((key) => places.has(key))
  const moved = new Set(common)
  for (const i of longestRun(common.map((key) => places.get(key)!))) moved.delete(common[i]!)
  return moved
}
