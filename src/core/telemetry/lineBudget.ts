/**
 * Bounds log lines that may come in floods: so many of each kind in a minute, the rest are counted.
 */

/** Length of the window in milliseconds. */
export const windowMs = 60_000

export class LineBudget {
  private readonly counts = new Map<string, number>()

  /** `most`: lines of one kind per window. */
  constructor(private readonly most: number) {}

  /** Whether no line was counted in this window. */
  get isIdle(): boolean {
    return this.counts.size === 0
  }

  /** Counts a line; answers whether it may be written. */
  take(kind: string): boolean {
    const count = (this.counts.get(kind) ?? 0) + 1
    this.counts.set(kind, count)
    return count <= this.most
  }

  /** Ends the window; answers the number of suppressed lines by kind. */
  end(): ReadonlyArray<readonly [kind: string, count: number]> {
    const leftOut = [...this.counts].flatMap(([kind, count]) =>
      count > this.most ? [[kind, count - this.most] as const] : []
    )
    this.counts.clear()
    return leftOut
  }
}
