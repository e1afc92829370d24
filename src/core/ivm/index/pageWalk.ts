/**
 * Walks the rows of an ordered index under some keys, in order, from the first row of an interval on.
 *
 * Under one key it reads stretches of one list, under several keys it merges their lists. Rows without an exact key are
 * merged in and marked, because their reader has to filter them.
 */
import type { Bound, Value } from "../../surql/values/value.ts"
import type { FiledKey } from "../store/denseMap.ts"
import { holdsValue, type Interval, isAfterStart, isBeforeEnd } from "../store/intervalTree.ts"
import { compareToProbe, type Probe } from "../store/ordering.ts"
import type { RecordSlot, SlotRef } from "../store/recordSlot.ts"
import type { OrderedIndex } from "./orderedIndex.ts"
import type { OrderedRows } from "./orderedRows.ts"

/** Reads one list in stretches. */
class Cursor {
  readonly loose: boolean
  private readonly rows: OrderedRows
  private readonly stretch: number
  private readonly refs: Array<SlotRef> = []
  private readonly leads: Array<Value> = []
  private rank: number
  private at = 0

  constructor(rows: OrderedRows, rank: number, stretch: number, loose: boolean) {
    this.rows = rows
    this.rank = rank
    this.stretch = stretch
    this.loose = loose
  }

  /** The current row; undefined behind the last. */
  get ref(): SlotRef | undefined {
    if (this.at === this.refs.length) {
      this.refs.length = this.leads.length = this.at = 0
      this.rows.read(this.rank, this.stretch, this.refs, this.leads)
      this.rank += this.refs.length
    }
    return this.refs[this.at]
  }

  /** Lead of the current row. */
  get lead(): Value {
    return this.leads[this.at]
  }

  advance(): void {
    this.at++
  }
}

export interface RowFilter {
  /** Whether a row matches the whole filter. */
  admits(slot: RecordSlot): boolean
}

export interface Walked {
  readonly keys: ReadonlyArray<FiledKey>
  readonly interval: Interval | undefined
  readonly descending: boolean
}

/** Rows read at once from each of several merged lists. */
const mergedStretch = 8

export class PageWalk {
  /** The last answered row has no exact key. */
  loose = false
  /** Lead of the last answered row. */
  lead: Value = undefined
  private readonly index: OrderedIndex
  private readonly interval: Interval | undefined
  private readonly cursors: Array<Cursor> = []
  private toSkip: number

  /**
   * `skip`: number of matching rows to skip; `length`: expected number of rows to read; `behind`: starts behind this
   * place instead of at the first row.
   */
  constructor(index: OrderedIndex, walked: Walked, skip: number, length: number, behind?: Probe | undefined) {
    const { interval, keys } = walked
    const firstOf = (rows: OrderedRows): number =>
      behind === undefined ? firstRank(rows, walked) : rows.rankBehind(behind)
    this.index = index
    this.interval = interval
    const { loose } = index
    const lone = keys.length === 1 && loose.size === 0
    this.toSkip = lone ? 0 : skip
    for (const key of keys) {
      const rows = index.rowsOf(key)
      if (rows === undefined || rows.size === 0) continue
      const first = firstOf(rows)
      this.cursors.push(new Cursor(rows, lone ? first + skip : first, lone ? length : mergedStretch, false))
    }
    if (loose.size > 0) this.cursors.push(new Cursor(loose, firstOf(loose), mergedStretch, true))
  }

  /** The next row; undefined behind the last. If `loose` is set, the reader has to filter the row. */
  next(reader: RowFilter): SlotRef | undefined {
    for (;;) {
      const cursor = this.nearest()
      const ref = cursor?.ref
      if (cursor === undefined || ref === undefined) return undefined
      const { lead, loose } = cursor
      if (this.interval !== undefined && !holdsValue(this.interval, lead)) return undefined
      cursor.advance()
      if (this.toSkip === 0) {
        this.loose = loose
        this.lead = lead
        return ref
      }
      if (!loose || reader.admits(this.index.slotOf(ref))) this.toSkip--
    }
  }

  private nearest(): Cursor | undefined {
    const { cursors } = this
    if (cursors.length === 1) return cursors[0]
    let nearest: Cursor | undefined
    for (const cursor of cursors)
      if (cursor.ref !== undefined && (nearest === undefined || this.compare(cursor, nearest) < 0)) nearest = cursor
    return nearest
  }

  private compare(a: Cursor, b: Cursor): number {
    const { index } = this
    const slot = index.slotOf(b.ref!)
    return compareToProbe(index.ordering, a.lead, index.slotOf(a.ref!), { lead: b.lead, doc: slot.doc!, slot })
  }
}

/** The bound where the rows of a walk begin. */
export const beginOf = ({ descending, interval }: Walked): Bound | undefined =>
  descending ? interval?.to : interval?.from

/** The bound where the rows of a walk end. */
export const endOf = ({ descending, interval }: Walked): Bound | undefined =>
  descending ? interval?.from : interval?.to

/** Whether a lead lies before the range of a walk, in the order of the index. */
export const isBeforeBegin = ({ descending, interval }: Walked, lead: Value): boolean =>
  interval !== undefined && (descending ? !isBeforeEnd(interval.to, lead) : !isAfterStart(interval.from, lead))

/** The rank of the first row of a walk. */
export const firstRank = (rows: OrderedRows, walked: Walked): number =>
  walked.interval === undefined ? 0 : rows.rankOf((lead) => isBeforeBegin(walked, lead))
