/**
 * Rows in the order of an ORDER BY, counted: a B+ tree that finds a row, the rank of a row, and the row at a rank.
 *
 * Each row is stored beside its first ORDER BY value (`lead`), so that a search loads few records. All other values are
 * read from the current record: the tree must be told of each change of a record before the next one. Cost: O(log n)
 * for each operation, and the rows read.
 *
 * Nodes store the last row first. Pages show the first rows, and most rows are added and removed there: at the end of
 * an array, where an insert moves little.
 *
 * Why not the tree of a library: none that is maintained counts its rows, and START needs the row at a rank.
 */
import { firstWhere } from "../../bisect.ts"
import type { Value } from "../../surql/values/value.ts"
import { compareBehindLead, compareLeads, type Ordering, type Probe } from "../store/ordering.ts"
import type { RecordSlot, SlotRef } from "../store/recordSlot.ts"
import type { Table } from "../store/table.ts"

/** The table of the rows, and their order. */
export interface TableOrder {
  readonly ordering: Ordering
  readonly table: Table
  /** 1: numeric leads ascend; -1: they descend. */
  readonly sign: 1 | -1
}

export const tableOrderOf = (ordering: Ordering, table: Table): TableOrder => ({
  ordering,
  table,
  sign: ordering.lead !== undefined && ordering.lead.compare(0, 1) > 0 ? -1 : 1
})

/** Most rows of a leaf, and most children of an inner node. */
export const maxNode = 64

/** A node with fewer joins a neighbour that has room. */
const scant = maxNode / 4

/** Rows, or children, of a node that is built by appending: leaves room for later inserts. */
const appended = (3 * maxNode) / 4

/** Rows, the last one first, each after its lead: a search and the rows it finds lie together. */
type Cells = Array<Value | SlotRef>

const leadAt = (cells: Cells, at: number): Value => cells[2 * at] as Value

const refAt = (cells: Cells, at: number): SlotRef => cells[2 * at + 1] as SlotRef

class Inner {
  /** The last row of each child, which is the first of its array. */
  readonly heads: Cells
  readonly children: Array<Node>
  /** Number of rows of each child. */
  readonly counts: Array<number>

  constructor(heads: Cells, children: Array<Node>, counts: Array<number>) {
    this.heads = heads
    this.children = children
    this.counts = counts
  }
}

/** A leaf is only its cells. */
type Node = Cells | Inner

const cellsOf = (node: Node): Cells => (node instanceof Inner ? node.heads : node)

/** How many rows a leaf has, or children an inner node. */
const lengthOf = (node: Node): number => cellsOf(node).length >> 1

const countOf = (node: Node): number =>
  node instanceof Inner ? node.counts.reduce((sum, count) => sum + count, 0) : node.length >> 1

/** Rank of a row that does not exist. */
export const noRank = -1

/** Inserts an item by moving the ones behind it: `splice` would allocate an array for its result. */
export const insertAt = <A>(items: Array<A>, at: number, item: A): void => {
  items.push(item)
  for (let i = items.length - 1; i > at; i--) items[i] = items[i - 1]!
  items[at] = item
}

/** Removes the item at a position. */
export const removeAt = <A>(items: Array<A>, at: number): void => {
  for (let i = at + 1; i < items.length; i++) items[i - 1] = items[i]!
  items.pop()
}

const insertRow = (cells: Cells, at: number, lead: Value, ref: SlotRef): void => {
  cells.push(lead, ref)
  for (let i = cells.length - 1; i > 2 * at + 1; i--) cells[i] = cells[i - 2]!
  cells[2 * at] = lead
  cells[2 * at + 1] = ref
}

const takeRowOut = (cells: Cells, at: number): void => {
  for (let i = 2 * at + 2; i < cells.length; i++) cells[i - 2] = cells[i]!
  cells.pop()
  cells.pop()
}

/** Number of rows of the children before one; these rows come after it in the order. */
const before = (counts: ReadonlyArray<number>, at: number): number => {
  let sum = 0
  for (let i = counts.length - 1; i > at; i--) sum += counts[i]!
  return sum
}

/** Removes the upper half of a node and answers it as a new node. */
const split = (node: Node): Node =>
  node instanceof Inner
    ? new Inner(node.heads.splice(maxNode), node.children.splice(maxNode / 2), node.counts.splice(maxNode / 2))
    : node.splice(maxNode)

/** Appends the content of a right neighbour to a node. */
const append = (node: Node, right: Node): void => {
  cellsOf(node).push(...cellsOf(right))
  if (!(node instanceof Inner)) return
  node.children.push(...(right as Inner).children)
  node.counts.push(...(right as Inner).counts)
}

