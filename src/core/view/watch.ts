/**
 * A watchdog's conclusions from looks at another thread: which evaluation is slow, which turn of the event loop is too
 * long.
 *
 * The watched thread only writes numbers into shared memory: a beat at each turn of its timer, the slot of the view it
 * evaluates, and a count of evaluations. It reads no clock, so a change costs two writes. The watchdog measures time,
 * and counts only time in which the process computed: between two looks, the smaller of elapsed time and CPU time. A
 * suspended machine, a stopped process and one in a debugger use no CPU; a process that gets little CPU is judged
 * later, never earlier.
 */

/** Cells that the watched thread writes, in an `Int32Array`. */
export const cells = {
  /** Grows with each beat. */
  beat: 0,
  /** Grows with each evaluation. */
  evaluation: 1,
  /** Slot of the view under evaluation; {@link noSlot} between evaluations. */
  slot: 2
} as const

export const cellCount = 4

/** Slot while no view, or one without a slot, is evaluated. */
export const noSlot = 0

/** The numbers that one look reads. */
export interface Look {
  readonly beat: number
  readonly evaluation: number
  readonly slot: number
  /** Milliseconds since the look before. */
  readonly wentByMs: number
  /** CPU time of the whole process in that time, milliseconds. */
  readonly cpuMs: number
}

/** Limits in milliseconds; 0: no limit. */
export interface Bounds {
  readonly slowMs: number
  readonly maxTurnMs: number
}

export type Finding =
  /** An evaluation takes longer than `slowMs`; reported once. */
  | { readonly kind: "slow"; readonly slot: number; readonly computedMs: number }
  /** The slow evaluation has ended. */
  | { readonly kind: "ended" }
  /** The turn takes longer than `maxTurnMs`. `slot`: of the view under evaluation. */
  | { readonly kind: "tooLong"; readonly slot: number; readonly computedMs: number }

/** State of the last look; one per watched thread. */
export class Watch {
  private beat = -1
  private evaluation = -1
  private turnMs = 0
  private evaluationMs = 0
  private isSlow = false

  constructor(private readonly bounds: Bounds) {}

  look(seen: Look): ReadonlyArray<Finding> {
    const { maxTurnMs, slowMs } = this.bounds
    const findings: Array<Finding> = []
    const computedMs = Math.min(seen.wentByMs, seen.cpuMs)
    const sameTurn = seen.beat === this.beat
    // No evaluation lasts beyond a turn: a slot that is still set then is stale.
    const same = sameTurn && seen.slot !== noSlot && seen.evaluation === this.evaluation
    if (this.isSlow && !same) {
      this.isSlow = false
      findings.push({ kind: "ended" })
    }
    this.turnMs = sameTurn ? this.turnMs + computedMs : 0
    this.evaluationMs = same ? this.evaluationMs + computedMs : 0
    this.beat = seen.beat
    this.evaluation = seen.evaluation
    if (slowMs > 0 && !this.isSlow && same && this.evaluationMs > slowMs) {
      this.isSlow = true
      findings.push({ kind: "slow", slot: seen.slot, computedMs: this.evaluationMs })
    }
    if (maxTurnMs > 0 && this.turnMs > maxTurnMs)
      findings.push({ kind: "tooLong", slot: seen.slot, computedMs: this.turnMs })
    return findings
  }
}
