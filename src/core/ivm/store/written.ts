/**
 * The writes of the current step: the state of each record before it.
 *
 * Nearly every step writes one record; a map is used only for more.
 */
import type { Obj } from "../../surql/values/value.ts"
import type { RecordSlot, Write } from "./recordSlot.ts"

const few = 8
const none: ReadonlyArray<Write> = []

export class StepWrites {
  /** One for each record; empty between steps. */
  all: ReadonlyArray<Write> = none
  private bySlot: Map<RecordSlot, Write> | undefined = undefined

  clear(): void {
    this.all = none
    this.bySlot = undefined
  }

  /** State of a record before the step; the current one if the step does not write it. */
  before(slot: RecordSlot): Obj | undefined {
    const write = this.of(slot)
    return write === undefined ? slot.doc : write.before
  }

  private of(slot: RecordSlot): Write | undefined {
    const { all } = this
    if (all.length <= few) return all.find((write) => write.slot === slot)
    this.bySlot ??= new Map(all.map((write) => [write.slot, write]))
    return this.bySlot.get(slot)
  }
}
