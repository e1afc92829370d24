/**
 * A follower of rows as the page on the wire describes one: applies snapshots and deltas to a list, and nothing else.
 *
 * Why beside the client of the package: what the server tells is judged by a second reader that shares no line with it.
 */
export interface RowsDeltaJson {
  readonly result_hash: string
  readonly remove?: ReadonlyArray<number>
  readonly insert?: ReadonlyArray<readonly [number, unknown]>
  readonly update?: ReadonlyArray<readonly [number, unknown]>
  readonly patch?: ReadonlyArray<readonly [number, ReadonlyArray<ReadonlyArray<unknown>>]>
  readonly errors?: ReadonlyArray<{ readonly id: string; readonly reason: string }>
}

type Path = ReadonlyArray<string | number>

const setAt = (container: unknown, name: string | number, value: unknown): void =>
  void Object.defineProperty(container, name, { value, enumerable: true, configurable: true, writable: true })

const changed = (row: unknown, change: ReadonlyArray<unknown>): unknown => {
  const path = change[0] as Path
  const holder: Array<unknown> = [row]
  let container: unknown = holder
  let name: string | number = 0
  for (const step of path) {
    const inner = (container as { [name: string | number]: unknown })[name]
    if (typeof inner !== "object" || inner === null) throw new Error(`nothing at ${path.join(".")}`)
    container = inner
    name = step
  }
  if (change.length === 1) {
    if (!Object.hasOwn(container as object, name)) throw new Error(`no field ${path.join(".")}`)
    delete (container as { [name: string]: unknown })[name]
  } else if (change.length === 2) setAt(container, name, change[1])
  else {
    const list = (container as { [name: string | number]: unknown })[name]
    const [, at, count, items] = change as [unknown, number, number, ReadonlyArray<unknown>]
    if (!Array.isArray(list) || at + count > list.length) throw new Error(`no such items at ${path.join(".")}`)
    list.splice(at, count, ...items)
  }
  return holder[0]
}

/** The rows behind a delta; the rows before it are not changed. */
export const applied = (before: ReadonlyArray<unknown>, delta: RowsDeltaJson): ReadonlyArray<unknown> => {
  const rows = [...before]
  let last = Infinity
  for (const position of delta.remove ?? []) {
    if (position >= last || position >= rows.length) throw new Error(`cannot remove ${position}`)
    rows.splice((last = position), 1)
  }
  last = -1
  for (const [position, row] of delta.insert ?? []) {
    if (position <= last || position > rows.length) throw new Error(`cannot insert at ${position}`)
    rows.splice((last = position), 0, row)
  }
  for (const [position, row] of delta.update ?? []) {
    if (position >= rows.length) throw new Error(`cannot update ${position}`)
    rows[position] = row
  }
  for (const [position, changes] of delta.patch ?? []) {
    if (position >= rows.length) throw new Error(`cannot patch ${position}`)
    rows[position] = changes.reduce<unknown>(changed, structuredClone(rows[position]))
  }
  return rows
}
