/**
 * Labels of slots: the key of a query and the id of a view, in memory that the watchdog's thread reads.
 *
 * Fixed sizes and no texts of any length, because the writing thread may hang or be gone when they are read. Slots are
 * given out in a circle, so that a freed one is not soon given to another view.
 */
import { noSlot } from "./watch.ts"

/** Bytes of a query's key. */
export const nameBytes = 16
const idBytes = 111
const labelBytes = nameBytes + 1 + idBytes

/** Bytes for this many slots. */
export const bytesFor = (slots: number): number => (slots + 1) * labelBytes

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export interface Label {
  /** Key of the query in hexadecimal. */
  readonly query: string
  readonly id: string
}

/** The label of a slot; undefined for a free slot. */
export const read = (memory: Uint8Array, slot: number): Label | undefined => {
  const at = slot * labelBytes
  if (slot <= noSlot || at + labelBytes > memory.length || memory[at + nameBytes] === 0) return undefined
  // `TextDecoder` takes no shared memory.
  const bytes = memory.slice(at, at + labelBytes)
  const end = nameBytes + bytes[nameBytes]!
  return {
    query: Array.from(bytes.subarray(0, nameBytes), (byte) => byte.toString(16).padStart(2, "0")).join(""),
    // An id cut within a character ends with a replacement character.
    id: decoder.decode(bytes.subarray(nameBytes + 1, end + 1)).replace(/\uFFFD+$/u, "")
  }
}

export class Labels {
  private readonly slots: number
  private last = noSlot
  private used = 0

  constructor(private readonly memory: Uint8Array) {
    this.slots = Math.floor(memory.length / labelBytes) - 1
  }

  /**
   * Writes a label; answers its slot, {@link noSlot} if all are taken. `name` has {@link nameBytes} bytes; `id` is cut.
   */
  open(name: Uint8Array, id: string): number {
    if (this.used >= this.slots) return noSlot
    do this.last = (this.last % this.slots) + 1
    while (this.memory[this.last * labelBytes + nameBytes] !== 0)
    const at = this.last * labelBytes
    const text = encoder.encode(id.slice(0, idBytes)).subarray(0, idBytes)
    this.memory.set(name.subarray(0, nameBytes), at)
    this.memory.set(text, at + nameBytes + 1)
    this.memory[at + nameBytes] = Math.max(1, text.length)
    this.used++
    return this.last
  }

  close(slot: number): void {
    if (slot <= noSlot || slot > this.slots || this.memory[slot * labelBytes + nameBytes] === 0) return
    this.memory.fill(0, slot * labelBytes, (slot + 1) * labelBytes)
    this.used--
  }
}
