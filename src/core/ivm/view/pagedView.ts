/**
 * A view that shows a page of an ordered index and holds the rows of that page, whatever the filter matches beside.
 *
 * The page is what the index has from START on, LIMIT rows long. A step that touches it reads it again and compares
 * it, slot by slot, with what was shown; only records that are new on the page or have changed are looked at and
 * evaluated. A row that fails, or that has no exact key and does not match, is passed over, and the page goes on to the
 * next. Cost: O(LIMIT) comparisons of pointers, and one evaluation for each row that came or changed.
 */
import { Either } from "effect"
import type { Slices } from "../../surql/evaluate/scope.ts"
import { run } from "../../surql/evaluate/evaluate.ts"
import { compareRecords, isTruthy } from "../../surql/values/order.ts"
import type { Bound, Value } from "../../surql/values/value.ts"
import { append } from "../../multimap.ts"
import type { EngineContext, Page, ViewSpec } from "../context.ts"
import { holdsValue } from "../index/intervalTree.ts"
import type { OrderedIndex, PageView } from "../index/orderedIndex.ts"
import { PageWalk, type Walked } from "../index/pageWalk.ts"
import { TopRows } from "../index/topRows.ts"
import type { FiledKey } from "../store/denseMap.ts"
import { isLive, type RecordSlot } from "../store/recordSlot.ts"
import type { PlanFigures } from "../query/explain.ts"
import type { PageKeys } from "../query/pagePlan.ts"
import type { ReaderRow, ReadResult } from "./dependencies.ts"
import { IncrementalView } from "./incrementalView.ts"
import type { Output } from "./output.ts"
import type { ViewRow } from "./viewRow.ts"

/** New rows that the first fill evaluates between two pauses. */
const fillRows = 128

const none: ReadonlyArray<RecordSlot> = []

export class PagedView extends IncrementalView implements Page, PageView, Walked {
  reads: OrderedIndex | undefined = undefined
  series: string | undefined = undefined
  readonly index: OrderedIndex
  readonly keys: ReadonlyArray<FiledKey>
  readonly interval: PageKeys["interval"]
  readonly descending: boolean
  /** The records shown, in order. */
  private page: Array<RecordSlot> = []
  /** Records of the page that are not shown. */
  private passed: Set<RecordSlot> | undefined = undefined
  /** The first value of the first row that the page has looked at, and of the last one it shows. */
  private firstLead: Value = undefined
  private lastLead: Value = undefined
  /** It shows as many rows as it may, so that nothing behind the last one matters. */
  private full = false
  /** The first fill has read it to its end. */
  private isRead = false
  /** The records of it that the step has touched. */
  private touched: Array<RecordSlot> | undefined = undefined
  /** Those that steps have touched during the first fill. */
  private missed: Array<RecordSlot> | undefined = undefined
  /** The rows that match, one by one, where the index does not lead to them by their rank. */
  private readonly top: TopRows | undefined

  constructor(spec: ViewSpec, around: EngineContext<IncrementalView>, index: OrderedIndex, keys: PageKeys) {
    super(spec, around)
    this.index = index
    this.keys = keys.keys
    this.interval = keys.interval
    const { descending, exact } = spec.shape.page!
    this.descending = descending
    const { limit, start } = spec.bounds
    const merges = keys.keys.length > 1 && start === 0
    this.top = exact && !merges ? undefined : new TopRows(index, this, !exact, limit)
  }

  /** The first fill: builds the index where it is not there yet, then looks at the rows of the page. Pauses. */
  *fillPage(): Slices<void> {
    while (!this.index.isBuilt) {
      this.index.buildOn()
      yield
    }
    this.reads = this.index
    this.index.follow(this)
    while (!this.fillOn()) yield
    this.isRead = true
    this.refile()
    this.begin()
  }

  private fillOn(): boolean {
    this.touched = this.missed
    this.missed = undefined
    const isWhole = this.readPage(fillRows)
    this.touched = undefined
    return isWhole
  }

  /** It reads the index no more. */
  quit(): void {
    this.reads = undefined
    this.index.leave(this)
  }

  get hasRange(): boolean {
    return this.interval !== undefined
  }

