/**
 * One instance kept up to date row by row: filter, sort keys, projection check, children, and the shown rows.
 *
 * State: the matching rows by id, the rows that fail, and which other things each row's evaluation read. Rule per changed
 * row: evaluate it afresh, compare with what is held, move the difference. Cost: O(log n) per row; nothing else of the
 * result is looked at. The old state is taken from what is held and never recomputed, so a link that changed meanwhile
 * cannot confuse it.
 *
 * The result of a subquery is `strict`: the database fails the row around it where a row of it fails, so it keeps all
 * rows that match and says that it fails; a view leaves failing rows out (D2a).
 */
import { Either } from "effect"
import { encode } from "../surql/encode.ts"
import { run } from "../surql/evaluate.ts"
import { raise } from "../surql/failure.ts"
import { compareStrings, isTruthy } from "../surql/order.ts"
import * as Ids from "../surql/recordId.ts"
import type { Scope } from "../surql/scope.ts"
import type { RecordId, Value } from "../surql/value.ts"
import { childrenOf } from "./children.ts"
import { type Child, type ChildEntry, type ChildResult, type Delta, type DeltaBuilder, entriesNow, sameResults, type Shown } from "./delta.ts"
import { combined, type Hash64, noSum, sameHash } from "./hash.ts"
import type { GroupOwner } from "./groups.ts"
import { Keyed } from "./keyed.ts"
import type { Instance, PlanRow, ResultRow, RowError } from "./instance.ts"
import type { Params } from "./lift.ts"
import { LiveList, type Turnover } from "./liveList.ts"
import { madeOf, type Outlet, outlet, type Output } from "./output.ts"
import { planOf, Work } from "./plan.ts"
import type { Read, Reader } from "./readers.ts"
import { severalRows } from "./result.ts"
import { type Member, noSort, type Shape, sortValues, unsorted } from "./shape.ts"
import type { Slots } from "./slots.ts"
import { piecesOf, splitMember } from "./splits.ts"
import type { Row } from "./store.ts"
import type { Identity, Surroundings } from "./surroundings.ts"

export class Maintained implements Instance, Reader, ChildResult, GroupOwner {
  readonly key: string
  readonly plainShape: Shape
  readonly params: Params
  readonly slots: Slots | undefined
  readonly strict: boolean
  private readonly limit: number
  generation: number
  /** How many views hold it; rows that show it as a subquery are known to the readers. */
  uses = 0
  /** While it is filled for the first time, nothing of it is a delta. */
  private filling = true
  private readonly members = new Keyed<Member>()
  private readonly shown: Outlet["shown"]
  private readonly groups: Outlet["groups"]
  private readonly move: Outlet["move"]
  private failing: Map<string, string> | undefined = undefined
  private failureMoved = false
  private isDirty = false
  private last: { readonly step: number; readonly delta: Delta | undefined } | undefined = undefined
  private sorted: ReadonlyArray<Output> | undefined = undefined
  private readonly work = new Work()
  private list: LiveList | undefined = undefined
  private answer: { readonly value: Value } | undefined = undefined
  private failed: { readonly reason: string | undefined } | undefined = undefined
  private readonly around: Surroundings

  constructor({ bounds, generation, key, params, shape, slots, strict }: Identity, around: Surroundings) {
    this.key = key
    this.plainShape = shape
    this.params = params
    this.slots = slots
    this.strict = strict
    this.around = around
    this.generation = generation
    this.limit = shape.windowed ? bounds.limit : Infinity
    const { groups, move, shown } = outlet(shape, shape.windowed ? bounds : undefined, around.spy, this)
    this.shown = shown
    this.groups = groups
    this.move = move
  }

  get shape(): string {
    return this.plainShape.text
  }

  get rank(): number {
    return this.plainShape.rank
  }

  get only(): boolean {
    return this.plainShape.only
  }

  get mainTables(): ReadonlyArray<string> {
    return this.slots === undefined ? [this.plainShape.table!] : [...this.slots.tables()]
  }

  get otherTables(): ReadonlyArray<string> {
    return this.plainShape.otherTables
  }

  get size(): number {
    return this.shown.size
  }

