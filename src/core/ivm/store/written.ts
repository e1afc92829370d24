/**
 * The writes of the step that runs: which state a record had before it.
 *
 * Nearly every step writes one record; only the records of many are looked up by map.
 */
import type { Obj } from "../../surql/values/value.ts"
import type { RecordSlot, Write } from "./recordSlot.ts"

const few = 8
const none: ReadonlyArray<Write> = []

export class Written {
  /** One for each record; none between steps. */
  all: ReadonlyArray<Write> = none
  private bySlot: Map<RecordSlot, Write> | undefined = undefined

  clear(): void {
    this.all = none
    this.bySlot = undefined
  }

  /** The state before the step; that of now where the step does not write the record. */
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
