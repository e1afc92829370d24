/**
 * Bounds log lines that may come in floods: so many of each kind in a minute, the rest are counted.
 */

/** Lines are counted together for so long. */
export const windowMs = 60_000

export class LineBudget {
  private readonly counts = new Map<string, number>()

  /** `most`: lines of one kind in a window. */
  constructor(private readonly most: number) {}

  /** Whether nothing was to be written in this window. */
  get isIdle(): boolean {
    return this.counts.size === 0
  }

  /** Counts a line; whether it may be written. */
  take(kind: string): boolean {
    const count = (this.counts.get(kind) ?? 0) + 1
    this.counts.set(kind, count)
    return count <= this.most
  }

  /** Ends the window: how many were not written, by kind. */
  end(): ReadonlyArray<readonly [kind: string, count: number]> {
    const leftOut = [...this.counts].flatMap(([kind, count]) =>
      count > this.most ? [[kind, count - this.most] as const] : []
    )
    this.counts.clear()
    return leftOut
  }
}