  admitsLead(lead: Value): boolean {
    return this.interval === undefined || holdsValue(this.interval, lead)
  }

  compareBegin(other: PagedView): number {
    const mine = this.beginBound,
      its = other.beginBound
    if (mine === undefined || its === undefined) return this.bounds.start - other.bounds.start
    return (
      this.index.ordering.terms[0]!.compare(mine.value, its.value) || Number(its.inclusive) - Number(mine.inclusive)
    )
  }

  /** The bound of its range where its rows begin. */
  private get beginBound(): Bound | undefined {
    return this.descending ? this.interval?.to : this.interval?.from
  }

  /** The bound where they end. */
  private get endBound(): Bound | undefined {
    return this.descending ? this.interval?.from : this.interval?.to
  }

  /**
   * Of pages that are read whole, under one key, and that nothing but START or the begin of their range tells apart. A
   * page that passes over rows of its own may end behind one that begins later.
   */
  private seriesNow(): string | undefined {
    const { bounds, interval } = this
    if (this.top !== undefined || this.keys.length !== 1 || this.passed !== undefined) return undefined
    if (interval === undefined) return `${bounds.limit}`
    return this.beginBound !== undefined && this.endBound === undefined ? `${bounds.limit} ${bounds.start}` : undefined
  }

  private refile(): void {
    const { series } = this
    this.series = this.isRead ? this.seriesNow() : undefined
    this.index.refile(this, series, this.passed !== undefined)
  }

  reaches(lead: Value, slot: RecordSlot): boolean {
    if (!this.admitsLead(lead)) return false
    if (this.top !== undefined) return this.top.reaches(lead, slot)
    if (!this.full) return true
    const [first] = this.index.ordering.terms
    return first === undefined
      ? compareRecords(slot.id, this.page.at(-1)!.id) <= 0
      : first.compare(lead, this.lastLead) <= 0
  }

  isBefore(lead: Value): boolean {
    const [first] = this.index.ordering.terms
    if (first === undefined || this.top !== undefined || this.bounds.start === 0 || !this.admitsLead(lead)) return false
    // Behind the last row: what moves before it is as many rows as before.
    return (this.page.length === 0 && this.passed === undefined) || first.compare(lead, this.firstLead) < 0
  }

  get filters(): boolean {
    return this.plainShape.page!.exact === false
  }

  passedOver(slot: RecordSlot): boolean {
    return this.passed?.has(slot) === true
  }

  touch(slot: RecordSlot): void {
    if (this.touched === undefined) this.around.turnTo(this)
    else if (this.touched.at(-1) === slot) return
    this.touched = append(this.touched, slot)
  }

  turn(): void {
    const { touched } = this
    this.around.counters.windows++
    if (touched !== undefined && this.uses >= 0) {
      this.top?.renew(touched)
      if (this.isRead) this.readPage(Infinity)
      else this.missed = [...(this.missed ?? []), ...touched]
    }
    this.touched = undefined
  }

  override reread(row: ReaderRow, cause: ReadResult | undefined): void {
    if (this.uses < 0 || typeof row === "string") return
    if (cause !== undefined && this.refresh(row, cause)) return
    if (this.around.watches(this, row)) this.touch(row)
  }

  /** Whether a row matches, by the whole filter. */
  admits(slot: RecordSlot): boolean {
    const { plainShape: shape } = this
    if (!isLive(slot) || shape.filter === undefined) return isLive(slot)
    const found = run(shape.filter, this.around.source.scope(slot.doc, this.params, slot.id.text))
    return Either.isRight(found) && isTruthy(found.right)
  }

  override get sortsRows(): boolean {
    return false
  }

  protected override inOrder(): ReadonlyArray<Output> {
    return this.page.map((slot) => slot.heldBy(this) as ViewRow)
  }

  protected override pageFigures(): PlanFigures["page"] {
    const { index } = this
    return { order: index.ordering.terms.map(({ field }) => field).join(", ") || "id", ...index.figures() }
  }

