/**
 * Steps of the scheduler's log (D44): changes at consecutive positions that views show at once or not at all.
 *
 * A delivery ends wherever a request is full, so the first part of a step waits here for the rest of it.
 */
import type { Change } from "./change.ts"
import type { Applied } from "./sequence.ts"

/** Changes as far as they have come: those whose step is whole, in order, and those behind them. */
interface Gathered {
  readonly ready: ReadonlyArray<Change>
  readonly unfinished: ReadonlyArray<Change>
}

const nothing: ReadonlyArray<Change> = []

const continues = (change: Change | undefined): boolean => change?.position?.continues === true

/**
 * Adds the changes of a delivery to those that wait. A step of more than `most` changes is not waited for: it is shown
 * in parts, because memory has an end.
 */
export const gather = (unfinished: ReadonlyArray<Change>, come: ReadonlyArray<Change>, most: number): Gathered => {
  if (come.length === 0) return { ready: come, unfinished }
  if (unfinished.length === 0 && !continues(come[come.length - 1])) return { ready: come, unfinished }
  const all = unfinished.length === 0 ? come : [...unfinished, ...come]
  let end = all.length
  while (end > 0 && continues(all[end - 1])) end--
  return all.length - end > most
    ? { ready: all, unfinished: nothing }
    : { ready: all.slice(0, end), unfinished: all.slice(end) }
}

/** Where the changes of the step that begins here end: the index behind its last. */
export const endOfStep = (changes: ReadonlyArray<Change>, from: number): number => {
  let last = from
  while (continues(changes[last]) && last + 1 < changes.length) last++
  return last + 1
}

/** The position that is applied when everything received is, but for an unfinished step. */
export const appliedOf = <P extends Applied>(received: P, unfinished: ReadonlyArray<Change>): P => {
  const first = unfinished[0]?.position
  return first === undefined ? received : { ...received, seq: first.seq - 1 }
}
