/**
 * Positions in the scheduler's log (D5): which changes of a delivery are new, which are known, and which are missing.
 *
 * Pure, because it decides whether a change is applied: a position at or below the last applied one is dropped, the
 * next one is taken, a later one is a gap, and nothing of a delivery with a gap or an old epoch is applied.
 */
import { Either } from "effect"
import type { Change } from "./change.ts"

/** The position last applied; nulls until the first change that carries one. */
export interface Applied {
  readonly seq: number | null
  readonly logId: string | null
  readonly epoch: number | null
}

export type Rejected =
  /** `expected`: the first position not applied; a replay from there misses nothing. */
  | { readonly kind: "gap"; readonly expected: number; readonly got: number; readonly behind: number }
  /**
   * `otherLog`: the change is from another log than the one this SSP bootstrapped from, not from an earlier start of
   * the same.
   */
  | { readonly kind: "stale"; readonly reason: string; readonly otherLog: boolean }

interface Admitted<P extends Applied> {
  readonly changes: ReadonlyArray<Change>
  readonly position: P
}

/** The position after the last applied one; before that, the position of the first change that has one. */
const firstMissing = ({ seq }: Applied, changes: ReadonlyArray<Change>): number | undefined =>
  seq === null ? changes.find((change) => change.position !== undefined)?.position?.seq : seq + 1

/** The changes to apply, and the position after them. A change without a position is always applied. */
export const admit = <P extends Applied>(
  position: P,
  changes: ReadonlyArray<Change>
): Either.Either<Admitted<P>, Rejected> => {
  if (changes.every((change) => change.position === undefined)) return Either.right({ changes, position })
  const fresh: Array<Change> = []
  let at = position
  for (const change of changes) {
    const next = change.position
    if (next === undefined) {
      fresh.push(change)
      continue
    }
    if (at.logId !== null && next.logId !== undefined && next.logId !== at.logId) {
      return Either.left({
        kind: "stale",
        reason: `log_id ${next.logId} is not the log this SSP follows (${at.logId})`,
        otherLog: true
      })
    }
    if (at.epoch !== null && next.epoch !== undefined && next.epoch < at.epoch) {
      return Either.left({
        kind: "stale",
        reason: `epoch ${next.epoch} is older than ${at.epoch}, which this SSP has already seen`,
        otherLog: false
      })
    }
    if (at.seq !== null && next.seq > at.seq + 1)
      return Either.left({
        kind: "gap",
        expected: firstMissing(position, changes) ?? at.seq + 1,
        got: next.seq,
        behind: at.seq
      })
    const known = at.seq !== null && next.seq <= at.seq
    at = { ...at, seq: known ? at.seq : next.seq, logId: next.logId ?? at.logId, epoch: next.epoch ?? at.epoch }
    if (!known) fresh.push(change)
  }
  return Either.right({ changes: fresh, position: at })
}
