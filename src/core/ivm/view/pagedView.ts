/**
 * A view that shows a page of an ordered index and holds only the rows of that page.
 *
 * The page is the index from START on, LIMIT rows long. If a step has moved one record, the page adds a row and drops
 * one, at ranks that the index or its `TopRows` know. Otherwise it reads the index again and compares, slot by slot,
 * with the rows it shows. A row that fails, or that has no exact key and does not match, is passed over, and the page
 * takes the next one. Cost: O(LIMIT) moves of pointers, and one evaluation for each new or changed row.
 */
import { Either } from "effect"
import { isAmong } from "../../multimap.ts"
import { run } from "../../surql/evaluate/evaluate.ts"
import type { Slices } from "../../surql/evaluate/scope.ts"
import { isTruthy } from "../../surql/values/order.ts"
import type { Value } from "../../surql/values/value.ts"
import type { EngineContext, Page, PageUpdate, ViewSpec } from "../context.ts"
import type { OrderedIndex, PageView } from "../index/orderedIndex.ts"
import { insertAt, type OrderedRows, removeAt } from "../index/orderedRows.ts"
import { type Place, unmovedPlace } from "../index/pageViews.ts"
import { beginOf, endOf, firstRank, isBeforeBegin, PageWalk, type Walked } from "../index/pageWalk.ts"
import type { KnownMove, TopRows } from "../index/topRows.ts"
import { isCurrent, PlainRow, type ViewRow } from "../operators/viewRow.ts"
import type { PlanFigures } from "../query/explain.ts"
import type { PageKeys } from "../query/pagePlan.ts"
import type { FiledKey } from "../store/denseMap.ts"
import { holdsValue } from "../store/intervalTree.ts"
import { leadOf, type Probe } from "../store/ordering.ts"
import { isLive, type RecordSlot, type SlotRef } from "../store/recordSlot.ts"
import { fillInPieces, maxFillWaits, type UnfilledResult } from "../unfilled.ts"
import type { ReaderRow, ReadResult } from "./dependencies.ts"
import { IncrementalView } from "./incrementalView.ts"
import type { OutputRow } from "./output.ts"
import type { ResultView } from "./resultView.ts"

/** Rows that the first fill evaluates between two pauses; `rowSteps` evaluation steps count as one more row. */
const fillRows = 128
const rowSteps = 128
const none: ReadonlyArray<RecordSlot> = []
const unbounded = { left: Infinity }

export class PagedView extends IncrementalView implements Page, PageView, Walked {
  // The fields that a change needs come first and together, so that less of a cold page is loaded.
  readonly index: OrderedIndex
  /** The rows of its key in the index; undefined before the fill and for a page with several keys. */
  private indexed: OrderedRows | undefined = undefined
  readonly interval: PageKeys["interval"]
  /** Position of its {@link PageUpdate} in the engine's list; -1: the current step has not touched the page. */
  private updateNoted = -1
  /** START and LIMIT. */
  private readonly offset: number
  private readonly length: number
  /** The records shown, in order. */
  private page: Array<SlotRef> = []
  /** Records that the page has looked at and does not show. */
  private passed: Set<RecordSlot> | undefined = undefined
  /** The first matching rows, if ranks in the index do not give the page. */
  private readonly top: TopRows | undefined
  /** Rows only show their record, and nothing is evaluated for them. */
  private readonly isPlain: boolean
  /** The first fill has read the whole page. */
  private isRead = false
  /** The plain row that left the page last: the next added row reuses it, so no young object goes into its slot. */
  private spare: PlainRow | undefined = undefined
  /** Lead of the last row when the page was last read; only for a page with a range. */
  private lastLead: Value = undefined
  series: string | undefined = undefined
  readonly keys: ReadonlyArray<FiledKey>
  readonly descending: boolean
  /** The records that steps have touched during the first fill. */
  private missed: Array<RecordSlot> | undefined = undefined

