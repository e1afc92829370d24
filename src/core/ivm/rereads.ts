/**
 * The rows a step has to read again, each once.
 *
 * Why not a map: nearly every step reads a row or two again, and this runs for every change; only many are kept by map.
 */
import type { Maintained } from "./maintained.ts"
import type { ReaderRow, ReadResult } from "./readers.ts"

/** A row to read again. */
interface Reread {
  readonly instance: Maintained
  readonly row: ReaderRow
  /** The one result it shows that has changed; undefined where more has, so that the row has to be evaluated. */
  cause: ReadResult | undefined
}

const few = 8

export class Rereads {
  private readonly all: Array<Reread> = []
  private byRow: Map<Maintained, Map<ReaderRow, Reread>> | undefined = undefined

  /** `cause` as in {@link Reread}. */
  add(instance: Maintained, row: ReaderRow, cause: ReadResult | undefined): void {
    const known = this.find(instance, row)
    if (known !== undefined) {
      if (known.cause !== cause) known.cause = undefined
      return
    }
    const reread: Reread = { instance, row, cause }
    this.all.push(reread)
    if (this.byRow !== undefined) this.file(this.byRow, reread)
    else if (this.all.length > few) {
      this.byRow = new Map()
      for (const other of this.all) this.file(this.byRow, other)
    }
  }

  get some(): boolean {
    return this.all.length > 0
  }

  /** Reads again the rows of the instances of one rank. */
  run(rank: number): void {
    for (const { cause, instance, row } of this.all) if (instance.rank === rank) instance.reread(row, cause)
  }

  private find(instance: Maintained, row: ReaderRow): Reread | undefined {
    if (this.byRow !== undefined) return this.byRow.get(instance)?.get(row)
    for (const reread of this.all) if (reread.row === row && reread.instance === instance) return reread
    return undefined
  }

  private file(byRow: Map<Maintained, Map<ReaderRow, Reread>>, reread: Reread): void {
    const rows = byRow.get(reread.instance)
    if (rows === undefined) byRow.set(reread.instance, new Map([[reread.row, reread]]))
    else rows.set(reread.row, reread)
  }
}
