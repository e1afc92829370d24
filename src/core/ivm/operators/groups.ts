/**
 * The groups of one view (GROUP BY, GROUP ALL), kept up to date while rows come, go and change.
 *
 * State: per group how many rows, the accumulators, the row it shows; once something depends on the order of rows,
 * their scan. Rule: a change marks the groups it leaves and enters, unless it brings the same as before; when the step
 * ends each marked group's row is built once and replaced in the result. Cost per change: O(log n) and the build; a
 * call without an accumulator is computed again over its own group. Order matters for float sums that round, for such
 * calls, and where equal keys are not the same (1 and 1.0: a group shows its first): the first time it does, all rows
 * are put in order once.
 */
import { Either } from "effect"
import { mergeSort } from "../../mergeSort.ts"
import { run } from "../../surql/evaluate/evaluate.ts"
import { type Failure, isSame } from "../../surql/evaluate/failure.ts"
import { drain, type Scope, type Slices } from "../../surql/evaluate/scope.ts"
import {
  type Call,
  type Contribution,
  compareGroups,
  type Grouping,
  type GroupRows,
  usable
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
import { keptBy, keptOf } from "../keptBytes.ts"
import type { RecordSlot } from "../store/recordSlot.ts"
import type { WorkCounters } from "../workCounters.ts"
import { type Accumulating, type Accumulator, accumulating } from "./accumulators.ts"
import { type Summing, sumInOrder } from "./floatSum.ts"
import { compareSourceOrder, type Entry, GroupScan } from "./groupScan.ts"
import type { Kind, Showable, TakesRows } from "./resultSet.ts"
import { GroupedRow, isOf, type ViewRow } from "./viewRow.ts"

/** Groups that a first fill builds between two pauses, and rows of them. */
const groupsPerSlice = 256
const rowsPerSlice = 2_048
/** Rows that find their group between two pauses, before they are put in order. */
const orderedPerSlice = 512

/** A group as it is shown. */
export interface GroupRow extends Shown, Showable {
  /** Bytes that it keeps (`KeptBytes`). */
  readonly keeps: number
  readonly value: Value
  readonly group: ReadonlyArray<Value>
  readonly sort: ReadonlyArray<Value>
  /** A group that fails is not shown. */
  readonly failure: undefined
}

/** What groups of one shape have in common. */
export interface GroupPlan {
  readonly grouping: Grouping
  readonly kind: Kind<GroupRow>
  /** Values of ORDER BY, from the row. */
  readonly order: ReadonlyArray<Sort>
  /** Per call the accumulator it reads; undefined for one computed over the group's rows. */
  readonly accumulated: ReadonlyArray<number | undefined>
  readonly accumulators: ReadonlyArray<Accumulating>
  /** Per call how its column is added up in order, where that is needed. */
  readonly summing: ReadonlyArray<Summing | undefined>
  /** Names of calls that are computed over the group's rows. */
  readonly folded: ReadonlyArray<string>
}

const countsRows = (call: Call): boolean => call.name === "count" && call.column === undefined

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
        : { call: accumulated[i], column, take: usable(name) }
    ),
    order: terms,
    folded: grouping.calls
      .filter((call, i) => accumulated[i] === undefined && !countsRows(call))
      .map(({ name }) => (name === "" ? "list of values" : name))
  }
}

/** Content only: versions of groups are this process's own. */
const hashOf = (row: GroupRow): Hash64 => rowHash(row.key, 0, row.digest)

class Group {
  readonly id: unknown
  /** The key it shows: that of its first row. */
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

/** A row that came, went or changed while rows are put in order. */
interface Move {
  readonly from: Group | undefined
  readonly before: Entry | undefined
  readonly to: Group | undefined
  readonly after: Entry | undefined
}

/** What a view lends its groups. */
export interface GroupOwner {
  /** A step marks a group for the first time. */
  readonly changed: () => void
  /** What its matching rows bring now, also where that is read later. */
  readonly entries: () => Iterable<Entry>
  /** A scope to build a row in. */
  readonly buildScope: () => Scope
  /** Fails where rows may not keep so many more bytes. */
  readonly requireRoom: (bytes: number) => void
  /** So many bytes more are kept, or fewer. */
  readonly keep: (bytes: number) => void
  /** Notes what building the row of a group has just read; nothing for a group that is no more. */
  readonly built: (name: string, gone: boolean) => void
}

export class Groups {
  private readonly plan: GroupPlan
  private readonly owner: GroupOwner
  private readonly result: TakesRows<GroupRow>
  private readonly counters: WorkCounters
  /** The one group of GROUP ALL, which is there even without rows. */
  private readonly whole: Group | undefined
  private readonly groups: Map<unknown, Group> | undefined
  private dirty: Array<Group> = []
  private failing: Set<Group> | undefined = undefined
  /** Groups whose rows read something, by the name they read under. */
  private readonly readers: Map<string, Group> | undefined
  /** Somewhere keys that are equal are not the same. */
  private mixed = false
  private ordered = false
  /** Moves since rows began to be put in order; undefined where they do not. */
  private moves: Array<Move> | undefined = undefined

