/**
 * One instance kept up to date row by row: filter, window, projection check, hash.
 *
 * State: the matching rows by id (and, under START/LIMIT, the same rows in a {@link Window}), the rows that fail, and
 * which other records each row's evaluation read. Rule per changed row: evaluate it afresh, compare with what is held,
 * move the difference. Cost: O(log n) per row; nothing else of the result is looked at. The old state is taken from
 * what is held and never recomputed, so a link that changed meanwhile cannot confuse it.
 */
import { Either } from "effect"
import { encode } from "../surql/encode.ts"
import { run } from "../surql/evaluate.ts"
import { compareStrings, isTruthy } from "../surql/order.ts"
import type { Scope } from "../surql/scope.ts"
import type { Value } from "../surql/value.ts"
import { DeltaBuilder, type Shown } from "./delta.ts"
import { HashSum, rowHash } from "./hash.ts"
import { Keyed } from "./keyed.ts"
import type { Instance, PlanRow, ResultRow, RowError } from "./instance.ts"
import type { Reader } from "./readers.ts"
import { planOf, type Shape } from "./shape.ts"
import type { Row } from "./store.ts"
import { Window } from "./window.ts"

/** A matching row as this instance holds it. */
export interface Member extends Shown {
  readonly row: Row
  /** Values of the ORDER BY terms; empty where only the row itself decides them and the result is sorted when it is read. */
  readonly sort: ReadonlyArray<Value>
}

/** What the engine lends an instance. */
export interface Surroundings {
  /** A scope over the store that notes which records are read; reused, never kept. */
  readonly scope: (row: Row, params: { readonly [name: string]: Value }) => Scope
  /** What was read since the last call of `scope`; see TrackedSource. */
  readonly reads: () => ReadonlySet<string>
  readonly row: (table: string, text: string) => Row | undefined
  /** Replaces what a row of this reader has read. */
  readonly watch: (reader: Reader, text: string, reads: ReadonlySet<string>) => void
  /** Called when a step first changes this instance. */
  readonly dirty: (instance: Maintained) => void
}

export class Maintained implements Instance, Reader {
  readonly key: string
  readonly plainShape: Shape
  readonly params: { readonly [name: string]: Value }
  readonly only = false
  generation: number
  private readonly members = new Keyed<Member>()
  private readonly window: Window<Member> | undefined
  private failing: Map<string, string> | undefined = undefined
  private readonly sum = new HashSum()
  private pending: DeltaBuilder | undefined = undefined
  private sorted: ReadonlyArray<Member> | undefined = undefined
  private readonly around: Surroundings

  constructor(key: string, shape: Shape, params: { readonly [name: string]: Value }, bounds: { readonly start: number; readonly limit: number }, around: Surroundings, generation: number) {
    this.key = key
    this.plainShape = shape
    this.params = params
    this.around = around
    this.generation = generation
    this.window = shape.windowed
      ? new Window<Member>(shape.compare, bounds.start, bounds.limit, { entered: (row) => this.entered(row), left: (row) => this.left(row) })
      : undefined
  }

  get shape(): string {
    return this.plainShape.text
  }

  get mainTables(): ReadonlyArray<string> {
    return [this.plainShape.table]
  }

  get otherTables(): ReadonlyArray<string> {
    return this.plainShape.otherTables
  }

  get size(): number {
    return this.window?.size ?? this.members.size
  }

  hash(): string {
    return this.sum.text()
  }

  /**
   * Brings one record up to date. `row` is its new state, undefined when it is gone or cannot match; `routed` says the
   * argument index has already checked the indexed conjuncts.
   */
  update(text: string, row: Row | undefined, routed: boolean): void {
    const before = this.members.get(text)
    const after = row === undefined ? undefined : this.evaluate(row, before, routed)
    if (row === undefined) this.forget(text)
    if (before === undefined) {
      if (after === undefined) return
      this.members.set(after)
      if (this.window === undefined) this.entered(after)
      else this.window.insert(after)
    } else if (after === undefined) {
      this.members.delete(text)
      if (this.window === undefined) this.left(before)
      else this.window.remove(before)
    } else if (after !== before) {
      this.members.set(after)
      this.replace(before, after)
    }
  }

  /** Evaluates a row again because a record it read has changed. */
  reread(text: string): void {
    this.update(text, this.around.row(this.plainShape.table, text), false)
  }

  /** Ends the first fill: what is there now is no delta. */
  begin(): void {
    this.pending = undefined
  }

