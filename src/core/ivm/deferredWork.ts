/**
 * Rows and recomputed queries that a step had no evaluation steps left for: each later step evaluates as many of them
 * as its limit allows.
 */
import { addTo, append } from "../multimap.ts"
import type { HasDeferredRows } from "./context.ts"
import type { EvaluationNote } from "./evaluating.ts"
import type { RecordSlot, Write } from "./store/recordSlot.ts"
import type { RecomputedView, RecomputedViews } from "./view/recomputedView.ts"
import type { TrackedSource } from "./view/source.ts"
import type { ChangedViews } from "./view/view.ts"
import { ViewChange } from "./view/viewChange.ts"

type Rows = Map<HasDeferredRows, Set<RecordSlot>>

const none: Rows = new Map()

export class DeferredWork {
  private rows: Rows = new Map()
  /** Rows that the current step evaluates. */
  private due: Rows = none
  private readonly runs = new Set<RecomputedView>()
  private readonly source: TrackedSource

  private readonly evaluating: EvaluationNote

  constructor(source: TrackedSource, evaluating: EvaluationNote) {
    this.source = source
    this.evaluating = evaluating
  }

  defer(view: HasDeferredRows, slot: RecordSlot): void {
    addTo(this.rows, view, slot)
  }

  /** Begins a step. */
  begin(): void {
    this.source.bind(true)
    if (this.rows.size === 0) return
    this.due = this.rows
    this.rows = new Map()
  }

  /** Evaluates the due rows of one stratum; without steps left they stay noted. */
  settle(stratum: number): void {
    if (this.due === none) return
    for (const [view, slots] of this.due)
      if (view.stratum === stratum)
        for (const slot of slots) {
          if (this.source.isSpent) this.defer(view, slot)
          else view.updateDeferred(slot)
        }
  }

  /** Runs the recomputed queries whose tables were written, and the ones that an earlier step could not run. */
  runAgain(recomputed: RecomputedViews, writes: ReadonlyArray<Write>, told: ChangedViews): ChangedViews {
    let touched = told
    const due = new Set([...recomputed.of(writes.map((write) => write.id.table)), ...this.runs])
    this.runs.clear()
    for (const view of due) {
      this.evaluating.begin(view.watchSlot)
      const delta = view.recompute()
      this.source.took(view.lastCost)
      if (this.source.isSpent && view.errors().length > 0) this.runs.add(view)
      if (delta !== undefined) touched = append(touched, new ViewChange(view, delta))
    }
    return touched
  }

  end(): void {
    this.due = none
    this.source.bind(false)
  }

  forget(view: RecomputedView): void {
    this.runs.delete(view)
  }

  clear(): void {
    this.rows.clear()
    this.runs.clear()
  }
}