  /** `topRows`: the shared first rows of its filter in the index. */
  constructor(
    spec: ViewSpec,
    context: EngineContext<ResultView>,
    index: OrderedIndex,
    keys: PageKeys,
    topRows: (filters: boolean) => TopRows
  ) {
    super(spec, context)
    const { checksProjection, page, reaches, splitting } = spec.shape
    const { limit, start } = spec.bounds
    const { descending, exact } = page!
    const merges = keys.keys.length > 1 && start === 0
    this.index = index
    this.interval = keys.interval
    this.offset = start
    this.length = limit
    this.top = exact && !merges ? undefined : topRows(!exact)
    this.isPlain = exact && !checksProjection && !reaches && splitting === undefined && this.groups === undefined
    this.keys = keys.keys
    this.descending = descending
    this.top?.join(this, start + limit, limit)
  }

  /** Unsubscribes from the index and drops all rows. */
  leave(): void {
    this.top?.leave(this)
    this.index.leave(this)
  }

  /** The first fill: builds the index if it is missing, then evaluates the rows of the page. Pauses. */
  *fillPage(): Slices<void> {
    while (!this.index.isBuilt) {
      this.index.buildOn()
      yield
    }
    this.indexed = this.index.follow(this)
    const most = maxFillWaits(this.plainShape.subqueries.length, this.length)
    yield* fillInPieces((waits) => {
      const missed = this.missed ?? none
      this.missed = undefined
      return this.readPage(missed, waits ? fillRows : Infinity)
    }, most)
    this.isRead = true
    this.refile()
    this.begin()
  }

  /** As {@link fillPage} without a pause; false if the index has to be built first. */
  fillAtOnce(): boolean {
    if (!this.index.isBuilt || this.plainShape.subqueries.length > 0) return false
    // No change can come before the end of this turn, so the view is filed in its final series at once.
    this.isRead = true
    this.series = this.seriesNow()
    this.indexed = this.index.follow(this)
    if (this.isPlain && this.isRanked && this.interval === undefined) this.readPlain()
    else this.readPage(none, Infinity)
    this.begin()
    return true
  }

  /** Reads a page of one key whose rows need no evaluation. */
  private readPlain(): void {
    this.indexed!.read(this.offset, this.length, this.page, [])
    const slots = this.page.map((ref) => this.index.slotOf(ref))
    let newest = 0
    // Reads one field of each slot in a loop of its own: most are cold, and the processor fetches them together.
    for (let i = 0; i < slots.length; i++) newest = Math.max(newest, slots[i]!.version)
    if (newest >= 0) for (let i = 0; i < slots.length; i++) this.showsPlain(slots[i]!)
  }

  get hasRange(): boolean {
    return this.interval !== undefined
  }

  admitsLead(lead: Value): boolean {
    return this.interval === undefined || holdsValue(this.interval, lead)
  }

  compareBegin(other: PagedView): number {
    const mine = beginOf(this),
      its = beginOf(other)
    if (mine === undefined || its === undefined) return this.offset - other.offset
    return this.index.ordering.lead!.compare(mine.value, its.value) || Number(its.inclusive) - Number(mine.inclusive)
  }

  /**
   * The series of the page: pages of one key that differ only in START, or only in the begin of their range. A page
   * that passes over rows is in none, since it may end behind a page that begins later.
   */
  private seriesNow(): string | undefined {
    const { interval, length, offset } = this
    if (this.top !== undefined || this.keys.length !== 1 || this.passed !== undefined) return undefined
    if (interval === undefined) return `${length}`
    return beginOf(this) !== undefined && endOf(this) === undefined ? `${length} ${offset}` : undefined
  }

  private refile(): void {
    const { series } = this
    this.series = this.isRead ? this.seriesNow() : undefined
    this.index.refile(this, series, this.passed !== undefined)
  }

  get edge(): Probe | undefined {
    return this.top?.reach
  }

