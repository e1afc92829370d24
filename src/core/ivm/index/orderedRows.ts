/**
 * Rows in the order of an ORDER BY, counted: a B+ tree that finds a row, the rank of a row, and the row at a rank.
 *
 * Each row stands behind the value that decides first, so that a search looks at few records. Every other value of the
 * order is read from the record as it is now: the rows must be told of each change of a record before the next one.
 * Cost: O(log n) for each operation, and what is read.
 *
 * Why not the tree of a library: none that is kept counts its rows, and START needs the row at a rank.
 */
import { firstWhere } from "../../bisect.ts"
import { compareRecords } from "../../surql/values/order.ts"
import { field, type Obj, type Value } from "../../surql/values/value.ts"
import type { RecordSlot } from "../store/recordSlot.ts"

/** A term of an ORDER BY that reads one field of the record. */
export interface OrderingTerm {
  readonly field: string
  readonly compare: (a: Value, b: Value) => number
}

/** How records are ordered: by the terms, equal ones by record id. */
export interface Ordering {
  /** Equal texts are the same order. */
  readonly text: string
  readonly terms: ReadonlyArray<OrderingTerm>
}

/** The value that decides first; undefined where only the record id does. */
export const leadOf = ({ terms: [first] }: Ordering, doc: Obj): Value => first && field(doc, first.field)

/** Whether two states of one record stand at the same place. */
export const sameOrder = ({ terms }: Ordering, a: Obj, b: Obj): boolean => {
  for (let i = 0; i < terms.length; i++)
    if (terms[i]!.compare(field(a, terms[i]!.field), field(b, terms[i]!.field)) !== 0) return false
  return true
}

/** A state of a record that is looked for. */
export interface Probe {
  readonly lead: Value
  readonly doc: Obj
  readonly slot: RecordSlot
}

/**
 * Negative: a row stands before a probe, by its first value and its record as it is now. The state that is looked for
 * may be an earlier one of the same record.
 */
export const compareToProbe = (
  { terms }: Ordering,
  otherLead: Value,
  other: RecordSlot,
  { doc, lead, slot }: Probe
): number => {
  if (terms.length > 0) {
    const order = terms[0]!.compare(otherLead, lead)
    if (order !== 0) return order
  }
  const otherDoc = other.doc!
  for (let i = 1; i < terms.length; i++) {
    const { compare, field: name } = terms[i]!
    const order = compare(field(otherDoc, name), field(doc, name))
    if (order !== 0) return order
  }
  return other === slot ? 0 : compareRecords(other.id, slot.id)
}

/** Most rows of a leaf, and most children of an inner node. */
const most = 64

/** A node with less joins a neighbour that has room. */
const scant = most / 4

/** A leaf has rows; an inner node the first row of each child, the children, and how many rows each has. */
class Node {
  readonly leads: Array<Value>
  readonly slots: Array<RecordSlot>
  readonly children: Array<Node> | undefined
  readonly counts: Array<number> | undefined

  constructor(
    leads: Array<Value>,
    slots: Array<RecordSlot>,
    children?: Array<Node> | undefined,
    counts?: Array<number> | undefined
  ) {
    this.leads = leads
    this.slots = slots
    this.children = children
    this.counts = counts
  }
}

/** The rank of what is not there. */
export const nowhere = -1

/** Puts an item in by moving those behind it: `splice` would make an array of what it takes out. */
const insert = <A>(items: Array<A>, at: number, item: A): void => {
  items.push(item)
  for (let i = items.length - 1; i > at; i--) items[i] = items[i - 1]!
  items[at] = item
}

const takeOut = <A>(items: Array<A>, at: number): void => {
  for (let i = at + 1; i < items.length; i++) items[i - 1] = items[i]!
  items.pop()
}

/** The sum of the counts before one. */
const before = (counts: ReadonlyArray<number>, end: number): number => {
  let sum = 0
  for (let i = 0; i < end; i++) sum += counts[i]!
  return sum
}

const countOf = ({ counts, slots }: Node): number =>
  counts === undefined ? slots.length : counts.reduce((sum, count) => sum + count, 0)

/** The upper half of a node, taken out of it. */
const split = ({ children, counts, leads, slots }: Node): Node =>
  new Node(leads.splice(most / 2), slots.splice(most / 2), children?.splice(most / 2), counts?.splice(most / 2))

/** Puts what a right neighbour has behind what a node has. */
const append = (node: Node, { children, counts, leads, slots }: Node): void => {
  node.leads.push(...leads)
  node.slots.push(...slots)
  if (children !== undefined) node.children!.push(...children)
  if (counts !== undefined) node.counts!.push(...counts)
}

export class OrderedRows {
  size = 0
  private readonly ordering: Ordering
  private root = new Node([], [])

  constructor(ordering: Ordering) {
    this.ordering = ordering
  }

  /** Puts a record in its place. Answers its rank; {@link nowhere} where it stands there already. */
  add(probe: Probe): number {
    const rank = this.addTo(this.root, probe)
    if (rank === nowhere) return nowhere
    this.size++
    const { root } = this
    if (root.slots.length > most) {
      const upper = split(root)
      this.root = new Node(
        [root.leads[0], upper.leads[0]],
        [root.slots[0]!, upper.slots[0]!],
        [root, upper],
        [countOf(root), countOf(upper)]
      )
    }
    return rank
  }

