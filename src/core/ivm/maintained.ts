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
import type { Value } from "../surql/value.ts"
import type { Child, ChildResult, Delta, Shown } from "./delta.ts"
import type { Hash64 } from "./hash.ts"
import { Keyed } from "./keyed.ts"
import type { Instance, PlanRow, ResultRow, RowError } from "./instance.ts"
import type { Params } from "./lift.ts"
import { planOf, Work } from "./plan.ts"
import type { Read, Reader } from "./readers.ts"
import { type Bounds, Result, severalRows } from "./result.ts"
import type { ChildField, Member, Shape } from "./shape.ts"
import type { Slots } from "./slots.ts"
import type { TrackedSource } from "./source.ts"
import type { Spy } from "./spy.ts"
import type { Row, Store } from "./store.ts"

/** What the engine lends an instance. */
export interface Surroundings {
  readonly store: Store
  /** Scopes that note what is read; one evaluation at a time. */
  readonly source: TrackedSource
  readonly spy: Spy
  /** Why the results of a subquery cannot be maintained; undefined where they are. */
  readonly declined: (query: ChildField["query"]) => string | undefined
  /** The maintained result of a subquery for the row in scope; undefined where it has to be run. */
  readonly resultOf: (query: ChildField["query"], scope: Scope) => Maintained | undefined
  /** Replaces what a row of this reader has read. */
  readonly watch: (reader: Reader, text: string, reads: ReadonlySet<Read>) => void
  /** Called when a step first changes this instance. */
  readonly dirty: (instance: Maintained) => void
  /** The number of the step that runs now. */
  readonly step: () => number
}

/** What makes an instance the one it is. */
export interface Identity {
  readonly key: string
  readonly shape: Shape
  readonly params: Params
  readonly bounds: Bounds
  /** Undefined for the one whole table of the shape. */
  readonly slots: Slots | undefined
  readonly strict: boolean
  readonly generation: number
}

