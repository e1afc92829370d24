/** Ceilings of the pauses after failures: the ceiling doubles with every failure in a row, up to a cap. */

export interface Backoff {
  /** Ceiling of the pause after `failures` 0. */
  readonly baseMs: number
  /** Highest ceiling. */
  readonly capMs: number
}

/** The longest pause after `failures` failures in a row; the pause itself is drawn evenly below it ("full jitter"). */
export const ceilingMs = ({ baseMs, capMs }: Backoff, failures: number): number =>
  Math.min(capMs, baseMs * 2 ** Math.min(failures, 16))
