/**
 * Which view is being evaluated, written where another thread can read it.
 *
 * Why: a query that hangs or kills this thread cannot be named by it any more. A note costs two writes into a typed
 * array and nothing is made; its reader tells one evaluation from the next by the count (`core/view/watch.ts`).
 * What an evaluation causes on the way, as the rows of a subquery that is filled in the middle of it, is part of it.
 */
import { cellCount, cells, noSlot } from "../view/watch.ts"

export class Evaluating {
  /** Takes back a slot that nothing is evaluated under any more. */
  readonly close: (slot: number) => void
  private readonly memory: Int32Array
  /** An evaluation is under way that all others are part of. */
  private isWhole = false

  /** `memory`: at least {@link cellCount} cells. */
  constructor(memory: Int32Array = new Int32Array(cellCount), close: (slot: number) => void = () => {}) {
    this.close = close
    this.memory = memory
  }

  /** One evaluation begins, for the view that has this slot; the one before has ended. */
  begin(slot: number): void {
    if (this.isWhole) return
    this.memory[cells.slot] = slot
    this.memory[cells.evaluation]!++
  }

  /** Nothing is evaluated any more. */
  end(): void {
    if (!this.isWhole) this.memory[cells.slot] = noSlot
  }

  /** Of what is evaluated now. */
  get slot(): number {
    return this.memory[cells.slot]!
  }

  /**
   * Runs `work` as one evaluation, with all that it evaluates on the way; goes on with the one it is in the middle of.
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
