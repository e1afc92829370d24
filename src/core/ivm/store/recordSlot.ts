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
import { weights } from "./recordBytes.ts"
import type { Table } from "./table.ts"

/**
 * What leads to a slot of a known table: its place there, where that is a number, or itself. Lists whose records are
 * moved about hold these: to move a number, V8 looks at nothing; to move a pointer, at the head of the page that it
 * leads to, and a young one it notes as well (layout rule 1).
 */
export type SlotRef = number | RecordSlot

/** A row of a view, as its record's slot points to it. */
export interface Holding {
  readonly owner: object
  /** Of the state of the record it was made for. */
  version: number
}

/** Nearly every record is held by a few views; only beyond this are they found by a map. */
const few = 8

/**
 * Places that are no counted key: `unkept`, the table does not find this slot yet; `inPlace`, the table has no document
 * of it; from `firstText` downwards, the number of its id's text.
 */
const unkept = -2
export const inPlace = -1,
  firstText = -3

/**
 * Four fields beside an id's two, and no more: there is one for each record, and each field is a word. It is the id of
 * its record, in the document too: that is one object less for each record, and one look less where an id is asked for.
 * What outlives its record, or the store, must not hold it for an id: it leads to all of its table.
 */
export class RecordSlot extends RecordId {
  /** Its table, the store's own from the first change on. */
  keeper: Table
  /** Of the record, or the last one of a deleted record. */
  version: number
  private held: Holding | Array<Holding> | Map<object, Holding> | undefined = undefined
  /**
   * Which of the table's documents is its own: a counted key, or one of the values above. Its lowest two bits are its
   * share in the table's bytes.
   */
  private place: number

  constructor(table: Table, { raw, table: name }: RecordId, version: number) {
    super(name, raw)
    this.keeper = table
    this.version = version
    this.place = 4 * unkept + table.nextShare()
  }

  /** The whole content, `id` included, never changed but for another one; undefined where there is no record. */
  get doc(): Obj | undefined {
    return this.keeper.documentAt(this.place >> 2, this)
  }

  /** For how many records of the table this one counts when it is weighed. */
  get weight(): number {
    return weights[this.place & 3] ?? 0
  }

  get id(): RecordId {
    return this
  }

  /** The number of its id's text, where the table finds it by that. */
  get textNumber(): number {
    return firstText - (this.place >> 2)
  }

  /** What leads to it from its table: always the same while an index follows the table. */
  get ref(): SlotRef {
    const at = this.place >> 2
    return at >= 0 || at <= firstText ? at : this
  }

  /** Its document stands beside no slot. */
  get isApart(): boolean {
    return this.place >> 2 === inPlace
  }

  /** The table finds it by its id. */
  get kept(): boolean {
    return this.place >> 2 !== unkept
  }

  /**
   * Takes over a state of its record, whose document the table has at this place. Nothing is written here that may be
   * an object, but for the first time: for that V8 looks at the head of the page that holds this one, and those heads
   * push each other out of the cache.
   */
  put(table: Table, at: number, version: number): void {
    this.version = version
    this.place = 4 * at + (this.place & 3)
    if (this.keeper !== table) this.keeper = table
  }

  /** No look-up finds it any more. */
  forget(): void {
    this.put(this.keeper, unkept, this.version)
  }

  /** Nothing that is held is of the state that comes, though that has the version there was. */
  outdate(): void {
    const { held } = this
    if (held === undefined) return
    for (const holding of held instanceof Map ? held.values() : Array.isArray(held) ? held : [held])
      holding.version = -1
  }

  /** What this owner holds of the record. */
  heldBy(owner: object): Holding | undefined {
    const { held } = this
    if (held === undefined) return undefined
    if (held instanceof Map) return held.get(owner)
    if (!Array.isArray(held)) return held.owner === owner ? held : undefined
    for (let i = 0; i < held.length; i++) if (held[i]!.owner === owner) return held[i]
    return undefined
  }

  /** Visits the rows held of it; views must not let go of them meanwhile. */
  eachHolding(visit: (holding: Holding) => void): void {
    const { held } = this
    if (held === undefined) return
    if (!(held instanceof Map) && !Array.isArray(held)) visit(held)
    else for (const holding of held.values()) visit(holding)
  }

  /** Puts what an owner holds now in place of what it held: each is undefined where that is nothing. */
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

  /**
   * A view that is let go holds this no more. The rest takes no more room than it needs: it may never be
   * visited again.
   */
  letGo(holding: Holding): void {
    if (this.heldBy(holding.owner) !== holding) return
    this.exchange(holding, undefined)
    if (Array.isArray(this.held)) this.held = this.held.length === 1 ? this.held[0] : this.held.slice()
  }

  /** How many views hold rows of it. */
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

/**
 * What one change does to one record: its content before and after. Both are undefined only for a tombstone being
 * loaded.
 */
export interface Write {
  readonly id: RecordId
  readonly slot: RecordSlot
  readonly before: Obj | undefined
  readonly after: Obj | undefined
  /** The version this write leaves behind: of the record, or the last one of the deleted record. */
  readonly version: number
}
