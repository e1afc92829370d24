/** Caches a function's results by argument; the cache is emptied when it reaches a number of entries. */
export const memoize = <K, A extends object | string | boolean>(
  answer: (asked: K) => A,
  most = Infinity
): ((asked: K) => A) => {
  const kept = new Map<K, A>()
  return (asked) => {
    const found = kept.get(asked)
    if (found !== undefined) return found
    const made = answer(asked)
    if (kept.size >= most) kept.clear()
    kept.set(asked, made)
    return made
  }
}