  /** `reads`: building a row may read other records. */
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

  /** A matching row with what it brings; `before` again where nothing of it changed. */
  member(
    slot: RecordSlot,
    sourceIndex: number,
    brought: Contribution,
    before: ViewRow | undefined,
    keeps: number
  ): ViewRow {
    const part = this.entry(before?.part as Entry | undefined, slot.id, sourceIndex, brought)
    if (isOf(before, slot) && before.part === part) return before
    return new GroupedRow(this.owner, slot, sourceIndex, part, keeps)
  }

  /** What a row brings; `before` again where that is the same. */
  entry(before: Entry | undefined, id: RecordId, sourceIndex: number, { key, values }: Contribution): Entry {
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

  /** Puts what a row brings now in place of what it brought. */
  move(before: Entry | undefined, after: Entry | undefined): void {
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

  /** Builds a group's row again because something it had read has changed. False where `name` is none of a group. */
  reread(name: string): boolean {
    const group = this.readers?.get(name)
    if (group !== undefined) this.mark(group)
    return group !== undefined
  }

  /**
   * Ends a step: builds the rows of the marked groups; `version` is for those that changed. True when other groups fail
   * now.
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
        this.owner.keep(keptBy(group.row) - keptBy(row))
        this.show(row, group.row)
      }
      if (isSame(failure, group.failure)) continue
      failuresMoved = true
      if (group.failure === undefined) this.failing!.delete(group)
      else (this.failing ??= new Set()).add(group)
    }
    return failuresMoved
  }

  /** Builds the groups of a first fill with pauses, all but those that change in one of them. */
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

  /** Why groups are left out because an aggregate fails over them, as one failure; undefined where none are. */
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

  private groupOf(entry: Entry): Group {
    if (this.whole !== undefined) return this.whole
    let group = this.groups!.get(entry.group)
    if (group === undefined) this.groups!.set(entry.group, (group = this.make(entry.group, entry.key)))
    return group
  }

  private take(group: Group, entry: Entry): void {
    this.mark(group)
    group.count--
    for (const accumulator of group.accumulators) accumulator.remove(entry)
  }

  private give(group: Group, entry: Entry): void {
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
    // The group of 1 and 1.0 shows itself as what came first.
    this.result.remove(before)
    this.result.insert(after)
  }

  private drop(group: Group): void {
    this.groups!.delete(group.id)
    if (this.readers?.delete(nameOf(group)) === true) this.owner.built(nameOf(group), true)
  }

  /** Gives a group its row: the one from before where that shows the same. */
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
      keeps = keptOf(outer.budget.byteLimit - outer.budget.bytes, [built, key])
      this.owner.requireRoom(keeps - keptBy(before))
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

  /** Something depends on the order of rows. */
  private needsOrder(dirty: ReadonlyArray<Group>): boolean {
    return (
      this.mixed ||
      this.plan.folded.length > 0 ||
      dirty.some((group) => group.accumulators.some((accumulator) => accumulator.inexact))
    )
  }

  /** With pauses; what moves in one of them is put in its place at the end. */
  private *putInOrder(): Slices<void> {
    const byGroup = new Map<Group, Array<Entry>>()
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

/** What every row brings where neither keys nor columns are asked for. */
const nothingBrought: Entry = {
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

/** The columns of a group in scan order, each gathered when it is asked for. */
const rowsOf = (group: Group): GroupRows => {
  const columns = new Map<number, ReadonlyArray<Value>>()
  const gathered = (at: number): ReadonlyArray<Value> => {
    const values = Array.from(group.scan!.entries(), (entry) => entry.values[at])
    columns.set(at, values)
    return values
  }
  return { size: group.count, column: (at) => columns.get(at) ?? gathered(at) }
}

/** Names a group among the rows that read: no record's text starts so. */
const nameOf = ({ id }: Group): string => `\u0000group ${typeof id} ${String(id)}`
