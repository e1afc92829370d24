/**
 * Intervals, each with its items, as a tree: which items have an interval that holds this value?
 *
 * Why: views that differ in the bounds of a range are found by the value of a changed row, not asked one by one (L4). A
 * balanced (AVL) tree ordered by lower, then upper bound; each node knows the greatest upper bound below it. A search
 * skips a subtree that ends below the value or starts above it; a one-sided range has one open bound. Cost: O(log n) to
 * insert or remove, O((found + 1) log n) to search.
 */
import { compare } from "../../surql/values/order.ts"
import type { Bound, Value } from "../../surql/values/value.ts"

export interface Interval {
  readonly from: Bound | undefined
  readonly to: Bound | undefined
}

interface Node<T> {
  from: Bound | undefined
  to: Bound | undefined
  /** A single item is stored without a set: bounds are mostly distinct, and a set for each costs more than the node. */
  items: T | Set<T>
  left: Node<T> | undefined
  right: Node<T> | undefined
  height: number
  /** The node of this subtree with the greatest upper bound. */
  highest: Node<T>
}

/** Orders by lower bound; an open one comes first. */
const compareStarts = (a: Bound | undefined, b: Bound | undefined): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1
  return compare(a.value, b.value) || Number(b.inclusive) - Number(a.inclusive)
}

/** Orders by upper bound; an open one comes last. */
const compareEnds = (a: Bound | undefined, b: Bound | undefined): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  return compare(a.value, b.value) || Number(a.inclusive) - Number(b.inclusive)
}

/** Whether a value lies at or above the lower bound. */
export const isAfterStart = (from: Bound | undefined, value: Value): boolean => {
  if (from === undefined) return true
  const order = compare(from.value, value)
  return order < 0 || (order === 0 && from.inclusive)
}

/** Whether a value lies at or below the upper bound. */
export const isBeforeEnd = (to: Bound | undefined, value: Value): boolean => {
  if (to === undefined) return true
  const order = compare(value, to.value)
  return order < 0 || (order === 0 && to.inclusive)
}

export const holdsValue = ({ from, to }: Interval, value: Value): boolean =>
  isAfterStart(from, value) && isBeforeEnd(to, value)

/** The interval of the values that lie in both. */
export const intersection = (a: Interval, b: Interval): Interval => ({
  from: compareStarts(a.from, b.from) < 0 ? b.from : a.from,
  to: compareEnds(a.to, b.to) > 0 ? b.to : a.to
})

const heightOf = (node: Node<unknown> | undefined): number => (node === undefined ? 0 : node.height)

/** Recomputes height and greatest upper bound of a node from its children. */
const refresh = <T>(node: Node<T>): Node<T> => {
  const { left, right } = node
  node.height = Math.max(heightOf(left), heightOf(right)) + 1
  node.highest = node
  if (left !== undefined && compareEnds(left.highest.to, node.highest.to) > 0) node.highest = left.highest
  if (right !== undefined && compareEnds(right.highest.to, node.highest.to) > 0) node.highest = right.highest
  return node
}

const rotateRight = <T>(node: Node<T>): Node<T> => {
  const top = node.left!
  node.left = top.right
  top.right = refresh(node)
  return refresh(top)
}

const rotateLeft = <T>(node: Node<T>): Node<T> => {
  const top = node.right!
  node.right = top.left
  top.left = refresh(node)
  return refresh(top)
}

const balanced = <T>(node: Node<T>): Node<T> => {
  const tilt = heightOf(node.left) - heightOf(node.right)
  if (tilt > 1) {
    if (heightOf(node.left!.left) < heightOf(node.left!.right)) node.left = rotateLeft(node.left!)
    return rotateRight(node)
  }
  if (tilt < -1) {
    if (heightOf(node.right!.right) < heightOf(node.right!.left)) node.right = rotateRight(node.right!)
    return rotateLeft(node)
  }
  return refresh(node)
}

/** `T` must be objects other than sets. */
export class IntervalTree<T extends object> {
  private root: Node<T> | undefined = undefined

  get isEmpty(): boolean {
    return this.root === undefined
  }

  add(interval: Interval, item: T): void {
    this.root = this.inserted(this.root, interval, item)
  }

  remove(interval: Interval, item: T): void {
    this.root = this.removed(this.root, interval, item)
  }

  /** Calls `found` with each item whose interval holds the value; `found` must not change the tree. */
  find(value: Value, found: (item: T) => void): void {
    this.search(this.root, value, found)
  }

  private search(node: Node<T> | undefined, value: Value, found: (item: T) => void): void {
    let at = node
    while (at !== undefined && isBeforeEnd(at.highest.to, value)) {
      this.search(at.left, value, found)
      if (!isAfterStart(at.from, value)) return
      if (isBeforeEnd(at.to, value)) {
        if (at.items instanceof Set) for (const item of at.items) found(item)
        else found(at.items)
      }
      at = at.right
    }
  }

  private inserted(node: Node<T> | undefined, interval: Interval, item: T): Node<T> {
    if (node === undefined) {
      const leaf: Omit<Node<T>, "highest"> & { highest: Node<T> | undefined } = {
        from: interval.from,
        to: interval.to,
        items: item,
        left: undefined,
        right: undefined,
        height: 1,
        highest: undefined
      }
      return refresh(leaf as Node<T>)
    }
    const order = compareStarts(interval.from, node.from) || compareEnds(interval.to, node.to)
    if (order === 0) {
      if (node.items instanceof Set) node.items.add(item)
      else if (node.items !== item) node.items = new Set([node.items, item])
      return node
    }
    if (order < 0) node.left = this.inserted(node.left, interval, item)
    else node.right = this.inserted(node.right, interval, item)
    return balanced(node)
  }

  private removed(node: Node<T> | undefined, interval: Interval, item: T): Node<T> | undefined {
    if (node === undefined) return undefined
    const order = compareStarts(interval.from, node.from) || compareEnds(interval.to, node.to)
    if (order < 0) node.left = this.removed(node.left, interval, item)
    else if (order > 0) node.right = this.removed(node.right, interval, item)
    else {
      const gone = node.items instanceof Set ? node.items.delete(item) && node.items.size === 0 : node.items === item
      return gone ? this.without(node) : node
    }
    return balanced(node)
  }

  /** The subtree without its root: the next node takes the root's place. */
  private without(node: Node<T>): Node<T> | undefined {
    if (node.left === undefined) return node.right
    if (node.right === undefined) return node.left
    let next = node.right
    while (next.left !== undefined) next = next.left
    next.right = this.withoutFirst(node.right)
    next.left = node.left
    return balanced(next)
  }

  private withoutFirst(node: Node<T>): Node<T> | undefined {
    if (node.left === undefined) return node.right
    node.left = this.withoutFirst(node.left)
    return balanced(node)
  }
}
