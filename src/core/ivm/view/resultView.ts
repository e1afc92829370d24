/**
 * Result and reports of a view: its result in order, as rows and as a value, its failures, and the delta of a step.
 * Subclasses know where rows come from.
 *
 * The result of a subquery is strict (`failsAsWhole`): the database fails the parent row if a row of the result fails,
 * so it keeps all matching rows and fails as a whole; a view leaves failing rows out (D2a).
 */
import { type Failure, isSame, raiseAgain } from "../../surql/evaluate/failure.ts"
import type { Scope, Slices } from "../../surql/evaluate/scope.ts"
import { compareStrings } from "../../surql/values/order.ts"
import type { Value } from "../../surql/values/value.ts"
import { noSlot } from "../../view/watch.ts"
import type { EngineContext, ViewSpec } from "../context.ts"
import { type ChildEntry, type ChildResult, type Delta, entriesNow, type Shown } from "../delta/delta.ts"
import type { Hash64 } from "../delta/hash.ts"
import type { StepEffect } from "../delta/stepLog.ts"
import { SubqueryValues } from "../index/subqueryValues.ts"
import type { GroupEntry } from "../operators/groupScan.ts"
import { type GroupOwner, Groups } from "../operators/groups.ts"
import { ResultSet, type RowKind, severalRowsFailure } from "../operators/resultSet.ts"
import type { ViewRow } from "../operators/viewRow.ts"
import type { Bounds } from "../operators/window.ts"
import type { BoundSources } from "../query/boundSources.ts"
import { type PlanFigures, type PlanRow, planOf } from "../query/explain.ts"
import type { Params } from "../query/lift.ts"
import type { Shape } from "../query/shape.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import { noReads, type Read, type Reader, type ReaderRow, type ReadResult } from "./dependencies.ts"
import { type OutputRow, storedContentOf } from "./output.ts"
import { type Presenter, presenterOf } from "./presenter.ts"
import type { Sharer } from "./sharer.ts"
import { contentOf, shownRows, shownRowsLazily } from "./showing.ts"
import { isBehindWindow } from "./unread.ts"
import type { Ranking, ResultRow, RowError, View } from "./view.ts"

/** Readings of a view since it last changed. */
interface Cache {
  sorted?: ReadonlyArray<OutputRow>
  answer?: Value
  /** Set once the value is known, which may be NONE. */
  answered?: true
  failure?: { readonly is: Failure | undefined }
}

/** Rows up to which the value of a result is made without a pause. */
const manyRows = 4096

/** Rows that are projected between two pauses. */
const pauseAfter = 256

