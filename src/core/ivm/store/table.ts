/**
 * One table of the store: the slots of its records, and the indexes and view routers that follow its writes.
 *
 * Why the followers stand here: a change looks up its table once, by name, and finds in it all that the name leads to.
 */
import sortedBTree from "sorted-btree"
import { isInRange } from "../../surql/evaluate/select/sources.ts"
import { compareRecords } from "../../surql/values/order.ts"
import * as Ids from "../../surql/values/recordId.ts"
import { type Obj, type Range, RecordId, type RecordKey, sameRecord, type Value } from "../../surql/values/value.ts"
import { DenseMap } from "./denseMap.ts"
import { recordBytes, shareOf } from "./recordBytes.ts"
import {
  firstText,
  isLive,
  type Live,
  type RecordSlot,
  type SlotRef,
  type Write,
  withoutDocument
} from "./recordSlot.ts"
import { TextNumbers, type TextOwner } from "./textNumbers.ts"

const BTree = sortedBTree.default

/** A secondary index as its table knows it. */
export interface TableIndex {
  /**
   * Called for each write, after the slot has its new state and before any view sees the write. Undefined: no record.
   * Must not fail.
   */
  move(slot: RecordSlot, before: Obj | undefined, after: Obj | undefined): void
}

/** The router of a shape's views, as the tables that they read know it. */
interface TableRouter {
  /** Routers of a lower stratum are called before those of a higher one. */
  readonly shape: { readonly stratum: number }
  route(write: Write): void
}

export class Table implements TextOwner {
  readonly name: string
  /** The filled indexes. */
  readonly indexes: Array<TableIndex> = []
  /** The routers of shapes whose views read the table. */
  readonly routers: Array<TableRouter> = []
  /**
   * Records and tombstones: by their number, by the number of the id's text for text keys, and by that text for all
   * other keys. The document stands beside the slot of a counted or text key, and for text keys the text too: one
   * look-up loads all. All other documents are in `apart`.
   */
  private readonly slots = new DenseMap<RecordSlot, Obj>(2)
  private readonly numbers: TextNumbers
  private readonly byText: Array<RecordSlot | Obj | string | undefined> = []
  private readonly others = new Map<string, RecordSlot>()
  /** Documents that stand beside no slot. */
  private readonly apart = new Map<RecordSlot, Obj>()
  private live = 0
  private weighed = 0
  /** Number of slots made so far. */
  private made = 0
  /** Upper bound of the last versions of deleted records that have no slot any more. */
  floor = 0
  /** Ids in record-key order; built at the first ordered scan, kept from then on. */
  private order: InstanceType<typeof BTree<RecordId, undefined>> | undefined = undefined

  constructor(name: string, hashSeed: number) {
    this.name = name
    this.numbers = new TextNumbers(hashSeed, this)
  }

  get size(): number {
    return this.live
  }

  /** Approximate bytes of the records (recordBytes.ts). */
  get bytes(): number {
    return this.weighed
  }

  /** Share of the next slot in the estimate of bytes. */
  nextShare(): 0 | 1 | 2 {
    return shareOf(this.made++)
  }

  /** The table has no records and no tombstones, and no index or router follows it. */
  get isUnused(): boolean {
    return (
      this.slots.size === 0 &&
      this.numbers.size === 0 &&
      this.others.size === 0 &&
      this.indexes.length === 0 &&
      this.routers.length === 0 &&
      this.floor === 0
    )
  }

  slot({ raw }: RecordId): RecordSlot | undefined {
    if (typeof raw === "number") return this.slots.get(raw)
    if (typeof raw === "object") return this.others.get(raw.text)
    const number = this.numbers.find(raw)
    return number < 0 ? undefined : (this.byText[3 * number] as RecordSlot)
  }

  /** The document of a slot; for a counted key found without loading the slot. */
  docOf(slot: RecordSlot, { raw }: RecordId): RecordSlot["doc"] {
    return (this.slots.isCounted(raw) ? this.slots.beside(raw) : undefined) ?? slot.doc
  }

  /** The document of a slot, by the slot's `place`. */
  documentAt(at: number, slot: RecordSlot): RecordSlot["doc"] {
    return at >= 0
      ? this.slots.beside(at)
      : at <= firstText
        ? (this.byText[3 * (firstText - at) + 1] as RecordSlot["doc"])
        : this.apart.get(slot)
  }

  /** The slot of a reference. */
  slotOf(ref: SlotRef): RecordSlot {
    if (typeof ref !== "number") return ref
    return ref >= 0 ? this.slots.valueAt(ref) : (this.byText[3 * (firstText - ref)] as RecordSlot)
  }

  /** The text with this number. */
  textAt(number: number): string {
    return this.byText[3 * number + 2] as string
  }

