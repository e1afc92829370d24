/**
 * One view kept up to date row by row: filter, sort keys, projection check, children, and the shown rows.
 *
 * State: the matching rows by id, the rows that fail, and which other things each row's evaluation read. Rule per
 * changed row: evaluate it afresh, compare with the held row, move the difference. Cost: O(log n) per row; nothing else
 * of the result is looked at. The old state is taken from the held row and never recomputed, so a link that changed
 * meanwhile cannot confuse it.
 *
 * The result of a subquery is `strict`: the database fails the row around it where a row of it fails, so it keeps all
 * rows that match and says that it fails; a view leaves failing rows out (D2a).
 */
import { type Failure, failureOf, isSame, raiseAgain } from "../../surql/evaluate/failure.ts"
import { drain, type Scope, type Slices } from "../../surql/evaluate/scope.ts"
import { compareStrings } from "../../surql/values/order.ts"
import type { Obj, Value } from "../../surql/values/value.ts"
import { noSlot } from "../../view/watch.ts"
import type { EngineContext, ViewSpec } from "../context.ts"
import { type ChildEntry, type ChildResult, type Delta, entriesNow, type Shown } from "../delta/delta.ts"
import type { Hash64 } from "../delta/hash.ts"
import type { StepEnd } from "../delta/stepLog.ts"
import { SubqueryValues } from "../index/subqueryValues.ts"
import type { Entry } from "../operators/groupScan.ts"
import { type GroupOwner, Groups } from "../operators/groups.ts"
import { type Kind, ResultSet, severalRows } from "../operators/resultSet.ts"
import { movePieces, piecesOf } from "../operators/split.ts"
import type { Bounds } from "../operators/window.ts"
import type { BoundSources } from "../query/boundSources.ts"
import { type PlanFigures, planOf } from "../query/explain.ts"
import type { Params } from "../query/lift.ts"
import type { Shape } from "../query/shape.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { Read, Reader, ReaderRow, ReadResult } from "./dependencies.ts"
import { type Matching, match } from "./evaluate.ts"
import { madeOf, type Output } from "./output.ts"
import type { Sharer } from "./sharer.ts"
import { contentOf, eachShown, inOrder, inOrderSliced, rankingOf, shownRows } from "./showing.ts"
import { isBehindWindow, isBlind } from "./unread.ts"
import type { PlanRow, Ranking, ResultRow, RowError, View } from "./view.ts"
import { FullRow, PlainRow, type ViewRow } from "./viewRow.ts"
import { countOf, exchanged, listOf, type ViewRows } from "./viewRows.ts"

/** Results read of a view since it last moved. */
interface Cache {
  sorted?: ReadonlyArray<Output>
  answer?: Value
  /** Whether the answer is known: it may be NONE. */
  answered?: true
  failure?: { readonly is: Failure | undefined }
}

