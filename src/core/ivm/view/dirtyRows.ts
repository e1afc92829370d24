/**
 * The rows a step has to read again, each once.
 *
 * Why not a map: nearly every step reads a row or two again, and this runs for every change; only many are kept by map.
 */
import { append } from "../../multimap.ts"
import { edgeReads } from "../store/edgeIndex.ts"
import type { Maintained } from "./incrementalView.ts"
import { type ReadByRows, type Reader, type ReaderRow, type Readers, type ReadResult, rereadAll, type RereadRows } from "./dependencies.ts"
import { tableRead } from "./source.ts"
import type { Store, Write } from "../store/store.ts"

/** A row to read again. */
interface Reread {
  readonly instance: Maintained
  readonly row: ReaderRow
  /** The one result it shows that has changed; undefined where more has, so that the row has to be evaluated. */
  cause: ReadResult | undefined
}

const few = 16
const none: ReadonlyArray<Reread> = []

export class Rereads implements RereadRows {
  private all: Array<Reread> | undefined = undefined
  private byRow: Map<Maintained, Map<ReaderRow, Reread>> | undefined = undefined

  /** `result`: what the row has read and has moved, if it is a result. */
  add(reader: Reader, row: ReaderRow, result: ReadResult | undefined): void {
    const instance = reader as Maintained
    const cause = instance.plainShape.onlyShows ? result : undefined
    const known = this.find(instance, row)
    if (known !== undefined) {
      if (known.cause !== cause) known.cause = undefined
      return
    }
    const reread: Reread = { instance, row, cause }
    const all = (this.all = append(this.all, reread))
    if (this.byRow !== undefined) this.file(this.byRow, reread)
    else if (all.length > few) {
      this.byRow = new Map()
      for (const other of all) this.file(this.byRow, other)
    }
  }

  /** The rows that have read something a write changes. */
  collect({ after, before, id }: Write, readers: Readers, store: Store): void {
    const collect = (named: ReadByRows | undefined): void => void (named && rereadAll(named, this, undefined))
    collect(readers.of(id.text))
    collect(readers.of(tableRead(id.table)))
    if (store.hasEdges) for (const read of edgeReads(id, before, after)) collect(readers.of(read))
  }

  /** Forgets them all. */
  clear(): void {
    this.all = this.byRow = undefined
  }

  /** Reads again the rows of the instances of one rank. */
  run(rank: number): void {
    const all = this.all ?? none
    for (let i = 0; i < all.length; i++) if (all[i]!.instance.rank === rank) all[i]!.instance.reread(all[i]!.row, all[i]!.cause)
  }

  private find(instance: Maintained, row: ReaderRow): Reread | undefined {
    if (this.byRow !== undefined) return this.byRow.get(instance)?.get(row)
    const all = this.all ?? none
    for (let i = 0; i < all.length; i++) if (all[i]!.row === row && all[i]!.instance === instance) return all[i]
    return undefined
  }

  private file(byRow: Map<Maintained, Map<ReaderRow, Reread>>, reread: Reread): void {
    const rows = byRow.get(reread.instance)
    if (rows === undefined) byRow.set(reread.instance, new Map([[reread.row, reread]]))
    else rows.set(reread.row, reread)
  }
}
