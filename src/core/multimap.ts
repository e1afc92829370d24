/**
 * A map from keys to sets of values that holds no empty set: `addTo` and `removeFrom`; and lists that are used as sets.
 *
 * The engine and the services file things under a key in many places; an empty set left behind is a slow leak. A list
 * is for the few things that are gone through for every change: to go through a set costs more than to have so few.
 */

export const addTo = <K, V>(map: Map<K, Set<V>>, key: K, value: V): void => {
  const values = map.get(key)
  if (values === undefined) map.set(key, new Set([value]))
  else values.add(value)
}

export const removeFrom = <K, V>(map: Map<K, Set<V>>, key: K, value: V): void => {
  const values = map.get(key)
  if (values?.delete(value) === true && values.size === 0) map.delete(key)
}

/**
 * A list with one item more; undefined: there is none yet. Lists that mostly get one item are made with it: the first
 * push to an empty one would give it room for seventeen.
 */
export const append = <A>(list: Array<A> | undefined, item: A): Array<A> => {
  if (list === undefined) return [item]
  list.push(item)
  return list
}

export const join = <A>(list: Array<A>, item: A): void => {
  if (!list.includes(item)) list.push(item)
}

export const leave = <A>(list: Array<A>, item: A): void => {
  const at = list.indexOf(item)
  if (at >= 0) list.splice(at, 1)
}

/** Whether an item is one of these, of which there are mostly one or two. */
export const isAmong = <A>(items: ReadonlyArray<A>): ((item: A) => boolean) => {
  if (items.length === 0) return () => false
  if (items.length > 8) {
    const set = new Set(items)
    return (item) => set.has(item)
  }
  return (item) => items.includes(item)
}
