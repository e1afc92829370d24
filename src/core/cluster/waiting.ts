/**
 * Keys that wait for an SSP, as a few persistent sets: the keys that one SSP leaves behind are added as a whole set, in
 * one step.
 *
 * An SSP may leave a hundred thousand views behind, and the command that removes it must not walk over them. Small sets
 * are merged into their neighbour, so that there are never many. O(sets) to find, O(log keys) to change.
 */
import { HashSet } from "effect"

export type Waiting = ReadonlyArray<HashSet.HashSet<string>>

export const none: Waiting = []

const small = 64

/** Adds a whole set, merged with smaller neighbours. */
export const push = (waiting: Waiting, keys: HashSet.HashSet<string>): Waiting => {
  const last = waiting[waiting.length - 1]
  if (HashSet.size(keys) === 0) return waiting
  if (last === undefined || HashSet.size(keys) > small) return [keys, ...waiting]
  return [...waiting.slice(0, -1), HashSet.reduce(keys, last, (all, key) => HashSet.add(all, key))]
}

export const add = (waiting: Waiting, key: string): Waiting => push(waiting, HashSet.make(key))

export const has = (waiting: Waiting, key: string): boolean => waiting.some((keys) => HashSet.has(keys, key))

export const remove = (waiting: Waiting, key: string): Waiting =>
  has(waiting, key)
    ? waiting.map((keys) => HashSet.remove(keys, key)).filter((keys) => HashSet.size(keys) > 0)
    : waiting

export const size = (waiting: Waiting): number => waiting.reduce((sum, keys) => sum + HashSet.size(keys), 0)

/** Up to `most` keys, in the order of the sets, which is deterministic but not the order of arrival. */
export const peek = (waiting: Waiting, most: number): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const keys of waiting) {
    for (const key of keys) {
      if (found.length >= most) return found
      found.push(key)
    }
  }
  return found
}