const dropChild = ({ children, counts, heads }: Inner, at: number): void => {
  takeRowOut(heads, at)
  removeAt(children, at)
  removeAt(counts, at)
}

/** Reads the head of a child again, which may have changed. */
const renewHead = ({ children, heads }: Inner, at: number): void => {
  const first = cellsOf(children[at]!)
  heads[2 * at] = first[0]
  heads[2 * at + 1] = first[1]
}

/** Inserts a row before all rows of a node. Answers a new node for it if this one is full. */
const appendTo = (node: Node, lead: Value, ref: SlotRef): Node | undefined => {
  if (!(node instanceof Inner)) {
    if (node.length >= 2 * appended) return [lead, ref]
    node.push(lead, ref)
    return undefined
  }
  const { children, counts, heads } = node
  const last = children.length - 1
  const next = appendTo(children[last]!, lead, ref)
  if (next === undefined) {
    counts[last]!++
    return undefined
  }
  if (children.length >= appended) return new Inner([lead, ref], [next], [1])
  heads.push(lead, ref)
  children.push(next)
  counts.push(1)
  return undefined
}

const readFrom = (node: Node, rank: number, count: number, refs: Array<SlotRef>, leads: Array<Value>): number => {
  if (!(node instanceof Inner)) {
    const first = (node.length >> 1) - 1 - rank,
      end = Math.max(-1, first - count)
    for (let i = first; i > end; i--) {
      refs.push(refAt(node, i))
      leads.push(leadAt(node, i))
    }
    return first - end
  }
  const { children, counts } = node
  let at = counts.length - 1,
    within = rank,
    done = 0
  while (within >= counts[at]!) within -= counts[at--]!
  for (; at >= 0 && done < count; at--) {
    done += readFrom(children[at]!, within, count - done, refs, leads)
    within = 0
  }
  return done
}

export class OrderedRows {
  size = 0
  private readonly of: TableOrder
  private root: Node = []

  constructor(of: TableOrder) {
    this.of = of
  }

  /** Inserts a record. Answers its rank; {@link noRank} if it is there already. */
  add(probe: Probe): number {
    const rank = this.addTo(this.root, probe, probe.slot.ref)
    if (rank === noRank) return noRank
    this.size++
    const { root } = this
    if (lengthOf(root) > maxNode) {
      const upper = split(root)
      this.root = new Inner([], [root, upper], [countOf(root), countOf(upper)])
      renewHead(this.root, 0)
      renewHead(this.root, 1)
    }
    return rank
  }

  /** Inserts a record before all rows. Its place must be before them. */
  prepend(lead: Value, ref: SlotRef): void {
    this.size++
    const next = appendTo(this.root, lead, ref)
    if (next === undefined) return
    const { root } = this
    this.root = new Inner([], [root, next], [this.size - 1, 1])
    renewHead(this.root, 0)
    renewHead(this.root, 1)
  }

  /**
   * Fills an empty tree with these rows, the last one first. As many as fit are one leaf, full or not: a second one
   * would cost each later search a level.
   */
  fillWith(probes: ReadonlyArray<Probe>): void {
    if (probes.length > maxNode) {
      for (const { lead, slot } of probes) this.prepend(lead, slot.ref)
      return
    }
    const leaf: Cells = []
    for (const { lead, slot } of probes) leaf.push(lead, slot.ref)
    this.root = leaf
    this.size = probes.length
  }

  /**
   * Removes a record, in the state it was inserted with. Answers its former rank; {@link noRank} if it is not there.
   */
  remove(probe: Probe): number {
    const rank = this.removeFrom(this.root, probe, probe.slot.ref)
    if (rank === noRank) return noRank
    this.size--
    const { root } = this
    if (root instanceof Inner && root.children.length === 1) this.root = root.children[0]!
    return rank
  }

  /** The row at a rank; undefined behind the last. */
  at(rank: number): RecordSlot | undefined {
    if (rank >= this.size) return undefined
    let node = this.root,
      within = rank
    while (node instanceof Inner) {
      const { children, counts } = node
      let at = counts.length - 1
      while (within >= counts[at]!) within -= counts[at--]!
      node = children[at]!
    }
    return this.of.table.slotOf(refAt(node, (node.length >> 1) - 1 - within))
  }

  /** Number of rows before or at a place. Loads a record only if leads are equal. */
  rankBehind(place: Probe): number {
    const { ordering, table } = this.of
    return this.rankOf(
      (lead, ref) =>
        (compareLeads(ordering, lead, place.lead) || compareBehindLead(ordering, table.slotOf(ref), place)) <= 0
    )
  }

