/**
 * What a step changed in one view's result (law L2): collected while the step runs, netted when it ends.
 *
 * Formula: per record, (first `before` seen, last `after` seen); equal ends cancel. So a row that a window drops and
 * takes back within one step is not announced, and nothing is announced twice. Cost: O(1) per row that moved.
 */

/** A row as a result shows it: the record, its version, and a digest of other shown content. */
export interface Shown {
  readonly key: string
  readonly version: number
  readonly digest: string | undefined
}

/** `[row key, version]`, as on the wire. */
export type Entry = readonly [key: string, version: number]

export interface Delta {
  readonly additions: ReadonlyArray<Entry>
  readonly updates: ReadonlyArray<Entry>
  readonly removals: ReadonlyArray<string>
}

export class DeltaBuilder {
  private readonly moves = new Map<string, { readonly before: Shown | undefined; after: Shown | undefined }>()

  entered(row: Shown): void {
    const move = this.moves.get(row.key)
    if (move === undefined) this.moves.set(row.key, { before: undefined, after: row })
    else move.after = row
  }

  left(row: Shown): void {
    const move = this.moves.get(row.key)
    if (move === undefined) this.moves.set(row.key, { before: row, after: undefined })
    else move.after = undefined
  }

  /** The net effect, or undefined when there is none. */
  finish(): Delta | undefined {
    const additions: Array<Entry> = []
    const updates: Array<Entry> = []
    const removals: Array<string> = []
    for (const [key, { before, after }] of this.moves) {
      if (before === undefined) {
        if (after !== undefined) additions.push([key, after.version])
      } else if (after === undefined) removals.push(key)
      else if (after.version !== before.version || after.digest !== before.digest) updates.push([key, after.version])
    }
    return additions.length + updates.length + removals.length === 0 ? undefined : { additions, updates, removals }
  }
}
