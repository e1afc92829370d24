/**
 * What a workload is and what a peer must do to run it.
 *
 * Why so neutral: every peer gets the same rows and the same changes in the plainest form there is, turns them into its
 * own input before the clock starts, and hands its results back in the plain form, so that one plain answer judges all.
 */

/** Inputs made before they are timed: so few that they are as much at hand as what a service has just read. */
export const inputsAtOnce = 20

/** A record of the bench: `id` is a number, a reference to another table holds the number of its record. */
export type Row = { readonly id: number; readonly [field: string]: number | string | boolean }

/** One record change. `before` is undefined for an insert, `after` for a delete. */
export interface Change {
  readonly table: string
  readonly before: Row | undefined
  readonly after: Row | undefined
}

export type WorkloadName = "W1" | "W2" | "W3" | "W4" | "W4b" | "W4c" | "W6" | "W7" | "W8" | "W9" | "W10"

/** A row of a result; nested results are arrays of rows. */
export type Answer = ReadonlyArray<{ readonly [field: string]: unknown }>

/** What tells the views of W8 to W10 apart. */
export interface Asked {
  /** Rows before the page of W8. */
  readonly start: number
  /** The page of W9 begins below this score. */
  readonly cursor: number
  /** The channels of W10. */
  readonly channels: ReadonlyArray<number>
}

export interface Workload {
  readonly name: WorkloadName
  readonly size: number
  /** Tables with the fields that refer to other tables; all other fields are plain. */
  readonly tables: {
    readonly [table: string]: { readonly refs: { readonly [field: string]: string }; readonly sample: Row }
  }
  readonly rows: { readonly [table: string]: ReadonlyArray<Row> }
  /** Views by number: in W1 and W7 view `k` asks for author `k`; W8 to W10 have many, the others have one view. */
  readonly views: number
  /** W8 to W10: what view `k` asks for. */
  readonly asks?: (view: number) => Asked
  readonly changes: ReadonlyArray<Change>
  /**
   * How many pages the change of this number moves a row on, where that is known. Where it is given, the median is of
   * those that move none.
   */
  readonly shifts?: (change: number) => number | "any"
  /** Whether the order of a result's rows is part of the answer. */
  readonly ordered: boolean
  /** The plain answer of every view over these rows. */
  readonly answer: (tables: { readonly [table: string]: ReadonlyMap<number, Row> }) => (view: number) => Answer
}

/** One peer running one workload. Everything may be asynchronous; what is not is not awaited. */
export interface Program<Input = unknown> {
  readonly load: () => void | Promise<void>
  /** Registers all views and brings their first results. */
  readonly register: () => void | Promise<void>
  /** The peer's own form of a change, made before the clock starts. */
  readonly prepare: (change: Change) => Input
  /** Timed: afterwards every result shows the change and the holders of the views have been told. */
  readonly apply: (input: Input) => void | Promise<void>
  /** Called once after the last change, before results are read. */
  readonly settle?: () => Promise<void>
  readonly result: (view: number) => Answer
  /** How the work is done, in a few words, for the table's notes. */
  readonly plan?: () => string
  readonly close?: () => void | Promise<void>
}

/** Undefined: this peer has no way to run this workload. */
export type Peer = (workload: Workload) => Program | undefined | Promise<Program | undefined>

/** What one round measured of a change. */
export type RoundFigures = Pick<Figures, "median" | "p99" | "mean">

/** What a cell reports. Times in microseconds, sizes in bytes. */
export interface Figures {
  readonly kind: "figures"
  readonly loadMs: number
  readonly registerMs: number
  readonly bytesPerRow: number
  readonly bytesPerView: number
  readonly changes: number
  /** Of all changes, or of those that shift nothing where the workload knows them. */
  readonly median: number
  /** Those of each round, in the order in which they ran. */
  readonly rounds?: ReadonlyArray<RoundFigures>
  readonly p99: number
  readonly mean: number
  /** What the changes that shift a known number of pages take for each of these, collecting garbage included. */
  readonly perShiftedPage?: number
  readonly correct: boolean
  /** The first view whose answer is wrong, if any. */
  readonly wrong: string | undefined
  readonly plan: string | undefined
}
