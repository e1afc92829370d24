/**
 * The client's copy of one view: its rows, and the position in the stream that they are at.
 *
 * The shown array is made on demand, and only after a change. That makes applying a delta cheap and hides half-applied
 * deltas: if a delta does not fit, the last shown array, which is a state that the server had, stays until the next
 * snapshot.
 */
import { applyDelta, type Delta, Misfit } from "./delta.ts"
import { RowList } from "./rowList.ts"
import { sameItems, shareByKey } from "./share.ts"

/** A row that the service left out of the result: its record id, and the reason of the failure. */
export interface RowError {
  readonly id: string
  readonly reason: string
}

interface Snapshot {
  readonly part: number
  readonly parts: number
  readonly rows: ReadonlyArray<unknown>
  readonly only?: boolean
  readonly errors?: ReadonlyArray<RowError>
  readonly warnings?: ReadonlyArray<string>
}

const none: ReadonlyArray<never> = []

/** Rows of one view, built from its snapshots and deltas. */
export class ViewRows {
  /** The rows; undefined before the first snapshot, and after a message that did not fit. */
  #list: RowList | undefined
  #shown: ReadonlyArray<unknown> = none
  #isChanged = false
  /** Parts of an incomplete snapshot. */
  #parts: Array<ReadonlyArray<unknown>> = []
  /**
   * Id of the last event applied, `<incarnation>.<n>`, from which a stream resumes; undefined if a snapshot is needed.
   */
  after: string | undefined
  /** Whether the view selects FROM ONLY: its result is at most one row instead of a list. */
  only = false
  errors: ReadonlyArray<RowError> = none
  warnings: ReadonlyArray<string> = none
  /** Whether a state was ever complete. */
  hasShown = false

  get rows(): ReadonlyArray<unknown> {
    if (this.#isChanged && this.#list !== undefined) {
      this.#shown = this.#list.toArray()
      this.#isChanged = false
    }
    return this.#shown
  }

  /**
   * Adds one part of a snapshot; returns whether it was the last, so that a new state is complete. Throws {@link
   * Misfit}.
   */
  snapshot(data: Snapshot, id: string | undefined): boolean {
    const { part, parts, rows } = data
    if (!Array.isArray(rows) || part !== this.#parts.length || !(part < parts)) {
      if (part !== 0 || !Array.isArray(rows))
        throw new Misfit(`part ${part} of ${parts} of a snapshot comes after ${this.#parts.length} parts`)
      this.#parts = []
    }
    this.#parts.push(rows)
    if (part + 1 < parts) return false
    const before = this.rows
    const fresh = shareByKey(before, this.#parts.length === 1 ? rows : this.#parts.flat(1))
    this.#parts = []
    if (!sameItems(before, fresh)) this.#shown = fresh
    this.#list = new RowList(fresh)
    this.#isChanged = false
    this.after = id
    this.only = data.only === true
    this.errors = data.errors ?? none
    this.warnings = data.warnings ?? none
    this.hasShown = true
    return true
  }

  /** Applies a delta. Throws {@link Misfit}. */
  delta(data: Delta & { readonly errors?: ReadonlyArray<RowError> }, id: string | undefined): void {
    if (this.#list === undefined) throw new Misfit("a delta comes before the snapshot")
    applyDelta(this.#list, data)
    const { insert, patch, remove, update } = data
    if (remove !== undefined || insert !== undefined || update !== undefined || patch !== undefined)
      this.#isChanged = true
    if (data.errors !== undefined) this.errors = data.errors
    if (id !== undefined) this.after = id
  }

  /** Drops the copy after a message that did not fit: the shown rows stay, and the next state is a snapshot. */
  spoil(): void {
    this.#list = undefined
    this.#isChanged = false
    this.after = undefined
    this.#parts = []
  }

  /** The stream broke off: drops the parts of an incomplete snapshot. */
  cut(): void {
    this.#parts = []
  }
}
