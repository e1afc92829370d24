/**
 * The edges of one view (D21): those its result needs, and the changes of each delta.
 *
 * Why not the delta itself: a record may occur several times at one place (SPLIT, or a child under one parent by two
 * paths), with a single edge for all. Formula: an edge exists while its count of occurrences is above 0. State: that
 * count by edge, kept only for views where it can differ from 1. Cost: O(1) per entry of a delta.
 */
import { type ChildEntry, type Delta, pathOf } from "../ivm/delta/delta.ts"
import type { View } from "../ivm/view/view.ts"
import * as Ids from "../surql/values/recordId.ts"

/** The wanted state of one edge; ids as text, since most are superseded before they are parsed. */
export interface EdgeOp {
  /** Alias path of a subquery; empty for the main rows, whose parent is empty too. */
  readonly path: string
  readonly parent: string
  readonly out: string
  /** Undefined: delete the edge. */
  readonly version: number | undefined
}

/**
 * Name of the edge within its view. Unambiguous: a record id never begins with a space, and parts are written with
 * their lengths.
 */
export const nameOf = ({ out, parent, path }: Pick<EdgeOp, "path" | "parent" | "out">): string =>
  path === "" ? out : ` ${path.length} ${parent.length} ${path}${parent}${out}`

/** Whether a row's key is a record id; keys of groups and plain values are encodings that look like no record id. */
const isRecord = (key: string): boolean => {
  const first = key[0]
  return first !== "[" && first !== "{" && first !== '"' && key.includes(":")
}

/** The record that a row shows: the key of a SPLIT piece has a number after the id. */
const recordOf = (key: string): string =>
  key.includes("#") && Ids.parse(key) === undefined ? key.slice(0, key.lastIndexOf("#")) : key

type Rows = Pick<View, "childEntries" | "repeats" | "rows">

export class ViewEdgeState {
  private readonly counts: Map<string, number> | undefined

  constructor(private readonly instance: Rows) {
    this.counts = instance.repeats ? new Map() : undefined
  }

  /** Every edge that the result needs now; {@link changes} continues from here. */
  all(): ReadonlyArray<EdgeOp> {
    const { counts, instance } = this
    const ops: Array<EdgeOp> = []
    counts?.clear()
    for (const { key, version } of instance.rows()) {
      if (!isRecord(key)) continue
      if (counts === undefined) ops.push({ path: "", parent: "", out: key, version })
      else this.came(ops, mainRow(recordOf(key), version))
    }
    if (counts !== undefined)
      for (const entry of instance.childEntries()) if (isChild(entry)) this.came(ops, childRow(entry))
    return ops
  }

  /** Edge operations of a delta, in its order. */
  changes({ additions, removals, subqueries, updates }: Delta): ReadonlyArray<EdgeOp> {
    const ops: Array<EdgeOp> = []
    if (this.counts === undefined) {
      for (const key of removals) if (isRecord(key)) ops.push(mainRow(key, undefined))
      for (const [key, version] of additions) if (isRecord(key)) ops.push(mainRow(key, version))
      for (const [key, version] of updates) if (isRecord(key)) ops.push(mainRow(key, version))
      return ops
    }
    for (const [key, version] of additions) if (isRecord(key)) this.came(ops, mainRow(recordOf(key), version))
    for (const [key, version] of updates) if (isRecord(key)) ops.push(mainRow(recordOf(key), version))
    for (const key of removals) if (isRecord(key)) this.went(ops, mainRow(recordOf(key), undefined))
    for (const entry of subqueries) {
      if (!isChild(entry)) continue
      if (entry.op === "add") this.came(ops, childRow(entry))
      else if (entry.op === "update") ops.push(childRow(entry))
      else this.went(ops, childRow(entry))
    }
    return ops
  }

  private came(ops: Array<EdgeOp>, op: EdgeOp): void {
    const name = nameOf(op)
    this.counts!.set(name, (this.counts!.get(name) ?? 0) + 1)
    ops.push(op)
  }

  private went(ops: Array<EdgeOp>, op: EdgeOp): void {
    const name = nameOf(op)
    const count = (this.counts!.get(name) ?? 0) - 1
    if (count > 0) return void this.counts!.set(name, count)
    this.counts!.delete(name)
    ops.push({ ...op, version: undefined })
  }
}

const mainRow = (out: string, version: number | undefined): EdgeOp => ({ path: "", parent: "", out, version })

/** A row of a subquery has an edge only if it and the row above it are records. */
const isChild = ({ id, parent }: ChildEntry): boolean => isRecord(id) && isRecord(parent)

const childRow = (entry: ChildEntry): EdgeOp => ({
  path: pathOf(entry),
  parent: recordOf(entry.parent),
  out: recordOf(entry.id),
  version: entry.version
})

/**
 * Operations that turn the present edges (versions by name) into the wanted ones. `everything`: also rewrites edges
 * that are right.
 */
export const difference = (
  wanted: ReadonlyArray<EdgeOp>,
  there: ReadonlyMap<string, { readonly op: EdgeOp }>,
  everything: boolean
): ReadonlyArray<EdgeOp> => {
  const last = new Map(wanted.map((op) => [nameOf(op), op]))
  const ops: Array<EdgeOp> = []
  for (const [name, { op }] of there) if (!last.has(name)) ops.push({ ...op, version: undefined })
  for (const [name, op] of last) if (everything || there.get(name)?.op.version !== op.version) ops.push(op)
  return ops
}