/** Extends the result set instead of having one: one object less for a change to find cold. */
export abstract class ResultView
  extends ResultSet<OutputRow>
  implements View, Reader, ReadResult, ChildResult, GroupOwner
{
  // The fields that a change needs come first, so that less of a cold view is loaded.
  declare readonly context: EngineContext<ResultView>
  readonly plainShape: Shape
  readonly params: Params
  readonly groups: Groups | undefined
  readonly presenter: Presenter<ResultView>
  private failureMoved = false
  /** Whether the engine's list of changed views has this view. True in the first fill, whose moves are no delta. */
  private isDirty = true
  private cache: Cache | undefined = undefined
  /** The views that share its rows; for a subquery result: its values, which views are filed by. */
  private followers: SubqueryValues | Set<Sharer> | undefined = undefined
  // The rows that show or use this result as a subquery.
  reader: ReadResult["reader"] = undefined
  row: ReaderRow = ""
  /** The last step that changed the view so that rows are told, and the position of its effect in the log. */
  private lastStep = -1
  private last = -1
  generation: number
  /** How many callers hold the view; -1: it was released, and only its former reads still lead to it. */
  uses = 0
  protected failing: Map<string, Failure> | undefined = undefined
  /** Bytes that its rows hold beside their records. */
  kept = 0
  readonly failsAsWhole: boolean
  readonly boundSources: BoundSources | undefined
  readonly bounds: Bounds
  readonly key: string

  constructor(
    { bounds, generation, key, params, shape, boundSources, failsAsWhole, paged }: ViewSpec,
    context: EngineContext<ResultView>
  ) {
    const windowed = shape.windowed && !paged
    super((shape.groups?.kind ?? shape.kind) as RowKind<OutputRow>, windowed ? bounds : undefined, shape.only, context)
    this.plainShape = shape
    this.params = params
    this.generation = generation
    this.failsAsWhole = failsAsWhole
    this.boundSources = boundSources
    this.bounds = bounds
    this.key = key
    this.presenter = presenterOf(shape)
    this.groups = shape.groups && new Groups(shape.groups, this, context.counters, this, shape.reaches)
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

  get sum(): Hash64 {
    return this
  }

  *finishFill(): Slices<void> {
    if (this.groups !== undefined) yield* this.presenter.settleSliced(this, this.generation)
    if (this.hasWindow) yield* this.sortLoaded()
  }

  /** Ends the first fill: the present rows are no delta. */
  begin(): void {
    this.presenter.settle(this, this.generation)
    if (this.groups !== undefined) this.leavesOut()
    this.filled()
    // The fill reported no moves, so results read during it are out of date.
    this.changed()
    this.isDirty = this.failureMoved = false
  }

  /** Ends a step. Adds one to the generation if there is a delta. */
  finish(): StepEffect {
    if (this.presenter.settle(this, this.generation + 1)) this.failsOtherwise()
    const moves = this.moved()
    const delta = moves?.finish(this.aliases)
    const valueSetDelta =
      moves &&
      this.list?.update(
        moves.all.map(({ after, slot }) => [slot, after && { value: contentOf(this, after as OutputRow) }])
      )
    const moved = delta !== undefined || this.failureMoved
    this.failureMoved = this.isDirty = false
    if (delta !== undefined) this.generation++
    const ended: StepEffect = {
      delta,
      moved,
      valueSetDelta:
        valueSetDelta === undefined || valueSetDelta.gained.length + valueSetDelta.lost.length === 0
          ? undefined
          : valueSetDelta,
      before: moves
    }
    if (this.reader !== undefined) {
      this.lastStep = this.context.step()
      this.last = this.context.moves.end(ended)
    }
    return ended
  }

  /** The values as a list that views are filed by; maintained from the first call on. */
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

  /** The result of a subquery has the watchdog slot of another view, so it frees none. */
  get ownSlot(): number {
    return this.failsAsWhole ? noSlot : this.watchSlot
  }

  private get isFollowed(): boolean {
    const { followers } = this
    return followers instanceof SubqueryValues ? followers.followers.size > 0 : followers !== undefined
  }

  /** The views that share its rows. */
  get sharers(): ReadonlySet<Sharer> | undefined {
    return this.followers instanceof Set ? this.followers : undefined
  }

  /** Number of views that show the same stored rows; 0 if it shares none. */
  get sharing(): number {
    return this.sharers === undefined ? 0 : this.sharers.size + Math.sign(this.uses)
  }

  /** Adds a view that shares its rows. */
  lend(view: Sharer): void {
    if (this.followers instanceof Set) this.followers.add(view)
    else this.followers = new Set([view])
  }

  /** Removes a view that shared its rows. */
  takeBack(view: Sharer): void {
    if (this.followers instanceof Set && this.followers.delete(view) && this.followers.size === 0)
      this.followers = undefined
  }

  *arrange(): Slices<void> {
    const cache = (this.cache ??= {})
    if (cache.sorted !== undefined || this.hasWindow) return
    const sorted = yield* this.inOrderSliced()
    // A change in a pause has replaced the cache.
    if (this.cache === cache) cache.sorted = sorted
  }

  rows(): ReadonlyArray<ResultRow> {
    return shownRows(this, this.ordered())
  }

  each(): Iterable<ResultRow> {
    return shownRowsLazily(this, this.ordered())
  }

  errors(): ReadonlyArray<RowError> {
    return [...this.failures()].sort((a, b) => compareStrings(a.id, b.id))
  }

  *failures(): Iterable<RowError> {
    if (this.several) return yield { id: "", failure: severalRowsFailure }
    yield* this.presenter.errors(this)
    for (const [id, failure] of this.failing ?? []) yield { id, failure }
  }

  plan(): ReadonlyArray<PlanRow> {
    return planOf(this.plainShape, this.figures())
  }

  abstract figures(): PlanFigures

  protected figuresWith(matching: number, sharing: number): PlanFigures {
    return {
      tables: this.mainTables,
      matching,
      shown: this.size,
      groups: this.groups?.size ?? 0,
      costs: this.costs(),
      declined: this.context.declined,
      page: undefined,
      sharing
    }
  }

  /** Evaluates a row, or builds a group, again because something it had read has changed. */
  abstract reread(row: ReaderRow, cause: ReadResult | undefined): void

  /** The current group entries of its matching rows. */
  abstract entries(): Iterable<GroupEntry>

  abstract readonly ranking: Ranking | undefined

  /** The shown rows in order, for a view without a window. */
  protected abstract inOrder(): ReadonlyArray<OutputRow>

  /** As {@link inOrder}, with pauses. */
  protected abstract inOrderSliced(): Slices<ReadonlyArray<OutputRow>>

  *children(): Iterable<readonly [alias: string, parent: string, children: ReadonlyArray<string>]> {
    for (const [alias, parent, result] of this.results())
      yield [alias, parent, this.context.source.aside(() => Array.from(result.shownRows(), (child) => child.key))]
  }

  *childEntries(): Iterable<ChildEntry> {
    for (const [alias, parent, result] of this.results())
      yield* this.context.source.aside(() => entriesNow(parent, alias, result))
  }

  /** The child results that rows show, each with its alias and the row's key. */
  private *results(): Iterable<readonly [alias: string, parent: string, result: ChildResult]> {
    if (this.plainShape.children.length === 0) return
    for (const row of this.ordered())
      for (const [i, result] of (row.children ?? []).entries())
        if (result !== undefined) yield [this.aliases[i]!, row.key, result]
  }

  get repeats(): boolean {
    return this.plainShape.children.length > 0 || this.plainShape.splitting !== undefined
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

  /** The effect of the current step on the view; undefined if none. */
  private lastEnd(): StepEffect | undefined {
    return this.lastStep === this.context.step() ? this.context.moves.ended(this.last) : undefined
  }

  fails(): boolean {
    const quiet =
      this.failing === undefined && this.groups === undefined && !this.plainShape.checksProjection && !this.several
    return !quiet && this.context.source.aside(() => this.failure()) !== undefined
  }

  /** Why a strict result fails; undefined if it does not. */
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

  /** The value of a strict result; fails as the database does. */
  value(): Value {
    const failure = this.failure()
    if (failure !== undefined) raiseAgain(failure)
    const cache = (this.cache ??= {})
    if (cache.answered) return cache.answer
    const rows = this.ordered().map((row) => this.valueOf(row))
    cache.answered = true
    return (cache.answer = this.only ? rows[0] : rows)
  }

  private valueOf(row: OutputRow): Value {
    const made = storedContentOf(row)
    if (made !== undefined) return made.value
    const { doc, id } = (row as ViewRow).slot
    return this.plainShape.project(this.context.source.scope(doc!, this.params, id))
  }

  /** {@link value} takes long: many rows have to be put in order and projected. */
  get isLongToValue(): boolean {
    return this.cache?.answered !== true && this.size > manyRows && this.failure() === undefined
  }

  /** Makes {@link value} ready, with pauses; a change in one of them undoes that. */
  *prepareValue(): Slices<void> {
    yield* this.arrange()
    const rows = this.ordered(),
      { cache } = this,
      values: Array<Value> = []
    for (const row of rows) {
      if (values.length % pauseAfter === 0) yield
      if (this.cache !== cache) return
      values.push(this.valueOf(row))
    }
    Object.assign(cache!, { answered: true, answer: this.only ? values[0] : values })
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

  /** Notes that the view may leave out rows. */
  leavesOut(): void {
    // A strict result makes its parent rows fail instead.
    if (!this.failsAsWhole) this.context.failing.add(this)
  }

  protected failsOtherwise(): void {
    if (!this.failsAsWhole) return this.leavesOut()
    this.failureMoved = true
    this.changed()
  }

  changed(): void {
    this.cache = undefined
    if (this.isDirty) return
    this.isDirty = true
    this.context.dirty(this)
  }

  buildScope(): Scope {
    return this.context.source.wholeScope(this.params)
  }

  keep(bytes: number): void {
    this.kept += bytes
    this.context.kept.used += bytes
  }

  requireRoom(bytes: number): void {
    this.context.kept.require(bytes)
  }

  /** Replaces the noted reads of a row or group. */
  protected watch(row: ReaderRow, reads: ReadonlySet<Read>): void {
    const more = this.context.watch(this, row, reads)
    if (more !== 0) this.keep(more)
  }

  built(name: string, gone: boolean): void {
    this.watch(name, gone ? noReads : this.context.source.reads)
  }

  private ordered(): ReadonlyArray<OutputRow> {
    return ((this.cache ??= {}).sorted ??= this.inWindow() ?? this.inOrder())
  }
}
