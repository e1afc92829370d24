/**
 * The groups of one view (GROUP BY, GROUP ALL), updated while rows are added, removed and changed.
 *
 * State: per group the number of rows, the accumulators and the shown row; and its rows in scan order, once something
 * depends on that order. Rule: a change marks the groups that the row leaves and enters, unless its contribution stays
 * the same; when the step ends, the row of each marked group is built once and replaced in the result. Cost per change:
 * O(log n) and the build; a call without an accumulator is computed again over its own group. Order matters for float
 * sums that round, for calls without an accumulator, and if equal keys are not identical (1 and 1.0: a group shows its
 * first): the first time it matters, all rows are put in scan order once.
 */
import { Either } from "effect"
import { mergeSort } from "../../mergeSort.ts"
import { run } from "../../surql/evaluate/evaluate.ts"
import { type Failure, isSame } from "../../surql/evaluate/failure.ts"
import { drain, type Scope, type Slices } from "../../surql/evaluate/scope.ts"
import {
  type AggregateCall,
  aggregatedPart,
  type Contribution,
  compareGroups,
  type Grouping,
  type GroupRows
} from "../../surql/evaluate/select/group.ts"
import type { Sort } from "../../surql/evaluate/select/reshape.ts"
import { compositeKey } from "../../surql/values/key.ts"
import { type NumberValue, toFloat } from "../../surql/values/number.ts"
import { compareStrings, identical } from "../../surql/values/order.ts"
import * as Ids from "../../surql/values/recordId.ts"
import { float, type RecordId, type Value } from "../../surql/values/value.ts"
import { writeOut } from "../../surql/written/paid.ts"
import type { Shown } from "../delta/delta.ts"
import { digestOf, type Hash64, rowHash } from "../delta/hash.ts"
import { bytesKeptBy, keptBytesOf } from "../keptBytes.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { WorkCounters } from "../workCounters.ts"
import { type Accumulating, type Accumulator, accumulating } from "./accumulators.ts"
import { type SummedColumn, sumInOrder } from "./floatSum.ts"
import { compareSourceOrder, type GroupEntry, GroupScan } from "./groupScan.ts"
import type { RowKind, Showable, TakesRows } from "./resultSet.ts"
import { GroupedRow, isCurrent, type ViewRow } from "./viewRow.ts"

/** Groups, and rows of groups, that a first fill builds between two pauses. */
const groupsPerSlice = 256
const rowsPerSlice = 2_048
/** Rows that are assigned to their groups between two pauses, before they are put in scan order. */
const orderedPerSlice = 512

/** The row that shows a group. */
export interface GroupRow extends Shown, Showable {
  /** Bytes that the row holds beside its records (`KeptBytes`). */
  readonly keeps: number
  readonly value: Value
  readonly group: ReadonlyArray<Value>
  readonly sort: ReadonlyArray<Value>
  /** Always undefined: a failing group has no row. */
  readonly failure: undefined
}

/** The compiled grouping of one shape. */
export interface GroupPlan {
  readonly grouping: Grouping
  readonly kind: RowKind<GroupRow>
  /** ORDER BY values, read from the group's row. */
  readonly order: ReadonlyArray<Sort>
  /** Per call the position of its accumulator; undefined for a call computed over the group's rows. */
  readonly accumulated: ReadonlyArray<number | undefined>
  readonly accumulators: ReadonlyArray<Accumulating>
  /** Per call how its column is summed in scan order; undefined if it never is. */
  readonly summing: ReadonlyArray<SummedColumn | undefined>
  /** Names of calls that are computed over the group's rows. */
  readonly folded: ReadonlyArray<string>
}

const countsRows = (call: AggregateCall): boolean => call.name === "count" && call.column === undefined

export const groupPlan = (grouping: Grouping, terms: ReadonlyArray<Sort>): GroupPlan => {
  const accumulators: Array<Accumulating> = []
  const accumulated = grouping.calls.map((call) => {
    const made = call.alone && call.column !== undefined ? accumulating(call.name, call.column) : undefined
    if (made === undefined) return undefined
    const known = accumulators.findIndex((other) => other.text === made.text)
    return known >= 0 ? known : accumulators.push(made) - 1
  })
  const order = (a: GroupRow, b: GroupRow): number => {
    for (let i = 0; i < terms.length; i++) {
      const c = terms[i]!.compare(a.sort[i], b.sort[i])
      if (c !== 0) return c
    }
    return compareGroups(a.group, b.group) || compareStrings(a.key, b.key)
  }
  return {
    grouping,
    accumulated,
    accumulators,
    kind: { compare: order, hash: hashOf },
    summing: grouping.calls.map(({ column, name }, i) =>
      accumulated[i] === undefined || column === undefined
        ? undefined
        : { call: accumulated[i], column, take: aggregatedPart(name) }
    ),
    order: terms,
    folded: grouping.calls
      .filter((call, i) => accumulated[i] === undefined && !countsRows(call))
      .map(({ name }) => (name === "" ? "list of values" : name))
  }
}