  /** Ends a step: the net delta, or undefined. Bumps the generation when there is one. */
  finish(): ReturnType<DeltaBuilder["finish"]> {
    const delta = this.pending?.finish()
    this.pending = undefined
    if (delta !== undefined) this.generation++
    return delta
  }

  rows(): ReadonlyArray<ResultRow> {
    this.sorted ??= this.window === undefined ? this.inOrder() : [...this.window.rows()]
    return this.sorted.map((member) => ({ key: member.key, version: member.version, value: () => this.project(member.row) }))
  }

  errors(): ReadonlyArray<RowError> {
    return [...(this.failing ?? [])].map(([id, reason]) => ({ id, reason })).sort((a, b) => compareStrings(a.id, b.id))
  }

  plan(): ReadonlyArray<PlanRow> {
    return planOf(this.plainShape, this.members.size, this.size)
  }

  /** Evaluates filter, sort keys and (where it matters) projection; notes failure and reads. */
  private evaluate(row: Row, before: Member | undefined, routed: boolean): Member | undefined {
    const { plainShape: shape, around } = this
    const scope = around.scope(row, this.params)
    if (shape.total) {
      const member = this.match(row, scope, before, routed)
      if (shape.reaches) around.watch(this, row.id.text, around.reads())
      return member
    }
    let member: Member | undefined
    const outcome = run((s) => void (member = this.match(row, s, before, routed)), scope)
    if (shape.reaches) around.watch(this, row.id.text, around.reads())
    if (Either.isLeft(outcome)) (this.failing ??= new Map()).set(row.id.text, outcome.left.reason)
    else this.failing?.delete(row.id.text)
    return member
  }

  private match(row: Row, scope: Scope, before: Member | undefined, routed: boolean): Member | undefined {
    const shape = this.plainShape
    const filter = routed ? shape.residual : shape.filter
    if (filter !== undefined && !isTruthy(filter(scope))) return undefined
    const sort = shape.windowed || shape.reaches ? shape.sort.map((term) => term.value(scope)) : noSort
    let digest: string | undefined = undefined
    if (shape.checksProjection) {
      const shown = shape.project(scope)
      // A row whose place depends on another record is as visible as one that shows it.
      if (shape.reaches && this.around.reads().size > 0) digest = encode([shown, sort])
    }
    if (before !== undefined && before.row === row && before.digest === digest && sort.length === 0) return before
    return { key: row.id.text, version: row.version, digest, row, sort }
  }

  /** The row is gone or filed elsewhere: what it failed with or read no longer matters. */
  private forget(text: string): void {
    this.failing?.delete(text)
    if (this.plainShape.reaches) this.around.watch(this, text, nothing)
  }

  private replace(before: Member, after: Member): void {
    if (this.window === undefined) {
      this.left(before)
      this.entered(after)
    } else if (this.plainShape.compare(before, after) === 0) this.window.replace(before, after)
    else {
      this.window.remove(before)
      this.window.insert(after)
    }
  }

  private entered(member: Member): void {
    this.sum.add(member.digest === undefined ? member.row.hash() : rowHash(member.key, member.version, member.digest))
    this.step().entered(member)
  }

  private left(member: Member): void {
    this.sum.remove(member.digest === undefined ? member.row.hash() : rowHash(member.key, member.version, member.digest))
    this.step().left(member)
  }

  private step(): DeltaBuilder {
    this.sorted = undefined
    if (this.pending === undefined) {
      this.pending = new DeltaBuilder()
      this.around.dirty(this)
    }
    return this.pending
  }

  private inOrder(): ReadonlyArray<Member> {
    const shape = this.plainShape
    const members = [...this.members.values()]
    const keyed = shape.sort.length === 0 || shape.reaches
      ? members
      : members.map((member) => ({ ...member, sort: shape.sort.map((term) => this.sortValue(term.value, member.row)) }))
    return keyed.sort(shape.compare)
  }

  private sortValue(value: (scope: Scope) => Value, row: Row): Value {
    const result = run(value, this.around.scope(row, this.params))
    return Either.isRight(result) ? result.right : undefined
  }

  private project(row: Row): Value {
    const result = run(this.plainShape.project, this.around.scope(row, this.params))
    // A row whose projection fails is not a member, and nothing changed since it was checked.
    return Either.isRight(result) ? result.right : undefined
  }
}

const noSort: ReadonlyArray<Value> = []
const nothing: ReadonlySet<string> = new Set()
