/**
 * One view maintained row by row, from the changed records that a router or a page shows it: filter, sort keys,
 * projection check, children, and the matching rows.
 *
 * State: the matching rows, the failing rows, and the other things that each row's evaluation read. Rule per changed
 * row: evaluate it afresh, compare with the held row, move the difference. Cost: O(log n) per row; nothing else of the
 * result is looked at. The old state is taken from the held row and never recomputed, so a link that changed meanwhile
 * cannot confuse it.
 */
import { type Failure, failureOf, plainFailure } from "../../surql/evaluate/failure.ts"
import type { Slices } from "../../surql/evaluate/scope.ts"
import type { Obj } from "../../surql/values/value.ts"
import { readsBytes } from "../keptBytes.ts"
import type { GroupEntry } from "../operators/groupScan.ts"
import { FullRow, PlainRow, type ViewRow } from "../operators/viewRow.ts"
import type { PlanFigures } from "../query/explain.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import { fillMissing, maxFillWaits, type UnfilledResult } from "../unfilled.ts"
import { noReads, type ReaderRow, type ReadResult } from "./dependencies.ts"
import { type Matching, matchRow } from "./evaluate.ts"
import type { OutputRow } from "./output.ts"
import { ResultView } from "./resultView.ts"
import { rankingOf } from "./showing.ts"
import { showsNothing } from "./unread.ts"
import type { Ranking } from "./view.ts"
import { rowCountOf, rowListOf, type ViewRows, withRowReplaced } from "./viewRows.ts"

export class IncrementalView extends ResultView implements Matching {
  /** The matching rows; none if the window holds them. */
  private viewRows: ViewRows = undefined

  get sortsRows(): boolean {
    const { only, reaches, windowed } = this.plainShape
    return windowed || reaches || only
  }

  /**
   * Updates the view for one record. `doc`: its new state, undefined if it is deleted or cannot match. `routed`: the
   * index has already checked the indexed conjuncts.
   */
  update(slot: RecordSlot, doc: Obj | undefined, routed: boolean): void {
    this.context.counters.views++
    const sourceIndex = this.sourceIndexOf(slot)
    const before = slot.heldBy(this) as ViewRow | undefined
    const after =
      doc === undefined || sourceIndex === undefined
        ? this.forget(slot)
        : this.evaluate(slot, doc, before, sourceIndex, routed)
    if (before !== after) this.exchange(slot, before, after)
  }

  attempt(slot: RecordSlot, routed: boolean, waits = true): UnfilledResult | undefined {
    const unfilled = this.context.source.attempt(() => this.update(slot, slot.doc, routed), waits)
    if (unfilled !== undefined) this.update(slot, undefined, routed)
    return unfilled
  }

  *updateLater(slot: RecordSlot, unfilled: UnfilledResult): Slices<void> {
    const { postponed } = this.context
    // Rows that change meanwhile are added behind this one.
    const due = new Set([slot])
    const attempt = (waits: boolean): UnfilledResult | undefined => {
      postponed.delete(this)
      for (const row of due) {
        const missing = this.attempt(row, false, waits)
        if (missing !== undefined) {
          postponed.set(this, due)
          return missing
        }
        due.delete(row)
      }
      return undefined
    }
    try {
      postponed.set(this, due)
      yield* fillMissing(unfilled, attempt, maxFillWaits(this.plainShape.subqueries.length, 1))
    } finally {
      postponed.delete(this)
    }
  }

  protected exchange(slot: RecordSlot, before: ViewRow | undefined, after: ViewRow | undefined): void {
    if (before instanceof PlainRow && after instanceof PlainRow) this.renew(before, after)
    else {
      const more = (after === undefined ? 0 : after.keeps) - (before === undefined ? 0 : before.keeps)
      if (more !== 0) this.keep(more)
      slot.exchange(before, after)
      if (!this.isHeldElsewhere) this.viewRows = withRowReplaced(this.viewRows, before, after)
      this.presenter.move(this, before, after)
    }
    if (this.failing !== undefined && showsNothing(this)) this.failsOtherwise()
  }

  /** Drops the row of a record, if the view has one. */
  dropRow(slot: RecordSlot): void {
    const { id } = slot
    if (id.table === this.plainShape.table && (slot.heldBy(this) !== undefined || this.failing?.has(id.text) === true))
      this.update(slot, undefined, true)
  }

  /**
   * Updates a row because something it read has changed. `cause`: the child result that changed, if nothing else did.
   */
  reread(row: ReaderRow, cause: ReadResult | undefined): void {
    if (this.uses < 0) return
    if (typeof row === "string") this.groups!.reread(row)
    else if (cause !== undefined && this.refresh(row, cause)) return
    // A row that this step has already moved out of the view has no reads left, and is not evaluated.
    else if (this.context.readsOf(this, row) > 0) this.update(row, row.doc, false)
  }

  /** Updates a row that an earlier step had no evaluation steps for. */
  updateDeferred(slot: RecordSlot): void {
    if (this.uses >= 0) this.update(slot, slot.doc, false)
  }

