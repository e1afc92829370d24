/**
 * Steps of the scheduler's log (D44): changes at consecutive positions that views show at once or not at all.
 *
 * A delivery ends wherever a request is full, so the first part of a step waits here for the rest.
 */
import type { Change } from "./change.ts"
import type { Applied } from "./sequence.ts"

/** Received changes: those of complete steps, in order, and those of the unfinished one. */
interface Gathered {
  readonly ready: ReadonlyArray<Change>
  readonly unfinished: ReadonlyArray<Change>
}

const nothing: ReadonlyArray<Change> = []

const continues = (change: Change | undefined): boolean => change?.position?.continues === true

/**
 * Adds the changes of a delivery to the waiting ones. A step of more than `most` changes is shown in parts, because
 * memory is bounded.
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

/** Index after the last change of the step that begins at `from`. */
export const endOfStep = (changes: ReadonlyArray<Change>, from: number): number => {
  let last = from
  while (continues(changes[last]) && last + 1 < changes.length) last++
  return last + 1
}

/** The position applied once all complete steps are. */
export const appliedOf = <P extends Applied>(received: P, unfinished: ReadonlyArray<Change>): P => {
  const first = unfinished[0]?.position
  return first === undefined ? received : { ...received, seq: first.seq - 1 }
}