  hash(): string {
    return this.shown.hash()
  }

  hashNow(): Hash64 {
    return this.shown.hashNow()
  }

  /**
   * Brings one record up to date. `row` is its new state, undefined when it is gone or cannot match; `routed` says the
   * argument index has already checked the indexed conjuncts.
   */
  update(text: string, row: Row | undefined, routed: boolean): void {
    this.around.spy.instances++
    const slot = this.slotOf(row)
    const before = this.members.get(text)
    const after = row === undefined || slot === undefined ? this.forget(text) : this.evaluate(row, before, slot, routed)
    if (before === after) return
    if (after === undefined) this.members.delete(text)
    else this.members.set(after)
    this.move(before, after)
  }

  /** Forgets a row it holds. */
  letGo({ table, text }: RecordId): void {
    if (table === this.plainShape.table && (this.members.get(text) !== undefined || this.failing?.has(text) === true)) this.update(text, undefined, true)
  }

  /** Brings a row up to date because something it read has changed. */
  reread(text: string, whole: boolean): void {
    if (this.groups?.reread(text) === true || (!whole && this.refresh(text))) return
    this.update(text, this.rowOf(text), false)
  }

  private rowOf(text: string): Row | undefined {
    const { store } = this.around
    const id = this.slots === undefined ? undefined : Ids.parse(text)
    return id === undefined ? store.byText(this.plainShape.table!, text) : store.get(id)
  }

  /** Which source a row comes from; undefined for none. */
  private slotOf(row: Row | undefined): number | undefined {
    return row === undefined ? undefined : this.slots === undefined ? 0 : this.slots.of(row.id)
  }

  /** Takes over what has changed in the results a row shows; false where the row has to be evaluated. */
  private refresh(text: string): boolean {
    const before = this.members.get(text)
    if (before?.children === undefined || before.failure !== undefined || before.children.length < this.plainShape.children.length) return false
    let sum = noSum
    for (const { result } of before.children) {
      if (this.around.source.aside(() => result.failure()) !== undefined) return false
      sum = combined(sum, result.hashNow())
    }
    const { children, digest, failure, key, lead, part, row, slot, sort, version } = before
    const after: Member = { key, version, digest, children, row, slot, sort, lead, sum, failure, part }
    this.around.spy.rows++
    this.work.count(this.around.step())
    this.members.set(after)
    this.move(before, after)
    return true
  }

  /** Ends the first fill: what is there now is no delta. */
  begin(): void {
    this.groups?.settle(this.generation)
    this.shown.begin()
    this.filling = this.failureMoved = false
  }

  /** Ends a step: the net delta, or undefined. Bumps the generation when there is one. */
  finish(): { readonly delta: Delta | undefined; readonly moved: boolean; readonly turnover: Turnover | undefined } {
    if (this.groups?.settle(this.generation + 1) === true) this.failsOtherwise()
    const moves = this.shown.finish()
    const delta = moves?.finish()
    const turnover = moves === undefined ? undefined : this.list?.turn(this.valuesOf(moves, "before"), this.valuesOf(moves, "after"))
    const moved = delta !== undefined || this.failureMoved
    this.failureMoved = this.isDirty = false
    if (delta !== undefined) this.generation++
    this.last = { step: this.around.step(), delta }
    return { delta, moved, turnover: turnover === undefined || turnover.gained.length + turnover.lost.length === 0 ? undefined : turnover }
  }

  /** Its values as a list that views are filed by, kept from the first follower on. */
  liveList(): LiveList {
    return (this.list ??= new LiveList(this.ordered().map((row) => this.content(row))))
  }

  get isFollowed(): boolean {
    return this.list !== undefined && this.list.followers.size > 0
  }

  /** What the rows that moved gave, or give now: a function of the record alone, so the old values can be had again. */
  private valuesOf(moves: DeltaBuilder, side: "before" | "after"): ReadonlyArray<Value> {
    const values: Array<Value> = []
    for (const move of moves.all) if (move[side] !== undefined) values.push(this.content(move[side] as Output))
    return values
  }

  rows(): ReadonlyArray<ResultRow> {
    return this.ordered().map((member) => ({ key: member.key, version: member.version, value: () => this.content(member) }))
  }

