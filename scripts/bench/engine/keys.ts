/** The key of a record as the database makes it by itself: twenty characters. */
export const databaseKey = (n: number): string => {
  let key = "",
    state = n + 1
  for (let i = 0; i < 20; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    key += "abcdefghijklmnopqrstuvwxyz0123456789"[(state >>> 8) % (i === 0 ? 26 : 36)]
  }
  return key
}
