/**
 * Which view is being evaluated, written where another thread can read it.
 *
 * Why: a query that hangs or kills this thread cannot be named by it any more. A note costs two writes into a typed
 * array and allocates nothing; its reader tells one evaluation from the next by the count (`core/view/watch.ts`).
 * Nested evaluations, such as the fill of a subquery, belong to the outer one.
 */
import { cellCount, cells, noSlot } from "../view/watch.ts"

export class EvaluationNote {
  /** Frees a slot that no evaluation uses any more. */
  readonly close: (slot: number) => void
  private readonly memory: Int32Array
  /** An outer evaluation is under way; all others are part of it. */
  private isWhole = false

  /** `memory`: at least {@link cellCount} cells, readable by the watchdog's thread. */
  constructor(memory: Int32Array = new Int32Array(cellCount), close: (slot: number) => void = () => {}) {
    this.close = close
    this.memory = memory
  }

  /** Notes that an evaluation begins for the view with this slot; the one before has ended. */
  begin(slot: number): void {
    if (this.isWhole) return
    this.memory[cells.slot] = slot
    this.memory[cells.evaluation]!++
  }

  /** Notes that no evaluation is under way. */
  end(): void {
    if (!this.isWhole) this.memory[cells.slot] = noSlot
  }

  /** Slot of the view that is being evaluated. */
  get slot(): number {
    return this.memory[cells.slot]!
  }

  /**
   * Runs `work` as one evaluation, with all that it evaluates on the way, and then goes on with the outer evaluation,
   * if there was one.
   */
  during<A>(slot: number, work: () => A): A {
    if (this.isWhole) return work()
    const around = this.slot
    this.begin(slot)
    this.isWhole = true
    try {
      return work()
    } finally {
      this.isWhole = false
      this.memory[cells.slot] = around
    }
  }
}