  /** Position of a row's source; undefined for none. */
  sourceIndexOf(slot: RecordSlot): number | undefined {
    // Only the shape is asked for a whole table: `boundSources` is at the end of the view object, in cold memory.
    return this.plainShape.table !== undefined ? 0 : this.boundSources!.of(slot.id)
  }

  /** Takes over the change of a child result that a row shows; false if the row has to be evaluated. */
  protected refresh(slot: RecordSlot, cause: ReadResult): boolean {
    const row = slot.heldBy(this),
      child = cause as ResultView,
      step = this.context.step()
    if (!(row instanceof FullRow) || !row.showsResults || child.fails()) return false
    // A row made in this step has the new child result already.
    if (row.madeIn(step)) return true
    this.context.counters.rows++
    this.count(step)
    const at = this.context.childAt(this.plainShape, child.plainShape)
    const by = row.differenceBy(child, at)
    if (by.high === 0 && by.low === 0) return true
    row.add(by)
    this.refreshed(row, { result: child, at }, by)
    return true
  }

  figures(): PlanFigures {
    return { ...this.figuresWith(this.matches, this.sharing), page: this.pageFigures() }
  }

  /** For `/debug/view`: the index that a page reads; undefined for other views. */
  protected pageFigures(): PlanFigures["page"] {
    return undefined
  }

  get ranking(): Ranking | undefined {
    const { groups, only, splitting, windowed } = this.plainShape
    if (windowed || only || groups !== undefined || splitting !== undefined) return undefined
    return rankingOf(this, (slot) => this.sourceIndexOf(slot)!)
  }

  /** Evaluates filter, sort keys and (if needed) projection; notes failure and reads. */
  private evaluate(
    slot: RecordSlot,
    doc: Obj,
    before: ViewRow | undefined,
    sourceIndex: number,
    routed: boolean
  ): ViewRow | undefined {
    const { context, plainShape: shape } = this
    if (shape.reaches && context.postponed.size > 0) {
      const due = context.postponed.get(this)
      if (due !== undefined) {
        due.add(slot)
        return this.forget(slot)
      }
    }
    context.counters.rows++
    this.count(context.step())
    const scope = context.source.scope(doc, this.params, slot.id)
    let row: ViewRow | undefined, failure: Failure | undefined
    // Even an expression that cannot fail may run out of steps or bytes. A `try` here, because a closure for each row
    // costs more than the rest.
    try {
      row = matchRow(this, slot, scope, before, sourceIndex, routed)
    } catch (error) {
      failure = failureOf(error)
    }
    if (shape.reaches && !this.notesReads(slot)) {
      row = undefined
      failure = plainFailure(context.kept.reason)
    }
    if (!shape.total || failure !== undefined || this.failing !== undefined) this.judge(slot, row, failure)
    return row
  }

  /** Notes what the row just evaluated has read; false without room for it. */
  private notesReads(slot: RecordSlot): boolean {
    const { context } = this,
      { kept, source } = context
    const bytes = readsBytes(source.reads.size)
    const hasRoom = kept.fits(bytes) || kept.hasRoom(bytes - readsBytes(context.readsOf(this, slot)))
    this.watch(slot, hasRoom ? source.reads : noReads)
    return hasRoom
  }

  /** Notes whether the row just evaluated fails. Its own function, so that V8 inlines evaluations into routing. */
  private judge(slot: RecordSlot, row: ViewRow | undefined, failure: Failure | undefined): void {
    if (this.context.source.isOverdrawn) this.context.defer(this, slot)
    this.failsWith(slot, failure ?? (this.failsAsWhole || this.plainShape.total ? undefined : row?.failure))
  }

  /** The row is deleted or belongs elsewhere: drops its failure and its reads. */
  private forget(slot: RecordSlot): undefined {
    if (this.failing !== undefined) this.failsWith(slot, undefined)
    if (this.plainShape.reaches) this.watch(slot, noReads)
  }

  /** Number of matching rows. */
  get matches(): number {
    return this.isHeldElsewhere ? this.knownCount : rowCountOf(this.viewRows)
  }

  /** The window holds all matching rows, so no other list does. */
  protected get isHeldElsewhere(): boolean {
    return this.plainShape.heldByWindow && this.hasWindow
  }

  *keptPlaces(): Iterable<RecordSlot> {
    for (const { slot } of this.matching()) yield slot
  }

  matching(): Iterable<ViewRow> {
    return this.isHeldElsewhere ? (this.known() as Iterable<ViewRow>) : rowListOf(this.viewRows)
  }

  entries(): Iterable<GroupEntry> {
    return Array.from(this.matching(), ({ part }) => part as GroupEntry)
  }

  protected inOrder(): ReadonlyArray<OutputRow> {
    return this.presenter.inOrder(this, this.matching())
  }

  protected inOrderSliced(): Slices<ReadonlyArray<OutputRow>> {
    return this.presenter.inOrderSliced(this, this.matching())
  }
}