/** Hash of the content only: the versions of groups differ between processes. */
const hashOf = (row: GroupRow): Hash64 => rowHash(row.key, 0, row.digest)

class Group {
  readonly id: unknown
  /** The key that the group shows: the one of its first row. */
  key: ReadonlyArray<Value>
  readonly accumulators: ReadonlyArray<Accumulator>
  count = 0
  dirty = false
  row: GroupRow | undefined = undefined
  failure: Failure | undefined = undefined
  scan: GroupScan | undefined = undefined

  constructor(id: unknown, key: ReadonlyArray<Value>, accumulators: ReadonlyArray<Accumulator>) {
    this.id = id
    this.key = key
    this.accumulators = accumulators
  }
}

/** A change of a row's entry while rows are put in scan order. */
interface Move {
  readonly from: Group | undefined
  readonly before: GroupEntry | undefined
  readonly to: Group | undefined
  readonly after: GroupEntry | undefined
}

/** The view services that its groups use. */
export interface GroupOwner {
  /** Called when a step first marks a group. */
  readonly changed: () => void
  /** The current entries of the matching rows; the iterable may be read later. */
  readonly entries: () => Iterable<GroupEntry>
  /** A scope to build a row in. */
  readonly buildScope: () => Scope
  /** Fails unless rows may hold this many more bytes. */
  readonly requireRoom: (bytes: number) => void
  /** Adds to the bytes that rows hold; negative: fewer. */
  readonly keep: (bytes: number) => void
  /** Notes the reads of the group row just built; `gone`: the group no longer exists, so its reads are dropped. */
  readonly built: (name: string, gone: boolean) => void
}

export class Groups {
  private readonly plan: GroupPlan
  private readonly owner: GroupOwner
  private readonly result: TakesRows<GroupRow>
  private readonly counters: WorkCounters
  /** The only group of GROUP ALL, which exists even without rows. */
  private readonly whole: Group | undefined
  private readonly groups: Map<unknown, Group> | undefined
  private dirty: Array<Group> = []
  private failing: Set<Group> | undefined = undefined
  /** Groups whose rows have noted reads, by the name used in the notes. */
  private readonly readers: Map<string, Group> | undefined
  /** Some equal keys are not identical. */
  private mixed = false
  private ordered = false
  /** Changes since the ordering of rows began; undefined if none is under way. */
  private moves: Array<Move> | undefined = undefined

  /** `reads`: building a group's row may read other records. */
  constructor(plan: GroupPlan, result: TakesRows<GroupRow>, counters: WorkCounters, owner: GroupOwner, reads: boolean) {
    this.plan = plan
    this.result = result
    this.counters = counters
    this.owner = owner
    this.readers = reads ? new Map() : undefined
    this.whole = plan.grouping.all ? this.make(undefined, noValues) : undefined
    this.groups = plan.grouping.all ? undefined : new Map()
    if (this.whole !== undefined) this.mark(this.whole)
  }

  get size(): number {
    return this.groups?.size ?? 1
  }

  /** The matching row with its entry; `before` if nothing of it changed. */
  member(
    slot: RecordSlot,
    sourceIndex: number,
    brought: Contribution,
    before: ViewRow | undefined,
    keeps: number
  ): ViewRow {
    const part = this.entry(before?.part as GroupEntry | undefined, slot.id, sourceIndex, brought)
    if (isCurrent(before, slot) && before.part === part) return before
    return new GroupedRow(this.owner, slot, sourceIndex, part, keeps)
  }

  /** The entry of a row; `before` if it is the same. */
  entry(before: GroupEntry | undefined, id: RecordId, sourceIndex: number, { key, values }: Contribution): GroupEntry {
    if (this.whole !== undefined && values.length === 0) return nothingBrought
    if (
      before !== undefined &&
      before.sourceIndex === sourceIndex &&
      same(before.values, values) &&
      same(before.key, key)
    )
      return before
    const group = this.whole === undefined ? compositeKey(key) : undefined
    const known = this.groups?.get(group)
    return {
      id,
      sourceIndex,
      group: known === undefined ? group : known.id,
      key: known !== undefined && same(known.key, key) ? known.key : key,
      values
    }
  }

  /** Replaces a row's entry. */
  move(before: GroupEntry | undefined, after: GroupEntry | undefined): void {
    if (before === after) return
    const from = before && this.groupOf(before)
    if (before !== undefined) this.take(from!, before)
    const to = after && this.groupOf(after)
    if (after !== undefined) this.give(to!, after)
    if (this.ordered) this.moveInOrder({ from, before, to, after })
    else this.moves?.push({ from, before, to, after })
  }

