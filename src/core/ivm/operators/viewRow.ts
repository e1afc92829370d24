/**
 * A matching row as a view holds it.
 *
 * Several classes behind one interface: a row that only shows its record, as nearly all do, has half the fields. A
 * large service holds millions of rows, a change finds them cold, and the garbage collector has to move each new one.
 */
import type { Failure } from "../../surql/evaluate/failure.ts"
import type { Value } from "../../surql/values/value.ts"
import { type ChildResult, placesOf, type Shown } from "../delta/delta.ts"
import { combined, type Hash64, recordHash, rowHash } from "../delta/hash.ts"
import type { Holding, RecordSlot } from "../store/recordSlot.ts"
import type { GroupEntry } from "./groupScan.ts"
import type { Showable } from "./resultSet.ts"

/** The content of one piece of SPLIT. */
export interface Piece {
  readonly position: number
  readonly value: Value
}

export interface ViewRow extends Shown, Holding, Showable {
  version: number
  readonly slot: RecordSlot
  /** Position in the row list of its view. */
  at: number
  /** Position of its source among the query's sources. */
  readonly sourceIndex: number
  /** Values of the ORDER BY terms; empty if they are read from the record when the result is sorted. */
  readonly sort: ReadonlyArray<Value>
  /** Value of the only ORDER BY term, which then is not in `sort`: window searches compare it all the time. */
  readonly lead: Value
  /**
   * Why the row fails. In the result of a subquery, projecting the row fails the whole result; in a view, one of its
   * SPLIT pieces is left out.
   */
  readonly failure: Failure | undefined
  /** Bytes that the row holds beside its record (`KeptBytes`). */
  readonly keeps: number
  /** Entry of the row in its group, the pieces it is split into, or (of a piece) its shown value. */
  readonly part: GroupEntry | ReadonlyArray<ViewRow> | Piece | undefined
}

export const noSort: ReadonlyArray<Value> = []

/** Whether a row was made from the current state of its record; see {@link RecordSlot.outdate}. */
export const isCurrent = (row: ViewRow | undefined, { version }: RecordSlot): row is ViewRow =>
  row !== undefined && row.version === version

/** Fields that are the same for all rows that only show their record: they stand in the prototypes. */
const shared = { digest: undefined, children: undefined, sort: noSort, failure: undefined, sumHigh: 0, sumLow: 0 }

/**
 * A row that only shows its record. It takes over new states of the record in place: replacing the row object would
 * write to each list that holds it, all cold. This class and the next extend nothing: a row is made for every change,
 * and V8 takes more than twice as long to make an instance of a derived class.
 */
export class PlainRow implements ViewRow {
  readonly owner: object
  at = 0
  key: string
  version: number
  slot: RecordSlot
  shown = false
  high: number
  low: number
  lead: Value
  declare readonly isOnly: true
  declare readonly digest: undefined
  declare readonly children: undefined
  declare readonly sort: ReadonlyArray<Value>
  declare readonly failure: undefined
  declare readonly keeps: 0
  declare readonly sumHigh: 0
  declare readonly sumLow: 0
  declare readonly sourceIndex: 0
  declare readonly part: undefined

  /** `before`: a row of the same record. */
  constructor(owner: object, slot: RecordSlot, lead: Value, before: ViewRow | undefined) {
    const { id } = slot
    this.owner = owner
    this.key = before === undefined ? id.text : before.key
    this.version = slot.version
    this.slot = slot
    const { high, low } = recordHash(id, this.version)
    this.high = high
    this.low = low
    this.lead = lead
  }

  renew({ high, lead, low, version }: ViewRow): void {
    this.version = version
    this.high = high
    this.low = low
    // The lead mostly stays the same, and a write costs more than the comparison: see `RecordSlot.put`.
    if (this.lead !== lead) this.lead = lead
  }

  /** Reuses the object for another record, once nothing refers to it as the old row: that record often returns. */
  become(slot: RecordSlot): this {
    const isOther = this.slot !== slot
    if (isOther) {
      this.key = slot.text
      this.slot = slot
    }
    if (isOther || this.version !== slot.version) {
      const { high, low } = recordHash(slot, slot.version)
      this.version = slot.version
      this.high = high
      this.low = low
    }
    return this
  }
}

Object.assign(PlainRow.prototype, shared, { isOnly: true, keeps: 0, sourceIndex: 0, part: undefined })

