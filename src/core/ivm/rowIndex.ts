/**
 * A secondary index of one table by the values of some paths: which rows have this key?
 *
 * Built when the first shape needs it and dropped with the last (the engine counts). Rows whose path leaves the record
 * (a link, an array on the way) have no fixed key: they are `dynamic`, and every instance of a shape has to look at
 * them. Cost per change: O(1) when the key stays, two set operations when it moves.
 */
import { compositeKey, indexKey } from "../surql/key.ts"
import { field, isObj, type Obj, type Value } from "../surql/value.ts"
import type { Row } from "./store.ts"

/** Key of a row whose indexed path does not stay inside the record. */
export const dynamic: unique symbol = Symbol("dynamic")
/** Key of a row that is not there. */
export const absent: unique symbol = Symbol("absent")

export type Path = ReadonlyArray<string>

const follow = (doc: Obj, path: Path): Value | typeof dynamic => {
  let value: Value = field(doc, path[0]!)
  for (let i = 1; i < path.length; i++) {
    if (isObj(value)) value = field(value, path[i]!)
    else if (value === undefined || value === null || typeof value === "number" || typeof value === "boolean") value = undefined
    else return dynamic
  }
  return value
}

/** The index key of a document, or {@link dynamic}. */
export const keyOf = (doc: Obj, paths: ReadonlyArray<Path>): unknown => {
  if (paths.length === 1) {
    const value = follow(doc, paths[0]!)
    return value === dynamic ? dynamic : indexKey(value)
  }
  const values: Array<Value> = []
  for (const path of paths) {
    const value = follow(doc, path)
    if (value === dynamic) return dynamic
    values.push(value)
  }
  return compositeKey(values)
}

/** The key an instance is filed under: the same function over its arguments. */
export const keyOfArguments = (values: ReadonlyArray<Value>): unknown =>
  values.length === 1 ? indexKey(values[0]) : compositeKey(values)

export class RowIndex {
  readonly paths: ReadonlyArray<Path>
  /** The last pair of states asked for: the index and the shapes that share it ask one after the other. */
  private last: { readonly before: Row | undefined; readonly after: Row | undefined; readonly oldKey: unknown; readonly newKey: unknown } = { before: undefined, after: undefined, oldKey: absent, newKey: absent }
  /** A lone id stands for itself: unique keys are common, and a set for each costs more than all the rest. */
  private readonly byKey = new Map<unknown, string | Set<string>>()

  constructor(paths: ReadonlyArray<Path>, rows: Iterable<Row>) {
    this.paths = paths
    for (const row of rows) this.add(keyOf(row.doc, paths), row.id.text)
  }

  /** Ids (as text) of the rows filed under a key. */
  ids(key: unknown): Iterable<string> {
    const ids = this.byKey.get(key)
    return ids === undefined ? [] : typeof ids === "string" ? [ids] : ids
  }

  /** The keys of a record's two states. */
  keys(before: Row | undefined, after: Row | undefined): { readonly oldKey: unknown; readonly newKey: unknown } {
    if (this.last.before === before && this.last.after === after) return this.last
    const oldKey = before === undefined ? absent : keyOf(before.doc, this.paths)
    const newKey = after === undefined ? absent : keyOf(after.doc, this.paths)
    this.last = { before, after, oldKey, newKey }
    return this.last
  }

  /** Refiles a record. */
  move(text: string, before: Row | undefined, after: Row | undefined): void {
    const { newKey, oldKey } = this.keys(before, after)
    if (oldKey === newKey) return
    if (oldKey !== absent) this.remove(oldKey, text)
    if (newKey !== absent) this.add(newKey, text)
  }

  private add(key: unknown, text: string): void {
    const ids = this.byKey.get(key)
    if (ids === undefined) this.byKey.set(key, text)
    else if (typeof ids !== "string") ids.add(text)
    else if (ids !== text) this.byKey.set(key, new Set([ids, text]))
  }

  private remove(key: unknown, text: string): void {
    const ids = this.byKey.get(key)
    if (ids === text || (typeof ids === "object" && ids.delete(text) && ids.size === 0)) this.byKey.delete(key)
  }
}
