/**
 * Merkle trees of this SSP's records (D41), read between two batches of the committer, so that hashes belong to a
 * position.
 *
 * Built on first use: an SSP that is not compared pays nothing. They take memory beside the records, so they are
 * refused while the heap has no room for them, before and during the build.
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
import { heapFull } from "./viewLimits.ts"

export interface RecordTreesShape {
  /**
   * Brings the trees of these tables up to date in slices, then calls `look` while no change is applied. `seq`:
   * position of the trees in the scheduler's log.
   */
  readonly read: <A>(
    tables: ReadonlyArray<string>,
    look: (trees: StoreTrees, seq: number | null) => A
  ) => Effect.Effect<A, Overloaded>
  /** A number that changes with every change of the table. */
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
      // The slicer closes when the process stops.
      Effect.catchTag("Closed", () => Effect.interrupt),
      Effect.zipRight(this.committer.alone(Effect.sync(() => look(this.all, this.committer.position.seq))))
    )

  private *refresh(table: string): Slices<Effect.Effect<void, Overloaded>> {
    const { all, heap } = this,
      coming = all.bytesToCome(table)
    if (coming > 0 && !isHoldable(heap.measured(), coming)) return Effect.fail(heapFull(heap.memory()))
    for (const _pause of all.refresh(table)) {
      yield
      if (coming === 0 || !heap.memory().isFull) continue
      all.drop(table)
      heap.released()
      return Effect.fail(heapFull(heap.memory()))
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