  private moveInOrder({ after, before, from, to }: Move): void {
    if (from !== undefined && from === to) from.scan!.replace(before!, after!)
    else {
      if (from !== undefined) from.scan!.remove(before!)
      if (to !== undefined) to.scan!.add(after!)
    }
  }

  /** Builds the row of a group again because something it read has changed. False if no group has this name. */
  reread(name: string): boolean {
    const group = this.readers?.get(name)
    if (group !== undefined) this.mark(group)
    return group !== undefined
  }

  /**
   * Ends a step: builds the rows of at most `most` marked groups; changed ones get this `version`. True if the set of
   * failing groups changed.
   */
  settle(version: number, most = Infinity): boolean {
    const dirty = this.dirty.length > most ? this.dirty.splice(-most) : this.dirty
    if (dirty === this.dirty) this.dirty = []
    let failuresMoved = false
    if (!this.ordered && this.needsOrder(dirty)) drain(this.putInOrder())
    for (const group of dirty) {
      const { failure, row } = group
      group.dirty = false
      group.row = group.failure = undefined
      if (group.count > 0 || group === this.whole) this.build(group, row, version)
      else this.drop(group)
      if (row !== group.row) {
        this.owner.keep(bytesKeptBy(group.row) - bytesKeptBy(row))
        this.show(row, group.row)
      }
      if (isSame(failure, group.failure)) continue
      failuresMoved = true
      if (group.failure === undefined) this.failing!.delete(group)
      else (this.failing ??= new Set()).add(group)
    }
    return failuresMoved
  }

  /** Builds the groups of a first fill with pauses. Groups that change in a pause stay marked. */
  *settleSliced(version: number): Slices<void> {
    for (;;) {
      const { dirty } = this
      let most = 0
      for (let rows = 0; most < dirty.length && most < groupsPerSlice && rows < rowsPerSlice; most++)
        rows += dirty[dirty.length - 1 - most]!.count
      if (!this.ordered && this.needsOrder(dirty.slice(dirty.length - most))) yield* this.putInOrder()
      else if (most === dirty.length) return
      else {
        this.settle(version, most)
        yield
      }
    }
  }

  /** The rows of all groups, in order; with pauses. */
  *rowsSliced(): Slices<ReadonlyArray<GroupRow>> {
    const rows: Array<GroupRow> = []
    for (const { row } of this.all()) if (row !== undefined) rows.push(row)
    return yield* mergeSort(rows, this.plan.kind.compare)
  }

  /** One failure for all groups whose aggregates fail; undefined if none do. */
  get failure(): Failure | undefined {
    if (this.failing === undefined || this.failing.size === 0) return undefined
    const failures = Array.from(this.failing, (group) => group.failure!)
    const [reason, ...others] = failures.map((failure) => failure.reason).sort(compareStrings)
    const more = others.length === 0 ? "" : ` (and ${others.length} more group${others.length === 1 ? "" : "s"})`
    const [kind] = failures.map((failure) => failure.kind).sort(compareStrings)
    return { reason: `${reason}${more}`, kind: kind! }
  }

  private all(): Iterable<Group> {
    return this.groups?.values() ?? [this.whole!]
  }

  private make(id: unknown, key: ReadonlyArray<Value>): Group {
    const { accumulators } = this.plan
    const group = new Group(
      id,
      key,
      accumulators.length === 0 ? noAccumulators : accumulators.map(({ make }) => make())
    )
    if (this.ordered) group.scan = new GroupScan([])
    return group
  }

  private groupOf(entry: GroupEntry): Group {
    if (this.whole !== undefined) return this.whole
    let group = this.groups!.get(entry.group)
    if (group === undefined) this.groups!.set(entry.group, (group = this.make(entry.group, entry.key)))
    return group
  }

  private take(group: Group, entry: GroupEntry): void {
    this.mark(group)
    group.count--
    for (const accumulator of group.accumulators) accumulator.remove(entry)
  }

  private give(group: Group, entry: GroupEntry): void {
    this.mark(group)
    if (group.count++ === 0) group.key = entry.key
    else if (group.key !== entry.key && !same(group.key, entry.key)) this.mixed = true
    for (const accumulator of group.accumulators) accumulator.add(entry)
  }

  private mark(group: Group): void {
    if (group.dirty) return
    group.dirty = true
    if (this.dirty.push(group) === 1) this.owner.changed()
  }

  private show(before: GroupRow | undefined, after: GroupRow | undefined): void {
    if (before === undefined || after === undefined || before.key === after.key) return this.result.move(before, after)
    // The key may show differently now: a group of 1 and 1.0 shows its first key.
    this.result.remove(before)
    this.result.insert(after)
  }

  private drop(group: Group): void {
    this.groups!.delete(group.id)
    if (this.readers?.delete(nameOf(group)) === true) this.owner.built(nameOf(group), true)
  }

