/**
 * Maps by record key and by index key.
 *
 * Why not plain maps: most tables number their records, and an array leads from the number to its value in one cold
 * read where a hash table takes three or four (bucket, entry, the key itself). Any other key goes to a plain map.
 */
import { RecordId, sameRecord } from "../../surql/values/value.ts"

/** Most cells of the array beyond twice its content. */
const room = 64

/**
 * Map by record key: counted keys in an array, all others in a map. `B`: a second value that the owner may keep with
 * each counted key, right behind the first, so that one cache line has both.
 */
export class DenseMap<V, B = never> {
  private readonly counted: Array<V | B | undefined> = []
  private readonly others = new Map<unknown, V>()
  /** Cells of the array for each key: 2 with a second value. */
  private readonly cells: 1 | 2
  private inArray = 0

  constructor(cells: 1 | 2 = 1) {
    this.cells = cells
  }

  get size(): number {
    return this.inArray + this.others.size
  }

  get(key: unknown): V | undefined {
    return this.isCounted(key)
      ? (this.counted[this.cells * key] as V | undefined)
      : this.others.size === 0
        ? undefined
        : this.others.get(key)
  }

  set(key: unknown, value: V): void {
    const most = 2 * this.size + room
    // Keys that came out of order are in the map; the array takes over as many of them as it may.
    if (!this.isCounted(key) && isCount(key) && key < most) this.grow(this.others.size === 0 ? key : most - 1)
    if (!this.isCounted(key)) this.others.set(key, value)
    else {
      if (this.counted[this.cells * key] === undefined) this.inArray++
      this.counted[this.cells * key] = value
    }
  }

  delete(key: unknown): void {
    if (!this.isCounted(key)) this.others.delete(key)
    else if (this.counted[this.cells * key] !== undefined) {
      this.inArray--
      this.counted[this.cells * key] = undefined
      if (this.cells === 2) this.setBeside(key, undefined)
    }
  }

  /** The value of a key that is in the array. */
  valueAt(key: number): V {
    return this.counted[this.cells * key] as V
  }

  /** The second value of a counted key, in a map with two cells. */
  beside(key: number): B | undefined {
    return this.counted[2 * key + 1] as B | undefined
  }

  setBeside(key: number, value: B | undefined): void {
    this.counted[2 * key + 1] = value
  }

  /**
   * All values, in no particular order. Entries added meanwhile may be missed; earlier ones are not, but may come
   * twice: the array comes last, because keys move only from the map to the array's end.
   */
  *values(): Iterable<V> {
    yield* this.others.values()
    for (let i = 0; i < this.counted.length; i += this.cells) {
      const value = this.counted[i] as V | undefined
      if (value !== undefined) yield value
    }
  }

  clear(): void {
    this.counted.length = this.inArray = 0
    this.others.clear()
  }

  /** Whether a key is in the array, or would be. */
  isCounted(key: unknown): key is number {
    return typeof key === "number" && key >= 0 && this.cells * key < this.counted.length && Number.isInteger(key)
  }

  /** Extends the array up to a key, and moves the earlier keys of the map into it. */
  private grow(key: number): void {
    for (let next = this.counted.length / this.cells; next <= key; next++) {
      const value = this.others.size === 0 ? undefined : this.others.get(next)
      this.counted.push(value)
      if (this.cells === 2) this.counted.push(undefined)
      if (value === undefined) continue
      this.others.delete(next)
      this.inArray++
    }
  }
}

const isCount = (key: unknown): key is number => typeof key === "number" && key >= 0 && Number.isInteger(key)

/** Key of an index: a record id with a counted key, or a primitive. */
export type FiledKey = unknown

/** Whether a record id is a key itself, because an array can find it. */
export const isCountedId = (value: unknown): value is RecordId => value instanceof RecordId && isCount(value.raw)

/** The same key as a primitive: equal keys give equal primitives. */
export const plainKey = (key: FiledKey): unknown => (key instanceof RecordId ? key.text : key)

export const sameKey = (a: FiledKey, b: FiledKey): boolean =>
  a instanceof RecordId ? b instanceof RecordId && sameRecord(a, b) : Object.is(a, b)

/** Map by index key. */
export class FiledMap<V> {
  private readonly plain = new Map<unknown, V>()
  private readonly byTable = new Map<string, DenseMap<V>>()
  /** The table of the last look-up: nearly always the only one. */
  private table = ""
  private ids: DenseMap<V> | undefined = undefined

  get(key: FiledKey): V | undefined {
    return key instanceof RecordId ? this.idsOf(key.table)?.get(key.raw) : this.plain.get(key)
  }

  set(key: FiledKey, value: V): void {
    if (!(key instanceof RecordId)) this.plain.set(key, value)
    else {
      let ids = this.idsOf(key.table)
      if (ids === undefined) this.byTable.set(key.table, (ids = this.ids = new DenseMap<V>()))
      ids.set(key.raw, value)
    }
  }

  delete(key: FiledKey): void {
    if (!(key instanceof RecordId)) this.plain.delete(key)
    else this.idsOf(key.table)?.delete(key.raw)
  }

  *values(): Iterable<V> {
    yield* this.plain.values()
    for (const ids of this.byTable.values()) yield* ids.values()
  }

  private idsOf(table: string): DenseMap<V> | undefined {
    if (this.table !== table) {
      this.table = table
      this.ids = this.byTable.get(table)
    }
    return this.ids
  }
}