  reaches(place: Place, slot: RecordSlot): boolean {
    const { index, interval, length, page, passed, top } = this
    if (!this.admitsLead(place.lead)) return false
    if (top !== undefined) return top.reaches(place.lead, slot)
    if (!this.isRanked) return true
    if (interval === undefined) return place.rank < this.offset + length + (passed === undefined ? 0 : passed.size)
    return page.length < length || index.ordering.lead!.compare(place.lead, this.lastLead) <= 0
  }

  isBefore({ rank }: Place): boolean {
    return this.isRanked && this.interval === undefined && rank < this.offset
  }

  /** The page is read by rank from the list of one key. */
  private get isRanked(): boolean {
    return this.indexed !== undefined && this.top === undefined && this.index.loose.size === 0
  }

  /** The page itself is the list of its rows. */
  protected override get isHeldElsewhere(): boolean {
    return true
  }

  override get knownCount(): number {
    return this.page.length
  }

  override known(): ReadonlyArray<ViewRow> {
    return this.page.map((ref) => this.index.slotOf(ref).heldBy(this) as ViewRow)
  }

  get filters(): boolean {
    return this.plainShape.page!.exact === false
  }

  passedOver(slot: RecordSlot): boolean {
    return this.passed?.has(slot) === true
  }

  touch(slot: RecordSlot, from: Place | undefined, to: Place | undefined): void {
    if (this.updateNoted === -1) this.updateNoted = this.context.noteUpdate({ page: this, slots: [slot], from, to })
    else this.context.updateAt(this.updateNoted).slots.push(slot)
  }

  touchInPlace(slot: RecordSlot): void {
    this.touch(slot, unmovedPlace, unmovedPlace)
  }

  applyUpdate({ from, slots, to }: PageUpdate): void {
    this.updateNoted = -1
    if (this.uses < 0) return
    this.context.counters.windows++
    const move = this.top?.renew(slots, this.context.step())
    if (!this.isRead)
      this.missed = [...(this.missed ?? []), ...slots, ...(this.context.writes() > 1 ? (this.passed ?? none) : none)]
    else {
      const only = slots.length === 1 && this.passed === undefined ? slots[0]! : undefined
      const isMoved =
        only !== undefined && (this.top === undefined ? this.moveOne(only, from, to) : this.follow(only, move))
      if (!isMoved) this.readPage(slots, Infinity)
    }
  }

  override reread(row: ReaderRow, cause: ReadResult | undefined): void {
    if (this.uses < 0 || typeof row === "string") return
    if (cause !== undefined && this.refresh(row, cause)) return
    if (this.context.readsOf(this, row) > 0) this.touchInPlace(row)
  }

  override updateDeferred(slot: RecordSlot): void {
    if (this.uses >= 0) this.touchInPlace(slot)
  }

  admits(slot: RecordSlot): boolean {
    const { plainShape: shape } = this
    if (!isLive(slot) || shape.filter === undefined) return isLive(slot)
    const scope = this.context.source.scope(slot.doc, this.params, slot.id)
    // The filter cannot fail, so steps that other rows have taken must not make it fail.
    scope.budget.floor = 0
    const found = run(shape.filter, scope)
    return Either.isRight(found) && isTruthy(found.right)
  }

  override get sortsRows(): boolean {
    return false
  }

  protected override inOrder(): ReadonlyArray<OutputRow> {
    return this.known()
  }

  /** A page is always in order. */
  override *arrange(): Slices<void> {}

  protected override pageFigures(): PlanFigures["page"] {
    const order = this.index.ordering.terms.map(({ field }) => field).join(", ") || "id"
    return { order, ...this.index.figures(), filtered: this.filters ? this.top?.figures() : undefined }
  }

