/**
 * What the text of a query says about how far its views can be held against the laws.
 *
 * Apart from the runner because it is about queries and not about engines.
 */

/**
 * Rows that are not looked at are not listed when they fail: those that an index rules out, where a filter has a part
 * that can fail and others, and those that no page reaches (D42).
 */
export const mayMissFailing = (query: string): boolean =>
  / LIMIT /.test(query) ||
  (/ WHERE .*(AND|&&)/.test(query) &&
    / WHERE .*(n \+ 1|\(s\) |n \* m|math::sum\(tags|s \+ 'x'|array::len\(tags|1 \/ n)/.test(query))

/** Tables named by a FROM inside brackets; `$` where the row around says what is read. */
export const innerTables = (query: string): ReadonlyArray<string> =>
  [...query.matchAll(/ FROM (?:ONLY )?(\$|\w+)/g)].flatMap(({ 1: table, index }) =>
    query.slice(0, index).split("(").length > query.slice(0, index).split(")").length ? [table!] : []
  )

/** Rows placed by what a link leads to count as changed when that value changes, whether they move or not. */
export const placedByLink = (query: string): boolean =>
  /ORDER BY [^()]*\b(friend|author|links|a\d|x)\b/.test(query) || / AS (n|s)\b.* ORDER BY/.test(query)
