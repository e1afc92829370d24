/**
 * Structural sharing: every part of a new value that equals the old part becomes the same object.
 *
 * A component renders again when its row is another object. Rows come as text and are new objects each time, so
 * unchanged parts are replaced by the earlier ones. New values are fresh from `JSON.parse` and are changed in place;
 * old ones have been shown and are never changed.
 */

type Fields = { [field: string]: unknown }

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null

const textOfBigint = (_: string, value: unknown): unknown => (typeof value === "bigint" ? `${value}` : value)

/** Key that finds a row or an item again: its id, or without one its content. */
const keyOf = (item: unknown): unknown => {
  if (!isObject(item)) return item
  const id = Object.hasOwn(item, "id") ? item["id"] : undefined
  return typeof id === "string" ? `id:${id}` : `is:${JSON.stringify(item, textOfBigint)}`
}

/**
 * The new items, with the parts that equal the old item of the same key shared, wherever that item was. Of several with
 * one key the first is matched with the first.
 */
export const shareByKey = (old: ReadonlyArray<unknown>, fresh: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  if (old.length === 0 || fresh.length === 0) return fresh
  if (old.length === 1 && fresh.length === 1) return [shareEqualParts(old[0], fresh[0])]
  const byKey = new Map<unknown, Array<unknown>>()
  for (let n = old.length - 1; n >= 0; n--) {
    const key = keyOf(old[n])
    const same = byKey.get(key)
    if (same === undefined) byKey.set(key, [old[n]])
    else same.push(old[n])
  }
  return fresh.map((item) => {
    const same = byKey.get(keyOf(item))
    return same === undefined || same.length === 0 ? item : shareEqualParts(same.pop(), item)
  })
}

/** Whether two lists have the same objects in the same order. */
export const sameItems = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>): boolean =>
  a.length === b.length && a.every((item, n) => Object.is(item, b[n]))

/** `old` if it equals `fresh`, else `fresh` with every part that equals the old one replaced by it. */
export const shareEqualParts = (old: unknown, fresh: unknown): unknown => {
  if (!isObject(old) || !isObject(fresh)) return Object.is(old, fresh) ? old : fresh
  if (Array.isArray(old) || Array.isArray(fresh)) {
    if (!Array.isArray(old) || !Array.isArray(fresh)) return fresh
    const items = shareByKey(old, fresh)
    return sameItems(old, items) ? old : items
  }
  const fields = Object.keys(fresh)
  let isSame = fields.length === Object.keys(old).length
  for (const field of fields) {
    if (!Object.hasOwn(old, field)) {
      isSame = false
      continue
    }
    const value = shareEqualParts(old[field], fresh[field])
    // The field is an own property, so this is an assignment even for `__proto__`.
    fresh[field] = value
    isSame &&= Object.is(value, old[field])
  }
  return isSame ? old : fresh
}