  /**
   * Updates the page for the usual step, which has moved one record: adds a row and drops one, at known ranks. False if
   * the page has to be read again, because a row cannot be shown.
   */
  private moveOne(slot: RecordSlot, from: Place | undefined, to: Place | undefined): boolean {
    const { interval, length: limit, offset: start, page } = this
    if (!this.isRanked) return false
    if (from === unmovedPlace) return slot.heldBy(this) !== undefined && this.showSlot(slot)
    if (from === undefined && to === undefined) return false
    // A page with a range is not told of writes before the range, although they shift its ranks.
    if (interval !== undefined && this.context.writes() > 1) return false
    const began = firstRank(this.indexed!, this)
    const comesBefore = to !== undefined && isBeforeBegin(this, to.lead)
    // Positions of the record on the page, before and after the write; `limit`: not on it.
    const was =
      from === undefined || !this.admitsLead(from.lead) ? limit : from.rank - began + Number(comesBefore) - start
    const is = to === undefined || !this.admitsLead(to.lead) ? limit : to.rank - began - start
    if (!this.shift(slot, was, is, began + start)) return false
    if (interval !== undefined && page.length > 0) this.lastLead = this.leadOf(this.index.slotOf(page.at(-1)!))
    return true
  }

  /** As {@link moveOne}, for a page whose rows `TopRows` knows; called once per step. */
  private follow(slot: RecordSlot, move: KnownMove | undefined): boolean {
    if (move === undefined) return false
    const { length: limit, offset: start, top } = this
    const was = move.from < 0 ? limit : move.from - start
    const is = move.to < 0 ? limit : move.to - start
    if (!this.shift(slot, was, is, start)) return false
    top!.close(this, start + this.page.length, true)
    return true
  }

  /**
   * Moves a record from one position of the page to another; negative: before the page, `limit` or more: behind it.
   * `first` is the rank of the page's first row. False if a row that is added cannot be shown.
   */
  private shift(slot: RecordSlot, was: number, is: number, first: number): boolean {
    const { length: limit, page } = this
    if (was < 0 && is < 0) return true
    const gone = was < 0 ? page.shift() : was < limit ? slot.ref : undefined
    if (was >= 0 && was < limit) removeAt(page, was)
    let come = is < 0 ? this.rowAt(first) : undefined
    if (is < limit && (is >= 0 || come !== undefined)) insertAt(page, Math.max(0, is), (come ?? slot).ref)
    let last: SlotRef | undefined
    if (page.length > limit) last = page.pop()
    else if (page.length < limit) {
      const next = this.rowAt(first + page.length)
      if (next !== undefined) page.push((come = next).ref)
    }
    const isOn = is >= 0 && is < limit
    const left = gone !== undefined && !(isOn && gone === slot.ref) ? this.hideSlot(this.index.slotOf(gone)) : undefined
    const pushed = last === undefined ? undefined : this.hideSlot(this.index.slotOf(last))
    // Shows the record if it is on the page now, else the row that was added in its stead.
    const isShown = isOn ? this.showSlot(slot) : come === undefined || this.showSlot(come)
    // Set only now: the added row may be the one that left last, and then reuses the former spare row.
    this.spare = left ?? pushed ?? this.spare
    return isShown
  }

  /** Drops a row that has left the page, and answers it if it is plain. */
  private hideSlot(slot: RecordSlot): PlainRow | undefined {
    const row = slot.heldBy(this) as ViewRow | undefined
    if (row === undefined) return undefined
    if (!this.isPlain) return void this.update(slot, undefined, true)
    this.context.counters.views++
    slot.exchange(row, undefined)
    this.remove(row)
    return row as PlainRow
  }

  /** Shows a row that was added to the page or changed on it. False if the row fails and is taken off the page. */
  private showSlot(row: RecordSlot): boolean {
    if (this.isPlain) {
      this.showsPlain(row)
      return true
    }
    this.update(row, row.doc, true)
    if (row.heldBy(this) !== undefined) return true
    removeAt(this.page, this.page.indexOf(row.ref))
    return false
  }

  private showsPlain(row: RecordSlot): void {
    const before = row.heldBy(this) as ViewRow | undefined
    this.context.counters.views++
    this.context.counters.rows++
    this.count(this.context.step())
    if (isCurrent(before, row)) return
    if (before !== undefined) this.renew(before as PlainRow, new PlainRow(this, row, undefined, before))
    else {
      const after = this.spare?.become(row) ?? new PlainRow(this, row, undefined, undefined)
      this.spare = undefined
      row.exchange(undefined, after)
      this.insert(after)
    }
  }