  /** All slots: records and tombstones. */
  *all(): Iterable<RecordSlot> {
    yield* this.slots.values()
    yield* this.slotsByText()
    yield* this.others.values()
  }

  *rows(): Iterable<Live> {
    for (const slot of this.slots.values()) if (isLive(slot)) yield slot
    for (const slot of this.slotsByText()) if (isLive(slot)) yield slot
    for (const slot of this.others.values()) if (isLive(slot)) yield slot
  }

  private *slotsByText(): Iterable<RecordSlot> {
    for (let i = 0; i < this.byText.length; i += 3) {
      const slot = this.byText[i] as RecordSlot | undefined
      if (slot !== undefined) yield slot
    }
  }

  /** Writes a record's new state into its slot; without `doc` it is deleted, and the slot keeps the version. */
  put(slot: RecordSlot, doc: RecordSlot["doc"], version: number): void {
    const { doc: before, raw, weight } = slot
    if (weight > 0) this.weighed += weight * (recordBytes(doc) - recordBytes(before))
    // Replaces the id that came with the change by the slot, which equals it.
    if (doc?.["id"] instanceof RecordId) (doc as Record<string, Value>)["id"] = slot
    if (typeof raw === "string") this.putByText(slot, raw, doc, version)
    else {
      if (!slot.kept) {
        if (typeof raw === "number") this.slots.set(raw, slot)
        else this.others.set(raw.text, slot)
      }
      // Index lists know a slot by its position, so it must not move to a better one while an index follows.
      if (this.slots.isCounted(raw) && !(slot.isApart && this.indexes.length > 0)) {
        if (this.apart.size > 0) this.apart.delete(slot)
        slot.put(this, raw, version)
        this.slots.setBeside(raw, doc)
      } else {
        slot.put(this, withoutDocument, version)
        if (doc === undefined) this.apart.delete(slot)
        else this.apart.set(slot, doc)
      }
    }
    if ((before === undefined) === (doc === undefined)) return
    if (doc === undefined) {
      this.live--
      this.order?.delete(slot)
    } else {
      this.live++
      this.order?.set(slot, undefined)
    }
  }

  private putByText(slot: RecordSlot, text: string, doc: RecordSlot["doc"], version: number): void {
    const { byText, numbers } = this
    const number = slot.kept ? slot.textNumber : numbers.add(text)
    if (3 * number === byText.length) byText.push(slot, doc, text)
    else {
      if (!slot.kept) {
        byText[3 * number] = slot
        byText[3 * number + 2] = text
      }
      byText[3 * number + 1] = doc
    }
    slot.put(this, firstText - number, version)
  }

  forget(slot: RecordSlot): void {
    const { raw } = slot
    const number = slot.textNumber
    slot.forget()
    if (typeof raw === "number") {
      this.slots.delete(raw)
      if (this.apart.size > 0) this.apart.delete(slot)
    } else if (typeof raw === "object") {
      this.others.delete(raw.text)
      this.apart.delete(slot)
    } else {
      this.numbers.remove(raw)
      this.byText[3 * number] = this.byText[3 * number + 1] = this.byText[3 * number + 2] = undefined
      if (this.numbers.size === 0) this.byText.length = 0
    }
  }

  /**
   * Forgets a deleted record at once; the table remembers only that its version was no higher. For the service's own
   * tables, where each job makes and deletes records: new records begin with a higher version, which does no harm
   * there.
   */
  forgetDeleted(slot: RecordSlot): void {
    this.floor = Math.max(this.floor, slot.version)
    this.forget(slot)
  }

  /** Forgets all records, indexes and routers. */
  clear(): void {
    this.routers.length = this.indexes.length = 0
    this.slots.clear()
    this.numbers.clear()
    this.byText.length = 0
    this.others.clear()
    this.apart.clear()
    this.live = 0
    this.weighed = 0
    this.floor = 0
    this.order = undefined
  }

  /** Records in record-key order, from a key on. */
  *inOrder(from?: RecordId): Iterable<Live> {
    if (this.order === undefined) {
      this.order = new BTree<RecordId, undefined>(undefined, compareRecords)
      for (const { id } of this.rows()) this.order.set(id, undefined)
    }
    for (const id of this.order.keys(from)) {
      const slot = this.slot(id)
      if (slot !== undefined && isLive(slot)) yield slot
    }
  }

  /** Records with keys in a range, in order. Cost: O(log n) and those that are taken. */
  *between(range: Range): Iterable<Live> {
    const from = range.from && Ids.make(this.name, range.from.value as RecordKey)
    for (const slot of this.inOrder(from)) {
      if (isInRange(range, slot.id.key)) yield slot
      // Only the excluded key at the lower bound can come before the range.
      else if (from === undefined || !sameRecord(slot.id, from)) return
    }
  }
}