  /**
   * The usual case of many pages behind each other: one record has come before the page or gone from there, and the
   * page is the old one moved by one row. Told by its two ends, since nothing else has moved. False where it is
   * anything else.
   */
  private shiftPage(): boolean {
    const { bounds, full, page, touched } = this
    const { limit, start } = bounds
    const [key] = this.keys
    const rows = this.keys.length === 1 && this.index.loose.size === 0 ? this.index.rowsOf(key) : undefined
    const isOne = touched !== undefined && touched.length === 1 && this.passed === undefined
    if (!isOne || rows === undefined || !full || limit < 4 || this.hasRange || start === 0) return false
    const first: Array<RecordSlot> = [],
      last: Array<RecordSlot> = [],
      leads: Array<Value> = [],
      lastLeads: Array<Value> = []
    rows.read(start, 2, first, leads)
    rows.read(start + limit - 2, 2, last, lastLeads)
    if (first.length < 2 || last.length < 2) return false
    const up = first[1] === page[0] && last[1] === page[limit - 2]
    const down = first[0] === page[1] && last[0] === page[limit - 1]
    if (!up && !down) return false
    const comes = up ? first[0]! : last[1]!,
      goes = up ? page[limit - 1]! : page[0]!
    // A row that the page shows has moved from one end to the other.
    if (comes.heldBy(this) !== undefined) return false
    this.update(comes, comes.doc, true)
    if (comes.heldBy(this) === undefined) return false
    this.update(goes, undefined, true)
    if (up) {
      page.pop()
      page.unshift(comes)
    } else {
      page.shift()
      page.push(comes)
    }
    this.firstLead = leads[0]
    this.lastLead = lastLeads[1]
    return true
  }

  /**
   * Reads the page from the index and moves what differs from what is shown. Looks at no more than so many new rows;
   * false where there are more.
   */
  private readPage(most: number): boolean {
    if (this.isRead && this.top === undefined && this.shiftPage()) return true
    const { bounds, page: before, passed: passedBefore, top } = this
    const isTouched = isAmong(this.touched ?? none)
    const walk = top === undefined ? new PageWalk(this.index, this, bounds.start, bounds.limit) : undefined
    const page: Array<RecordSlot> = [],
      gone: Array<RecordSlot> = [],
      elsewhere: Array<RecordSlot> = []
    const budget = { left: most }
    let at = 0,
      position = bounds.start
    this.passed = undefined
    while (page.length < bounds.limit && budget.left > 0) {
      const slot = walk === undefined ? top!.at(position++, budget) : walk.next(this)
      if (slot === undefined) break
      if (walk !== undefined && page.length === 0 && this.passed === undefined) this.firstLead = walk.lead
      // The usual page is the old one with a row more and a row less: the rest is found without a look at the records.
      let isShown = true
      if (before[at] === slot) at++
      else if (at + 1 < before.length && before[at + 1] === slot) {
        gone.push(before[at]!)
        at += 2
      } else if (slot.heldBy(this) !== undefined) elsewhere.push(slot)
      else isShown = false
      const isChanged = isTouched(slot)
      if (isShown ? isChanged : isChanged || passedBefore?.has(slot) !== true) {
        if (!isShown) budget.left--
        this.update(slot, slot.doc, walk === undefined || !walk.loose)
      }
      if ((!isShown || isChanged) && slot.heldBy(this) === undefined) (this.passed ??= new Set()).add(slot)
      else {
        page.push(slot)
        if (walk !== undefined) this.lastLead = walk.lead
      }
    }
    while (at < before.length) gone.push(before[at++]!)
    this.page = page
    this.full = page.length === bounds.limit
    for (const slot of gone) if (!elsewhere.includes(slot)) this.update(slot, undefined, true)
    for (const slot of passedBefore ?? none)
      if (!this.passedOver(slot) && slot.heldBy(this) === undefined) this.update(slot, undefined, true)
    const isWhole = budget.left > 0
    top?.close(bounds.start + page.length + (this.passed?.size ?? 0), isWhole)
    if ((passedBefore === undefined) !== (this.passed === undefined)) this.refile()
    return isWhole
  }
}

/** Whether a record is one of these, of which there are mostly one or two. */
const isAmong = (slots: ReadonlyArray<RecordSlot>): ((slot: RecordSlot) => boolean) => {
  if (slots.length === 0) return () => false
  if (slots.length > 8) {
    const set = new Set(slots)
    return (slot) => set.has(slot)
  }
  return (slot) => slots.includes(slot)
}