  errors(): ReadonlyArray<RowError> {
    const several = this.shown.several ? [{ id: "", reason: severalRows }] : []
    if (several.length > 0) return several
    return [...(this.groups?.errors() ?? []), ...Array.from(this.failing ?? [], ([id, reason]) => ({ id, reason })).sort((a, b) => compareStrings(a.id, b.id))]
  }

  plan(): ReadonlyArray<PlanRow> {
    return planOf(this.plainShape, { tables: this.mainTables, matching: this.members.size, shown: this.size, groups: this.groups?.size ?? 0, evaluated: this.work, declined: this.around.declined })
  }

  *children(): Iterable<readonly [alias: string, parent: string, children: ReadonlyArray<string>]> {
    if (this.plainShape.children.length === 0) return
    for (const row of this.ordered()) {
      for (const { alias, result } of row.children ?? []) yield [alias, row.key, this.around.source.aside(() => Array.from(result.shownRows(), (child) => child.key))]
    }
  }

  *childEntries(): Iterable<ChildEntry> {
    if (this.plainShape.children.length === 0) return
    for (const row of this.ordered()) for (const child of row.children ?? []) yield* this.around.source.aside(() => entriesNow(row.key, child))
  }

  get repeats(): boolean {
    return this.plainShape.children.length > 0 || this.plainShape.splitting !== undefined
  }

  shownRows(): Iterable<Shown> {
    return this.ordered()
  }

  lastDelta(): Delta | undefined {
    return this.last?.step === this.around.step() ? this.last.delta : undefined
  }

  /** Why a strict result fails as a whole; undefined when it does not. */
  failure(): string | undefined {
    this.failed ??= { reason: this.firstFailure() }
    return this.failed.reason
  }

  private firstFailure(): string | undefined {
    const first = this.errors().find(({ id }) => id === "" || !this.isBehindWindow(id))
    if (first !== undefined) return first.reason
    return this.plainShape.checksProjection ? this.ordered().find((member) => member.failure !== undefined)?.failure : undefined
  }

  /** Where rows come in the order of the window, those behind a full one are not read, and cannot fail. */
  private isBehindWindow(text: string): boolean {
    const { kind, readInOrder, sort, splitting } = this.plainShape
    const inOrder = readInOrder && (sort.length === 0 || this.slots === undefined || this.slots.isOneRange)
    if (!inOrder || this.groups !== undefined || splitting !== undefined || this.size < this.limit) return false
    const last = this.ordered().at(-1) as Member | undefined
    const row = this.rowOf(text)
    const slot = this.slotOf(row)
    if (row === undefined || slot === undefined) return false
    const place: Member = { key: text, version: row.version, digest: undefined, row, slot, sort: noSort, lead: row.id, sum: undefined, failure: undefined, part: undefined }
    return last === undefined || kind.compare(place, last) > 0
  }

  /** The answer of a strict result; fails as the database does. */
  value(): Value {
    const failure = this.failure()
    if (failure !== undefined) raise(failure)
    if (this.answer !== undefined) return this.answer.value
    const { plainShape: shape, around: { source } } = this
    const rows = this.ordered().map((row) => {
      const made = madeOf(row)
      return made === undefined ? shape.project(source.scope((row as Member).row.doc, this.params, row.key)) : made.value
    })
    this.answer = { value: this.only ? rows[0] : rows }
    return this.answer.value
  }

  /** Evaluates filter, sort keys and (where it matters) projection; notes failure and reads. */
  private evaluate(row: Row, before: Member | undefined, slot: number, routed: boolean): Member | undefined {
    const { around, plainShape: shape } = this
    around.spy.rows++
    this.work.count(around.step())
    const scope = around.source.scope(row.doc, this.params, row.id.text)
    let member: Member | undefined
    if (shape.total) member = this.match(row, scope, before, slot, routed)
    else {
      const outcome = run((s) => void (member = this.match(row, s, before, slot, routed)), scope)
      this.fails(row.id.text, Either.isLeft(outcome) ? outcome.left.reason : this.strict ? undefined : member?.failure)
    }
    if (shape.reaches) around.watch(this, row.id.text, around.source.reads)
    return member
  }

