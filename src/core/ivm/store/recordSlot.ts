/**
 * One record of the store, from its first change on: its id, its current document, its version, and back pointers to
 * its rows in views.
 *
 * Why the back pointers stand here: a change finds its record once, by id, and from there every row that shows it. A
 * map by id in each view would cost one more cache miss per view. A slot outlives the deletion of its record, so views
 * name their rows by it. Documents of counted keys and of keys that are text stand in an array of the table and not in
 * the slot: writing a young document into an old object triggers a write barrier on a cold page, writing it into the
 * table's array does not (layout rule 1, docs/engine.md).
 */
import { type Obj, RecordId } from "../../surql/values/value.ts"
import { shareWeights } from "./recordBytes.ts"
import type { Table } from "./table.ts"

/**
 * Reference to a slot of a known table: its position in the table's array, if it has one, or the slot. Lists whose
 * entries move often hold these: to move a number V8 checks nothing; to move a pointer it reads the head of the page
 * that the pointer leads to, and notes a young object as well (layout rule 1).
 */
export type SlotRef = number | RecordSlot

/** A row of a view, as its record's slot points to it. */
export interface Holding {
  readonly owner: object
  /** Version of the record state that the row was made from. */
  version: number
}

/** Nearly every record is held by a few views; a map finds them only above this number. */
const few = 8

/**
 * Values of `place` that are no counted key: `unkept`, the table does not find this slot yet; `withoutDocument`, the
 * table has no document of it; `firstText` and below, the number of its id's text.
 */
const unkept = -2
export const withoutDocument = -1,
  firstText = -3

/**
 * Four fields beside an id's two, and no more: there is one slot for each record, and each field is a word. The slot
 * itself is the record's id, in its document too: one object less for each record, and one look-up less for the id.
 * Code that outlives the record or the store must copy the id, because a slot leads to its whole table.
 */
export class RecordSlot extends RecordId {
  /** The record's table in the store, from the first change on. */
  keeper: Table
  /** Version of the record; of a deleted one, its last. */
  version: number
  private held: Holding | Array<Holding> | Map<object, Holding> | undefined = undefined
  /**
   * Which document of the table is the record's: a counted key, or one of the values above. The lowest two bits are the
   * record's share in the table's bytes.
   */
  private place: number

  constructor(table: Table, { raw, table: name }: RecordId, version: number) {
    super(name, raw)
    this.keeper = table
    this.version = version
    this.place = 4 * unkept + table.nextShare()
  }

  /** The whole content, `id` included: replaced but never changed. Undefined if the record does not exist. */
  get doc(): Obj | undefined {
    return this.keeper.documentAt(this.place >> 2, this)
  }

  /** How many records of the table this one counts for in the estimate of bytes. */
  get weight(): number {
    return shareWeights[this.place & 3] ?? 0
  }

  get id(): RecordId {
    return this
  }

  /** The number of its id's text, if the table finds the slot by that. */
  get textNumber(): number {
    return firstText - (this.place >> 2)
  }

  /** The reference for lists of indexes: stays the same while an index follows the table. */
  get ref(): SlotRef {
    const at = this.place >> 2
    return at >= 0 || at <= firstText ? at : this
  }

  /** The document is in no array beside the slots. */
  get isApart(): boolean {
    return this.place >> 2 === withoutDocument
  }

  /** The table finds the slot by its id. */
  get kept(): boolean {
    return this.place >> 2 !== unkept
  }

  /**
   * Takes over a new state of the record, whose document the table has stored at this position. Writes only numbers,
   * except the first time: when an object is written, V8 reads the head of the page that holds this slot, and these
   * heads displace each other in the cache.
   */
  put(table: Table, at: number, version: number): void {
    this.version = version
    this.place = 4 * at + (this.place & 3)
    if (this.keeper !== table) this.keeper = table
  }

  /** Marks that no look-up finds the slot any more. */
  forget(): void {
    this.put(this.keeper, unkept, this.version)
  }

  /** Makes all held rows outdated: the next state has the same version as the one they were made from. */
  outdate(): void {
    const { held } = this
    if (held === undefined) return
    for (const holding of held instanceof Map ? held.values() : Array.isArray(held) ? held : [held])
      holding.version = -1
  }

  /** The row of this owner. */
  heldBy(owner: object): Holding | undefined {
    const { held } = this
    if (held === undefined) return undefined
    if (held instanceof Map) return held.get(owner)
    if (!Array.isArray(held)) return held.owner === owner ? held : undefined
    for (let i = 0; i < held.length; i++) if (held[i]!.owner === owner) return held[i]
    return undefined
  }

  /** Visits the rows that views hold of the record; views must not drop rows meanwhile. */
  eachHolding(visit: (holding: Holding) => void): void {
    const { held } = this
    if (held === undefined) return
    if (!(held instanceof Map) && !Array.isArray(held)) visit(held)
    else for (const holding of held.values()) visit(holding)
  }

  /** Replaces an owner's row; undefined: no row. */
  exchange(before: Holding | undefined, after: Holding | undefined): void {
    const { held } = this
    if (held === undefined || held === before) this.held = after
    else if (held instanceof Map) {
      if (after !== undefined) held.set(after.owner, after)
      else this.without(held, before!)
    } else if (!Array.isArray(held)) this.held = [held, after!]
    else if (before === undefined) this.add(held, after!)
    else if (after !== undefined) held[held.indexOf(before)] = after
    else {
      const last = held.pop()!
      if (last !== before) held[held.indexOf(before)] = last
      if (held.length === 0) this.held = undefined
    }
  }

  /** Removes the row of a released view. The list is cut to its length: the slot may never be visited again. */
  removeHolding(holding: Holding): void {
    if (this.heldBy(holding.owner) !== holding) return
    this.exchange(holding, undefined)
    if (Array.isArray(this.held)) this.held = this.held.length === 1 ? this.held[0] : this.held.slice()
  }

  /** Number of rows that views hold of the record. */
  get holdings(): number {
    const { held } = this
    return held === undefined ? 0 : held instanceof Map ? held.size : Array.isArray(held) ? held.length : 1
  }

  private without(held: Map<object, Holding>, { owner }: Holding): void {
    held.delete(owner)
    if (held.size <= few / 2) this.held = [...held.values()]
  }

  private add(held: Array<Holding>, holding: Holding): void {
    if (held.length < few) held.push(holding)
    else this.held = new Map([...held, holding].map((one) => [one.owner, one]))
  }
}

/** A slot whose record exists. */
export type Live = RecordSlot & { readonly doc: Obj }

export const isLive = (slot: RecordSlot): slot is Live => slot.doc !== undefined

/** One write of one record: its content before and after. Both are undefined only when a tombstone is loaded. */
export interface Write {
  readonly id: RecordId
  readonly slot: RecordSlot
  readonly before: Obj | undefined
  readonly after: Obj | undefined
  /** Version after the write: of the record, or the last one of the deleted record. */
  readonly version: number
}
