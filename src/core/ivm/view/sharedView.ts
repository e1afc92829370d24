/**
 * A view that shows the rows of another view with the same filter and stores none itself.
 *
 * Both views have the same changes, one hash and one delta. This one has its own order and projection, evaluated when
 * it is read, and its own generation. Cost of a change: one call.
 */
import { append } from "../../multimap.ts"
import type { Slices } from "../../surql/evaluate/scope.ts"
import { noSlot } from "../../view/watch.ts"
import type { EngineContext, ViewSpec } from "../context.ts"
import type { ChildEntry } from "../delta/delta.ts"
import { type Hash64, hashText } from "../delta/hash.ts"
import type { ViewRow } from "../operators/viewRow.ts"
import { type PlanRow, planOf } from "../query/explain.ts"
import type { Params } from "../query/lift.ts"
import type { Shape } from "../query/shape.ts"
import type { IncrementalView } from "./incrementalView.ts"
import { type LenderStep, ownSlotOf, type Sharer } from "./sharer.ts"
import { inOrder, inOrderSliced, rankingOf, type Showing, shownRows, shownRowsLazily } from "./showing.ts"
import type { ChangedViews, Ranking, ResultRow, RowError, View } from "./view.ts"
import { ViewChange } from "./viewChange.ts"

export class SharedView implements View, Showing, Sharer {
  readonly lender: IncrementalView
  generation: number
  /** The rows in this view's order, once they were read. */
  private sorted: ReadonlyArray<ViewRow> | undefined = undefined
  /** How many callers hold the view. */
  uses = 0
  watchSlot = noSlot
  /** The lender's rows count for the lender. */
  kept = 0
  readonly plainShape: Shape
  readonly params: Params
  readonly context: EngineContext
  readonly key: string

  constructor({ generation, key, params, shape }: ViewSpec, context: EngineContext, lender: IncrementalView) {
    this.key = key
    this.plainShape = shape
    this.params = params
    this.generation = generation
    this.context = context
    this.lender = lender
  }

  readonly isNeeded = false

  get ownSlot(): number {
    return ownSlotOf(this)
  }

  get shape(): string {
    return this.plainShape.text
  }

  get mainTables(): ReadonlyArray<string> {
    return this.lender.mainTables
  }

  get otherTables(): ReadonlyArray<string> {
    return this.plainShape.otherTables
  }

  get only(): boolean {
    return false
  }

  get size(): number {
    return this.lender.size
  }

  get sum(): Hash64 {
    return this.lender
  }

  hash(): string {
    return hashText(this.lender)
  }

  *arrange(): Slices<void> {
    const { generation } = this
    if (this.sorted !== undefined) return
    const sorted = yield* inOrderSliced(this, this.lender.matching(), false)
    if (generation === this.generation) this.sorted = sorted
  }

  rows(): ReadonlyArray<ResultRow> {
    return shownRows(this, this.ordered())
  }

  each(): Iterable<ResultRow> {
    return shownRowsLazily(this, this.ordered())
  }

  private ordered(): ReadonlyArray<ViewRow> {
    return (this.sorted ??= inOrder(this, this.lender.matching(), false))
  }

  errors(): ReadonlyArray<RowError> {
    return this.lender.errors()
  }

  failures(): Iterable<RowError> {
    return this.lender.failures()
  }

  plan(): ReadonlyArray<PlanRow> {
    const { context, lender, plainShape } = this
    return planOf(plainShape, { ...lender.figures(), declined: context.declined })
  }

  children(): Iterable<never> {
    return []
  }

  childEntries(): Iterable<ChildEntry> {
    return []
  }

  get repeats(): boolean {
    return false
  }

  get ranking(): Ranking {
    return rankingOf(this, (slot) => this.lender.sourceIndexOf(slot)!)
  }

  lenderChanged({ delta }: LenderStep, told: ChangedViews): ChangedViews {
    this.generation++
    this.sorted = undefined
    return append(told, new ViewChange(this, delta))
  }
}
