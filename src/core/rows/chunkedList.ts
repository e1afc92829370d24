/**
 * A list in chunks of about a hundred items: an item knows its chunk, so that its position is found without a search.
 *
 * State: the chunks in order, none of them empty. Cost: a position is counted over the chunks; an inserted or removed
 * item moves a chunk's worth of others, where an array would move all of them.
 */
import { firstWhere } from "../bisect.ts"

type Chunk<T> = Array<T>

export interface ListItem<T> {
  /** The item's chunk; only the list writes it. */
  chunk: Chunk<T> | undefined
}

const most = 128
const packed = 96

export class ChunkedList<T extends ListItem<T>> {
  size: number
  private readonly chunks: Array<Chunk<T>> = []

  constructor(items: ReadonlyArray<T> = []) {
    this.size = items.length
    for (let i = 0; i < items.length; i += packed) this.chunks.push(this.chunkOf(items.slice(i, i + packed)))
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const chunk of this.chunks) yield* chunk
  }

  positionOf(item: T): number {
    let before = 0
    for (const chunk of this.chunks) {
      if (chunk === item.chunk) return before + chunk.indexOf(item)
      before += chunk.length
    }
    throw new Error("broken invariant: the item is not in the list")
  }

  /** Number of items before the first for which `holds` is true; it must be true for all items after that one. */
  firstWhere(holds: (item: T) => boolean): number {
    const { chunks } = this
    const at = firstWhere(chunks.length, (i) => holds(chunks[i]!.at(-1)!))
    let before = 0
    for (let i = 0; i < at; i++) before += chunks[i]!.length
    const chunk = chunks[at]
    return chunk === undefined ? before : before + firstWhere(chunk.length, (i) => holds(chunk[i]!))
  }

  /** Puts an item at a position, from 0 to the size. */
  insert(position: number, item: T): void {
    this.size++
    const [at, within] = this.find(position)
    const chunk = this.chunks[at]
    if (chunk === undefined) {
      this.chunks.push(this.chunkOf([item]))
      return
    }
    chunk.splice(within, 0, item)
    item.chunk = chunk
    if (chunk.length > most) this.chunks.splice(at + 1, 0, this.chunkOf(chunk.splice(most / 2)))
  }

  /** Removes the item at a position. */
  removeAt(position: number): T {
    const [at, within] = this.find(position)
    const chunk = this.chunks[at]!
    const [item] = chunk.splice(within, 1)
    this.size--
    if (chunk.length === 0) this.chunks.splice(at, 1)
    item!.chunk = undefined
    return item!
  }

  /** The chunk of a position, and the index in it; the position at the end is behind the last item. */
  private find(position: number): readonly [chunk: number, within: number] {
    const { chunks } = this
    let before = 0
    let at = 0
    while (at + 1 < chunks.length && before + chunks[at]!.length <= position) before += chunks[at++]!.length
    return [at, position - before]
  }

  private chunkOf(items: Chunk<T>): Chunk<T> {
    for (const item of items) item.chunk = items
    return items
  }
}
