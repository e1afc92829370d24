/**
 * Which edge records touch a record, by direction and edge table: what a graph step looks up.
 *
 * Built when the first graph step asks and kept from then on; a service without graph queries never pays for it. An
 * edge is a record whose `in` and `out` are record ids, or text of that form (D1.3). Cost per change of an edge: O(log
 * d) in the number d of edges at that end.
 */
import sortedBTree from "sorted-btree"
import { compareRecords } from "../../surql/values/order.ts"
import * as Ids from "../../surql/values/recordId.ts"
import { field, type Obj, RecordId } from "../../surql/values/value.ts"

/** Name of the read "edges of a record": no record id begins like it. */
export const edgeRead = (direction: "out" | "in", table: string | undefined, record: RecordId): string =>
  `\u0000${direction} ${table ?? ""}\u0000${record.text}`

const BTree = sortedBTree.default
type Ends = InstanceType<typeof BTree<RecordId, undefined>>

const recordAt = (doc: Obj, name: "in" | "out"): RecordId | undefined => {
  const value = field(doc, name)
  return value instanceof RecordId ? value : typeof value === "string" ? Ids.parse(value) : undefined
}

/** The two ends of an edge record; undefined for any other record. */
const endsOf = (doc: Obj): { readonly in: RecordId; readonly out: RecordId } | undefined => {
  const from = recordAt(doc, "in")
  const to = from && recordAt(doc, "out")
  return from === undefined || to === undefined ? undefined : { in: from, out: to }
}

/** Bytes of a record with edges in one direction, and of each edge beside it. */
const recordBytes = 400
const entryBytes = 48

export class EdgeIndex {
  private readonly leaving = new Map<string, Ends>()
  private readonly reaching = new Map<string, Ends>()
  /** Entries of all records. */
  private entries = 0

  /** Approximate size. */
  get bytes(): number {
    return recordBytes * (this.leaving.size + this.reaching.size) + entryBytes * this.entries
  }

  move(edge: RecordId, before: Obj | undefined, after: Obj | undefined): void {
    const old = before && endsOf(before)
    const now = after && endsOf(after)
    if (old !== undefined) {
      this.unlink(this.leaving, old.in, edge)
      this.unlink(this.reaching, old.out, edge)
    }
    if (now !== undefined) {
      this.link(this.leaving, now.in, edge)
      this.link(this.reaching, now.out, edge)
    }
  }

  /** Edges of a record in the order of edge table and key. */
  *edges(record: RecordId, direction: "out" | "in", table: string | undefined): Iterable<RecordId> {
    const ends = (direction === "out" ? this.leaving : this.reaching).get(record.text)
    if (ends === undefined) return
    for (const edge of ends.keys()) if (table === undefined || edge.table === table) yield edge
  }

  private link(ends: Map<string, Ends>, at: RecordId, edge: RecordId): void {
    let edges = ends.get(at.text)
    if (edges === undefined) ends.set(at.text, (edges = new BTree<RecordId, undefined>(undefined, compareRecords)))
    if (edges.set(edge, undefined)) this.entries++
  }

  private unlink(ends: Map<string, Ends>, at: RecordId, edge: RecordId): void {
    const edges = ends.get(at.text)
    if (edges?.delete(edge) !== true) return
    this.entries--
    if (edges.size === 0) ends.delete(at.text)
  }
}

/** The reads of edges whose answer a change of this record can have changed. */
export function* edgeReads(edge: RecordId, before: Obj | undefined, after: Obj | undefined): Iterable<string> {
  for (const doc of [before, after]) {
    const ends = doc && endsOf(doc)
    if (ends === undefined) continue
    for (const table of [edge.table, undefined]) {
      yield edgeRead("out", table, ends.in)
      yield edgeRead("in", table, ends.out)
    }
  }
}
