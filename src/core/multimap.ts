/**
 * A map from keys to sets of values that holds no empty set: `addTo` and `removeFrom`.
 *
 * The engine and the services file things under a key in many places; an empty set left behind is a slow leak.
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