  /** Makes the row of a group; keeps the one from before if it shows the same. */
  private build(group: Group, before: GroupRow | undefined, version: number): void {
    this.counters.groups++
    if (group.scan?.first !== undefined) group.key = group.scan.first.key
    const { key } = group
    const outer = this.owner.buildScope()
    let digest = "",
      name = "",
      keeps = 0
    const value = run(() => {
      const built = this.plan.grouping.build(this.results(group, outer), key, outer)
      digest = digestOf([writeOut(outer.budget, built)])
      name = before !== undefined && before.group === key ? before.key : writeOut(outer.budget, key)
      keeps = keptBytesOf(outer.budget.byteLimit - outer.budget.bytes, [built, key])
      this.owner.requireRoom(keeps - bytesKeptBy(before))
      return built
    }, outer)
    if (this.readers !== undefined) {
      this.readers.set(nameOf(group), group)
      this.owner.built(nameOf(group), false)
    }
    if (Either.isLeft(value)) {
      group.failure = value.left
      return
    }
    group.row =
      before !== undefined && before.digest === digest && before.key === name
        ? before
        : {
            shown: false,
            high: 0,
            low: 0,
            key: name,
            version,
            digest,
            value: value.right,
            group: key,
            sort: this.plan.order.map((term) =>
              term.read({ scope: outer, record: undefined, value: value.right, sort: noValues })
            ),
            failure: undefined,
            keeps
          }
  }

  private results(group: Group, outer: Scope): ReadonlyArray<Value> {
    const { accumulated, folded, grouping, summing } = this.plan
    const rows: GroupRows = folded.length === 0 ? { size: group.count, column: noColumn } : rowsOf(group)
    return grouping.calls.map((call, i) => {
      const at = accumulated[i]
      if (at === undefined) return call.fold(rows, outer)
      const accumulator = group.accumulators[at]!
      if (accumulator.inexact) accumulator.renew(group.scan!.entries())
      if (!accumulator.inexact) return accumulator.result(call.name)
      const total = sumInOrder(group.scan!.chunks, summing[i]!, call.name === "math::mean")
      return call.name === "math::mean" ? float(toFloat(total as NumberValue) / accumulator.size) : total
    })
  }

  /** Whether the result of one of these groups depends on the order of its rows. */
  private needsOrder(dirty: ReadonlyArray<Group>): boolean {
    return (
      this.mixed ||
      this.plan.folded.length > 0 ||
      dirty.some((group) => group.accumulators.some((accumulator) => accumulator.inexact))
    )
  }

  /** Puts all rows in scan order, with pauses; changes made in a pause are applied at the end. */
  private *putInOrder(): Slices<void> {
    const byGroup = new Map<Group, Array<GroupEntry>>()
    const moves: Array<Move> = (this.moves = [])
    let rows = 0
    for (const entry of this.owner.entries()) {
      const group = this.groupOf(entry)
      const entries = byGroup.get(group)
      if (entries === undefined) byGroup.set(group, [entry])
      else entries.push(entry)
      if (++rows % orderedPerSlice === 0) yield
    }
    for (const [group, entries] of byGroup) {
      const before = rows
      rows += entries.length
      group.scan = new GroupScan(yield* mergeSort(entries, compareSourceOrder))
      if (Math.floor(before / orderedPerSlice) !== Math.floor(rows / orderedPerSlice)) yield
    }
    for (const group of this.all()) group.scan ??= new GroupScan([])
    this.ordered = true
    this.moves = undefined
    for (const move of moves) this.moveInOrder(move)
  }
}

const noValues: ReadonlyArray<Value> = []
const noAccumulators: ReadonlyArray<Accumulator> = []

/** The entry of every row if the grouping asks for neither keys nor columns. */
const nothingBrought: GroupEntry = {
  id: Ids.make("", ""),
  sourceIndex: 0,
  group: undefined,
  key: noValues,
  values: noValues
}

const same = (a: ReadonlyArray<Value>, b: ReadonlyArray<Value>): boolean => {
  for (let i = 0; i < a.length; i++) if (!identical(a[i], b[i])) return false
  return true
}

const noColumn = (): ReadonlyArray<Value> => noValues

/** The columns of a group in scan order, each collected on first use. */
const rowsOf = (group: Group): GroupRows => {
  const columns = new Map<number, ReadonlyArray<Value>>()
  const gathered = (at: number): ReadonlyArray<Value> => {
    const values = Array.from(group.scan!.entries(), (entry) => entry.values[at])
    columns.set(at, values)
    return values
  }
  return { size: group.count, column: (at) => columns.get(at) ?? gathered(at) }
}

/** Name of a group in the notes of reads: no record id begins like it. */
const nameOf = ({ id }: Group): string => `\u0000group ${typeof id} ${String(id)}`