  private match(row: Row, scope: Scope, before: Member | undefined, slot: number, routed: boolean): Member | undefined {
    const { around: { source }, plainShape: shape } = this
    const filter = routed ? shape.residual : shape.filter
    if (filter !== undefined && !isTruthy(filter(scope))) return undefined
    if (this.groups !== undefined) return this.groups.member(row, slot, shape.groups!.grouping.of(scope), before)
    if (shape.splitting !== undefined) return splitMember(row, slot, shape.splitting(scope, row.id, source, this.strict), before)
    const filtered = source.count
    const { lead, sort } = shape.windowed || shape.reaches || shape.only ? sortValues(shape, (value) => value(scope)) : unsorted
    const sorted = source.count
    let digest: string | undefined = undefined
    let children: ReadonlyArray<Child> | undefined = undefined
    let failure: string | undefined = undefined
    let sum: Hash64 | undefined = undefined
    if (shape.checksProjection) {
      const shown = this.strict ? run(shape.own, scope) : Either.right(shape.own(scope))
      const parts: Array<string> = []
      if (Either.isLeft(shown)) parts.push((failure = shown.left.reason))
      else if (source.count > sorted) parts.push(encode(shown.right))
      // A row whose place depends on another record is as visible as one that shows it.
      if (sorted > filtered) parts.push(encode([lead, sort]))
      if (shape.children.length > 0) {
        const held = childrenOf(shape, this.around, this.strict, scope, parts)
        children = held.children
        sum = held.sum
        failure ??= held.failure
      }
      if (parts.length > 0) digest = parts.join("\n")
    }
    if (before !== undefined && before.row === row && before.digest === digest && sameHash(before.sum, sum) && sameResults(before.children, children)) return before
    return { key: row.id.text, version: row.version, digest, children, row, slot, sort, lead, sum, failure, part: undefined }
  }

  private fails(text: string, reason: string | undefined): void {
    if (reason === this.failing?.get(text)) return
    if (reason === undefined) this.failing?.delete(text)
    else (this.failing ??= new Map()).set(text, reason)
    this.failsOtherwise()
  }

  private failsOtherwise(): void {
    if (!this.strict) return
    this.failureMoved = true
    this.changed()
  }

  /** The row is gone or filed elsewhere: what it failed with or read no longer matters. */
  private forget(text: string): undefined {
    this.fails(text, undefined)
    if (this.plainShape.reaches) this.around.watch(this, text, nothing)
  }

  changed(): void {
    this.sorted = undefined
    this.answer = undefined
    this.failed = undefined
    if (this.filling || this.isDirty) return
    this.isDirty = true
    this.around.dirty(this)
  }

  matching(): Iterable<Member> {
    return this.members.values()
  }

  buildScope(): Scope {
    return this.around.source.wholeScope(this.params)
  }

  built(name: string, gone: boolean): void {
    this.around.watch(this, name, gone ? nothing : this.around.source.reads)
  }

  private ordered(): ReadonlyArray<Output> {
    return (this.sorted ??= this.shown.ordered() ?? this.inOrder())
  }

  private inOrder(): ReadonlyArray<Output> {
    if (this.groups !== undefined) return this.groups.rows()
    const shape = this.plainShape
    const members = [...this.members.values()]
    if (shape.splitting !== undefined) return members.flatMap(piecesOf).sort(shape.kind.compare)
    const keyed = shape.sort.length === 0 || shape.reaches
      ? members
      : members.map((member) => ({ ...member, ...sortValues(shape, (value) => this.evaluated(value, member.row)) }))
    return keyed.sort(shape.kind.compare)
  }

  private content(row: Output): Value {
    // A row whose projection fails is not a member, and nothing changed since it was checked.
    const made = madeOf(row)
    return made === undefined ? this.evaluated(this.plainShape.project, (row as Member).row) : made.value
  }

  private evaluated(value: (scope: Scope) => Value, row: Row): Value {
    const result = run(value, this.around.source.scope(row.doc, this.params, row.id.text))
    return Either.isRight(result) ? result.right : undefined
  }
}

const nothing: ReadonlySet<Read> = new Set()
