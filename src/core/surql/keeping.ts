/** A function that keeps its answers by what it was asked; all are forgotten once there are so many. */
export const keeping = <K, A extends object | string | boolean>(
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
