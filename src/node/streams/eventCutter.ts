/**
 * Cuts the bytes of a `POST /stream` into events, and parses the lines before each event's data.
 *
 * The data is not parsed, so passing an event on costs only its bytes. An event ends at the first empty line: its data
 * is JSON on one line.
 */
import * as Bytes from "../../core/bytes.ts"

/** `bytes`: from behind the line `view: <place>` to the empty line. */
export interface CutEvent {
  /** Undefined for an event of no view. */
  readonly place: number | undefined
  readonly name: string
  readonly id: string | undefined
  readonly bytes: Uint8Array
}

const newline = 10
const text = new TextDecoder()

/** Whether the bytes at `at` begin with these letters. */
const startsWith = (bytes: Uint8Array, at: number, letters: string): boolean => {
  for (let n = 0; n < letters.length; n++) if (bytes[at + n] !== letters.charCodeAt(n)) return false
  return true
}

const readEvent = (bytes: Uint8Array): CutEvent => {
  let place: number | undefined
  let from = 0
  let name = ""
  let id: string | undefined
  let at = 0
  while (at < bytes.length && !startsWith(bytes, at, "data: ")) {
    const end = bytes.indexOf(newline, at)
    const line = (start: number): string => text.decode(bytes.subarray(at + start, end))
    if (startsWith(bytes, at, "view: ")) {
      place = Number(line(6))
      from = end + 1
    } else if (startsWith(bytes, at, "event: ")) name = line(7)
    else if (startsWith(bytes, at, "id: ")) id = line(4)
    at = end + 1
  }
  return { place, name, id, bytes: from === 0 ? bytes : bytes.subarray(from) }
}

/** The data of an event, as JSON; undefined if it is none. */
export const dataOf = ({ bytes }: CutEvent): unknown => {
  const all = text.decode(bytes)
  try {
    return JSON.parse(all.slice(all.indexOf("data: ") + 6))
  } catch {
    return undefined
  }
}

export class EventCutter {
  /** The beginning of an incomplete event. */
  private held: Array<Uint8Array> = []
  private heldBytes = 0

  constructor(private readonly maxBytes: number) {}

  /** The events that end in this chunk, sharing its memory; undefined if one is longer than allowed. */
  push(chunk: Uint8Array): ReadonlyArray<CutEvent> | undefined {
    const events: Array<CutEvent> = []
    let at = 0
    for (;;) {
      const end = this.endIn(chunk, at)
      if (end === -1) break
      const piece = chunk.subarray(at, end)
      events.push(readEvent(this.heldBytes === 0 ? piece : this.whole(piece)))
      at = end
    }
    if (at < chunk.length) {
      // Copied: the chunk's memory is used again.
      this.held.push(chunk.slice(at))
      this.heldBytes += chunk.length - at
    }
    return this.heldBytes > this.maxBytes ? undefined : events
  }

  /** Position behind the next empty line. */
  private endIn(chunk: Uint8Array, from: number): number {
    const last = this.held[this.held.length - 1]
    if (from === 0 && last?.[last.length - 1] === newline && chunk[0] === newline) return 1
    for (let at = chunk.indexOf(newline, from); at !== -1; at = chunk.indexOf(newline, at + 1))
      if (chunk[at + 1] === newline) return at + 2
    return -1
  }

  private whole(end: Uint8Array): Uint8Array {
    const bytes = Bytes.joined([...this.held, end])
    this.held = []
    this.heldBytes = 0
    return bytes
  }
}
