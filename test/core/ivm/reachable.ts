/**
 * Every object that can be reached from one, counted by its class: what is held, whatever holds it and whether anybody
 * counts it.
 *
 * Not seen: what closures, paused generators and weak maps hold; the tests that go by the heap see that.
 */

const count = (value: unknown, seen: Set<object>, counts: Map<string, number>): void => {
  const waiting: Array<unknown> = [value]
  for (let next = waiting.pop(); waiting.length > 0 || next !== undefined; next = waiting.pop()) {
    if (typeof next !== "object" || next === null || seen.has(next)) continue
    seen.add(next)
    const name = (next.constructor as { readonly name: string } | undefined)?.name ?? "none"
    counts.set(name, (counts.get(name) ?? 0) + 1)
    if (next instanceof Map) for (const [key, held] of next) waiting.push(key, held)
    else if (next instanceof Set) for (const held of next) waiting.push(held)
    for (const held of Object.values(next)) if (typeof held === "object" && held !== null) waiting.push(held)
  }
}

export const reachable = (from: object): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  count(from, new Set(), counts)
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}
