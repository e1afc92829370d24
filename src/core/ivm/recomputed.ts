/**
 * One instance whose query is not maintained row by row: it is run again by the plain evaluator whenever a table it
 * reads changes, and compared with what it showed before (law L6: exact, and it says so).
 *
 * State: the shown rows by key with a digest of their content. Cost per change: a whole run of the query.
 */
import { encode } from "../surql/encode.ts"
import type { Value } from "../surql/value.ts"
import { type Delta, DeltaBuilder, type Shown } from "./delta.ts"
import { type Hash64, HashSum, rowHash } from "./hash.ts"
import type { Instance, PlanRow, ResultRow, RowError } from "./instance.ts"

/** What one run of the query gave: rows in order, and those left out. */
export interface Outcome {
  /** `version` undefined for a row that is no record: it then gets the generation in which it last changed. */
  readonly rows: ReadonlyArray<{ readonly key: string; readonly version: number | undefined; readonly value: Value }>
  readonly errors: ReadonlyArray<RowError>
}

interface ShownRow extends Shown {
  readonly value: Value
  readonly hash: Hash64
}

export class Recomputed implements Instance {
  readonly key: string
  readonly shape: string
  readonly mainTables: ReadonlyArray<string>
  readonly otherTables: ReadonlyArray<string>
  /** It follows links or computes its sources, so any table may be among those it reads. */
  readonly readsAnyTable: boolean
  readonly only: boolean
  generation: number
  private readonly reason: string
  private readonly evaluate: () => Outcome
  private shown = new Map<string, ShownRow>()
  private failing: ReadonlyArray<RowError> = []
  private readonly sum = new HashSum()

  constructor(about: Pick<Instance, "key" | "shape" | "mainTables" | "otherTables" | "only" | "generation"> & { readonly readsAnyTable: boolean }, reason: string, evaluate: () => Outcome) {
    this.key = about.key
    this.shape = about.shape
    this.mainTables = about.mainTables
    this.otherTables = about.otherTables
    this.readsAnyTable = about.readsAnyTable
    this.only = about.only
    this.reason = reason
    this.evaluate = evaluate
    this.generation = about.generation - 1
    this.recompute()
    this.generation = about.generation
  }

  get size(): number {
    return this.shown.size
  }

  hash(): string {
    return this.sum.text()
  }

  /** Runs the query again; the delta is undefined when nothing shown changed. */
  recompute(): Delta | undefined {
    const { rows, errors } = this.evaluate()
    const before = this.shown
    const after = new Map<string, ShownRow>()
    const builder = new DeltaBuilder()
    for (const row of rows) {
      const old = before.get(row.key)
      const digest = encode(row.value)
      const version = row.version ?? (old?.digest === digest ? old.version : this.generation + 1)
      // The generation is this process's own; a hash has to be the same on every SSP.
      const now: ShownRow = { key: row.key, version, digest, value: row.value, hash: rowHash(row.key, row.version ?? 0, digest) }
      after.set(row.key, now)
      if (old !== undefined) this.drop(builder, old)
      this.sum.add(now.hash)
      builder.entered(now)
    }
    for (const old of before.values()) if (!after.has(old.key)) this.drop(builder, old)
    this.shown = after
    this.failing = errors
    const delta = builder.finish()
    if (delta !== undefined) this.generation++
    return delta
  }

  rows(): ReadonlyArray<ResultRow> {
    return [...this.shown.values()].map((row) => ({ key: row.key, version: row.version, value: () => row.value }))
  }

  errors(): ReadonlyArray<RowError> {
    return this.failing
  }

  plan(): ReadonlyArray<PlanRow> {
    return [{ operator: "run the whole query", incremental: false, reason: this.reason, rows: this.size }]
  }

  private drop(builder: DeltaBuilder, row: ShownRow): void {
    this.sum.remove(row.hash)
    builder.left(row)
  }
}
