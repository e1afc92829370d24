/**
 * The Merkle trees of this SSP's records (D41), read between two batches of the committer: hashes and position belong
 * together.
 *
 * Made when they are first asked for: an SSP that is not compared pays nothing for them.
 */
import { Effect } from "effect"
import { StoreTrees } from "../../core/integrity/storeTrees.ts"
import type { Engine } from "../../core/ivm/engine.ts"
import type { Slicer } from "../../node/Slicer.ts"
import type { Committer } from "../views/committer.ts"

export interface RecordTreesShape {
  /**
   * Brings the trees of these tables up to date in slices, then looks at them while nothing is applied. `seq`: the
   * position in the scheduler's log they stand at.
   */
  readonly read: <A>(
    tables: ReadonlyArray<string>,
    look: (trees: StoreTrees, seq: number | null) => A
  ) => Effect.Effect<A>
  /** A number that is another one after every change of a table. */
  readonly stamp: (table: string) => number
}

export class RecordTrees implements RecordTreesShape {
  private trees: StoreTrees | undefined = undefined
  private readonly engine: Engine
  private readonly slicer: Slicer
  private readonly committer: Committer

  constructor({
    committer,
    engine,
    slicer
  }: { readonly committer: Committer; readonly engine: Engine; readonly slicer: Slicer }) {
    this.committer = committer
    this.engine = engine
    this.slicer = slicer
  }

  readonly read: RecordTreesShape["read"] = (tables, look) =>
    Effect.forEach(tables, (table) => this.slicer.run(() => this.all.refresh(table)), { discard: true }).pipe(
      // The slicer closes when the process is on its way down.
      Effect.catchAll(() => Effect.interrupt),
      Effect.zipRight(this.committer.alone(Effect.sync(() => look(this.all, this.committer.position.seq))))
    )

  stamp(table: string): number {
    return this.all.stamp(table)
  }

  private get all(): StoreTrees {
    return (this.trees ??= new StoreTrees(this.engine.store))
  }
}
