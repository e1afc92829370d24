/**
 * Levenshtein distance: how many insertions, deletions and replacements lead from one text to another.
 *
 * Two callers need the same measure: the query function of that name, and suggestions for misspelt names. Cost: the
 * product of the lengths. Elements are what the caller split the texts into.
 */
export const levenshtein = (a: ArrayLike<string>, b: ArrayLike<string>): number => {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    row = next
  }
  return row[b.length]!
}
