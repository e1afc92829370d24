/**
 * Deltas of a view as they come over the wire, applied to its list of rows.
 *
 * In the order of the contract: `remove` (positions of the list as it was, descending), `insert` (positions as it will
 * be, ascending), `update` and `patch` (positions of the new list). A delta that does not fit the list throws
 * {@link Misfit}: the list is then unusable, and the view asks for a snapshot. A row that moves is removed and
 * inserted, and stays the same object.
 */
import type { RowList } from "./rowList.ts"
import { shareByKey, shareEqualParts } from "./share.ts"

/** A message that does not make sense: a fault of the server, of something between, or of this client. */
export class Misfit extends Error {}

/** Path to a value within a row: field names and list positions. */
export type Path = ReadonlyArray<string | number>

/** A change within a row: sets a value, removes a field, or splices a list (`count` items at `at` become `items`). */
export type Change =
  | readonly [path: Path, value: unknown]
  | readonly [path: Path]
  | readonly [path: Path, at: number, count: number, items: ReadonlyArray<unknown>]

/**
 * The change of a result from one state to the next. Applied in the order `remove` (positions in the old list,
 * descending), `insert`, `update`, `patch`.
 */
export interface Delta {
  readonly remove?: ReadonlyArray<number>
  readonly insert?: ReadonlyArray<readonly [position: number, row: unknown]>
  readonly update?: ReadonlyArray<readonly [position: number, row: unknown]>
  readonly patch?: ReadonlyArray<readonly [position: number, changes: ReadonlyArray<Change>]>
}

type Fields = { [field: string]: unknown }

const misfit = (what: string): never => {
  throw new Misfit(what)
}

const isBelow = (position: unknown, bound: number): position is number =>
  Number.isInteger(position) && (position as number) >= 0 && (position as number) < bound

/** Sets an own property, whatever its name (`__proto__` too). */
const put = (object: Fields, field: string, value: unknown): void => {
  if (field === "__proto__")
    Object.defineProperty(object, field, { value, enumerable: true, configurable: true, writable: true })
  else object[field] = value
}

/** The value at the end of a change's path, after the change. */
const atEnd = (value: unknown, change: Change): unknown => {
  if (change.length === 2) return shareEqualParts(value, change[1])
  if (change.length !== 4) return misfit("a row cannot be removed by a patch")
  const [, at, count, items] = change
  if (!Array.isArray(value)) return misfit("a splice of what is no list")
  if (!isBelow(at, value.length + 1) || !isBelow(count, value.length - at + 1) || !Array.isArray(items))
    return misfit(`a splice of ${count} at ${at} of a list of ${value.length}`)
  const list = value.slice()
  list.splice(at, count, ...shareByKey(list.slice(at, at + count), items))
  return list
}

/** A value after one change; everything off the change's path is shared with the old value. */
const changed = (value: unknown, change: Change, depth: number): unknown => {
  const path = change[0]
  if (depth === path.length) return atEnd(value, change)
  const step = path[depth]!
  const isLast = depth === path.length - 1
  if (Array.isArray(value)) {
    if (!isBelow(step, value.length)) return misfit(`a change at ${JSON.stringify(path)}, which is not there`)
    if (isLast && change.length === 1) return misfit("an item of a list is removed as if it were a field")
    const list = value.slice()
    list[step] = changed(value[step], change, depth + 1)
    return list
  }
  if (typeof value !== "object" || value === null || typeof step !== "string")
    return misfit(`a change at ${JSON.stringify(path)}, which is not there`)
  const isThere = Object.hasOwn(value, step)
  if (!isThere && !(isLast && change.length === 2))
    return misfit(`a change at ${JSON.stringify(path)}, which is not there`)
  const object: Fields = { ...value }
  if (isLast && change.length === 1) delete object[step]
  else put(object, step, changed(isThere ? (value as Fields)[step] : undefined, change, depth + 1))
  return object
}

/** A row after its changes, in their order. Throws {@link Misfit}. */
export const patched = (row: unknown, changes: ReadonlyArray<Change>): unknown => {
  let value = row
  for (const change of changes) {
    if (!Array.isArray(change) || !Array.isArray(change[0])) return misfit("a change without a path")
    value = changed(value, change, 0)
  }
  return value
}

/** Applies a delta in O(delta), however long the list is. Throws {@link Misfit}. */
export const applyDelta = (list: RowList, { insert = [], patch = [], remove = [], update = [] }: Delta): void => {
  const removed: Array<unknown> = []
  let bound = list.length
  for (const position of remove) {
    if (!isBelow(position, bound)) misfit(`removes row ${position} of ${bound}`)
    removed.push(list.remove(position))
    bound = position
  }
  if (insert.length > 0) {
    // `remove` is descending, so the rows are reversed: of several with one key the first stays the first.
    const rows = shareByKey(
      removed.reverse(),
      insert.map((each) => each[1])
    )
    let least = 0
    for (let n = 0; n < insert.length; n++) {
      const position = insert[n]![0]
      if (position < least || !isBelow(position, list.length + 1))
        misfit(`inserts a row at ${position} of ${list.length}`)
      list.insert(position, rows[n])
      least = position + 1
    }
  }
  for (const [position, row] of update) {
    if (!isBelow(position, list.length)) misfit(`updates row ${position} of ${list.length}`)
    list.set(position, shareEqualParts(list.get(position), row))
  }
  for (const [position, changes] of patch) {
    if (!isBelow(position, list.length)) misfit(`patches row ${position} of ${list.length}`)
    list.set(position, patched(list.get(position), changes))
  }
}
