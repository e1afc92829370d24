/**
 * A list of rows in leaves of some hundred, so that an insert or a removal costs as much as one leaf.
 *
 * A single array would move all rows behind the place. A tree would find the place in fewer steps, but 10,000 rows are
 * 40 leaves, and counting through 40 numbers costs less than following pointers.
 */

/** Most rows of a leaf; a larger one is split. */
const maxLeaf = 512
const newLeaf = 256

/** A list of rows by position, from 0. */
export class RowList {
  readonly #leaves: Array<Array<unknown>> = []
  length = 0
  /** Result of {@link find}: index of the leaf, and position in it. */
  #leaf = 0
  #offset = 0

  constructor(rows: ReadonlyArray<unknown>) {
    for (let from = 0; from < rows.length; from += newLeaf) this.#leaves.push(rows.slice(from, from + newLeaf))
    this.length = rows.length
  }

  /** Finds a position from 0 to `length`; `length` is behind the last row. */
  #find(position: number): Array<unknown> {
    const leaves = this.#leaves
    if (leaves.length === 0) leaves.push([])
    let leaf = 0
    let offset = position
    for (; leaf < leaves.length - 1 && offset >= leaves[leaf]!.length; leaf++) offset -= leaves[leaf]!.length
    this.#leaf = leaf
    this.#offset = offset
    return leaves[leaf]!
  }

  get(position: number): unknown {
    const leaf = this.#find(position)
    return leaf[this.#offset]
  }

  set(position: number, row: unknown): void {
    const leaf = this.#find(position)
    leaf[this.#offset] = row
  }

  insert(position: number, row: unknown): void {
    const leaf = this.#find(position)
    leaf.splice(this.#offset, 0, row)
    this.length++
    if (leaf.length > maxLeaf) this.#leaves.splice(this.#leaf + 1, 0, leaf.splice(newLeaf))
  }

  remove(position: number): unknown {
    const leaf = this.#find(position)
    const [row] = leaf.splice(this.#offset, 1)
    this.length--
    if (leaf.length === 0) this.#leaves.splice(this.#leaf, 1)
    return row
  }

  /** A new array of all rows. */
  toArray(): Array<unknown> {
    return this.#leaves.length === 1 ? this.#leaves[0]!.slice() : this.#leaves.flat(1)
  }
}
