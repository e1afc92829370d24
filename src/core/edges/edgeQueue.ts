/**
 * Edges that wait to be written: ordered per view, one operation per edge, handed out in batches (D21).
 *
 * Why one operation per edge: while the database is unreachable a busy record changes its edge a thousand times, and
 * only the last change matters. So the queue is bounded by the number of edges, not of changes. Views take turns, so
 * that a large one does not hold up the others. Cost: O(1) per operation; giving a batch back costs the batch and what
 * waits of its views.
 */
import { type EdgeOp, nameOf } from "./viewEdges.ts"

export interface Batch {
  readonly views: ReadonlyArray<{ readonly key: string; readonly ops: ReadonlyArray<EdgeOp> }>
  readonly size: number
}

export class EdgeQueue {
  /** Waiting operations by view, then by edge; the first view is next. */
  private readonly views = new Map<string, Map<string, EdgeOp>>()
  private flying: Map<string, ReadonlyArray<EdgeOp>> = new Map()
  private flyingSize = 0
  /** Number of waiting operations. */
  waiting = 0
  /** Number of operations added so far; equal readings mean that none was added in between. */
  arrived = 0

  /** Number of operations that wait or are in flight. */
  get size(): number {
    return this.waiting + this.flyingSize
  }

  add(key: string, op: EdgeOp): void {
    const name = nameOf(op)
    let ops = this.views.get(key)
    if (ops === undefined) this.views.set(key, (ops = new Map()))
    const before = ops.size
    ops.set(name, op)
    this.waiting += ops.size - before
    this.arrived++
  }

  /** Takes at most `limit` operations, which are in flight until {@link landed} or {@link back}. */
  take(limit: number): Batch {
    const views: Array<Batch["views"][number]> = []
    let size = 0
    for (const [key, ops] of this.views) {
      if (size >= limit) break
      this.views.delete(key)
      const taken: Array<EdgeOp> = []
      for (const [name, op] of ops) {
        if (size >= limit) break
        taken.push(op)
        ops.delete(name)
        size++
      }
      views.push({ key, ops: taken })
      if (ops.size > 0) this.views.set(key, ops)
    }
    this.waiting -= size
    this.flyingSize = size
    this.flying = new Map(views.map(({ key, ops }) => [key, ops]))
    return { views, size }
  }

  landed(): void {
    this.flying = new Map()
    this.flyingSize = 0
  }

  /** Puts the operations in flight back in front, except where a newer one for the same edge waits. */
  back(): void {
    for (const [key, ops] of this.flying) {
      const newer = this.views.get(key)
      const all = new Map(ops.map((op) => [nameOf(op), op]))
      for (const [name, op] of newer ?? []) all.set(name, op)
      this.waiting += all.size - (newer?.size ?? 0)
      if (all.size > 0) this.views.set(key, all)
    }
    this.landed()
  }

  /** Drops the operations of a view; those in flight do not come back. */
  drop(key: string): void {
    this.waiting -= this.views.get(key)?.size ?? 0
    this.views.delete(key)
    this.flying.delete(key)
  }
}
