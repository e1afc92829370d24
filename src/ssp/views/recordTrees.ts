/**
 * The Merkle trees of this SSP's records (D41), read between two batches of the committer: hashes and position belong
 * together.
 *
 * Made when they are first asked for: an SSP that is not compared pays nothing for them. They stand beside the records,
 * so a heap that has no room for them refuses them, before they are made and while they are.
 */
import { Effect } from "effect"
import { StoreTrees } from "../../core/integrity/storeTrees.ts"
import type { Engine } from "../../core/ivm/engine.ts"
import { isHoldable } from "../../core/record/memory.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import type { Overloaded } from "../viewTypes.ts"
import type { Committer } from "./committer.ts"
import { fullHeap } from "./viewLimits.ts"

export interface RecordTreesShape {
  /**
   * Brings the trees of these tables up to date in slices, then looks at them while nothing is applied. `seq`: the
   * position in the scheduler's log they stand at.
   */
  readonly read: <A>(
    tables: ReadonlyArray<string>,
    look: (trees: StoreTrees, seq: number | null) => A
  ) => Effect.Effect<A, Overloaded>
  /** A number that is another one after every change of a table. */
  readonly stamp: (table: string) => number
}

export class RecordTrees implements RecordTreesShape {
  private trees: StoreTrees | undefined = undefined
  private readonly engine: Engine
  private readonly slicer: Slicer
  private readonly committer: Committer
  private readonly heap: HeapShape

  constructor({
    committer,
    engine,
    heap,
    slicer
  }: {
    readonly committer: Committer
    readonly engine: Engine
    readonly heap: HeapShape
    readonly slicer: Slicer
  }) {
    this.committer = committer
    this.engine = engine
    this.heap = heap
    this.slicer = slicer
  }

  readonly read: RecordTreesShape["read"] = (tables, look) =>
    Effect.forEach(tables, (table) => Effect.flatten(this.slicer.run(() => this.refresh(table))), {
      discard: true
    }).pipe(
      // The slicer closes when the process is on its way down.
      Effect.catchTag("Closed", () => Effect.interrupt),
      Effect.zipRight(this.committer.alone(Effect.sync(() => look(this.all, this.committer.position.seq))))
    )

  private *refresh(table: string): Slices<Effect.Effect<void, Overloaded>> {
    const { all, heap } = this,
      coming = all.bytesToCome(table)
    if (coming > 0 && !isHoldable(heap.measured(), coming)) return Effect.fail(fullHeap(heap.memory()))
    for (const _pause of all.refresh(table)) {
      yield
      if (coming === 0 || !heap.memory().isFull) continue
      all.drop(table)
      heap.released()
      return Effect.fail(fullHeap(heap.memory()))
    }
    return Effect.void
  }

  stamp(table: string): number {
    return this.all.stamp(table)
  }

  private get all(): StoreTrees {
    return (this.trees ??= new StoreTrees(this.engine.store))
  }
}