  /** The row at a rank; undefined behind the last of the range. */
  private rowAt(rank: number): RecordSlot | undefined {
    if (this.top !== undefined) {
      const ref = this.top.at(rank, unbounded)
      return ref === undefined ? undefined : this.index.slotOf(ref)
    }
    const row = this.indexed!.at(rank)
    return row !== undefined && (this.interval === undefined || this.admitsLead(this.leadOf(row))) ? row : undefined
  }

  private leadOf(row: RecordSlot): Value {
    return leadOf(this.index.ordering, row.doc!)
  }

  /**
   * Reads the page from the index and moves the rows that differ from the shown ones. False if more than `most` new
   * rows have to be evaluated. In a first fill, answers the missing result that a row needs.
   */
  private readPage(touched: ReadonlyArray<RecordSlot>, most: number): boolean | UnfilledResult {
    const { length, offset: start, page: before, passed: passedBefore, top } = this
    const isTouched = isAmong(touched)
    // One of several writes may have pushed a row off the page for a while, and the row's own change was missed.
    const several = this.context.writes() > 1
    const mayBeOther = (slot: RecordSlot, isShown: boolean): boolean =>
      isShown
        ? (several || !this.isRead) && !isCurrent(slot.heldBy(this) as ViewRow | undefined, slot)
        : several && this.isRead && passedBefore?.has(slot) === true
    const walk = top === undefined ? new PageWalk(this.index, this, start, length) : undefined
    const page: Array<SlotRef> = [],
      gone: Array<SlotRef> = [],
      elsewhere: Array<SlotRef> = []
    const budget = { left: most }
    let at = 0,
      position = start,
      unfilled: UnfilledResult | undefined
    this.passed = undefined
    while (page.length < length && budget.left > 0) {
      const ref = walk === undefined ? top!.at(position++, budget) : walk.next(this)
      if (ref === undefined) break
      const slot = this.index.slotOf(ref)
      // The usual page has one added and one removed row: compares references only, without a look at the records.
      let isShown = true
      if (before[at] === ref) at++
      else if (at + 1 < before.length && before[at + 1] === ref) {
        gone.push(before[at]!)
        at += 2
      } else if (slot.heldBy(this) !== undefined) elsewhere.push(ref)
      else isShown = false
      const isChanged = isTouched(slot) || mayBeOther(slot, isShown)
      if (this.isPlain && walk?.loose === false) {
        if (isChanged || !isShown) this.showsPlain(slot)
        if (!isShown) budget.left--
      } else if (isChanged || (!isShown && passedBefore?.has(slot) !== true)) {
        const { spent } = this.context.source
        const isRouted = walk?.loose !== true
        if (most === Infinity) this.update(slot, slot.doc, isRouted)
        else if ((unfilled = this.attempt(slot, isRouted)) !== undefined) break
        if (!isShown) budget.left -= 1 + Math.floor((this.context.source.spent - spent) / rowSteps)
      }
      if ((!isShown || isChanged) && slot.heldBy(this) === undefined) (this.passed ??= new Set()).add(slot)
      else {
        page.push(ref)
        if (walk !== undefined) this.lastLead = walk.lead
      }
    }
    while (at < before.length) gone.push(before[at++]!)
    this.page = page
    for (const ref of gone) if (!elsewhere.includes(ref)) this.update(this.index.slotOf(ref), undefined, true)
    for (const slot of passedBefore ?? none)
      if (!this.passedOver(slot) && slot.heldBy(this) === undefined) this.update(slot, undefined, true)
    const isWhole = budget.left > 0 && unfilled === undefined
    top?.close(this, start + page.length + (this.passed?.size ?? 0), isWhole)
    if ((passedBefore === undefined) !== (this.passed === undefined)) this.refile()
    return unfilled ?? isWhole
  }
}
