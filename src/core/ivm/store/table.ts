/**
 * One table of the store: the places of its records, and who is told of each write to it.
 *
 * Why the followers stand here: a change looks up its table once, by name, and finds in it all that the name leads to.
 */
import sortedBTree from "sorted-btree"
import { compareRecords } from "../../surql/order.ts"
import * as Ids from "../../surql/recordId.ts"
import { inKeys } from "../../surql/sources.ts"
import type { Obj, Range, RecordId, RecordKey } from "../../surql/value.ts"
import type { ShapeGroup } from "../index/router.ts"
import { KeyMap } from "./denseMap.ts"
import { isLive, type Live, type Place } from "./recordSlot.ts"
import type { RowIndex } from "../index/secondaryIndex.ts"

const BTree = sortedBTree.default

export class Table {
  readonly name: string
  /** The secondary indexes that have rows filed. */
  readonly indexes: Array<RowIndex> = []
  /** The shapes with instances that read it. */
  readonly groups: Array<ShapeGroup> = []
  /**
   * Records and tombstones by key; those with other keys than numbers and text by their text. Beside the place of a counted key
   * stands its document: looked up at once, so that one is loaded beside the other and not after it. All others are in their places.
   */
  private readonly places = new KeyMap<Place, Obj>(2)
  private readonly others = new Map<string, Place>()
  private live = 0
  /** Records without a place were never deleted with a version above this. */
  floor = 0
  /** Ids in record-key order; built when somebody first scans the table, kept from then on. */
  private order: InstanceType<typeof BTree<RecordId, undefined>> | undefined = undefined

  constructor(name: string) {
    this.name = name
  }

  get size(): number {
    return this.live
  }

  /** It holds nothing, not even what was deleted, and nobody follows it. */
  get isUnused(): boolean {
    return this.places.size === 0 && this.others.size === 0 && this.indexes.length === 0 && this.groups.length === 0 && this.floor === 0
  }

  place({ key, text }: RecordId): Place | undefined {
    return typeof key === "number" || typeof key === "string" ? this.places.get(key) : this.others.get(text)
  }

  /** The document of a place, found without looking at the place where that can be. */
  docOf(place: Place, { key }: RecordId): Place["doc"] {
    return (this.places.isCounted(key) ? this.places.beside(key) : undefined) ?? place.doc
  }

  /** The document of a counted key. */
  document(key: number): Place["doc"] {
    return this.places.beside(key)
  }

  /** Records and tombstones. */
  *all(): Iterable<Place> {
    yield* this.places.values()
    yield* this.others.values()
  }

  *rows(): Iterable<Live> {
    for (const place of this.places.values()) if (isLive(place)) yield place
    for (const place of this.others.values()) if (isLive(place)) yield place
  }

  /** Puts a record's state in its place; undefined: it is gone, and the place remembers its version. */
  put(place: Place, id: RecordId, doc: Place["doc"], version: number): void {
    const { doc: before } = place
    const { key, text } = id
    if (!place.kept) {
      if (typeof key === "number" || typeof key === "string") this.places.set(key, place)
      else this.others.set(text, place)
    }
    if (this.places.isCounted(key)) {
      place.put(id, doc, version, key)
      this.places.setBeside(key, doc)
    } else place.put(id, doc, version, undefined)
    if ((before === undefined) === (doc === undefined)) return
    if (doc === undefined) {
      this.live--
      this.order?.delete(id)
    } else {
      this.live++
      this.order?.set(id, undefined)
    }
  }

  forget(place: Place): void {
    const { key, text } = place.id
    place.forget()
    if (typeof key === "number" || typeof key === "string") this.places.delete(key)
    else this.others.delete(text)
  }

  /**
   * Forgets a deleted record at once: in its stead the table remembers that no version went higher. For tables of ours, where a record
   * comes and goes with each job: nobody minds that new ones begin with a higher version there.
   */
  forgetDeleted(place: Place): void {
    this.floor = Math.max(this.floor, place.version)
    this.forget(place)
  }

  /** Forgets its records, and who follows it. */
  clear(): void {
    this.groups.length = this.indexes.length = 0
    this.places.clear()
    this.others.clear()
    this.live = 0
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
      const place = this.place(id)
      if (place !== undefined && isLive(place)) yield place
    }
  }

  /** Records with keys in a range, in order. Cost: O(log n) and those that are taken. */
  *between(range: Range): Iterable<Live> {
    const from = range.from && Ids.make(this.name, range.from.value as RecordKey)
    for (const place of this.inOrder(from)) {
      if (inKeys(range, place.id.key)) yield place
      // Before the range there is at most the key it excludes.
      else if (place.id.text !== from?.text) return
    }
  }
}
