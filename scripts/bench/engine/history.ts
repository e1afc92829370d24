/**
 * What histories of changes are made with: numbers from a seed, tables while they change, and the plain ways to group
 * and order rows.
 */
import sortedBTree from "sorted-btree"
import type { Change, Row } from "./program.ts"

const BTree = sortedBTree.default

/** Numbers from a seed (mulberry32); `below(n)` is an integer in [0, n). */
export class Dice {
  private state: number
  constructor(seed: number) {
    this.state = seed
  }
  unit(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  below(n: number): number {
    return Math.floor(this.unit() * n)
  }
  /** Another integer in [0, n) than `than`. */
  other(n: number, than: number): number {
    return (than + 1 + this.below(n - 1)) % n
  }
}

/** A table while its history is made: live rows that can be drawn by chance, and the changes so far. */
export class Drawn {
  readonly table: string
  private readonly rows: Array<Row>
  private readonly at = new Map<number, number>()
  private nextId: number
  private readonly changes: Array<Change>

  constructor(table: string, rows: ReadonlyArray<Row>, changes: Array<Change>) {
    this.table = table
    this.rows = [...rows]
    this.changes = changes
    rows.forEach((row, place) => this.at.set(row.id, place))
    this.nextId = rows.length
  }

  any(dice: Dice): Row {
    return this.rows[dice.below(this.rows.length)]!
  }

  insert(content: Omit<Row, "id">): Row {
    const row = { id: this.nextId++, ...content } as Row
    this.at.set(row.id, this.rows.length)
    this.rows.push(row)
    this.changes.push({ table: this.table, before: undefined, after: row })
    return row
  }

  update(before: Row, content: { readonly [field: string]: number | string | boolean }): Row {
    const after = { ...before, ...content }
    this.rows[this.at.get(before.id)!] = after
    this.changes.push({ table: this.table, before, after })
    return after
  }

  remove(row: Row): void {
    const place = this.at.get(row.id)!
    const last = this.rows.pop()!
    if (last.id !== row.id) {
      this.rows[place] = last
      this.at.set(last.id, place)
    }
    this.at.delete(row.id)
    this.changes.push({ table: this.table, before: row, after: undefined })
  }
}

/** Rows in descending `created_at`, kept sorted while a history is made. */
export class Newest {
  private readonly tree = new BTree<number, Row>()
  constructor(rows: ReadonlyArray<Row> = []) {
    for (const row of rows) this.add(row)
  }
  get size(): number {
    return this.tree.size
  }
  add(row: Row): void {
    this.tree.set(-(row["created_at"] as number), row)
  }
  remove(row: Row): void {
    this.tree.delete(-(row["created_at"] as number))
  }
  /** The row at this place from the top. */
  at(place: number): Row {
    let left = place
    for (const row of this.tree.values()) if (left-- === 0) return row
    throw new RangeError(`${place} of ${this.size}`)
  }
}

export const newestFirst = (a: Row, b: Row): number => (b["created_at"] as number) - (a["created_at"] as number)

export const grouped = (rows: Iterable<Row>, field: string): Map<unknown, Array<Row>> => {
  const groups = new Map<unknown, Array<Row>>()
  for (const row of rows) {
    const group = groups.get(row[field])
    if (group === undefined) groups.set(row[field], [row])
    else group.push(row)
  }
  return groups
}

export interface Sizes {
  /** Rows of W1 and W7 to W10, whose size counts views. */
  readonly rows: number
  /** Changes in the history. */
  readonly history: number
}