  /**
   * Takes a record out, in the state it was put in with. Answers the rank it had; {@link nowhere} where it is not
   * there.
   */
  remove(probe: Probe): number {
    const rank = this.removeFrom(this.root, probe)
    if (rank === nowhere) return nowhere
    this.size--
    const { children } = this.root
    if (children?.length === 1) this.root = children[0]!
    return rank
  }

  /** The row at a rank; undefined behind the last. */
  at(rank: number): RecordSlot | undefined {
    if (rank >= this.size) return undefined
    let node = this.root,
      within = rank
    while (node.children !== undefined) {
      let at = 0
      while (within >= node.counts![at]!) within -= node.counts![at++]!
      node = node.children[at]!
    }
    return node.slots[within]
  }

  /** How many rows stand before the first one that is not before; `isBefore` may turn to false once. */
  rankOf(isBefore: (lead: Value, slot: RecordSlot) => boolean): number {
    let rank = 0
    for (let node = this.root; ; ) {
      const { children, counts, leads, slots } = node
      const first = firstWhere(slots.length, (at) => !isBefore(leads[at], slots[at]!))
      if (children === undefined) return rank + first
      // The first that is not before stands in the child whose first row still is.
      const at = Math.max(0, first - 1)
      rank += before(counts!, at)
      node = children[at]!
    }
  }

  /** Appends up to `count` rows from a rank on, each with its first value. */
  read(rank: number, count: number, slots: Array<RecordSlot>, leads: Array<Value>): void {
    if (rank < this.size) this.readFrom(this.root, rank, count, slots, leads)
  }

  private readFrom(node: Node, rank: number, count: number, slots: Array<RecordSlot>, leads: Array<Value>): number {
    const { children, counts } = node
    if (children === undefined) {
      const end = Math.min(node.slots.length, rank + count)
      for (let i = rank; i < end; i++) {
        slots.push(node.slots[i]!)
        leads.push(node.leads[i])
      }
      return end - rank
    }
    let at = 0,
      within = rank,
      done = 0
    while (within >= counts![at]!) within -= counts![at++]!
    for (; at < children.length && done < count; at++) {
      done += this.readFrom(children[at]!, within, count - done, slots, leads)
      within = 0
    }
    return done
  }

  /** Negative: the row at this position stands before the probe, which is filed as it is if the row is its record. */
  private compare({ leads, slots }: Node, at: number, probe: Probe): number {
    const [first] = this.ordering.terms
    const order = first === undefined ? 0 : first.compare(leads[at], probe.lead)
    return order !== 0 || slots[at] === probe.slot ? order : compareToProbe(this.ordering, leads[at], slots[at]!, probe)
  }

  /** How many entries of a node stand before the probe. */
  private search(node: Node, probe: Probe): number {
    let low = 0
    for (let high = node.slots.length; low < high; ) {
      const middle = (low + high) >> 1
      if (this.compare(node, middle, probe) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The child that has the probe or would take it. */
  private childOf(node: Node, probe: Probe): number {
    const at = this.search(node, probe)
    return at < node.slots.length && this.compare(node, at, probe) === 0 ? at : Math.max(0, at - 1)
  }

  private addTo(node: Node, probe: Probe): number {
    const { children, counts, leads, slots } = node
    if (children === undefined) {
      const at = this.search(node, probe)
      if (slots[at] === probe.slot) return nowhere
      insert(leads, at, probe.lead)
      insert(slots, at, probe.slot)
      return at
    }
    const at = this.childOf(node, probe),
      child = children[at]!
    const within = this.addTo(child, probe)
    if (within === nowhere) return nowhere
    const rank = before(counts!, at) + within
    counts![at]!++
    this.head(node, at)
    if (child.slots.length <= most) return rank
    const upper = split(child)
    leads.splice(at + 1, 0, upper.leads[0])
    slots.splice(at + 1, 0, upper.slots[0]!)
    children.splice(at + 1, 0, upper)
    const moved = countOf(upper)
    counts![at]! -= moved
    counts!.splice(at + 1, 0, moved)
    return rank
  }

  private removeFrom(node: Node, probe: Probe): number {
    const { children, counts, leads, slots } = node
    if (children === undefined) {
      const at = this.search(node, probe)
      if (slots[at] !== probe.slot) return nowhere
      takeOut(leads, at)
      takeOut(slots, at)
      return at
    }
    const at = this.childOf(node, probe),
      child = children[at]!
    const within = this.removeFrom(child, probe)
    if (within === nowhere) return nowhere
    const rank = before(counts!, at) + within
    counts![at]!--
    if (child.slots.length === 0) {
      this.drop(node, at)
      return rank
    }
    this.head(node, at)
    if (child.slots.length < scant) {
      const left = at + 1 < children.length ? at : at - 1
      if (left >= 0 && children[left]!.slots.length + children[left + 1]!.slots.length <= most - scant) {
        append(children[left]!, children[left + 1]!)
        counts![left]! += counts![left + 1]!
        this.drop(node, left + 1)
      }
    }
    return rank
  }

  private drop({ children, counts, leads, slots }: Node, at: number): void {
    leads.splice(at, 1)
    slots.splice(at, 1)
    children!.splice(at, 1)
    counts!.splice(at, 1)
  }

  /** The first row of a child may be another one. */
  private head({ children, leads, slots }: Node, at: number): void {
    const child = children![at]!
    if (slots[at] === child.slots[0] && leads[at] === child.leads[0]) return
    leads[at] = child.leads[0]
    slots[at] = child.slots[0]!
  }
}
