/**
 * Groups over the rows of another view with the same filter; this view stores no rows.
 *
 * A row's entry in its group is evaluated when it is needed: of the record before the step, to remove it, and of the
 * record after it, to add it. The entry depends on the record alone, so the old one comes out as it was. Views that
 * evaluate the same keys and columns share the entries. Cost of a change: two evaluations for each distinct question,
 * and for each view its groups.
 */

import { isSmall } from "../../surql/evaluate/charge.ts"
import { type Failure, failureOf } from "../../surql/evaluate/failure.ts"
import { drain, type Slices } from "../../surql/evaluate/scope.ts"
import type { Obj } from "../../surql/values/value.ts"
import { payWriting } from "../../surql/written/paid.ts"
import type { EngineContext, ViewSpec } from "../context.ts"
import { fillPacer } from "../index/router.ts"
import type { GroupEntry } from "../operators/groupScan.ts"
import type { GroupRow } from "../operators/groups.ts"
import type { ViewRow } from "../operators/viewRow.ts"
import type { PlanFigures } from "../query/explain.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { ReaderRow } from "./dependencies.ts"
import type { IncrementalView } from "./incrementalView.ts"
import { ResultView } from "./resultView.ts"
import { type EntryChange, type LenderStep, ownSlotOf, type Sharer } from "./sharer.ts"
import type { ChangedViews, RowError } from "./view.ts"

const failed = (made: GroupEntry | Failure | undefined): made is Failure => made !== undefined && "kind" in made

export class GroupedView extends ResultView implements Sharer {
  readonly lender: IncrementalView
  /** Rows that moved since the first fill began, with their record at that time; undefined: no matching record. */
  private missed: Map<RecordSlot, Obj | undefined> | undefined = undefined
  private isFilled = false
  /** The rows of the first fill, once it has begun. */
  private beginning: ReadonlyArray<ViewRow> | undefined = undefined

  constructor(spec: ViewSpec, context: EngineContext<ResultView>, lender: IncrementalView) {
    super(spec, context)
    this.lender = lender
  }

  override get ownSlot(): number {
    return ownSlotOf(this)
  }

  /** The first fill, from the lender's rows at its begin; later moves are applied at its end. */
  *fillGroups(): Slices<void> {
    const rows = (this.beginning = Array.from(this.lender.matching()))
    const missed = (this.missed = new Map<RecordSlot, Obj | undefined>())
    const isDue = fillPacer(this.context.source)
    for (const { slot, sourceIndex } of rows) {
      this.exchangeEntries(this.entryChangeOf(slot, sourceIndex, undefined, this.docOf(slot)))
      if (isDue()) yield
    }
    yield* this.finishFill()
    this.missed = undefined
    for (const [slot, doc] of missed)
      this.exchangeEntries(
        this.entryChangeOf(
          slot,
          this.lender.sourceIndexOf(slot)!,
          doc,
          slot.heldBy(this.lender) === undefined ? undefined : slot.doc
        )
      )
    this.beginning = undefined
    this.isFilled = true
    this.begin()
  }

  /** The record of a row: during the first fill as it was at its begin, later the current one. */
  private docOf(slot: RecordSlot): Obj | undefined {
    return this.missed?.has(slot) === true ? this.missed.get(slot) : slot.doc
  }

  lenderChanged({ entryChanges, moves }: LenderStep, told: ChangedViews): ChangedViews {
    if (!this.isFilled) this.note(moves)
    else for (const one of this.entryChangesOf(moves, entryChanges)) this.exchangeEntries(one)
    return told
  }

  private note({ all }: LenderStep["moves"]): void {
    const { context, missed } = this
    if (missed === undefined) return
    for (const { before, slot } of all) {
      const record = slot as RecordSlot
      if (!missed.has(record)) missed.set(record, before === undefined ? undefined : context.docBefore(record))
    }
  }

  private entryChangesOf(
    { all }: LenderStep["moves"],
    brought: LenderStep["entryChanges"]
  ): ReadonlyArray<EntryChange> {
    const { context } = this
    const { asks } = this.plainShape.members!
    const known = asks === undefined ? undefined : brought.get(asks)
    if (known !== undefined) return known
    const made = all.map(({ after, before, slot }) => {
      const record = slot as RecordSlot
      return this.entryChangeOf(
        record,
        ((after ?? before) as ViewRow).sourceIndex,
        before === undefined ? undefined : context.docBefore(record),
        after === undefined ? undefined : record.doc
      )
    })
    if (asks !== undefined) brought.set(asks, made)
    return made
  }

  private entryChangeOf(
    slot: RecordSlot,
    sourceIndex: number,
    before: Obj | undefined,
    after: Obj | undefined
  ): EntryChange {
    const { context } = this
    context.counters.rows++
    this.count(context.step())
    const was = before === undefined ? undefined : this.entryOf(slot, sourceIndex, before, undefined)
    const old = failed(was) ? undefined : was
    const is = after === undefined ? undefined : this.entryOf(slot, sourceIndex, after, old)
    return {
      slot,
      before: old,
      after: failed(is) ? undefined : is,
      failure: failed(is) ? is : undefined
    }
  }

  /** The entry of a record state, `before` if it is the same; or why it fails. */
  private entryOf(
    slot: RecordSlot,
    sourceIndex: number,
    doc: Obj,
    before: GroupEntry | undefined
  ): GroupEntry | Failure {
    const { context, params, plainShape } = this
    context.evaluating.begin(this.watchSlot)
    const scope = context.source.scope(doc, params, slot.id)
    try {
      const contribution = plainShape.groups!.grouping.of(scope)
      // Pays for the text of the key, which finds the group.
      if (!contribution.key.every(isSmall)) payWriting(scope.budget, contribution.key)
      return this.groups!.entry(before, slot.id, sourceIndex, contribution)
    } catch (error) {
      return failureOf(error)
    }
  }

  private exchangeEntries({ after, before, failure, slot }: EntryChange): void {
    this.groups!.move(before, after)
    this.failsWith(slot, failure)
  }

  *entries(): Iterable<GroupEntry> {
    for (const { slot, sourceIndex } of this.beginning ?? this.lender.matching()) {
      const doc = this.docOf(slot)
      const entry = doc && this.entryOf(slot, sourceIndex, doc, undefined)
      if (entry !== undefined && !failed(entry)) yield entry
    }
  }

  override *failures(): Iterable<RowError> {
    yield* super.failures()
    yield* this.lender.failures()
  }

  figures(): PlanFigures {
    return this.figuresWith(this.lender.matches, this.lender.sharing)
  }

  /** Only the building of group rows reads other things. */
  reread(row: ReaderRow): void {
    if (this.uses >= 0) this.groups!.reread(row as string)
  }

  get ranking(): undefined {
    return undefined
  }

  protected inOrder(): ReadonlyArray<GroupRow> {
    return drain(this.inOrderSliced())
  }

  protected inOrderSliced(): Slices<ReadonlyArray<GroupRow>> {
    return this.groups!.rowsSliced()
  }
}
