/**
 * The Merkle tree over one table's records (D41): two nodes' tables are equal when their roots are, and where they
 * differ is found by descending.
 *
 * leaf = BLAKE3(id text, 0x00, content); a record falls into one of 65,536 buckets by the first two bytes of BLAKE3(id
 * text); bucket = BLAKE3 over its sorted leaves; inner node = BLAKE3 over its non-empty children (of 256), each after
 * its index; an empty node is {@link empty}. Hashes enter a hash as their hexadecimal text. So all of them follow from
 * the records alone, whatever their order and history. State: hash and count of non-empty buckets, and the set of
 * outdated ones. A change only marks its bucket: O(1). Hashes are computed when a reader asks, by the owner of the
 * records: `take` a marked bucket, read its records, `put` them; a mark in between stays and is taken next. Cost of a
 * flush: per marked bucket its records (16 of a million), per node above it its children.
 */
import type { Slices } from "../surql/evaluate/scope.ts"
import { encode } from "../surql/values/encode.ts"
import type { Obj } from "../surql/values/value.ts"
import { blake3 } from "./blake3.ts"

/** Children per node; levels are 0 (root), 1 and 2 (buckets). */
export const fanOut = 256
export const buckets = fanOut * fanOut
export const bucketLevel = 2

/** Hash of a node without records. */
export const empty = "0".repeat(64)

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** The bucket of a record, by the text of its id. */
export const bucketOf = (id: string): number => Number.parseInt(blake3(id).slice(0, 4), 16)

/** A record's content as canonical text: its document without its id. */
export const contentOf = (doc: Obj): string => {
  const { id: _id, ...rest } = doc
  return encode(rest)
}

/** The leaf of a record: text of its id, and its content by {@link contentOf}. */
export const leafOf = (id: string, content: string): string => blake3(`${id}\u0000${content}`)

export interface Node {
  readonly hash: string
  /** Number of records below the node. */
  readonly count: number
}

const nothing: Node = { hash: empty, count: 0 }

/** A record with its leaf hash. */
export interface Leaf {
  readonly id: string
  readonly hash: string
}

const bucketNode = (leaves: ReadonlyArray<Leaf>): Node =>
  leaves.length === 0
    ? nothing
    : {
        hash: blake3(
          leaves
            .map(({ hash }) => hash)
            .sort()
            .join("")
        ),
        count: leaves.length
      }

/** Hash and count over the non-empty children. */
const innerNode = (child: (place: number) => Node): Node => {
  let text = ""
  let count = 0
  for (let place = 0; place < fanOut; place++) {
    const node = child(place)
    if (node.count > 0) text += hex[place] + node.hash
    count += node.count
  }
  return count === 0 ? nothing : { hash: blake3(text), count }
}

/** A child with its index in the node, for the descent. */
interface Child extends Node {
  readonly index: number
}

export class MerkleTree {
  private readonly leaves = new Map<number, Node>()
  private readonly marked = new Set<number>()
  /** Iterator of {@link take} over the marked buckets. */
  private walk: IterableIterator<number> | undefined = undefined
  /** Non-empty nodes of level 1, as last computed. */
  private readonly inner = new Map<number, Node>()
  /** Outdated nodes of level 1. */
  private readonly outdated = new Set<number>()
  private root: Node | undefined = nothing

  mark(bucket: number): void {
    this.marked.add(bucket)
  }

  /** Number of outdated buckets; at 0 all hashes are current. */
  get stale(): number {
    return this.marked.size
  }

  /** Takes an outdated bucket and unmarks it; undefined if there is none. */
  take(): number | undefined {
    // One iterator for many calls: a new one would walk past all deleted entries of the set.
    const next = (this.walk ??= this.marked.values()).next()
    if (next.done !== true) {
      this.marked.delete(next.value)
      return next.value
    }
    this.walk = undefined
    return this.marked.size === 0 ? undefined : this.take()
  }

  /** Replaces the leaves of a bucket. */
  put(bucket: number, leaves: ReadonlyArray<Leaf>): void {
    const node = bucketNode(leaves)
    if (node.hash === this.bucket(bucket).hash) return
    if (node.count === 0) this.leaves.delete(bucket)
    else this.leaves.set(bucket, node)
    this.outdated.add(Math.floor(bucket / fanOut))
    this.root = undefined
  }

  /** Computes outdated nodes above the buckets, pausing between nodes: a large table has many. */
  *hashed(): Slices<void> {
    for (const index of this.outdated) {
      this.high(index)
      yield
    }
  }

  /** A node as of the last records put. Throws on an index out of range. */
  node(level: number, index: number): Node {
    if (level === bucketLevel) return this.bucket(index)
    return level === 1 ? this.high(index) : (this.root ??= innerNode((place) => this.high(place)))
  }

  /** The non-empty children of a node. */
  children(level: number, index: number): ReadonlyArray<Child> {
    const found: Array<Child> = []
    for (let i = 0; i < fanOut; i++) {
      const child = index * fanOut + i
      const node = this.node(level + 1, child)
      if (node.count > 0) found.push({ index: child, ...node })
    }
    return found
  }

  private high(index: number): Node {
    if (!this.outdated.has(index)) return this.inner.get(index) ?? nothing
    const node = innerNode((place) => this.bucket(index * fanOut + place))
    if (node.count === 0) this.inner.delete(index)
    else this.inner.set(index, node)
    this.outdated.delete(index)
    return node
  }

  private bucket(index: number): Node {
    return this.leaves.get(index) ?? nothing
  }
}

/** Indexes of the children in which two nodes differ, for the descent. */
export const differing = (a: ReadonlyArray<Child>, b: ReadonlyArray<Child>): ReadonlyArray<number> => {
  const other = new Map(b.map((child) => [child.index, child.hash]))
  const found = new Set<number>()
  for (const { hash, index } of a) {
    if (other.get(index) !== hash) found.add(index)
    other.delete(index)
  }
  for (const index of other.keys()) found.add(index)
  return [...found].sort((x, y) => x - y)
}

/** The ids that differ between two lists of leaves, sorted. */
export const differingLeaves = (a: ReadonlyArray<Leaf>, b: ReadonlyArray<Leaf>): ReadonlyArray<string> => {
  const other = new Map(b.map((leaf) => [leaf.id, leaf.hash]))
  const found = new Set<string>()
  for (const { hash, id } of a) {
    if (other.get(id) !== hash) found.add(id)
    other.delete(id)
  }
  for (const id of other.keys()) found.add(id)
  return [...found].sort()
}
