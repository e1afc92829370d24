/**
 * The rows a step has to read again, each once.
 *
 * Why not a map: nearly every step reads a row or two again, and this runs for every change; only many are kept by map.
 */
import type { Maintained } from "./maintained.ts"

/** A row to read again; not `whole` where only its children have changed. */
export interface Reread {
  readonly instance: Maintained
  readonly row: string
  whole: boolean
}

const few = 8

export class Rereads {
  private readonly all: Array<Reread> = []
  private byRow: Map<Maintained, Map<string, Reread>> | undefined = undefined

  add(instance: Maintained, row: string, whole: boolean): void {
    const known = this.find(instance, row)
    if (known !== undefined) {
      known.whole ||= whole
      return
    }
    const reread: Reread = { instance, row, whole }
    this.all.push(reread)
    if (this.byRow !== undefined) this.file(this.byRow, reread)
    else if (this.all.length > few) {
      this.byRow = new Map()
      for (const other of this.all) this.file(this.byRow, other)
    }
  }

  /** Reads again the rows of the instances of one rank. */
  run(rank: number): void {
    for (const { instance, row, whole } of this.all) if (instance.rank === rank) instance.reread(row, whole)
  }

  private find(instance: Maintained, row: string): Reread | undefined {
    if (this.byRow !== undefined) return this.byRow.get(instance)?.get(row)
    for (const reread of this.all) if (reread.row === row && reread.instance === instance) return reread
    return undefined
  }

  private file(byRow: Map<Maintained, Map<string, Reread>>, reread: Reread): void {
    const rows = byRow.get(reread.instance)
    if (rows === undefined) byRow.set(reread.instance, new Map([[reread.row, reread]]))
    else rows.set(reread.row, reread)
  }
}
