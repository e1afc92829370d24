/**
 * Maps by the keys of records and by the keys things are filed under.
 *
 * Why not plain maps: most tables count their records, and an array leads from a count to its value in one step where a
 * hash table takes three or four cold ones (bucket, entry, the key itself). Any other key goes to a map as usual.
 */
import { RecordId, sameRecord } from "../../surql/values/value.ts"

/** The array is at most this much longer than twice its content. */
const room = 64

/**
 * By the key of a record: counted ones in an array, all others in a map. `B`: what its owner may keep beside each value
 * with a counted key, right behind it, so that one line of memory has both.
 */
export class DenseMap<V, B = never> {
  private readonly counted: Array<V | B | undefined> = []
  private readonly others = new Map<unknown, V>()
  /** Cells of the array for each key. */
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
    // Keys that came out of order are waiting in the map: as many of them as may come along.
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

  /** The value of a key that has one in the array. */
  valueAt(key: number): V {
    return this.counted[this.cells * key] as V
  }

  /** What stands beside the value of a counted key, of a map of two cells. */
  beside(key: number): B | undefined {
    return this.counted[2 * key + 1] as B | undefined
  }

  setBeside(key: number, value: B | undefined): void {
    this.counted[2 * key + 1] = value
  }

  /**
   * In no particular order. Entries put in meanwhile may be missed; those there before are not, though they may come
   * twice: the array comes last, because keys only ever go from the map to its end.
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

  /** Whether it is, or would be, in the array. */
  isCounted(key: unknown): key is number {
    return typeof key === "number" && key >= 0 && this.cells * key < this.counted.length && Number.isInteger(key)
  }

  /** Lengthens the array up to a key; what the map has of those before it comes along. */
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

/**
 * What a key leads to where things are filed: a record id with a count stands for itself, everything else is a
 * primitive.
 */
export type FiledKey = unknown

/** A record id as a key of its own where an array can find it. */
export const isCountedId = (value: unknown): value is RecordId => value instanceof RecordId && isCount(value.raw)

/** The same key as a primitive: equal ones are the same. */
export const plainKey = (key: FiledKey): unknown => (key instanceof RecordId ? key.text : key)

export const sameKey = (a: FiledKey, b: FiledKey): boolean =>
  a instanceof RecordId ? b instanceof RecordId && sameRecord(a, b) : Object.is(a, b)

/** By what things are filed under. */
export class FiledMap<V> {
  private readonly plain = new Map<unknown, V>()
  private readonly byTable = new Map<string, DenseMap<V>>()
  /** The table last asked for: nearly always the only one. */
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
