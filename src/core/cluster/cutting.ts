/**
 * How far a shared log may be cut: below what enough replicas have on their disks, and never below what a scheduler
 * still has to read.
 *
 * A cut that only the leader's replica covers would leave the only copy of a cluster's records on one disk.
 */

/** Another scheduler of the log. */
export interface Copy {
  /** Position through which its replica is applied, and through which that is on its disk. */
  readonly applied: number
  readonly synced: number
  /** It has told of itself lately; one that has not may have lost its disk, and may come back. */
  readonly isNear: boolean
}

/**
 * The position before which the log may be cut, `wanted` at most; 0: nowhere. `own`: through which the leader's replica
 * is on its disk. `copies`: replicas that must have it, the leader's among them.
 */
export const cutBefore = (wanted: number, own: number, others: ReadonlyArray<Copy>, copies: number): number => {
  const onDisk = [own, ...others.filter(({ isNear }) => isNear).map(({ synced }) => synced)].sort((a, b) => b - a)
  const durable = onDisk[copies - 1]
  return durable === undefined ? 0 : Math.min(wanted, durable + 1, ...others.map(({ applied }) => applied + 1))
}