/** A row of a group: its part is the entry in the group. */
export class GroupedRow implements ViewRow {
  readonly owner: object
  at = 0
  version: number
  readonly slot: RecordSlot
  readonly sourceIndex: number
  readonly part: GroupEntry
  readonly keeps: number
  declare readonly digest: undefined
  declare readonly children: undefined
  declare readonly sort: ReadonlyArray<Value>
  declare readonly failure: undefined
  declare readonly sumHigh: 0
  declare readonly sumLow: 0
  declare shown: boolean
  declare high: number
  declare low: number
  declare readonly lead: undefined

  constructor(owner: object, slot: RecordSlot, sourceIndex: number, part: GroupEntry, keeps: number) {
    this.owner = owner
    this.version = slot.version
    this.slot = slot
    this.sourceIndex = sourceIndex
    this.part = part
    this.keeps = keeps
  }

  /** Never read, since groups are shown and not their rows. */
  get key(): string {
    return this.slot.id.text
  }
}

Object.assign(GroupedRow.prototype, shared, { shown: false, high: 0, low: 0, lead: undefined })

/** The optional parts of a row. */
interface RowParts {
  readonly key: string
  readonly version: number
  readonly digest: string | undefined
  readonly sourceIndex: number
  readonly sort: ReadonlyArray<Value>
  readonly lead: Value
  readonly failure: Failure | undefined
  readonly keeps: number
  readonly part: ViewRow["part"]
  readonly children: ViewRow["children"]
}

export class FullRow implements ViewRow, RowParts {
  // The fields that a changed child needs come first, so that less of a cold row is loaded.
  readonly owner: object
  shown = false
  high = 0
  low = 0
  sumHigh: number
  sumLow: number
  /** Hash without the children's share. */
  private readonly ownHigh: number
  private readonly ownLow: number
  /** The step that made the row, as its children hashed then; -1 if a child is not a maintained result. */
  private readonly step: number
  readonly key: string
  version: number
  readonly slot: RecordSlot
  readonly children: ViewRow["children"]
  at = 0
  readonly lead: Value
  readonly sort: ReadonlyArray<Value>
  readonly sourceIndex: number
  readonly digest: string | undefined
  readonly failure: Failure | undefined
  readonly keeps: number
  readonly part: ViewRow["part"]

  /** `sums`: hashes of the children; undefined if one of them is not a maintained result. */
  constructor(
    owner: object,
    slot: RecordSlot,
    { children, digest, failure, keeps, key, lead, part, sourceIndex, sort, version }: RowParts,
    sums?: ReadonlyArray<Hash64>,
    step = -1
  ) {
    const own = rowHash(key, version, digest)
    this.owner = owner
    this.key = key
    this.version = version
    this.children = children
    this.ownHigh = own.high
    this.ownLow = own.low
    this.sumHigh = this.sumLow = 0
    this.step = sums === undefined ? -1 : step
    this.slot = slot
    this.lead = lead
    this.sort = sort
    this.sourceIndex = sourceIndex
    this.digest = digest
    this.failure = failure
    this.keeps = keeps
    this.part = part
    if (sums !== undefined) for (let i = 0; i < sums.length; i++) this.add(this.term(i, sums[i]!))
  }

  hash(): Hash64 {
    return { high: (this.ownHigh + this.sumHigh) | 0, low: (this.ownLow + this.sumLow) | 0 }
  }

  /** The row is not a piece of its record. */
  get isOnly(): boolean {
    return this.part === undefined
  }

  /** All children are maintained results. */
  get showsResults(): boolean {
    return this.step !== -1
  }

  madeIn(step: number): boolean {
    return this.step === step
  }

  /**
   * Change of the row's hash in this step by the change of one child, at this position or at every position that shows
   * it.
   */
  differenceBy(child: ChildResult, at: number | undefined): Hash64 {
    const before = child.sumBefore(),
      now = child.sum
    let high = 0,
      low = 0
    for (const i of at === undefined ? placesOf(this, child) : [at]) {
      const was = this.term(i, before),
        is = this.term(i, now)
      high += is.high - was.high
      low += is.low - was.low
    }
    return { high: high | 0, low: low | 0 }
  }

  /** Adds to the children's share in the hash. */
  add({ high, low }: Hash64): void {
    this.sumHigh = (this.sumHigh + high) | 0
    this.sumLow = (this.sumLow + low) | 0
  }

  /** Hash of a child, dependent on its position and its row: two rows that swap their children differ from before. */
  private term(i: number, child: Hash64): Hash64 {
    return combined({ high: this.ownHigh ^ Math.imul(i + 1, 0x9e3779b1), low: this.ownLow + i }, child)
  }
}

export const viewRowHash = (row: ViewRow): Hash64 => (row instanceof FullRow ? row.hash() : row)
