/**
 * Comparisons in loops of many thousand rounds: one that holds costs a comparison, one that does not is told by
 * `expect`, whose call alone costs as much as a whole round.
 */
import { expect } from "vitest"

/** As `expect(actual, what).toBe(wanted)`. */
export const same = <A>(actual: A, wanted: A, what?: string): void => {
  if (!Object.is(actual, wanted)) expect(actual, what).toBe(wanted)
}

/** As `expect([...actual], what).toEqual(wanted)`. */
export const sameList = <A>(actual: Iterable<A>, wanted: ReadonlyArray<A>, what?: string): void => {
  const list = [...actual]
  if (list.length !== wanted.length || list.some((item, i) => !Object.is(item, wanted[i])))
    expect(list, what).toEqual(wanted)
}