  /**
   * Number of rows before the first one for which `isBefore` is false. `isBefore` must be true for a first part of the
   * rows and false for the rest.
   */
  rankOf(isBefore: (lead: Value, ref: SlotRef) => boolean): number {
    let rank = 0
    for (let node = this.root; ; ) {
      const cells = cellsOf(node),
        length = lengthOf(node)
      const first = firstWhere(length, (at) => isBefore(leadAt(cells, at), refAt(cells, at)))
      if (!(node instanceof Inner)) return rank + length - first
      // The boundary lies in the last child whose head does not pass the test.
      const at = Math.max(0, first - 1)
      rank += before(node.counts, at)
      node = node.children[at]!
    }
  }

  /** Appends up to `count` rows, from a rank on, with their leads. */
  read(rank: number, count: number, refs: Array<SlotRef>, leads: Array<Value>): void {
    if (rank < this.size) readFrom(this.root, rank, count, refs, leads)
  }

  /**
   * Compares a row with the probe; negative: the row comes first. For the probe's own record only the filed lead is
   * compared.
   */
  private compareAt(cells: Cells, at: number, probe: Probe, ref: SlotRef): number {
    const { ordering, sign, table } = this.of
    const other = leadAt(cells, at),
      { lead } = probe
    // Numbers first: a function call for each comparison costs more than the rest of the search.
    if (typeof other === "number" && typeof lead === "number") {
      if (other < lead) return -sign
      if (other > lead) return sign
    }
    const order = ordering.lead === undefined ? 0 : ordering.lead.compare(other, lead)
    if (order !== 0) return order
    const here = refAt(cells, at)
    return here === ref ? 0 : compareBehindLead(ordering, table.slotOf(here), probe)
  }

  /** Number of rows of a leaf that come after the probe. */
  private search(cells: Cells, probe: Probe, ref: SlotRef): number {
    let low = 0
    for (let high = cells.length >> 1; low < high; ) {
      const middle = (low + high) >> 1
      if (this.compareAt(cells, middle, probe, ref) > 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Position of the child that has the probe or would take it: the last one whose head does not come before it. */
  private childOf({ heads }: Inner, probe: Probe, ref: SlotRef): number {
    let high = (heads.length >> 1) - 1
    // Looks at the last child first: it has the first rows, which pages show.
    if (this.compareAt(heads, high, probe, ref) >= 0) return high
    let low = 0
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.compareAt(heads, middle, probe, ref) >= 0) low = middle + 1
      else high = middle
    }
    return Math.max(0, low - 1)
  }

  private addTo(node: Node, probe: Probe, ref: SlotRef): number {
    if (!(node instanceof Inner)) {
      const at = this.search(node, probe, ref)
      if (2 * at < node.length && refAt(node, at) === ref) return noRank
      insertRow(node, at, probe.lead, ref)
      return (node.length >> 1) - 1 - at
    }
    const { children, counts, heads } = node
    const at = this.childOf(node, probe, ref),
      child = children[at]!
    const within = this.addTo(child, probe, ref)
    if (within === noRank) return noRank
    const rank = before(counts, at) + within
    counts[at]!++
    if (refAt(cellsOf(child), 0) !== refAt(heads, at)) renewHead(node, at)
    if (lengthOf(child) <= maxNode) return rank
    const upper = split(child)
    const moved = countOf(upper)
    counts[at]! -= moved
    insertAt(children, at + 1, upper)
    insertAt(counts, at + 1, moved)
    insertRow(heads, at + 1, leadAt(cellsOf(upper), 0), refAt(cellsOf(upper), 0))
    return rank
  }

  private removeFrom(node: Node, probe: Probe, ref: SlotRef): number {
    if (!(node instanceof Inner)) {
      const at = this.search(node, probe, ref)
      if (2 * at >= node.length || refAt(node, at) !== ref) return noRank
      takeRowOut(node, at)
      return (node.length >> 1) - at
    }
    const { children, counts, heads } = node
    const at = this.childOf(node, probe, ref),
      child = children[at]!
    const within = this.removeFrom(child, probe, ref)
    if (within === noRank) return noRank
    const rank = before(counts, at) + within
    counts[at]!--
    const length = lengthOf(child)
    if (length === 0) {
      dropChild(node, at)
      return rank
    }
    if (refAt(cellsOf(child), 0) !== refAt(heads, at)) renewHead(node, at)
    if (length < scant) {
      const left = at + 1 < children.length ? at : at - 1
      if (left >= 0 && lengthOf(children[left]!) + lengthOf(children[left + 1]!) <= maxNode - scant) {
        append(children[left]!, children[left + 1]!)
        counts[left]! += counts[left + 1]!
        dropChild(node, left + 1)
      }
    }
    return rank
  }
}
