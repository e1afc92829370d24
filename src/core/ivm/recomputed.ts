/**
 * One instance whose query is not maintained row by row: it is run again by the plain evaluator whenever a table it
 * reads changes, and compared with what it showed before (law L6: exact, and it says so).
 *
 * State: the shown rows by key with a digest of their content. Cost per change: a whole run of the query.
 */
import { encode } from "../surql/encode.ts"
import type { Value } from "../surql/value.ts"
import { type Delta, DeltaBuilder, type Shown } from "./delta.ts"
import { HashSum, rowHash } from "./hash.ts"
import type { Instance, PlanRow, ResultRow, RowError } from "./instance.ts"

/** What one run of the query gave: rows in order, and those left out. */
export interface Outcome {
  readonly rows: ReadonlyArray<{ readonly key: string; readonly version: number; readonly value: Value }>
  readonly errors: ReadonlyArray<RowError>
}

interface ShownRow extends Shown {
  readonly value: Value
}

export class Recomputed implements Instance {
  readonly key: string
  readonly shape: string
  readonly mainTables: ReadonlyArray<string>
  readonly otherTables: ReadonlyArray<string>
  /** It follows links or computes its sources, so any table may be among those it reads. */
  readonly readsAnyTable: boolean
  generation = 1
  private readonly reason: string
  private readonly evaluate: () => Outcome
  private shown = new Map<string, ShownRow>()
  private failing: ReadonlyArray<RowError> = []
  private readonly sum = new HashSum()

  constructor(about: Pick<Instance, "key" | "shape" | "mainTables" | "otherTables"> & { readonly readsAnyTable: boolean }, reason: string, evaluate: () => Outcome) {
    this.key = about.key
    this.shape = about.shape
    this.mainTables = about.mainTables
    this.otherTables = about.otherTables
    this.readsAnyTable = about.readsAnyTable
    this.reason = reason
    this.evaluate = evaluate
    this.recompute()
    this.generation = 1
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
      const now: ShownRow = { key: row.key, version: row.version, digest: encode(row.value), value: row.value }
      after.set(row.key, now)
      if (old !== undefined) this.drop(builder, old)
      this.sum.add(rowHash(now.key, now.version, now.digest))
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
    this.sum.remove(rowHash(row.key, row.version, row.digest))
    builder.left(row)
  }
}
