/**
 * How far a shared log may be cut: enough copies must hold the cut records, and no scheduler may still have to read
 * them.
 *
 * A copy is a replica on a scheduler's disk, or a snapshot apart from those disks that has been read back. A cut that
 * only the leader's replica covers would leave the only copy of a cluster's records on one disk. If snapshots are kept
 * apart, no record is cut that the newest one lacks: that snapshot and the log survive the loss of all disks.
 */

/** Another scheduler of the log. */
export interface LogCopy {
  /** Position through which its replica is applied, and through which that is on its disk. */
  readonly applied: number
  readonly synced: number
  /** Whether the scheduler was heard of lately. A silent scheduler may have lost its disk, and may come back. */
  readonly isNear: boolean
}

interface Copies {
  /** Position through which the leader's replica is on its disk. */
  readonly own: number
  readonly others: ReadonlyArray<LogCopy>
  /** Position of the newest snapshot kept apart; 0: none is there yet; undefined: none are kept apart. */
  readonly snapshot: number | undefined
}

/**
 * The position before which the log may be cut, at most `wanted`; 0: nowhere. `copies`: how many copies of the cut
 * records must exist, the leader's replica among them.
 */
export const cutBefore = (wanted: number, { others, own, snapshot }: Copies, copies: number): number => {
  const apart = snapshot === undefined ? [] : [snapshot]
  const near = others.filter(({ isNear }) => isNear).map(({ synced }) => synced)
  const durable = [own, ...near, ...apart].sort((a, b) => b - a)[copies - 1]
  if (durable === undefined) return 0
  return Math.min(wanted, ...[durable, ...apart, ...others.map(({ applied }) => applied)].map((seq) => seq + 1))
}
