/**
 * Pages of a long list in the order of its keys: the next items after a key, found in one pass.
 *
 * The lists (views by id) are unsorted maps, and sorting a hundred thousand keys for a page of fifty would hold up the
 * process. O(n) comparisons for a page, O(limit) for the kept rows.
 */

interface Page<A> {
  readonly items: ReadonlyArray<A>
  /** The key after which the next page begins; undefined on the last page. */
  readonly next: string | undefined
}

/** Position of `key` among sorted keys. */
const placeOf = (keys: ReadonlyArray<string>, key: string): number => {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (key < (keys[middle] ?? "")) high = middle
    else low = middle + 1
  }
  return low
}

/** At most `limit` items that `wanted` accepts: those with the lowest keys above `after`. */
export const page = <A>(
  all: Iterable<readonly [key: string, item: A]>,
  {
    after,
    limit,
    wanted
  }: { readonly after: string | undefined; readonly limit: number; readonly wanted: (item: A) => boolean }
): Page<A> => {
  const keys: Array<string> = []
  const items: Array<A> = []
  let more = false
  for (const [key, item] of all) {
    if (after !== undefined && key <= after) continue
    const full = keys.length === limit
    if (full && more && key > (keys[limit - 1] ?? "")) continue
    if (!wanted(item)) continue
    more ||= full
    if (full && key > (keys[limit - 1] ?? "")) continue
    const at = placeOf(keys, key)
    keys.splice(at, 0, key)
    items.splice(at, 0, item)
    if (full) {
      keys.pop()
      items.pop()
    }
  }
  return { items, next: more ? keys.at(-1) : undefined }
}

/** Whether one of the texts contains `part`, ignoring case; true without `part`. */
export const containsText = (part: string | undefined, ...texts: ReadonlyArray<string>): boolean => {
  if (part === undefined || part === "") return true
  const wanted = part.toLowerCase()
  return texts.some((text) => text.toLowerCase().includes(wanted))
}
