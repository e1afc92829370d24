/**
 * A map from keys to sets of values that holds no empty set: `addTo` and `removeFrom`; and lists that are used as sets.
 *
 * The engine and the services file things under a key in many places; an empty set left behind is a slow leak. A list
 * is for a few items that every change walks: walking a set costs more.
 */

export const addTo = <K, V>(map: Map<K, Set<V>>, key: K, value: V): void => {
  const values = map.get(key)
  if (values === undefined) map.set(key, new Set([value]))
  else values.add(value)
}

/** Removes a value from a key's set, and the key with its last value. */
export const removeFrom = <K, V>(map: Map<K, Set<V>>, key: K, value: V): void => {
  const values = map.get(key)
  if (values?.delete(value) === true && values.size === 0) map.delete(key)
}

/**
 * A list with one more item; undefined: an empty list. Most lists get a single item, and are made with it: a push to an
 * empty array would reserve room for seventeen.
 */
export const append = <A>(list: Array<A> | undefined, item: A): Array<A> => {
  if (list === undefined) return [item]
  list.push(item)
  return list
}

/** Adds an item to a list that is used as a set. */
export const addItem = <A>(list: Array<A>, item: A): void => {
  if (!list.includes(item)) list.push(item)
}

/** Removes an item from a list that is used as a set. */
export const removeItem = <A>(list: Array<A>, item: A): void => {
  const at = list.indexOf(item)
  if (at >= 0) list.splice(at, 1)
}

/** Tests whether an item is among these, mostly one or two. */
export const isAmong = <A>(items: ReadonlyArray<A>): ((item: A) => boolean) => {
  if (items.length === 0) return () => false
  if (items.length > 8) {
    const set = new Set(items)
    return (item) => set.has(item)
  }
  return (item) => items.includes(item)
}