export class Maintained implements Instance, Reader, ChildResult {
  readonly key: string
  readonly plainShape: Shape
  readonly params: Params
  readonly slots: Slots | undefined
  readonly strict: boolean
  generation: number
  /** While it is filled for the first time, nothing of it is a delta. */
  private filling = true
  private readonly members = new Keyed<Member>()
  private readonly result: Result<Member>
  private failing: Map<string, string> | undefined = undefined
  private failureMoved = false
  private isDirty = false
  private last: { readonly step: number; readonly delta: Delta | undefined } | undefined = undefined
  private sorted: ReadonlyArray<Member> | undefined = undefined
  private readonly work = new Work()
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
    this.result = new Result<Member>(shape.kind, shape.windowed ? bounds : undefined, shape.only, around.spy, () => this.changed())
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
    return this.result.size
  }

  hash(): string {
    return this.result.hash()
  }

  hashNow(): Hash64 {
    return this.result.hashNow()
  }

  /**
   * Brings one record up to date. `row` is its new state, undefined when it is gone or cannot match; `routed` says the
   * argument index has already checked the indexed conjuncts.
   */
  update(text: string, row: Row | undefined, routed: boolean): void {
    this.around.spy.instances++
    const slot = row === undefined ? undefined : this.slots === undefined ? 0 : this.slots.of(row.id)
    const before = this.members.get(text)
    const after = row === undefined || slot === undefined ? this.forget(text) : this.evaluate(row, before, slot, routed)
    if (before === undefined) {
      if (after === undefined) return
      this.members.set(after)
      this.result.insert(after)
    } else if (after === undefined) {
      this.members.delete(text)
      this.result.remove(before)
    } else if (after !== before) {
      this.members.set(after)
      this.result.replace(before, after)
    }
  }

  /** Evaluates a row again because something it read has changed. */
  reread(text: string): void {
    const { store } = this.around
    const id = this.slots === undefined ? undefined : Ids.parse(text)
    this.update(text, id === undefined ? store.byText(this.plainShape.table!, text) : store.get(id), false)
  }

  /** Ends the first fill: what is there now is no delta. */
  begin(): void {
    this.result.begin()
    this.filling = this.failureMoved = false
  }

  /** Ends a step: the net delta, or undefined. Bumps the generation when there is one. */
  finish(): { readonly delta: Delta | undefined; readonly moved: boolean } {
    const delta = this.result.finish()?.finish()
    const moved = delta !== undefined || this.failureMoved
    this.failureMoved = this.isDirty = false
    if (delta !== undefined) this.generation++
    this.last = { step: this.around.step(), delta }
    return { delta, moved }
  }

  rows(): ReadonlyArray<ResultRow> {
    return this.ordered().map((member) => ({ key: member.key, version: member.version, value: () => this.project(member.row) }))
  }

  errors(): ReadonlyArray<RowError> {
    const several = this.result.several ? [{ id: "", reason: severalRows }] : []
    return several.length > 0 ? several : [...(this.failing ?? [])].map(([id, reason]) => ({ id, reason })).sort((a, b) => compareStrings(a.id, b.id))
  }

  plan(): ReadonlyArray<PlanRow> {
    return planOf(this.plainShape, { tables: this.mainTables, matching: this.members.size, shown: this.size, evaluated: this.work, declined: this.around.declined })
  }

  *children(): Iterable<readonly [alias: string, parent: string, children: ReadonlyArray<string>]> {
    if (this.plainShape.children.length === 0) return
    for (const row of this.ordered()) {
      for (const { alias, result } of row.children ?? []) yield [alias, row.key, this.around.source.aside(() => Array.from(result.shownRows(), (child) => child.key))]
    }
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
    if (this.result.several) return severalRows
    if (this.failing !== undefined && this.failing.size > 0) return this.errors()[0]!.reason
    return this.plainShape.checksProjection ? this.ordered().find((member) => member.failure !== undefined)?.failure : undefined
  }

  /** The answer of a strict result; fails as the database does. */
  value(): Value {
    const failure = this.failure()
    if (failure !== undefined) raise(failure)
    if (this.answer !== undefined) return this.answer.value
    const { shape, source } = { shape: this.plainShape, source: this.around.source }
    const rows = this.ordered().map(({ row }) => shape.project(source.scope(row.doc, this.params, row.id.text)))
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
      this.fails(row.id.text, Either.isLeft(outcome) ? outcome.left.reason : undefined)
    }
    if (shape.reaches) around.watch(this, row.id.text, around.source.reads)
    return member
  }

  private match(row: Row, scope: Scope, before: Member | undefined, slot: number, routed: boolean): Member | undefined {
    const { around: { source }, plainShape: shape } = this
    const filter = routed ? shape.residual : shape.filter
    if (filter !== undefined && !isTruthy(filter(scope))) return undefined
    const filtered = source.count
    const sort = shape.windowed || shape.reaches || shape.only ? shape.sort.map((term) => term.value(scope)) : noSort
    const sorted = source.count
    let digest: string | undefined = undefined
    let children: ReadonlyArray<Child> | undefined = undefined
    let failure: string | undefined = undefined
    if (shape.checksProjection) {
      const shown = this.strict ? run(shape.own, scope) : Either.right(shape.own(scope))
      const parts: Array<string> = []
      if (Either.isLeft(shown)) parts.push((failure = shown.left.reason))
      else if (source.count > sorted) parts.push(encode(shown.right))
      // A row whose place depends on another record is as visible as one that shows it.
      if (sorted > filtered) parts.push(encode(sort))
      if (shape.children.length > 0) {
        const held = this.held(scope, parts)
        children = held.children
        failure ??= held.failure
      }
      if (parts.length > 0) digest = parts.join("\n")
    }
    if (before !== undefined && before.row === row && before.digest === digest && sameResults(before.children, children)) return before
    return { key: row.id.text, version: row.version, digest, children, row, slot, sort, failure }
  }

  /** The results of the subqueries this row shows; what each adds to its digest goes to `parts`. */
  private held(scope: Scope, parts: Array<string>): { readonly children: ReadonlyArray<Child>; readonly failure: string | undefined } {
    const { resultOf, source } = this.around
    const children: Array<Child> = []
    let failure: string | undefined = undefined
    const fail = (reason: string): void => {
      if (!this.strict) raise(reason)
      failure ??= reason
      parts.push(reason)
    }
    for (const { alias, query, value } of this.plainShape.children) {
      const result = resultOf(query, scope)
      if (result === undefined) {
        const shown = run(value, scope)
        if (Either.isLeft(shown)) fail(shown.left.reason)
        else parts.push(encode(shown.right))
        continue
      }
      source.note(result)
      const reason = source.aside(() => result.failure())
      if (reason !== undefined) fail(reason)
      else parts.push(result.hash())
      children.push({ alias, result })
    }
    return { children, failure }
  }

  private fails(text: string, reason: string | undefined): void {
    if (reason === this.failing?.get(text)) return
    if (reason === undefined) this.failing?.delete(text)
    else (this.failing ??= new Map()).set(text, reason)
    if (this.strict) {
      this.failureMoved = true
      this.changed()
    }
  }

  /** The row is gone or filed elsewhere: what it failed with or read no longer matters. */
  private forget(text: string): undefined {
    this.fails(text, undefined)
    if (this.plainShape.reaches) this.around.watch(this, text, nothing)
  }

  private changed(): void {
    this.sorted = undefined
    this.answer = undefined
    this.failed = undefined
    if (this.filling || this.isDirty) return
    this.isDirty = true
    this.around.dirty(this)
  }

  private ordered(): ReadonlyArray<Member> {
    return (this.sorted ??= this.result.ordered() ?? this.inOrder())
  }

  private inOrder(): ReadonlyArray<Member> {
    const shape = this.plainShape
    const members = [...this.members.values()]
    const keyed = shape.sort.length === 0 || shape.reaches
      ? members
      : members.map((member) => ({ ...member, sort: shape.sort.map((term) => this.evaluated(term.value, member.row)) }))
    return keyed.sort(shape.kind.compare)
  }

  private project(row: Row): Value {
    // A row whose projection fails is not a member, and nothing changed since it was checked.
    return this.evaluated(this.plainShape.project, row)
  }

  private evaluated(value: (scope: Scope) => Value, row: Row): Value {
    const result = run(value, this.around.source.scope(row.doc, this.params, row.id.text))
    return Either.isRight(result) ? result.right : undefined
  }
}

const sameResults = (a: ReadonlyArray<Child> | undefined, b: ReadonlyArray<Child> | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && a.length === b.length && a.every((child, i) => child.result === b[i]!.result))

const noSort: ReadonlyArray<Value> = []
const nothing: ReadonlySet<Read> = new Set()