/** It is the result of its rows, and no object beside it: a change finds either cold. */
export class IncrementalView
  extends ResultSet<Output>
  implements View, Reader, ReadResult, ChildResult, GroupOwner, Matching
{
  // What a change comes by stands first: that much less of a cold view is loaded.
  declare readonly around: EngineContext<IncrementalView>
  readonly plainShape: Shape
  readonly params: Params
  readonly groups: Groups | undefined
  private failureMoved = false
  /** A step will ask for the moves. As in the first fill, of which nothing is a delta: it has an end of its own. */
  private isDirty = true
  private cache: Cache | undefined = undefined
  /** The views that are filed by its values, where it is the result of a subquery; else those that show its rows. */
  private followers: SubqueryValues | Set<Sharer> | undefined = undefined
  // The rows that show or use it as a subquery.
  reader: ReadResult["reader"] = undefined
  row: ReaderRow = ""
  /** The last step that did something to it and that rows hear of, and where what it did is kept. */
  private lastStep = -1
  private last = -1
  generation: number
  /** How many views hold it; -1: it was let go, and only what it had read finds it. */
  uses = 0
  private failing: Map<string, Failure> | undefined = undefined
  /** Bytes that its rows keep of their own. */
  kept = 0
  /** None where the window holds them. */
  private viewRows: ViewRows = undefined
  readonly failsAsWhole: boolean
  readonly boundSources: BoundSources | undefined
  readonly bounds: Bounds
  readonly key: string

  constructor(
    { bounds, generation, key, params, shape, boundSources, failsAsWhole, paged }: ViewSpec,
    around: EngineContext<IncrementalView>
  ) {
    const windowed = shape.windowed && !paged
    super((shape.groups?.kind ?? shape.kind) as Kind<Output>, windowed ? bounds : undefined, shape.only, around)
    this.plainShape = shape
    this.params = params
    this.generation = generation
    this.failsAsWhole = failsAsWhole
    this.boundSources = boundSources
    this.bounds = bounds
    this.key = key
    this.groups = shape.groups && new Groups(shape.groups, this, around.counters, this, shape.reaches)
  }

  get shape(): string {
    return this.plainShape.text
  }

  get stratum(): number {
    return this.plainShape.stratum
  }

  get aliases(): ReadonlyArray<string> {
    return this.plainShape.aliases
  }

  get only(): boolean {
    return this.plainShape.only
  }

  get mainTables(): ReadonlyArray<string> {
    return this.boundSources === undefined ? [this.plainShape.table!] : [...this.boundSources.tables()]
  }

  get otherTables(): ReadonlyArray<string> {
    return this.plainShape.otherTables
  }

  get sortsRows(): boolean {
    const { only, reaches, windowed } = this.plainShape
    return windowed || reaches || only
  }

  get sum(): Hash64 {
    return this
  }

  /**
   * Brings one record up to date. `doc` is its new state, undefined when it is gone or cannot match; `routed` says the
   * argument index has already checked the indexed conjuncts.
   */
  update(slot: RecordSlot, doc: Obj | undefined, routed: boolean): void {
    this.around.counters.views++
    const sourceIndex = this.sourceIndexOf(slot)
    const before = slot.heldBy(this) as ViewRow | undefined
    const after =
      doc === undefined || sourceIndex === undefined
        ? this.forget(slot)
        : this.evaluate(slot, doc, before, sourceIndex, routed)
    if (before !== after) this.exchange(slot, before, after)
  }

  protected exchange(slot: RecordSlot, before: ViewRow | undefined, after: ViewRow | undefined): void {
    if (before instanceof PlainRow && after instanceof PlainRow) this.renew(before, after)
    else {
      const more = (after === undefined ? 0 : after.keeps) - (before === undefined ? 0 : before.keeps)
      if (more !== 0) this.keep(more)
      slot.exchange(before, after)
      if (!this.isHeldElsewhere) this.viewRows = exchanged(this.viewRows, before, after)
      if (this.groups !== undefined)
        this.groups.move(before?.part as Entry | undefined, after?.part as Entry | undefined)
      else if (this.plainShape.splitting === undefined) this.move(before, after)
      else movePieces(this, piecesOf(before), piecesOf(after))
    }
    if (this.failing !== undefined && isBlind(this)) this.failsOtherwise()
  }

  /** Forgets a row it holds. */
  letGo(slot: RecordSlot): void {
    const { id } = slot
    if (id.table === this.plainShape.table && (slot.heldBy(this) !== undefined || this.failing?.has(id.text) === true))
      this.update(slot, undefined, true)
  }

  /**
   * Brings a row up to date because something it read has changed: `cause`, where that is one result it shows and all.
   */
  reread(row: ReaderRow, cause: ReadResult | undefined): void {
    if (this.uses < 0) return
    if (typeof row === "string") this.groups!.reread(row)
    else if (cause !== undefined && this.refresh(row, cause)) return
    // A row that this step has already sent elsewhere reads nothing any more, and is not asked what an index has
    // answered.
    else if (this.around.watches(this, row)) this.update(row, row.doc, false)
  }

  /** Brings a row up to date that an earlier step had no room for. */
  settleDebt(slot: RecordSlot): void {
    if (this.uses >= 0) this.update(slot, slot.doc, false)
  }

  /** Which source a row comes from; undefined for none. */
  sourceIndexOf(slot: RecordSlot): number | undefined {
    // A shape of one whole table says so: the slots of a view stand at its end.
    return this.plainShape.table !== undefined ? 0 : this.boundSources!.of(slot.id)
  }

  /** Takes over the changes of a result that a row shows; false where the row has to be evaluated. */
  protected refresh(slot: RecordSlot, cause: ReadResult): boolean {
    const row = slot.heldBy(this),
      child = cause as IncrementalView,
      step = this.around.step()
    if (!(row instanceof FullRow) || !row.showsResults || child.fails()) return false
    // One that this step has made has them as they are.
    if (row.madeIn(step)) return true
    this.around.counters.rows++
    this.count(step)
    const at = this.around.childAt(this.plainShape, child.plainShape)
    const by = row.differenceBy(child, at)
    if (by.high === 0 && by.low === 0) return true
    row.add(by)
    this.refreshed(row, { result: child, at }, by)
    return true
  }

  *finishFill(): Slices<void> {
    if (this.groups !== undefined) yield* this.groups.settleSliced(this.generation)
    if (this.hasWindow) yield* this.sortLoaded()
  }

  /** Ends the first fill: the rows there now are no delta. */
  begin(): void {
    this.groups?.settle(this.generation)
    this.filled()
    // The fill told nothing of its moves: results read meanwhile are out of date.
    this.changed()
    this.isDirty = this.failureMoved = false
  }

  /** Ends a step. Bumps the generation when there is a delta. */
  finish(): StepEnd {
    if (this.groups?.settle(this.generation + 1) === true) this.failsOtherwise()
    const moves = this.moved()
    const delta = moves?.finish(this.aliases)
    const valueSetDelta =
      moves &&
      this.list?.turn(moves.all.map(({ after, slot }) => [slot, after && { value: contentOf(this, after as Output) }]))
    const moved = delta !== undefined || this.failureMoved
    this.failureMoved = this.isDirty = false
    if (delta !== undefined) this.generation++
    const ended: StepEnd = {
      delta,
      moved,
      valueSetDelta:
        valueSetDelta === undefined || valueSetDelta.gained.length + valueSetDelta.lost.length === 0
          ? undefined
          : valueSetDelta,
      before: moves
    }
    if (this.reader !== undefined) {
      this.lastStep = this.around.step()
      this.last = this.around.moves.end(ended)
    }
    return ended
  }

  /** Its values as a list that views are filed by, kept from the first follower on. */
  subqueryValues(): SubqueryValues {
    const { list } = this
    if (list !== undefined) return list
    const made = new SubqueryValues(this.ordered().map((row) => [(row as ViewRow).slot, contentOf(this, row)]))
    this.followers = made
    return made
  }

  private get list(): SubqueryValues | undefined {
    return this.followers instanceof SubqueryValues ? this.followers : undefined
  }

  get isNeeded(): boolean {
    return this.reader !== undefined || this.isFollowed
  }

  /** The result of a subquery stands under the slot of the view that it was made for. */
  get ownSlot(): number {
    return this.failsAsWhole ? noSlot : this.watchSlot
  }

  private get isFollowed(): boolean {
    const { followers } = this
    return followers instanceof SubqueryValues ? followers.followers.size > 0 : followers !== undefined
  }

  /** The views that show its rows in their own way. */
  get sharers(): ReadonlySet<Sharer> | undefined {
    return this.followers instanceof Set ? this.followers : undefined
  }

  /** How many views show the rows that it keeps, where any does beside it. */
  get sharing(): number {
    return this.sharers === undefined ? 0 : this.sharers.size + Math.sign(this.uses)
  }

  /** From here on this view shows its rows too. */
  lend(view: Sharer): void {
    if (this.followers instanceof Set) this.followers.add(view)
    else this.followers = new Set([view])
  }

  /** A view shows its rows no more. */
  takeBack(view: Sharer): void {
    if (this.followers instanceof Set && this.followers.delete(view) && this.followers.size === 0)
      this.followers = undefined
  }

  *arrange(): Slices<void> {
    const cache = (this.cache ??= {})
    if (cache.sorted !== undefined || this.hasWindow || this.isHeldElsewhere) return
    const sorted =
      this.groups !== undefined
        ? yield* this.groups.rowsSliced()
        : yield* inOrderSliced(this, this.matching(), this.plainShape.reaches)
    // A change has left the cache behind.
    if (this.cache === cache) cache.sorted = sorted
  }

  rows(): ReadonlyArray<ResultRow> {
    return shownRows(this, this.ordered())
  }

  each(): Iterable<ResultRow> {
    return eachShown(this, this.ordered())
  }

  errors(): ReadonlyArray<RowError> {
    return [...this.failures()].sort((a, b) => compareStrings(a.id, b.id))
  }

  *failures(): Iterable<RowError> {
    if (this.several) return yield { id: "", failure: severalRows }
    yield* this.groups?.errors() ?? []
    for (const [id, failure] of this.failing ?? []) yield { id, failure }
  }

  plan(): ReadonlyArray<PlanRow> {
    return planOf(this.plainShape, this.figures())
  }

  figures(): PlanFigures {
    return {
      tables: this.mainTables,
      matching: this.matches,
      shown: this.size,
      groups: this.groups?.size ?? 0,
      costs: this.costs(),
      declined: this.around.declined,
      page: this.pageFigures(),
      sharing: this.sharing
    }
  }

  /** The figures of the index that a page reads; undefined for other views. */
  protected pageFigures(): PlanFigures["page"] {
    return undefined
  }

  *children(): Iterable<readonly [alias: string, parent: string, children: ReadonlyArray<string>]> {
    for (const [alias, parent, result] of this.results())
      yield [alias, parent, this.around.source.aside(() => Array.from(result.shownRows(), (child) => child.key))]
  }

  *childEntries(): Iterable<ChildEntry> {
    for (const [alias, parent, result] of this.results())
      yield* this.around.source.aside(() => entriesNow(parent, alias, result))
  }

  /** The results that rows show, each with its alias and the row's key. */
  private *results(): Iterable<readonly [alias: string, parent: string, result: ChildResult]> {
    if (this.plainShape.children.length === 0) return
    for (const row of this.ordered())
      for (const [i, result] of (row.children ?? []).entries())
        if (result !== undefined) yield [this.aliases[i]!, row.key, result]
  }

  get repeats(): boolean {
    return this.plainShape.children.length > 0 || this.plainShape.splitting !== undefined
  }

  get ranking(): Ranking | undefined {
    const { groups, only, splitting, windowed } = this.plainShape
    if (windowed || only || groups !== undefined || splitting !== undefined) return undefined
    return rankingOf(this, (slot) => this.sourceIndexOf(slot)!)
  }

  shownRows(): Iterable<Shown> {
    return this.ordered()
  }

  sumBefore(): Hash64 {
    return this.lastEnd()?.before ?? this
  }

  lastDelta(): Delta | undefined {
    return this.lastEnd()?.delta
  }

  /** What the current step did to it, if it did anything. */
  private lastEnd(): StepEnd | undefined {
    return this.lastStep === this.around.step() ? this.around.moves.ended(this.last) : undefined
  }

  fails(): boolean {
    const quiet =
      this.failing === undefined && this.groups === undefined && !this.plainShape.checksProjection && !this.several
    return !quiet && this.around.source.aside(() => this.failure()) !== undefined
  }

  /** Why a strict result fails as a whole; undefined when it does not. */
  failure(): Failure | undefined {
    const cache = (this.cache ??= {})
    cache.failure ??= { is: this.firstFailure() }
    return cache.failure.is
  }

  private firstFailure(): Failure | undefined {
    const first = this.errors().find(({ id }) => id === "" || !isBehindWindow(this, id))
    if (first !== undefined) return first.failure
    return this.plainShape.checksProjection
      ? this.ordered().find((member) => member.failure !== undefined)?.failure
      : undefined
  }

  /** The answer of a strict result; fails as the database does. */
  value(): Value {
    const failure = this.failure()
    if (failure !== undefined) raiseAgain(failure)
    const cache = (this.cache ??= {})
    if (cache.answered) return cache.answer
    const {
      plainShape: shape,
      around: { source }
    } = this
    const rows = this.ordered().map((row) => {
      const made = madeOf(row)
      return made === undefined
        ? shape.project(source.scope((row as ViewRow).slot.doc!, this.params, (row as ViewRow).slot.id))
        : made.value
    })
    cache.answered = true
    return (cache.answer = this.only ? rows[0] : rows)
  }

  /** Evaluates filter, sort keys and (where it matters) projection; notes failure and reads. */
  private evaluate(
    slot: RecordSlot,
    doc: Obj,
    before: ViewRow | undefined,
    sourceIndex: number,
    routed: boolean
  ): ViewRow | undefined {
    const { around, plainShape: shape } = this
    around.counters.rows++
    this.count(around.step())
    const scope = around.source.scope(doc, this.params, slot.id)
    let row: ViewRow | undefined, failure: Failure | undefined
    // What cannot fail otherwise can still run out of steps or bytes. Caught here: a closure for each row costs more
    // than the rest.
    try {
      row = match(this, slot, scope, before, sourceIndex, routed)
    } catch (error) {
      failure = failureOf(error)
    }
    if (!shape.total || failure !== undefined || this.failing !== undefined) this.judge(slot, row, failure)
    if (shape.reaches) around.watch(this, slot, around.source.reads)
    return row
  }

  /** Notes whether a row fails that was evaluated just now. Apart: V8 takes evaluations into what routes a change. */
  private judge(slot: RecordSlot, row: ViewRow | undefined, failure: Failure | undefined): void {
    if (this.around.source.isOverdrawn) this.around.owe(this, slot)
    this.failsWith(slot, failure ?? (this.failsAsWhole || this.plainShape.total ? undefined : row?.failure))
  }

  protected failsWith({ id }: RecordSlot, failure: Failure | undefined): void {
    if (this.failing === undefined && failure === undefined) return
    const { text } = id
    if (isSame(failure, this.failing?.get(text))) return
    if (failure === undefined) {
      this.failing?.delete(text)
      if (this.failing?.size === 0) this.failing = undefined
    } else (this.failing ??= new Map()).set(text, failure)
    this.failsOtherwise()
  }

  private failsOtherwise(): void {
    if (!this.failsAsWhole) return
    this.failureMoved = true
    this.changed()
  }

  /** The row is gone or filed elsewhere: what it failed with or read no longer matters. */
  private forget(slot: RecordSlot): undefined {
    if (this.failing !== undefined) this.failsWith(slot, undefined)
    if (this.plainShape.reaches) this.around.watch(this, slot, nothing)
  }

  changed(): void {
    this.cache = undefined
    if (this.isDirty) return
    this.isDirty = true
    this.around.dirty(this)
  }

  /** How many rows match. */
  get matches(): number {
    return this.isHeldElsewhere ? this.knownCount : countOf(this.viewRows)
  }

  /** All matching rows are in its window, and in no list beside it. */
  protected get isHeldElsewhere(): boolean {
    return this.plainShape.heldByWindow && this.hasWindow
  }

  *keptPlaces(): Iterable<RecordSlot> {
    for (const { slot } of this.matching()) yield slot
  }

  matching(): Iterable<ViewRow> {
    return this.isHeldElsewhere ? (this.known() as Iterable<ViewRow>) : listOf(this.viewRows)
  }

  entries(): Iterable<Entry> {
    return Array.from(this.matching(), ({ part }) => part as Entry)
  }

  buildScope(): Scope {
    return this.around.source.wholeScope(this.params)
  }

  keep(bytes: number): void {
    this.kept += bytes
    this.around.kept.used += bytes
  }

  requireRoom(bytes: number): void {
    this.around.kept.require(bytes)
  }

  built(name: string, gone: boolean): void {
    this.around.watch(this, name, gone ? nothing : this.around.source.reads)
  }

  private ordered(): ReadonlyArray<Output> {
    return ((this.cache ??= {}).sorted ??= this.inWindow() ?? this.inOrder())
  }

  protected inOrder(): ReadonlyArray<Output> {
    return this.groups !== undefined
      ? drain(this.groups.rowsSliced())
      : inOrder(this, this.matching(), this.plainShape.reaches)
  }
}

const nothing: ReadonlySet<Read> = new Set()
