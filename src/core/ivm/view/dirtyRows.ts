/**
 * The rows that a step has to evaluate again, each once.
 *
 * Why not a map from the start: nearly every step has one or two such rows, and this runs for every change.
 */
import { append } from "../../multimap.ts"
import { edgeReads } from "../store/edgeIndex.ts"
import type { Write } from "../store/recordSlot.ts"
import type { Store } from "../store/store.ts"
import {
  type Dependencies,
  type DirtyRowSink,
  type Reader,
  type ReaderRow,
  type Readers,
  type ReadResult,
  rereadAll
} from "./dependencies.ts"
import type { ResultView } from "./resultView.ts"
import { tableRead } from "./source.ts"

/** A row to evaluate again. */
interface Reread {
  readonly view: ResultView
  readonly row: ReaderRow
  /** The only child result that changed; undefined if more changed, so that the row has to be evaluated. */
  cause: ReadResult | undefined
}

const few = 16
const none: ReadonlyArray<Reread> = []

export class DirtyRows implements DirtyRowSink {
  private all: Array<Reread> | undefined = undefined
  private byRow: Map<ResultView, Map<ReaderRow, Reread>> | undefined = undefined

  /** `result`: the result of a subquery that the row has read and that changed, if that is the cause. */
  add(reader: Reader, row: ReaderRow, result: ReadResult | undefined): void {
    const view = reader as ResultView
    const cause = view.plainShape.onlyShows ? result : undefined
    const known = this.find(view, row)
    if (known !== undefined) {
      if (known.cause !== cause) known.cause = undefined
      return
    }
    const reread: Reread = { view, row, cause }
    const all = (this.all = append(this.all, reread))
    if (this.byRow !== undefined) this.file(this.byRow, reread)
    else if (all.length > few) {
      this.byRow = new Map()
      for (const other of all) this.file(this.byRow, other)
    }
  }

  /** Adds the rows that have read something a write changes. */
  collect({ after, before, id }: Write, dependencies: Dependencies, store: Store): void {
    const collect = (named: Readers | undefined): void => void (named && rereadAll(named, this, undefined))
    collect(dependencies.of(id.text))
    collect(dependencies.of(tableRead(id.table)))
    if (store.hasEdges) for (const read of edgeReads(id, before, after)) collect(dependencies.of(read))
  }

  /** Forgets all rows. */
  clear(): void {
    this.all = this.byRow = undefined
  }

  /** Evaluates the rows of the views of one stratum again. */
  run(stratum: number): void {
    const all = this.all ?? none
    for (let i = 0; i < all.length; i++)
      if (all[i]!.view.stratum === stratum) all[i]!.view.reread(all[i]!.row, all[i]!.cause)
  }

  private find(view: ResultView, row: ReaderRow): Reread | undefined {
    if (this.byRow !== undefined) return this.byRow.get(view)?.get(row)
    const all = this.all ?? none
    for (let i = 0; i < all.length; i++) if (all[i]!.row === row && all[i]!.view === view) return all[i]
    return undefined
  }

  private file(byRow: Map<ResultView, Map<ReaderRow, Reread>>, reread: Reread): void {
    const rows = byRow.get(reread.view)
    if (rows === undefined) byRow.set(reread.view, new Map([[reread.row, reread]]))
    else rows.set(reread.row, reread)
  }
}
