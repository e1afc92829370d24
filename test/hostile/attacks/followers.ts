/**
 * Followers of a view that read nothing, or stop reading.
 *
 * `followers.test.ts` counts what each costs the server.
 */

export interface Row {
  readonly what: string
  readonly followers: number
  /** Pieces of its stream that each takes before it stops; the first is a comment, the second the snapshot. */
  readonly takes: number
  /** Batches of changes that come, of so many each, of so many characters. */
  readonly batches: number
  readonly changes: number
  readonly size: number
}

export const rows: ReadonlyArray<Row> = [
  { what: "40 that take one batch and no more", followers: 40, takes: 3, batches: 10, changes: 500, size: 10 },
  { what: "300 that take the snapshot and no more", followers: 300, takes: 2, batches: 10, changes: 500, size: 10 },
  { what: "300 that take nothing", followers: 300, takes: 1, batches: 10, changes: 500, size: 10 },
  { what: "40 of large changes", followers: 40, takes: 3, batches: 10, changes: 50, size: 100_000 },
  { what: "one that reads a little of each", followers: 1, takes: 6, batches: 40, changes: 50, size: 10 }
]
